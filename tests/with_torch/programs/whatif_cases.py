"""Short torch programs, one after the other, under settings that the command line gives: whatif_cases.py KEY=VALUE...

Each function below is a program of its own: nothing is shared but the import of torch. Keys: recompile_limit;
dynamic=all (torch.compile(dynamic=True)); mark=NAME[DIM] (mark_dynamic on that argument); isolate=region."""
import inspect
import re
import sys

import torch
from torch import nn

SETTINGS = dict(word.split("=", 1) for word in sys.argv[1:])
MARKS = [(name, int(dimension)) for name, dimension in re.findall(r"(\w+)\[(\d+)\]", SETTINGS.get("mark", ""))]
limit = "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit"
setattr(torch._dynamo.config, limit, int(SETTINGS.get("recompile_limit", 8)))
CASES = []


def case(function):
    CASES.append(function)
    return function


def compiled(function, dynamic=None, backend="eager"):
    more = {"isolate_recompiles": True} if SETTINGS.get("isolate") else {}
    made = torch.compile(function, backend=backend, dynamic=True if SETTINGS.get("dynamic") == "all" else dynamic, **more)
    names = list(inspect.signature(function.forward if isinstance(function, nn.Module) else function).parameters)

    def call(*values):
        for name, dimension in MARKS:
            at = names.index(name) if name in names else len(values)
            if at < len(values) and isinstance(values[at], torch.Tensor) and values[at].dim() > dimension and values[at].size(dimension) > 1:
                torch._dynamo.mark_dynamic(values[at], dimension)
        return made(*values)
    return call


@case
def batches():
    def batches_f(x):
        return x * 2 + 1
    f = compiled(batches_f)
    for size in (4, 5, 6, 4, 7, 1, 5, 1, 9):
        f(torch.ones(size, 3))


@case
def width_is_batch():
    """A weight has the batch's size. It is no input: torch does not make them one symbol."""
    linear = nn.Linear(4, 8)

    def width_is_batch_f(x):
        return linear(x)
    f = compiled(width_is_batch_f)
    for size in (8, 5, 8, 7):
        f(torch.ones(size, 4))


@case
def marked_once():
    """A guard on marks that each entry has in other words, and that all calls pass."""
    def marked_once_f(x):
        return x - 1
    f = compiled(marked_once_f)
    x = torch.ones(4, 3)
    torch._dynamo.mark_dynamic(x, 0)
    for value in (x, torch.ones(5, 4), torch.ones(5, 5)):
        f(value)


@case
def sums():
    """Two sizes that must be equal: made dynamic together they are one symbol."""
    def sums_f(a, b):
        return a + b
    f = compiled(sums_f)
    for size in (8, 5, 7, 5):
        f(torch.ones(size, 2), torch.ones(size, 2))


@case
def counts():
    """A number that begins with 0 and 1, which torch compiles apart."""
    def counts_f(x, n):
        return x + n
    f = compiled(counts_f)
    for n in (0, 1, 2, 3):
        f(torch.ones(2), n)


@case
def batches_static():
    def batches_static_f(x):
        return x.sin() + 1
    f = compiled(batches_static_f, dynamic=False)
    for size in (4, 5, 6, 4, 5, 7, 7, 8, 4, 8, 6):
        f(torch.ones(size, 3))


@case
def products():
    def products_f(x, y):
        return x @ y
    f = compiled(products_f, dynamic=False)
    for a, b in ((4, 4), (5, 5), (4, 5), (5, 4), (4, 4), (6, 7), (4, 5), (6, 7)):
        f(torch.ones(a, 3), torch.ones(3, b))


@case
def numbers():
    def numbers_f(x, n):
        return x * n
    f = compiled(numbers_f, dynamic=False)
    for n in (2, 3, 4, 2, 3, 5, 5, 4, 2):
        f(torch.ones(3), n)


@case
def factors():
    def factors_f(x, factor):
        return x * factor
    f = compiled(factors_f, dynamic=False)
    for factor in (0.5, 0.25, 0.5, 0.125, 0.25, 0.125, 0.75, 0.75):
        f(torch.ones(3), factor)


@case
def modes():
    def modes_f(x, mode):
        return torch.relu(x) if mode == "relu" else torch.tanh(x) if mode == "tanh" else x.sigmoid() if mode == "sigmoid" else x.cos()
    f = compiled(modes_f)
    for mode in ("relu", "tanh", "relu", "sigmoid", "none", "tanh", "none", "sigmoid", "relu"):
        f(torch.ones(3), mode)


