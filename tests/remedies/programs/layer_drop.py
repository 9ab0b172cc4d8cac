"""LayerDrop: each block is left out of a training step by the toss of Python's random."""
import random
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Stack(nn.Module):
    def __init__(self, depth=3, dim=8):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(dim, dim) for _ in range(depth))

    def forward(self, x, keep=None):
        for i, block in enumerate(self.blocks):
            if FIX == "tensor":
                x = torch.where(keep[i], torch.relu(block(x)), x)
            elif random.random() > 0.3:
                x = torch.relu(block(x))
        return x


torch.manual_seed(0)
random.seed(0)
model = torch.compile(Stack(), backend="eager")
total = 0.0
with torch.no_grad():
    for step in range(8):
        if FIX == "tensor":
            keep = torch.tensor([random.random() > 0.3 for _ in range(3)])
            total += model(torch.ones(2, 8), keep).sum().item()
        else:
            total += model(torch.ones(2, 8)).sum().item()
print(f"{total:.3f}")
