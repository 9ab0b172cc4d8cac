"""A module keeps its last attention map and its auxiliary losses for whom they interest."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.last = None
        self.losses = []

    def forward(self, x):
        weights = (self.fc(x) @ x.T).softmax(-1)
        self.last = weights.detach()
        self.losses.append(weights.pow(2).mean())
        return weights @ x


torch.manual_seed(0)
net = Attention()
model = torch.compile(net, backend="eager")
total = 0.0
for i in range(8):
    net.losses.clear()
    out = model(torch.randn(4, 3))
    total += (out.sum() + sum(net.losses)).item() + net.last.sum().item()
print(f"{total:.3f}")