@case
def gives_up():
    """Dynamo finds nothing to compile in the last one, and does not look at the function again."""
    def gives_up_f(x, mode):
        return x.cos() if mode == "cos" else x.sin() if mode == "sin" else x
    f = compiled(gives_up_f)
    for mode in ("cos", "sin", "cos", "none", "sin", "none", "cos"):
        f(torch.ones(3), mode)


@case
def evens():
    """A size of which nothing comes but a condition: Dynamo finds nothing to compile, unless the size is a symbol."""
    def evens_f(x):
        return x / 2 if x.shape[0] % 2 == 0 else x
    f = compiled(evens_f, dynamic=False)
    for size, dtype in ((0, torch.float32), (6, torch.float32), (1, torch.float64), (8, torch.float64), (0, torch.float32), (2, torch.float32)):
        f(torch.ones(size, 3, dtype=dtype))


@case
def slices():
    """What one number must be depends on the other: 5 <= size is n <= size where n is a symbol, too."""
    def slices_f(x, n):
        return x[:n] * 2
    f = compiled(slices_f)
    for size, n in ((1, 5), (6, 5), (4, 3), (8, 1), (2, 4), (4, 1), (2, 2), (3, 1), (0, 0), (4, 2), (5, 5)):
        f(torch.ones(size, 3), n)


@case
def dtypes():
    def dtypes_f(x):
        return x + x
    f = compiled(dtypes_f)
    for dtype in (torch.float32, torch.float64, torch.float32, torch.int64, torch.float16, torch.int64, torch.float64, torch.float16):
        f(torch.ones(3, dtype=dtype))


@case
def ranks():
    def ranks_f(x):
        return x.sum()
    f = compiled(ranks_f)
    for shape in ((3,), (3, 3), (3, 3, 3), (3,), (3, 3), (3, 3, 3, 3), (3, 3, 3), (3, 3, 3, 3)):
        f(torch.ones(shape))


@case
def lists():
    def lists_f(tensors):
        return sum(tensors)
    f = compiled(lists_f)
    for count in (1, 2, 3, 1, 3, 4, 4, 2, 1):
        f([torch.ones(2)] * count)


@case
def masks():
    def masks_f(x, mask):
        return x if mask is None else x * mask
    f = compiled(masks_f)
    for mask in (None, torch.ones(3), None, torch.ones(3), None):
        f(torch.ones(3) * 2, mask)


@case
def attributes():
    class Scaled(nn.Module):
        def __init__(self, k):
            super().__init__()
            self.k = k

        def forward(self, x):
            return x * self.k
    for k in (1, 2, 3.5, 1, 3.5, 2):
        compiled(Scaled(k))(torch.ones(3))


@case
def gradients():
    def gradients_f(x):
        return x * 3
    f = compiled(gradients_f)
    for on in (True, False, True, False, False):
        with torch.set_grad_enabled(on):
            f(torch.ones(3))


@case
def breaks():
    def breaks_f(x, n):
        y = x * n
        torch._dynamo.graph_break()
        return y + n
    f = compiled(breaks_f, dynamic=False)
    for n in (2, 3, 4, 2, 3, 4):
        f(torch.ones(3), n)


@case
def layers():
    """Modules that share one forward, each compiled by itself."""
    class Layer(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.linear = nn.Linear(size, size)

        def forward(self, x):
            return self.linear(x)
    made = [compiled(Layer(size), dynamic=False) for size in (2, 3, 4)]
    for _ in range(2):
        for size, layer in zip((2, 3, 4), made):
            layer(torch.ones(1, size))


@case
def cache_that_grows():
    def attend(q, keys):
        return (q @ keys.transpose(0, 1)).softmax(-1)
    f = compiled(attend)
    keys = torch.ones(2, 4)
    for _ in range(5):
        f(torch.ones(1, 4), keys)
        keys = torch.cat([keys, torch.ones(1, 4)])


@case
def resets():
    def resets_f(x):
        return x - 1
    f = compiled(resets_f, dynamic=False)
    for _ in range(2):
        for size in (2, 3, 4, 3):
            f(torch.ones(size))
        torch._dynamo.reset()


@case
def backends():
    """Two torch.compile() of one function, told apart by their backends."""
    def backends_f(x):
        return x + 5

    def other(graph, inputs):
        return graph.forward
    one, two = compiled(backends_f, dynamic=False), compiled(backends_f, dynamic=False, backend=other)
    for size in (2, 3, 2, 4, 3):
        one(torch.ones(size))
        two(torch.ones(size))


for run in sorted(CASES, key=lambda function: function is resets): # a reset is everybody's
    run()
