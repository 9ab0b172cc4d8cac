"""Activation checkpointing around a compiled block: with use_reentrant it first runs without grad."""
import sys

import torch
from torch.utils.checkpoint import checkpoint

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        return x + torch.tanh(self.fc(x))


torch.manual_seed(0)
block = Block()
compiled = torch.compile(block, backend="eager")
total = 0.0
for _ in range(3):
    x = torch.randn(2, 4, requires_grad=True)
    y = checkpoint(compiled, x, use_reentrant=FIX != "not_reentrant")
    y.sum().backward()
    total += x.grad.sum().item()
print(f"{total:.4f}")
