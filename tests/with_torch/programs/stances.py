"""torch.compiler.set_stance, each of them, and disable: recursive, by itself, as a decorator and around a call."""
import torch

from know import Know

know = Know(__file__)
backend = know.backend()


@torch.compile(backend=backend, dynamic=False)
def f(x):
    return x.sin() + 1


one, two, three, four = (torch.ones(size) for size in (2, 3, 4, 5))
results = [know.call("f: compiled", f, one)]

# force_eager: torch does not even ask; the frame is a plain one.
with torch.compiler.set_stance("force_eager"):
    results.append(know.call("", f, two))
    results.append(know.call("", f, one))

# eager_on_recompile: what is there is used, nothing new is made.
with torch.compiler.set_stance("eager_on_recompile"):
    results.append(know.call("f: hit", f, one))
    results.append(know.call("f: run_only", f, two))
results.append(know.call("f: compiled", f, two))
know.cause("f", 1, 0, "L['x'].size()[0]", 2, 3, "TENSOR_MATCH")

# fail_on_recompile: a miss is an error; a hit is not.
torch.compiler.set_stance("fail_on_recompile")
results.append(know.call("f: hit", f, two))
results.append(know.call("f: callback_error", f, three, raises=RuntimeError))
for compilation in (2, 3):      # the refused one, and the one below
    know.cause("f", compilation, 0, "L['x'].size()[0]", 2, 4, "TENSOR_MATCH")
    know.cause("f", compilation, 1, "L['x'].size()[0]", 3, 4, "TENSOR_MATCH")
results.append(know.call("f: hit", f, one))
torch.compiler.set_stance("default")
results.append(know.call("f: compiled", f, three))

# skip_guard_eval_unsafe: only what tells the entries apart is looked at; a miss is an error.
with torch.compiler.set_stance(skip_guard_eval_unsafe=True):
    results.append(know.call("f: hit", f, two))
    results.append(know.call("f: hit", f, one))
results.append(know.call("f: hit", f, three))


# disable: the function and what it calls ...
@torch.compiler.disable
def loud(x):
    return quiet(x) * 2


def quiet(x):
    return x - 1


@torch.compile(backend=backend)
def g(x):
    y = x + 1
    z = loud(y)                                                     # @disabled
    return z + y


know.breaks("g", "disabled")
results.append(know.call("g: compiled, g@disabled: compiled", g, one))
results.append(know.call("g: hit, g@disabled: hit", g, one))


# ... or itself only: then what it calls is compiled in its own right.
@torch.compiler.disable(recursive=False)
def only_me(x):
    return quiet(x) * 2


@torch.compile(backend=backend)
def h(x):
    return only_me(x + 1) + 1                                       # @nonrecursive


# Old ones mark the function's code; since then a wrapper is marked, and the function asks each time and is told no.
left = "declined" if hasattr(torch._dynamo.decorators, "get_nonrecursive_disable_wrapper") else "skip"
know.breaks("h", "nonrecursive")
results.append(know.call(f"h: compiled, only_me: {left}, quiet: compiled, h@nonrecursive: compiled", h, one))
results.append(know.call(f"h: hit, only_me: {left}, quiet: hit, h@nonrecursive: hit", h, one))

# A backend by force for a while: the entries of the other do not count, though they would fit.
with torch.compiler.set_stance("default", force_backend="eager"):
    results.append(know.call("f: compiled", f, one, graphs=0))
for older in (0, 1, 3):
    know.cause("f", 4, older, None, None, None, "BACKEND_MATCH")
results.append(know.call("f: hit", f, one))
know.done(f, g, h, results=results)
