"""What a limit does to what a function calls: whatif_callees.py CASE RECOMPILE_LIMIT."""
import sys

import torch

limit = "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit"
setattr(torch._dynamo.config, limit, int(sys.argv[2]))


def compiled(function):
    return torch.compile(function, backend="eager", dynamic=False)


def breaks_off(x):
    """outer() calls helper(), which has a graph break, and has code of its own then."""
    def leaf(x, n):
        return x.cos() * n

    def helper(x, n):
        y = x * n
        torch._dynamo.graph_break()
        return leaf(y, n) + n

    def outer(x, n):
        return helper(x, n) * 2
    f = compiled(outer)
    for n in (2, 3, 4, 2, 3, 4):
        f(x, n)


def taken_in(x):
    """outer() takes leaf() in, which is compiled for itself as well."""
    def leaf(x, n):
        return x.cos() * n

    def outer(x, n):
        return leaf(x, n) * 2
    f, g = compiled(outer), compiled(leaf)
    g(x, 5)
    for n in (2, 3, 4, 5, 2, 3, 4, 5):
        f(x, n)
    g(x, 5), g(x, 4)


def method(x):
    """The same of a method."""
    class Net(torch.nn.Module):
        def leaf(self, x, n):
            return x.cos() * n

        def forward(self, x, n):
            return self.leaf(x, n) * 2
    net = Net()
    f, g = compiled(net), compiled(net.leaf)
    g(x, 5)
    for n in (2, 3, 4, 5, 2, 3, 4, 5):
        f(x, n)
    g(x, 5), g(x, 4)


globals()[sys.argv[1]](torch.ones(3))
