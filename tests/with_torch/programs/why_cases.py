"""Small torch programs in one file, each with one planted cause, so that torch is imported once for all of them.

A program is a function below; what it compiles is named as ../test_why_programs.py asks for it. Nothing else is shared
but the import of torch, and at the end a reset, which is everybody's."""
import contextlib
import gc
import warnings

import torch
from torch import nn

config = torch._dynamo.config
LIMIT = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"
ACCUMULATED = "accumulated_recompile_limit" if hasattr(config, "accumulated_recompile_limit") else "accumulated_cache_size_limit"
PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def static(function, **more):
    return torch.compile(function, backend="eager", dynamic=False, **more)


def compiled(function, **more):
    return torch.compile(function, backend="eager", **more)


# ---- what recompiles -------------------------------------------------------

@program
def size():
    def size_f(x):
        return x.sin() + 1
    f = static(size_f)
    for n in (4, 5, 6, 4, 7):
        f(torch.ones(n, 3))


@program
def size_then_dynamic():
    """Torch makes the size dynamic by itself: one recompile, and no more."""
    def dynamic_f(x):
        return x.cos() - 1
    f = compiled(dynamic_f)
    for n in (4, 5, 6, 7):
        f(torch.ones(n, 3))


@program
def rank():
    def rank_f(x):
        return x.sum() + 1
    f = compiled(rank_f)
    for shape in ((4,), (4, 4), (4, 4, 4)):
        f(torch.ones(shape))


@program
def dtype():
    def dtype_f(x):
        return x + x
    f = compiled(dtype_f)
    for kind in (torch.float32, torch.float64, torch.float32):
        f(torch.ones(3, dtype=kind))


@program
def stride():
    def stride_f(x):
        return x * 3
    f = static(stride_f)
    f(torch.ones(4, 4))
    f(torch.ones(4, 4).t())


@program
def requires_grad():
    def requires_grad_f(x):
        return x * 5
    f = compiled(requires_grad_f)
    f(torch.ones(4))
    f(torch.ones(4, requires_grad=True))


@program
def integer():
    def integer_f(x, n):
        return x * n
    f = static(integer_f)
    for n in (2, 3, 4):
        f(torch.ones(3), n)


@program
def floating():
    def floating_f(x, rate):
        return x * rate
    f = static(floating_f)
    for rate in (0.5, 0.25, 0.125):
        f(torch.ones(3), rate)


@program
def string():
    def string_f(x, mode):
        return x.relu() if mode == "relu" else x.tanh()
    f = compiled(string_f)
    for mode in ("relu", "tanh", "relu"):
        f(torch.ones(3), mode)


SCALE = 2


@program
def global_changed():
    global SCALE

    def global_f(x):
        return x * SCALE
    f = static(global_f)
    f(torch.ones(3))
    SCALE = 7
    f(torch.ones(3))


@program
def module_attribute():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 2.0

        def forward(self, x):
            return x * self.scale
    model = Scaled()
    f = compiled(model)
    for scale in (2.0, 3.0, 4.0):
        model.scale = scale
        f(torch.ones(3))


@program
def new_lambda():
    def lambda_f(x, act):
        return act(x) + 1
    f = compiled(lambda_f)
    for _ in range(3):
        f(torch.ones(3), eval("lambda x: x * 2"))       # torch guards its code, which is another one each time


@program
def closure():
    def make(factor):
        def closure_f(x):
            return x * factor
        return closure_f
    for factor in (2, 3):
        static(make(factor))(torch.ones(3))


@program
def list_length():
    def list_f(tensors):
        return sum(tensors)
    f = compiled(list_f)
    for count in (1, 2, 3):
        f([torch.ones(2)] * count)


@program
def dict_key():
    def dict_f(batch):
        return batch["x"] * batch["mask"] if "mask" in batch else batch["x"] + 1
    f = compiled(dict_f)
    f({"x": torch.ones(3)})
    f({"x": torch.ones(3), "mask": torch.ones(3)})


@program
def none_or_tensor():
    def none_f(x, mask=None):
        return x - 1 if mask is None else x * mask
    f = compiled(none_f)
    f(torch.ones(3))
    f(torch.ones(3), torch.ones(3))


@program
def training_flag():
    class Dropping(nn.Module):
        def forward(self, x):
            return x * 0.5 if self.training else x + 0.5
    model = Dropping()
    f = compiled(model)
    f(torch.ones(3))
    model.eval()
    f(torch.ones(3))


@program
def grad_mode():
    def grad_f(x):
        return x * 6
    f = compiled(grad_f)
    f(torch.ones(3))
    with torch.no_grad():
        f(torch.ones(3))


