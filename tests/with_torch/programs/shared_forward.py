"""Modules in a list, each compiled by itself, share one forward and so one cache: what differs between them is a guard."""
import torch
import torch.nn as nn

from know import Know

know = Know(__file__)


class Layer(nn.Module):
    def __init__(self, width, scale, act=None):
        super().__init__()
        self.linear, self.scale, self.act = nn.Linear(width, width), scale, act

    def forward(self, x):
        x = self.linear(x) * self.scale
        return x if self.act is None else self.act(x)


backend = know.backend()
layers = nn.ModuleList(Layer(4, 2) for _ in range(6))
for layer in layers:
    layer.compile(backend=backend)
x = torch.randn(3, 4)
# The same code and like modules: compiled for the first, the other five run that.
for turn, layer in enumerate(layers):
    x = know.call(f"Layer.forward: {'hit' if turn else 'compiled'}", layer, x).detach()
sums = [x]

# Another constant is another entry.
scaled = torch.compile(Layer(4, 3), backend=backend)
sums.append(know.call("Layer.forward: compiled", scaled, x))
know.cause("Layer.forward", 1, 0, "L['self'].scale", 2, 3)

# Another structure as well.
bent = torch.compile(Layer(4, 2, nn.ReLU()), backend=backend)
sums.append(know.call("Layer.forward: compiled", bent, x))
know.cause("Layer.forward", 2, 0, "L['self'].act", None, None)
know.cause("Layer.forward", 2, 1, "L['self'].act", None, None)
for _ in range(3):
    know.call("Layer.forward: hit", layers[2], x)
    know.call("Layer.forward: hit", scaled, x)
    know.call("Layer.forward: hit", bent, x)
know.done(Layer.forward, sums=sums)
