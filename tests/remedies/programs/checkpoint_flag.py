"""gradient_checkpointing is a flag on the model, off while it evaluates."""
import sys

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.gradient_checkpointing = True

    def forward(self, x):
        x = torch.relu(self.first(x))
        if self.gradient_checkpointing:
            return checkpoint(self.second, x, use_reentrant=False)
        return self.second(x)


torch.manual_seed(0)
net = Stack()
model = torch.compile(net, backend="aot_eager")
for epoch in range(3):
    net.gradient_checkpointing = True
    model(torch.ones(2, 4)).sum().backward()
    if FIX != "always":
        net.gradient_checkpointing = False
    value = model(torch.ones(2, 4)).sum().item()
print(f"{value:.4f}")
