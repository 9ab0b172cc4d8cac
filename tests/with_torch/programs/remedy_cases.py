"""Programs that need a remedy of src/trace/remedies.txt, and the same with it applied: argv[1] is "needs" or "mended".

A case is a function of MENDED; what it compiles is named CASE_f. What `why` has to say of it stands beside it; the test is
../test_torch_remedies.py. The calls are the same either way but for what the remedy changes."""
import contextlib
import gc
import inspect
import logging
import sys
import types
import warnings

import torch
from torch import nn

config = torch._dynamo.config
LIMIT = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"
ISOLATES = "isolate_recompiles" in inspect.signature(torch.compile).parameters
CASES = []


def case(function):
    CASES.append(function)
    return function


def compiled(function, **more):
    return torch.compile(function, backend="eager", **more)


def by_itself(target, mended):
    """MENDED: with entries and a limit of its own; where torch has no word for that, by a code object of its own."""
    if mended and not ISOLATES:
        f = target.forward.__func__ if isinstance(target, nn.Module) else target
        f = types.FunctionType(f.__code__.replace(), f.__globals__, f.__name__, f.__defaults__, f.__closure__)
        if isinstance(target, nn.Module):
            target.forward = types.MethodType(f, target)
        else:
            target = f
    return compiled(target, **{"isolate_recompiles": True} if mended and ISOLATES else {})


def static(function, **more):
    return compiled(function, dynamic=False, **more)


def ones(*size, **more):
    return torch.ones(*size, **more)


def each(f, *calls):
    for call in calls:
        f(*call)


# ---- recompiles ------------------------------------------------------------

@case
def automatic(mended):
    """The second entry shows what a dynamic one takes."""
    def automatic_f(x):
        return x.sin() + 31
    f = compiled(automatic_f)
    for n in (4, 5, 6, 4, 7):
        x = ones(n, 3)
        if mended:
            torch._dynamo.mark_dynamic(x, 0)
        f(x)


@case
def automatic_two(mended):
    def automatic_two_f(x):
        return x.sin() + 32
    f = compiled(automatic_two_f)
    for n in (4, 5, 6):
        x = ones(n, n + 3)
        if mended:
            torch._dynamo.maybe_mark_dynamic(x, (0, 1))
        f(x)


@case
def all_dynamic(mended):
    """Batch and length change one after the other, as in training."""
    def all_dynamic_f(x):
        return x.sin() + 33
    f = compiled(all_dynamic_f, **{"dynamic": True} if mended else {})
    for batch, length in ((8, 27), (8, 32), (6, 24), (6, 30)):
        f(ones(batch, length))


@case
def behind_a_break(mended):
    """mark_dynamic(x, 0) raises here: x + y behind the break wants the size of y, which is no dynamic one."""
    def behind_a_break_f(x):
        y = x * 2
        torch._dynamo.graph_break()
        return x + y
    f = compiled(behind_a_break_f)
    for n in (6, 3):
        x = ones(n)
        if mended:
            torch._dynamo.maybe_mark_dynamic(x, 0)
        f(x)


@case
def last_batch(mended):
    def last_batch_f(x):
        return x.sin() + 34
    f = compiled(last_batch_f)
    for n in (8, 8, 8, 3) * 2:
        if n == 8 or not mended:
            f(ones(n, 5))


@case
def constant_number(mended):
    """A tensor is no key of a dict: to pass one gives another result."""
    def constant_number_f(x, table, n):
        if n if mended else n in table:
            return x + 35
        return x + 36
    f = compiled(constant_number_f)
    for n in range(2, 6):
        table = dict.fromkeys(range(2, 6))
        f(ones(2), table, n in table if mended else n)


@case
def scheduled_rate(mended):
    """alpha= is a number in the graph, so torch makes the rate one again after it made it dynamic."""
    def scheduled_rate_f(x, grad, lr):
        return x.add(grad, alpha=-lr) if not torch.is_tensor(lr) else x - grad * lr
    f = torch.compile(scheduled_rate_f, backend="aot_eager")
    for lr in (0.5, 0.4, 0.3, 0.2):
        f(ones(3), ones(3), torch.tensor(lr) if mended else lr)


