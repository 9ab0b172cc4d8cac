"""Rotary embedding that makes its table anew when a longer sequence comes, and keeps the length as an int."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Rotary(nn.Module):
    def __init__(self, dim, length):
        super().__init__()
        self.dim = dim
        self.make(length)

    def make(self, length):
        self.cached_length = length
        steps = torch.arange(length).float()
        frequencies = 1.0 / 100 ** (torch.arange(0, self.dim, 2).float() / self.dim)
        self.table = torch.outer(steps, frequencies).repeat(1, 2)

    def forward(self, x):
        length = x.shape[0]
        if length > self.cached_length:
            self.make(length)
        table = self.table[:length]
        half = torch.cat([-x[:, self.dim // 2:], x[:, :self.dim // 2]], -1)
        return x * table.cos() + half * table.sin()


torch.manual_seed(0)
net = Rotary(4, 64 if FIX == "long_enough" else 4)
model = torch.compile(net, backend="eager")
total = 0.0
for length in (3, 6, 9, 12, 15, 18, 10, 21, 24, 27, 30):
    total += model(torch.ones(length, 4)).sum().item()
print(f"{total:.3f}")
