"""Continual learning: each new task gets a head of its own, and the model returns all of them."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Learner(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.body = nn.Linear(dim, dim)
        self.heads = nn.ModuleList()

    def forward(self, x):
        x = torch.relu(self.body(x))
        return torch.cat([head(x) for head in self.heads], -1)


torch.manual_seed(0)
net = Learner()
later = [nn.Linear(8, 2) for task in range(5)]
model = torch.compile(net, backend="eager")
if FIX == "all":
    net.heads.extend(later)
total = 0.0
with torch.no_grad():
    for task in range(5):
        if FIX != "all":
            net.heads.append(later[task])
        for step in range(3):
            total += model(torch.ones(4, 8))[:, :2 * task + 2].sum().item()
print(f"{total:.3f}")
