"""Blocks with frozen and trained weights, compiled one by one. What enters the first one needs no gradient."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen, self.trained = nn.Linear(4, 4), nn.Linear(4, 4)
        self.frozen.requires_grad_(False)

    def forward(self, x):
        return self.trained(torch.relu(self.frozen(x)))


torch.manual_seed(0)
blocks = [Block() for _ in range(3)]
for block in blocks:
    block.compile(backend="eager")
for _ in range(4):
    x = torch.randn(2, 4)
    if FIX == "require":
        x.requires_grad_()
    for block in blocks:
        x = block(x)
    x.sum().backward()
print(f"{blocks[0].trained.weight.grad.sum().item():.4f}")
