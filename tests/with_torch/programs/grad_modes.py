"""Modes that belong to the process or the thread and are guards: gradients, inference, autocast, default type, determinism."""
import torch

from know import TORCH, Know

know = Know(__file__)


@torch.compile(backend=know.backend())
def f(x, w):
    return (x @ w).relu()


x, w = torch.randn(4, 4), torch.randn(4, 4, requires_grad=True)
results = []
made = 0


def new(what, *older_flags):
    """One more compilation is due; each older entry is found wanting as its flag in OLDER_FLAGS, (name, wanted, seen), says."""
    global made
    results.append(know.call("f: compiled", f, x, w))
    for older, (source, expected, actual) in enumerate(older_flags):
        know.cause("f", made, older, source, expected, actual, "GLOBAL_STATE")
    made += 1
    results.append(know.call("f: hit", f, x, w))


# The flag that is named is the first that differs, in torch's order.
GRAD, GRAD_BACK = ("grad_mode", True, False), ("grad_mode", False, True)
AUTOCAST, AUTOCAST_BACK = ("autocast(cpu)_enabled", False, True), ("autocast(cpu)_enabled", True, False)
if TORCH < (2, 8):                                      # which does not list what it compares with
    AUTOCAST = AUTOCAST_BACK = ("autocast", None, None)
DETERMINISTIC = ("deterministic_algorithms", False, True)
new("plain")
with torch.no_grad():
    new("no_grad", GRAD)
with torch.autocast("cpu", dtype=torch.bfloat16):
    new("autocast", AUTOCAST, GRAD_BACK)
with torch.no_grad(), torch.enable_grad():
    results.append(know.call("f: hit", f, x, w))
torch.use_deterministic_algorithms(True)
new("deterministic", DETERMINISTIC, GRAD_BACK, AUTOCAST_BACK)
torch.use_deterministic_algorithms(False)
results.append(know.call("f: hit", f, x, w))


# A mode that the function itself changes is part of its graph and no guard.
@torch.compile(backend=know.backend())
def inside(x, w):
    with torch.no_grad():
        y = x @ w
    with torch.set_grad_enabled(True):
        z = x @ w
    return y, z


for turn in range(2):
    y, z = know.call(f"inside: {'hit' if turn else 'compiled'}", inside, x, w)
    results += [y, z, y.requires_grad, z.requires_grad]
with torch.inference_mode():
    results.append(know.call("inside: compiled", inside, x, w)[1].is_inference())
know.cause("inside", 1, 0, *GRAD, "GLOBAL_STATE")
assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
know.done(f, inside, results=results)
