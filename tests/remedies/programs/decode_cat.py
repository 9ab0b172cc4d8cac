"""Decoding with a cache that torch.cat makes longer; the first call has none."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Attention(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, past):
        q, k, v = self.q(x), self.k(x), self.v(x)
        if past is not None:
            k = torch.cat([past[0], k], 1)
            v = torch.cat([past[1], v], 1)
        y = torch.softmax(q @ k.transpose(1, 2) / 8 ** 0.5, -1) @ v
        return y, (k, v)


torch.manual_seed(0)
net = Attention()
model = torch.compile(net, backend="eager", dynamic=True if FIX == "dynamic" else None)
past = (torch.zeros(1, 0, 8), torch.zeros(1, 0, 8)) if FIX == "empty" else None
with torch.no_grad():
    y, past = model(torch.randn(1, 5, 8), past)
    for _ in range(8):
        if FIX == "mark":
            for one in past:
                torch._dynamo.maybe_mark_dynamic(one, 1)
        y, past = model(y[:, -1:].clone(), past)
print(f"{y.sum().item():.4f} {past[0].shape[1]}")
