"""A module calls each of its callbacks; callbacks are added while it is in use."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Observed(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.callbacks = []

    def forward(self, x):
        x = self.fc(x)
        for callback in self.callbacks:
            x = callback(x)
        return x


torch.manual_seed(0)
net = Observed()
stages = [torch.relu, torch.tanh, torch.sigmoid]
if FIX == "first":
    net.callbacks = stages
model = torch.compile(net, backend="eager")
total = 0.0
with torch.no_grad():
    for stage in stages:
        if FIX != "first":
            net.callbacks.append(stage)
        for _ in range(2):
            y = model(torch.ones(2, 3))
    total += y.sum().item()
print(f"{total:.4f}")
