"""Exceptions through compiled frames: from eager code after a break, from a compiled operation, caught in and outside."""
import linecache
import traceback

import torch

from know import Know

know = Know(__file__)
backend = know.backend()
x = torch.ones(3)


def lines_of(error):
    """The program's own part of a traceback: names, lines, and whether Python finds the text."""
    return [[entry.name, entry.lineno, bool(linecache.getline(entry.filename, entry.lineno))]
            for entry in traceback.extract_tb(error.__traceback__) if entry.filename == __file__]


def helper(x):
    raise KeyError("from eager code")


@torch.compiler.disable
def eager_helper(x):
    return helper(x)


@torch.compile(backend=backend)
def raises_after_break(x):
    y = x + 1
    eager_helper(y)                                                 # @eager
    return y * 2


@torch.compile(backend=backend)
def catches_inside(x, bad):
    try:
        if bad:
            raise ValueError("inside")
        return x + 1
    except ValueError:
        return x - 1


@torch.compile(backend=backend)
def wrong_shapes(x, y):
    return x @ y


@torch.compile(backend=backend)
def index(x, at):
    return x.sin()[at]


@torch.compile(backend=backend)
def asserts(x):
    assert x.shape[0] == 3, "three wanted"
    return x * 3


results = []
know.breaks("raises_after_break", "eager")
for turn in range(2):
    error = know.call(f"raises_after_break: {'hit' if turn else 'compiled'}", raises_after_break, x, raises=KeyError)
    results += [error, lines_of(error), [entry.name for entry in traceback.extract_stack()][-1]]
results.append(know.call("catches_inside: compiled", catches_inside, x, True))
results.append(know.call("catches_inside: compiled", catches_inside, x, False))
know.cause("catches_inside", 1, 0, "L['bad']", True, False)
results.append(know.call("catches_inside: hit", catches_inside, x, True))
# An operation that cannot be traced as its operands do not fit: torch's error, at compile time, every time.
for turn in range(2):
    error = know.call("wrong_shapes: callback_error", wrong_shapes, x, torch.ones(4), raises=RuntimeError)
    results.append(type(error).__name__)
results.append(know.call("wrong_shapes: compiled", wrong_shapes, x, torch.ones(3)))
results.append(know.call("index: compiled", index, x, torch.tensor([0, 2])))
# At run time: the graph fits by its shapes, the values do not.
results.append(know.call("index: hit", index, x, torch.tensor([0, 7]), raises=IndexError))
results.append(know.call("index: hit", index, x, torch.tensor([1, 1])))
results.append(know.call("asserts: compiled", asserts, x))
try:
    raise RuntimeError("pending")
except RuntimeError:
    results.append(know.call("asserts: hit", asserts, x))     # with an exception being handled
    results.append(know.call("catches_inside: hit", catches_inside, x, False))
know.done(raises_after_break, catches_inside, wrong_shapes, index, results=results)
