"""A recurrent cell is unrolled over the sequence: each length makes another graph."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Unrolled(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(6, 4)

    def forward(self, x):
        h = x.new_zeros(4)
        for t in range(x.shape[0]):
            h = torch.tanh(self.cell(torch.cat([x[t], h])))
        return h


class Step(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x, h):
        return torch.tanh(self.cell(torch.cat([x, h])))


torch.manual_seed(0)
net = Unrolled()
model = torch.compile(net, backend="eager")
step = torch.compile(Step(net.cell), backend="eager")
total = 0.0
with torch.no_grad():
    for length in range(2, 13):
        x = torch.randn(length, 2)
        if FIX == "step":
            h = torch.zeros(4)
            for one in x:
                h = step(one, h)
        else:
            h = model(x)
        total += h.sum().item()
print(f"{total:.4f}")
