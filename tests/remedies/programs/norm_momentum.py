"""The momentum of batch norm falls from epoch to epoch, as PointNet's training does it."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.bn(self.fc(x)).relu()


torch.manual_seed(0)
net = Block()
model = torch.compile(net, backend="eager")
total = 0.0
for epoch in range(10):
    net.bn.momentum = 0.1 if FIX == "fixed" else max(0.5 * 0.7 ** epoch, 0.01)
    for i in range(2):
        total += model(torch.randn(4, 3)).sum().item()
print(f"{total:.3f}")
