"""A print of the shape that was left in forward."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "reorder":
    torch._dynamo.config.reorderable_logging_functions.add(print)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(3, 9), nn.Linear(9, 3)

    def forward(self, x):
        h = torch.relu(self.up(x))
        if FIX != "without":
            print("hidden", tuple(h.shape))
        return self.down(h)


torch.manual_seed(0)
model = torch.compile(Net(), backend="eager")
with torch.no_grad():
    total = sum(model(torch.randn(2, 3)).sum().item() for _ in range(3))
print(f"{total:.4f}")
