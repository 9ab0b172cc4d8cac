"""Entries that die: torch.compiler.reset, modules that are dropped (weakref invalidation), a module's state reloaded."""
import gc

import torch
import torch.nn as nn

from know import Know

know = Know(__file__)
backend = know.backend()
x = torch.ones(2, 4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x).relu()


@torch.no_grad()
def run(decisions, module):
    return know.call(decisions, module, x)


# Loading a state changes parameters in place: nothing to compile.
net = Net()
fast = torch.compile(net, backend=backend)
results = [run("Net.forward: compiled", fast)]
state = {name: value * 2 for name, value in net.state_dict().items()}
net.load_state_dict(state)
results.append(run("Net.forward: hit", fast))

# A new module of the same class is served by the same entry ...
net = Net()
net.load_state_dict(state)
fast = torch.compile(net, backend=backend)
gc.collect()
results.append(run("Net.forward: hit", fast))

# ... while a class that is passed in is known by its identity, so that its entry dies with it.


def shift(kind, x):
    return x + kind.amount


shifted = torch.compile(shift, backend=backend)
First = type("First", (), {"amount": 3})
results.append(know.call("shift: compiled", shifted, First, x))
results.append(know.call("shift: hit", shifted, First, x))
First = None
gc.collect()
know.died("shift", 0, "L['kind']")
Second = type("Second", (), {"amount": 5})
results.append(know.call("shift: compiled", shifted, Second, x))       # nothing was found wanting: the older is dead
Third = type("Third", (), {"amount": 7})
results.append(know.call("shift: compiled", shifted, Third, x))
know.cause("shift", 2, 1, "L['kind']", None, None)

# Reset: every entry dies, and the next call starts anew.
counted = torch._dynamo.utils.counters["frames"]["ok"]
torch.compiler.reset()
know.died("Net.forward", 0, "reset")
know.died("shift", 1, "reset")
know.died("shift", 2, "reset")
results.append(run("Net.forward: compiled", fast))
results.append(run("Net.forward: hit", fast))
results.append(know.call("shift: compiled", shifted, Third, x))
know.done(Net.forward, shift, results=results, frames_before_reset=counted)
