"""Adapters of several ranks are loaded into one layer, one after the other."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "unforced":
    torch._dynamo.config.force_parameter_static_shapes = False


class Slot(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(6, 6)
        self.load(2)

    def load(self, rank):
        down, up = torch.randn(rank, 6), torch.randn(6, rank)
        if FIX == "padded":
            down = nn.functional.pad(down, (0, 0, 0, 16 - rank))
            up = nn.functional.pad(up, (0, 16 - rank))
        self.down, self.up = nn.Parameter(down), nn.Parameter(up)

    def forward(self, x):
        return self.base(x) + x @ self.down.t() @ self.up.t()


torch.manual_seed(0)
net = Slot()
model = torch.compile(net, backend="eager")
total = 0.0
with torch.no_grad():
    for rank in (2, 4, 8, 16, 4, 12):
        net.load(rank)
        total += model(torch.ones(1, 6)).sum().item()
print(f"{total:.2f}")
