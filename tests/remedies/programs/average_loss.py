"""A module keeps a running average of a statistic in a Python float, which it takes from a tensor with .item()."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "capture":
    torch._dynamo.config.capture_scalar_outputs = True


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.average = 1.0
        if FIX == "buffer":
            del self.average
            self.register_buffer("average", torch.tensor(1.0))

    def forward(self, x):
        y = self.fc(x)
        if FIX == "buffer":
            self.average = 0.9 * self.average + 0.1 * y.abs().mean()
        else:
            self.average = 0.9 * self.average + 0.1 * y.abs().mean().item()
        return y / self.average


torch.manual_seed(0)
net = Norm()
model = torch.compile(net, backend="eager")
total = 0.0
with torch.no_grad():
    for i in range(12):
        total += model(torch.randn(2, 4)).sum().item()
print(f"{total:.3f}")
