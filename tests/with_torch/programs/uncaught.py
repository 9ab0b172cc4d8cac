"""An error that nobody catches leaves through compiled frames: status 1 and the same traceback, frame by frame."""
import sys

import torch

from know import Know

know = Know(__file__)
backend = know.backend()


class Wrong(Exception):
    """Raised by eager code that compiled code calls."""


@torch.compiler.disable
def check(x):
    if x.sum() > 5:
        raise Wrong("too much")


@torch.compile(backend=backend)
def inner(x):
    x = x + 1
    check(x)                                                        # @check
    return x * 2


@torch.compile(backend=backend)
def outer(x):
    return inner(x * 3) - 1                                             # @outer


results = []
know.breaks("outer", "outer")
know.breaks("inner", "check")
results.append(know.call("outer: compiled, inner: compiled, inner@check: compiled, outer@outer: compiled", outer, torch.zeros(3)))
know.expect("outer: hit, inner: hit")
print("before", file=sys.stderr)
know.done(outer, inner, results=results, status=1)
outer(torch.ones(3))