@case
def float_again(mended):
    def float_again_f(x, grad, share):
        return x.add(grad, alpha=share) if not torch.is_tensor(share) else x + grad * share
    f = torch.compile(float_again_f, backend="aot_eager")
    for share in (0.5, 0.4, 0.3, 0.2):
        f(ones(3), ones(3), torch.tensor(share) if mended else share)


@case
def parameter_sizes(mended):
    def parameter_sizes_f(parameters):
        return [one - one.mean() for one in parameters]
    f = compiled(parameter_sizes_f)
    with config.patch(force_parameter_static_shapes=False) if mended else contextlib.nullcontext():
        for n in (40, 8, 12, 16):
            f([nn.Parameter(ones(4, n))])


@case
def key_order(mended):
    def key_order_f(**feats):
        total = 0
        for name in sorted(feats) if mended else feats:
            total = total * 2 + feats[name]
        return total
    f = compiled(key_order_f)
    for names in ("abc", "cab", "bca"):
        f(**{name: ones(3) for name in names})


@case
def lengths_of_modules(mended):
    class Stack(nn.Module):
        def __init__(self, count):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(count))

        def lengths_of_modules_f(self, x):
            for layer in self.layers:
                x = layer(x)
            return x
        forward = lengths_of_modules_f
    with config.patch({LIMIT: 3}):
        for count in range(1, 6):
            by_itself(Stack(count), mended)(ones(2, 4))


@case
def one_then_more(mended):
    def one_then_more_f(x):
        return x.sin() + 37
    f = compiled(one_then_more_f, dynamic=True)
    for n in (1, 2, 5, 1):
        x = ones(n, 3)
        if mended:
            torch._dynamo.decorators.mark_unbacked(x, 0)
        f(x)


@case
def inlined_print(mended):
    """What torch 2.13 lets print at the end of the graph, it loses where the print is in a function that was taken in."""
    def noisy(x):
        if not mended:
            print("", end="")
        return x * 2

    def inlined_print_f(x):
        return noisy(x) + 38
    f = compiled(inlined_print_f)
    f(ones(3)), f(ones(3))


@case
def size(mended):
    def size_f(x):
        return x.sin() + 1
    f = static(size_f)
    for n in (4, 5, 6, 4, 7):
        x = ones(n, 3)
        if mended:
            torch._dynamo.mark_dynamic(x, 0)
        f(x)


@case
def two_sizes(mended):
    def two_sizes_f(x, y):
        return x + y
    f = static(two_sizes_f)
    for n in (4, 5, 6):
        x, y = ones(n), ones(n)
        if mended:
            torch._dynamo.mark_dynamic(x, 0), torch._dynamo.mark_dynamic(y, 0)
        f(x, y)


@case
def apart(mended):
    """Two numbers: to mend one of them leaves recompiles."""
    def apart_f(x, rate, bias):
        return x * rate + bias
    f = static(apart_f)
    for numbers in ((0.5, 0.25), (0.75, 0.25), (0.75, 0.125), (0.3, 0.125), (0.3, 0.6)):
        f(ones(3), *(map(torch.tensor, numbers) if mended else numbers))


@case
def size_and_number(mended):
    """The same of a size and a number: what a size that was not dynamic would do is a guess, and so is what both do."""
    def size_and_number_f(x, n):
        return x * n
    f = static(size_and_number_f)
    for size, n in ((4, 2), (5, 2), (5, 3), (6, 3), (6, 4)):
        x = ones(size)
        if mended:
            torch._dynamo.mark_dynamic(x, 0)
        f(x, torch.tensor(n) if mended else n)


@case
def constant_at_limit(mended):
    """No mark_dynamic() helps; the best what-if would say that it does."""
    def constant_at_limit_f(x):
        return x.sum() * list(range(20))[x.shape[0]]
    with config.patch(**{LIMIT: 4 if mended else 2}):
        each(compiled(constant_at_limit_f), *[(ones(n),) for n in (4, 5, 6, 7)])


@case
def square(mended):
    def square_f(x):
        return x @ x
    f = compiled(square_f)
    for n in (4, 5, 6):
        x = ones(n, n)
        if mended:
            torch._dynamo.mark_dynamic(x, [0, 1])
        f(x)


