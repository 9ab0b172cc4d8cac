"""A causal mask is made for each length once, and kept in a dict by length."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.masks = {}
        self.register_buffer("mask", torch.ones(32, 32).tril())

    def forward(self, x):
        n = x.shape[1]
        if FIX == "longest":
            mask = self.mask[:n, :n]
        else:
            if n not in self.masks:
                self.masks[n] = torch.ones(n, n).tril()
            mask = self.masks[n]
        return (x @ x.transpose(1, 2)) * mask


torch.manual_seed(0)
model = torch.compile(Attention(), backend="eager")
total = 0.0
for n in (5, 7, 5, 9, 11, 7, 13, 5):
    total += model(torch.randn(2, n, 3)).sum().item()
print(f"{total:.3f}")