@program
def autocast():
    def autocast_f(x):
        return x @ x
    f = compiled(autocast_f)
    f(torch.ones(3, 3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        f(torch.ones(3, 3))


@program
def default_dtype():
    def default_f(x):
        return x + torch.ones(3)
    f = compiled(default_f)
    f(torch.ones(3))
    torch.set_default_dtype(torch.float64)
    try:
        f(torch.ones(3))
    finally:
        torch.set_default_dtype(torch.float32)


@program
def static_mark():
    def marked_f(x):
        return x * 8
    f = compiled(marked_f)
    for n in (4, 5, 6):
        x = torch.ones(n)
        torch._dynamo.mark_static(x, 0)
        f(x)


@program
def backend_changed():
    def backend_f(x):
        return x + 9

    def other(graph, inputs):
        return graph.forward
    compiled(backend_f)(torch.ones(3))
    torch.compile(backend_f, backend=other)(torch.ones(3))


# ---- what runs eagerly -----------------------------------------------------

@program
def limit():
    def limit_f(x):
        return x * 10
    with config.patch(**{LIMIT: 2}):
        f = static(limit_f)
        for n in (3, 4, 5, 6, 5, 6):
            f(torch.ones(n))


@program
def accumulated_limit():
    def accumulated_f(x):
        return x * 11
    with config.patch(**{LIMIT: 8, ACCUMULATED: 2}):
        f = static(accumulated_f)
        for n in (3, 4, 5, 6):
            f(torch.ones(n))


@program
def callee_at_limit():
    """A function at its limit runs eagerly, and nothing new is compiled for the calls that it makes."""
    def callee_f(x):
        return x * 12

    def caller_f(x):
        return callee_f(x + 1)
    with config.patch(**{LIMIT: 1}):
        static(callee_f)(torch.ones(3))
        f = static(caller_f)
        for n in (3, 4, 5):
            f(torch.ones(n))


@program
def eager_on_recompile():
    def run_only_f(x):
        return x * 13
    f = static(run_only_f)
    f(torch.ones(3))
    with torch.compiler.set_stance("eager_on_recompile"):
        f(torch.ones(4))
        f(torch.ones(4))


@program
def fail_on_recompile():
    def failing_f(x):
        return x * 14
    f = static(failing_f)
    f(torch.ones(3))
    with torch.compiler.set_stance("fail_on_recompile"), contextlib.suppress(RuntimeError):
        f(torch.ones(4))


@program
def force_eager():
    def forced_f(x):
        return x * 15
    f = compiled(forced_f)
    with torch.compiler.set_stance("force_eager"):
        f(torch.ones(3))
        f(torch.ones(3))


@program
def disabled():
    @torch.compiler.disable
    def loud_f(x):
        return x * 16

    def disabling_f(x):
        return loud_f(x + 1) + 1
    f = compiled(disabling_f)
    f(torch.ones(3))
    f(torch.ones(3))


@program
def disabled_itself():
    @torch.compiler.disable(recursive=False)
    def itself_f(x):
        return x * 17

    def around_f(x):
        return itself_f(x + 1) + 1
    f = compiled(around_f)
    f(torch.ones(3))
    f(torch.ones(3))


@program
def skipped():
    """A break where the graph cannot be broken: torch gives up all of the function."""
    class Breaking:
        def __enter__(self):
            torch._dynamo.graph_break()

        def __exit__(self, *_):
            return False

    def skipped_f(x):
        with Breaking():
            for _ in range(2):
                x = x + 1
                torch._dynamo.graph_break()
        return x * 18
    f = compiled(skipped_f)
    f(torch.ones(3))
    f(torch.ones(3))


@program
def nothing_to_compile():
    def plain_f(n):
        return n + 1
    f = compiled(plain_f)
    f(1)
    f(1)


@program
def generator():
    def generator_f(x):
        yield x + 1
        yield x + 2
    f = compiled(generator_f)
    list(f(torch.ones(3)))
    list(f(torch.ones(3)))


@program
def never_compiled():
    def never_f(x):
        return x * 20
    never_f(torch.ones(3))
    never_f(torch.ones(3))


@program
def taken_in():
    """Never seen: torch takes it into the code of its caller."""
    def inner_f(x, n):
        return x * n if n > 2 else x + 1

    def outer_f(x, n):
        return inner_f(x, n) + 1
    static(outer_f)(torch.ones(3), 4)


@program
def slow_guards():
    """A guard for every number of a long list, and one small operation."""
    def guarded_f(x, numbers):
        return x * sum(numbers)
    f = static(guarded_f)
    for _ in range(30):
        f(torch.ones(3), list(range(400)))


@program
def full_graph():
    def full_f(x):
        print(end="")
        return x * 21
    with contextlib.suppress(Exception):
        compiled(full_f, fullgraph=True)(torch.ones(3))


@program
def broken_backend():
    def unbacked_f(x):
        return x * 22

    def broken(graph, inputs):
        raise ValueError("out of registers")
    with contextlib.suppress(Exception):
        torch.compile(unbacked_f, backend=broken)(torch.ones(3))


# ---- graph breaks ----------------------------------------------------------

@program
def print_break():
    def print_f(x):
        y = x + 1
        print("", end="")
        return y * 23
    f = compiled(print_f)
    f(torch.ones(3))
    f(torch.ones(3))


@program
def item_break():
    def item_f(x):
        n = x.sum().item()
        return x * n
    f = compiled(item_f)
    f(torch.ones(3))
    f(torch.ones(3))


@program
def branch_break():
    def branch_f(x):
        if x.sum() > 0:
            return x * 24
        return x - 24
    f = compiled(branch_f)
    f(torch.ones(3))
    f(-torch.ones(3))


@program
def cascade():
    """The size changes; the rest after the break, and a callee behind another, are compiled again because of that."""
    def behind_f(x):
        return x - 25

    @torch.compiler.disable(recursive=False)
    def between_f(x):
        return behind_f(x)

    def cascade_f(x):
        y = x + 25
        torch._dynamo.graph_break()
        return between_f(y * 2)
    f = static(cascade_f)
    for n in (16, 18, 20):
        f(torch.ones(n))


# ---- entries that die ------------------------------------------------------

@program
def collected():
    """A class that is passed in is guarded by identity; it dies, and its entries with it."""
    def holder_f(kind, x):
        return x + kind.amount
    f = compiled(holder_f)
    for amount in (3, 5):
        kind = type("Kind", (), {"amount": amount})
        f(kind, torch.ones(3))
        kind = None
        gc.collect()


def reset():
    def reset_f(x):
        return x * 27
    f = compiled(reset_f)
    f(torch.ones(3))
    torch._dynamo.reset()
    f(torch.ones(3))


warnings.simplefilter("ignore")
for run in [*PROGRAMS, reset]:
    run()