@case
def branching_size(mended):
    """mark_dynamic() raises here, so that it must not be proposed."""
    def branching_size_f(x):
        return x + 1 if x.shape[0] == 4 else x - 1
    f = compiled(branching_size_f)
    for n in (4, 5, 6):
        x = ones(n)
        if mended:
            torch._dynamo.maybe_mark_dynamic(x, 0)
        f(x)


@case
def constant_size(mended):
    """And here."""
    def constant_size_f(x, k=None):
        return x.sum() * (list(range(20))[x.shape[0]] if k is None else k)
    f = compiled(constant_size_f)
    for n in (4, 5, 6):
        x, k = ones(n), None
        if mended:
            torch._dynamo.mark_dynamic(x, 0)
            k = torch.tensor(n)
        f(x, k)


@case
def small(mended):
    def small_f(x):
        return x.sin() + 1
    f = compiled(small_f, dynamic=True)
    for n in (4, 5, 1, 0):
        x = ones(n)
        if mended:
            torch._dynamo.decorators.mark_unbacked(x, 0)
        f(x)


@case
def small_first(mended):
    def small_first_f(x):
        return x.sin() + 1
    f = compiled(small_first_f)
    for n in (1, 0, 1):
        x = ones(n)
        if mended:
            torch._dynamo.decorators.mark_unbacked(x, 0)
        f(x)


@case
def relation(mended):
    def relation_f(x):
        return x + 1 if x.shape[0] > 10 else x - 1
    each(compiled(relation_f, dynamic=True), *[(ones(16 if mended else n),) for n in (12, 14, 4, 5)])


