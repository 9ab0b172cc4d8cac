"""Programs of which `why` says that nothing is to be changed, or that have to be edited; ../test_advice.py asks."""
import torch
from torch import nn


def compiled(function, **more):
    return torch.compile(function, backend="eager", **more)


def transforms():
    def transforms_f(x):
        return torch.vmap(lambda t: t.sin())(x)
    f, x = compiled(transforms_f), torch.zeros(3, 3, 4, 5)
    for _ in range(2):
        f(x), torch.vmap(f)(x), torch.vmap(torch.vmap(f))(x)


def train_and_evaluate():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin, self.drop = nn.Linear(4, 4), nn.Dropout(0.1)

        def train_and_evaluate_f(self, x):
            return self.drop(self.lin(x))
        forward = train_and_evaluate_f
    net = Net()
    f = compiled(net)
    for _ in range(2):
        net.train(), f(torch.ones(2, 4)), net.eval()
        with torch.no_grad():
            f(torch.ones(2, 4))


def closures():
    """One code object, three functions, no limit met: entries of their own would make no fewer."""
    def make(scale):
        def closures_f(x):
            return x * len(scale)
        return compiled(closures_f)
    kept = [make(scale) for scale in ("a", "bb", "ccc")]
    for f in kept:
        f(torch.ones(3))


def scheduled():
    net = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

    @compiled
    def scheduled_f():
        optimizer.step()
    for _ in range(3):
        net(torch.ones(2, 4)).sum().backward()
        scheduled_f(), scheduler.step(), optimizer.zero_grad()


def marked():
    weight = torch.ones(6, 4)

    def marked_f(x):
        return (x + weight).sum(1)
    x = torch.ones(6, 4)
    torch._dynamo.mark_dynamic(x, 0)
    try:
        compiled(marked_f)(x)
    except Exception as error:
        print(type(error).__name__)


def ranges():
    """range() needs numbers: a tensor would not do, and a limit only postpones."""
    def ranges_f(x, start, end):
        total = x[start]
        for i in range(start + 1, end):
            total = total + x[i]
        return total
    f, x = compiled(ranges_f), torch.arange(40.).reshape(20, 2)
    with torch._dynamo.config.patch(recompile_limit=3):
        for start in range(2, 8):
            f(x, start, start + 3 + start % 4)


def come_back():
    """Sizes come back, so that a higher limit is worth it."""
    def come_back_f(x, name):
        return x + int(name, 36)
    f = compiled(come_back_f)
    with torch._dynamo.config.patch(recompile_limit=2):
        for name in ("a", "bb", "a", "bb", "ccc", "ccc"):
            f(torch.ones(3), name)


for case in transforms, train_and_evaluate, closures, scheduled, marked, ranges, come_back:
    torch._dynamo.reset()
    case()
