"""An attention layer keeps keys and values of the past as attributes and appends to them with torch.cat."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(4, 4)
        self.kv = nn.Linear(4, 8)
        self.k = torch.zeros(1, 0, 4)
        self.v = torch.zeros(1, 0, 4)
        if FIX == "static":
            self.k, self.v = torch.zeros(1, 16, 4), torch.zeros(1, 16, 4)
            self.length = torch.tensor(0)

    def forward(self, x):
        k, v = self.kv(x).chunk(2, dim=-1)
        if FIX == "static":
            here = (torch.arange(16) == self.length).view(1, 16, 1)
            self.k = torch.where(here, k, self.k)
            self.v = torch.where(here, v, self.v)
            scores = self.q(x) @ self.k.transpose(1, 2)
            scores = scores.masked_fill(torch.arange(16) > self.length, float("-inf"))
            self.length = self.length + 1
            return scores.softmax(-1) @ self.v
        self.k = torch.cat([self.k, k], dim=1)
        self.v = torch.cat([self.v, v], dim=1)
        return (self.q(x) @ self.k.transpose(1, 2)).softmax(-1) @ self.v


torch.manual_seed(0)
model = torch.compile(Attention(), backend="eager")
total = 0.0
with torch.no_grad():
    for i in range(12):
        total += model(torch.randn(1, 1, 4)).sum().item()
print(f"{total:.3f}")