@case
def parameters(mended):
    class Sized(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.w = nn.Parameter(ones(n))

        def forward(self, x):
            return x.sum() * self.w
    Sized.forward.__qualname__ = "parameters_f"
    Sized.forward.__code__ = Sized.forward.__code__.replace(co_qualname="parameters_f", co_name="parameters_f")
    for module in [by_itself(Sized(n), mended) for n in range(3, 14)]:
        module(ones(3))
        module(ones(3))


@case
def many_lambdas(mended):
    def make(k):
        def many_lambdas_f(x):
            return x + len(k)
        return many_lambdas_f
    for f in [by_itself(make(k), mended) for k in "abcdefghijk"]:
        f(ones(3))
        f(ones(3))


@case
def class_again(mended):
    class Kept:
        scale = 2.0

    def class_again_f(x, options):
        return x * options.scale
    f, classes = compiled(class_again_f), []
    for _ in range(3):
        class Options:
            scale = 2.0
        kind = Kept if mended else Options
        classes.append(kind)
        f(ones(3), kind())


@case
def class_dies(mended):
    class Kept:
        scale = 2.0

    def class_dies_f(x, options):
        return x * options.scale
    f = compiled(class_dies_f)
    for _ in range(3):
        kind = Kept if mended else type("Options", (), {"scale": 2.0})
        f(ones(3), kind())
        del kind
        gc.collect()


@case
def object_dies(mended):
    class Kept:
        amount = 3

    def object_dies_f(kind, x):
        return x + kind.amount
    f = compiled(object_dies_f)
    for _ in range(3):
        kind = Kept if mended else type("Kind", (), {"amount": 3})
        f(kind, ones(3))
        kind = None
        gc.collect()


@case
def exec_again(mended):
    text, made = "def exec_again_f(x):\n    return x * 2\n", {}
    exec(text, made)
    for _ in range(4):
        if not mended:
            made = {}
            exec(text, made)
        compiled(made["exec_again_f"])(ones(3))


@case
def backend(mended):
    def backend_f(x):
        return x + 9

    def make():
        return lambda graph, inputs: graph.forward
    one = make()
    for _ in range(3):
        torch.compile(backend_f, backend=one if mended else make())(ones(3))


@case
def grad_mode(mended):
    def grad_mode_f(x):
        return x * 6
    f = compiled(grad_mode_f)
    f(ones(3))
    with contextlib.nullcontext() if mended else torch.no_grad():
        f(ones(3))


@case
def autocast(mended):
    def autocast_f(x):
        return x @ x
    f = compiled(autocast_f)
    f(ones(3, 3))
    with contextlib.nullcontext() if mended else torch.autocast("cpu", dtype=torch.bfloat16):
        f(ones(3, 3))


@case
def default_dtype(mended):
    def default_dtype_f(x):
        return x * 3
    f = compiled(default_dtype_f)
    f(ones(3))
    if not mended:
        torch.set_default_dtype(torch.float64)
    f(ones(3, dtype=torch.float32))
    torch.set_default_dtype(torch.float32)


@case
def two_flags(mended):
    """Two flags of one guard: to mend one is not to drop the guard."""
    def two_flags_f(x):
        return x * 3
    f = compiled(two_flags_f)
    for dtype in (torch.float32, torch.float64):
        if not mended:
            torch.set_default_dtype(dtype)
        for grad in (True, False):
            with torch.set_grad_enabled(grad):
                f(ones(3, dtype=torch.float32))
    torch.set_default_dtype(torch.float32)


@case
def default_device(mended):
    def default_device_f(x):
        return x * 4
    f = compiled(default_device_f)
    torch.set_default_device("cpu" if mended else None)
    f(ones(3))
    torch.set_default_device("cpu")
    f(ones(3))
    torch.set_default_device(None)


@case
def function_modes(mended):
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    def function_modes_f(x):
        return x * 5
    f = compiled(function_modes_f)
    f(ones(3))
    with contextlib.nullcontext() if mended else Mode():
        f(ones(3))


@case
def training(mended):
    class Dropping(nn.Module):
        def forward(self, x):
            return x * 0.5 if self.training else x + 0.5
    Dropping.forward.__code__ = Dropping.forward.__code__.replace(co_qualname="training_f", co_name="training_f")
    model = Dropping()
    f = compiled(model)
    f(ones(3))
    if not mended:
        model.eval()
    f(ones(3))


@case
def learning_rate(mended):
    def learning_rate_f(x, group):
        return x * group["lr"]
    f = static(learning_rate_f)
    for lr in (0.1, 0.2, 0.3):
        f(ones(3), {"lr": torch.tensor(lr) if mended else lr})


@case
def aliasing(mended):
    def aliasing_f(x, y):
        return x + y
    f = compiled(aliasing_f)
    x, y = ones(3), ones(3)
    f(x, y)
    f(x, x.clone() if mended else x)


@case
def marking(mended):
    def marking_f(x):
        return x * 7
    f = compiled(marking_f)
    for marked in (False, True, False, True):
        x = ones(4)
        if marked or mended:
            torch._dynamo.mark_dynamic(x, 0)
        f(x)


@case
def stride(mended):
    def stride_f(x):
        return x * 3
    f = static(stride_f)
    each(f, (ones(4, 4),), (ones(4, 4).t().contiguous() if mended else ones(4, 4).t(),))


@case
def rank(mended):
    def rank_f(x):
        return x.sum() + 1
    each(compiled(rank_f), *[(ones(64).reshape(-1) if mended else ones(64).reshape(shape),) for shape in ((64,), (8, 8), (4, 4, 4))])


@case
def dtype(mended):
    def dtype_f(x):
        return x + x
    each(compiled(dtype_f), *[(ones(3, dtype=torch.float32 if mended else kind),) for kind in (torch.float32, torch.float64)])


@case
def two_aspects(mended):
    """Four compiles; to mend the dtype leaves two, to drop the guard would leave one."""
    def two_aspects_f(x):
        return x + x
    each(compiled(two_aspects_f), *[(ones(3, dtype=torch.float32 if mended else kind, requires_grad=grad),)
                                    for kind in (torch.float32, torch.float64) for grad in (False, True)])


@case
def device(mended):
    def device_f(x):
        return x + x
    each(compiled(device_f), (ones(3),), (ones(3, device="cpu" if mended else "meta"),))


@case
def requires_grad(mended):
    def requires_grad_f(x):
        return x * 5
    x = ones(4, requires_grad=True)
    each(compiled(requires_grad_f), (ones(4),), (x.detach() if mended else x,))


@case
def one_type(mended):
    def one_type_f(x, y):
        return x + y
    each(compiled(one_type_f), (ones(3), torch.tensor(2.0)), (ones(3), torch.tensor(2.0) if mended else 2))


@case
def keys(mended):
    def keys_f(batch):
        return batch["x"] * batch["mask"] if "mask" in batch else batch["x"] + 1
    mask = {"mask": ones(3)}
    each(compiled(keys_f), ({"x": ones(3), **(mask if mended else {})},), ({"x": ones(3), **mask},))


@case
def length(mended):
    def length_f(tensors):
        return sum(tensors)
    each(compiled(length_f), *[([ones(2)] * (3 if mended else count),) for count in (1, 2, 3)])


@case
def module_integer(mended):
    class Counting(nn.Module):
        n = 2

        def forward(self, x):
            return x * self.n
    Counting.forward.__code__ = Counting.forward.__code__.replace(co_qualname="module_integer_f", co_name="module_integer_f")
    model = Counting()
    f = compiled(model)
    with config.patch(allow_unspec_int_on_nn_module=mended):
        for n in (2, 3, 4):
            model.n = n
            f(ones(3))


@case
def attribute_number(mended):
    class Scaled(nn.Module):
        def forward(self, x):
            return x * self.scale
    Scaled.forward.__code__ = Scaled.forward.__code__.replace(co_qualname="attribute_number_f", co_name="attribute_number_f")
    model = Scaled()
    f = static(model)
    for scale in (2.0, 3.0, 4.0):
        model.scale = torch.tensor(scale) if mended else scale
        f(ones(3))


SCALE = 2


@case
def global_number(mended):
    global SCALE

    def global_number_f(x):
        return x * SCALE
    f = static(global_number_f)
    for scale in (2, 7, 9):
        SCALE = torch.tensor(scale) if mended else scale
        f(ones(3))


@case
def number(mended):
    def number_f(x, rate):
        return x * rate
    each(static(number_f), *[(ones(3), torch.tensor(rate) if mended else rate) for rate in (0.5, 0.25, 0.125)])


@case
def function_again(mended):
    def function_again_f(x, act):
        return act(x) + 1
    f = compiled(function_again_f)
    one = eval("lambda x: x * 2")
    kept = [one if mended else eval("lambda x: x * 2") for _ in range(3)]
    each(f, *[(ones(3), act) for act in kept])


@case
def attribute(mended):
    class Options:
        def __init__(self):
            if mended:
                self.bias = 1.0

    def attribute_f(x, options):
        return x + options.bias if hasattr(options, "bias") else x - 1
    f, options = compiled(attribute_f), Options()
    f(ones(3), options)
    options.bias = 1.0
    f(ones(3), options)


@case
def none(mended):
    def none_f(x, mask=None):
        return x - 1 if mask is None else x * mask
    each(compiled(none_f), (ones(3), ones(3) if mended else None), (ones(3), ones(3)))


@case
def flag(mended):
    def flag_f(x, flag):
        return x - 1 if flag else x + 1
    each(compiled(flag_f), (ones(3), True), (ones(3), mended))


@case
def string(mended):
    def string_f(x, mode):
        return x.relu() if mode == "relu" else x.tanh()
    each(compiled(string_f), *[(ones(3), "relu" if mended else mode) for mode in ("relu", "tanh", "relu", "gelu")])


@case
def reset(mended):
    def reset_f(x):
        return x * 27
    f = compiled(reset_f)
    f(ones(3))
    if not mended:
        torch.compiler.reset()
    f(ones(3))


# ---- calls that run eagerly --------------------------------------------------

@case
def limit(mended):
    def limit_f(x):
        return x * 10
    with config.patch(**{LIMIT: 5 if mended else 2}):
        each(static(limit_f), *[(ones(n),) for n in (3, 4, 5, 6, 7, 5, 6)])


@case
def caller_at_limit(mended):
    def caller_at_limit_f(x):
        return x * 12

    def caller_f(x):
        return caller_at_limit_f(x + 1)
    with config.patch(**{LIMIT: 3 if mended else 1}):
        static(caller_at_limit_f)(ones(3))
        each(static(caller_f), *[(ones(n),) for n in (3, 4, 5)])


@case
def first_call(mended):
    """The first call has nothing to compute with, and decides for all."""
    def first_call_f(tensors):
        total = 0
        for tensor in tensors:
            total = total + tensor * 2
        return total
    f = compiled(first_call_f)
    if not mended:
        f([])
    for _ in range(4):
        f([ones(3)])


@case
def not_in_loop(mended):
    class Breaking:
        def __enter__(self):
            torch._dynamo.graph_break()

        def __exit__(self, *_):
            return False

    def not_in_loop_f(x):
        if mended:
            return x * 18
        with Breaking():
            for _ in range(2):
                x = x + 1
                torch._dynamo.graph_break()
        return x * 18
    each(compiled(not_in_loop_f), (ones(3),), (ones(3),))


# ---- graph breaks ------------------------------------------------------------

@case
def print_break(mended):
    def print_break_f(x):
        y = x + 1
        if not mended:
            print("", end="")
        return y * 23
    each(compiled(print_break_f), (ones(3),), (ones(3),))


@case
def exec_break(mended):
    made = {}
    exec("def inner(x):\n    return x + 1\n", made)
    inner, code = made["inner"], compile("y = x + 1", "<text>", "exec")

    def exec_break_f(x):
        if mended:
            return inner(x) * 2
        names = {"x": x}
        exec(code, names)
        return names["y"] * 2
    each(compiled(exec_break_f), (ones(3),), (ones(3),))


@case
def warn_break(mended):
    def warn_break_f(x):
        y = x + 1
        warnings.warn("careful")
        return y * 2
    with config.patch(reorderable_logging_functions={warnings.warn} if mended else set()):
        each(compiled(warn_break_f), (ones(3),), (ones(3),))


@case
def log_break(mended):
    logger = logging.getLogger("quiet")

    def log_break_f(x):
        y = x + 1
        logger.warning("careful")
        return y * 2
    logger.addHandler(logging.NullHandler()), setattr(logger, "propagate", False)
    name = "ignore_logging_functions" if hasattr(config, "ignore_logging_functions") else "ignore_logger_methods"
    with config.patch(**{name: {logging.Logger.warning} if mended else set()}):
        each(compiled(log_break_f), (ones(3),), (ones(3),))


@case
def item_break(mended):
    def item_break_f(x):
        n = x.sum().item()
        return x * n
    with config.patch(capture_scalar_outputs=mended):
        each(compiled(item_break_f), (ones(3),), (ones(3),))


@case
def shape_break(mended):
    def shape_break_f(x):
        return torch.nonzero(x) + 1
    with config.patch(capture_dynamic_output_shape_ops=mended):
        each(compiled(shape_break_f), (ones(3),), (ones(3),))


@case
def branch_break(mended):
    def branch_break_f(x):
        if mended:
            return torch.where(x.sum() > 0, x * 24, x - 24)
        if x.sum() > 0:
            return x * 24
        return x - 24
    each(compiled(branch_break_f), (ones(3),), (-ones(3),))


@case
def disable_break(mended):
    def loud(x):
        return x * 16
    if not mended:
        loud = torch.compiler.disable(loud)

    def disable_break_f(x):
        return loud(x + 1) + 1
    each(compiled(disable_break_f), (ones(3),), (ones(3),))


@case
def own_break(mended):
    def own_break_f(x):
        x = x + 1
        if not mended:
            torch._dynamo.graph_break()
        return x * 2
    each(compiled(own_break_f), (ones(3),), (ones(3),))


@case
def torchs_break(mended):
    weight = nn.Parameter(ones(3))
    weight.grad = ones(3)
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def torchs_break_f(x):
        y = x * 2
        if not mended:
            optimizer.step()
        return y + 1
    f = compiled(torchs_break_f)
    for _ in range(2):
        f(ones(3))
        if mended:
            optimizer.step()


@case
def backward_break(mended):
    weight = ones(3, requires_grad=True)

    def backward_break_f(x):
        loss = (x * weight).sum()
        if not mended:
            loss.backward()
        return loss
    f = compiled(backward_break_f)
    for _ in range(2):
        loss = f(ones(3))
        if mended:
            loss.backward()


# ---- nothing -----------------------------------------------------------------

@case
def clean(mended):
    def clean_f(x):
        return x * 30
    each(compiled(clean_f), (ones(3),), (ones(3),), (ones(3),))


def wrap(function):
    def wrapper_f(self, *args):
        return function(self, *args)
    return wrapper_f


@case
def wrapper(mended):
    class Bert(nn.Module):
        @wrap
        def forward(self, x):
            return x * 31
    each(compiled(Bert()), (ones(3),), (ones(3),))


def main():
    warnings.simplefilter("ignore")
    for one in CASES:
        if one is not reset:
            one(sys.argv[1] == "mended")
    reset(sys.argv[1] == "mended")  # last: it is everybody's


main()
