"""The strength of an adapter is a float attribute that a slider moves."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Lora(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(4, 4)
        self.delta = nn.Parameter(torch.randn(4, 4))
        self.scaling = 1.0
        if FIX == "buffer":
            del self.scaling
            self.register_buffer("scaling", torch.tensor(1.0))

    def set_scale(self, value):
        if FIX == "buffer":
            self.scaling.fill_(value)
        else:
            self.scaling = value

    def forward(self, x):
        return self.base(x) + (x @ self.delta) * self.scaling


torch.manual_seed(0)
net = Lora()
model = torch.compile(net, backend="eager")
total = 0.0
with torch.no_grad():
    for i in range(10):
        net.set_scale(0.1 * i)
        total += model(torch.ones(1, 4)).sum().item()
print(f"{total:.3f}")
