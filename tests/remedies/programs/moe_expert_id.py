"""The expert's number is an int argument that picks a module."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Experts(nn.Module):
    def __init__(self, count=10):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(count))

    def forward(self, x, which):
        if FIX == "stacked":
            weight = torch.stack([e.weight for e in self.experts]).index_select(0, which).squeeze(0)
            bias = torch.stack([e.bias for e in self.experts]).index_select(0, which).squeeze(0)
            return x @ weight.t() + bias
        return self.experts[which](x)


torch.manual_seed(0)
net = Experts()
model = torch.compile(net, backend="eager")
with torch.no_grad():
    x = torch.ones(2, 3)
    for which in list(range(10)) * 2:
        x = torch.tanh(model(x, torch.tensor([which]) if FIX == "stacked" else which))
print(f"{x.sum().item():.4f}")
