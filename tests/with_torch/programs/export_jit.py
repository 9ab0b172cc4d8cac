"""torch.export, torch.jit and make_fx beside torch.compile: what they do is not torch.compile's, and does no harm to it."""
import torch
import torch.nn as nn
from torch.fx.experimental.proxy_tensor import make_fx

from know import TORCH, Know

know = Know(__file__)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        return self.linear(x).relu() * 2


def double(x):
    if x.shape[0] > 2:
        return x * 2
    return x


net = Net().eval()
x = torch.randn(3, 4)
results = [net(x)]
fast = torch.compile(net, backend=know.backend())
results.append(know.call("Net.forward: compiled", fast, x))

exported = torch.export.export(net, (x,), strict=False)
results.append(exported.module()(x))
results.append(len(exported.graph.nodes))
traced = torch.jit.trace(net, x)
results.append(traced(x))
scripted = torch.jit.script(double)
results.append(scripted(x))
results.append(len(make_fx(double)(x).graph.nodes))

results.append(know.call("Net.forward: hit", fast, x))

# Strict export goes through torch's compiler, which forgets what it had for the function; before torch 2.10 in a frame of its own.
before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
in_a_frame = TORCH < (2, 10)
results.append(know.call("Net.forward: compiled" if in_a_frame else "",
                         lambda: torch.export.export(net, (x,), strict=True).module()(x), graphs=0))
if in_a_frame:
    know.died("Net.forward", 1, "reset")
else:
    know.unseen_graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"] - before
know.died("Net.forward", 0, "reset")
results.append(know.call("Net.forward: compiled", fast, x))
results.append(know.call("Net.forward: hit", fast, x))
# A scripted function called in a compiled one is taken in.
results.append(know.call("<lambda>: compiled", torch.compile(lambda y: scripted(y) + 1, backend=know.backend()), x))
know.done(Net.forward, results=results)
