"""A transformers-like block with output_attentions and return_dict flags that callers set differently."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.v = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x, output_attentions=False, return_dict=True):
        weights = torch.softmax(self.q(x) @ x.transpose(1, 2), -1)
        y = x + weights @ self.v(x)
        given = {"hidden": y}
        if output_attentions:
            given["attentions"] = weights
        return given if return_dict else tuple(given.values())


torch.manual_seed(0)
net = Block()
model = torch.compile(net, backend="eager")
total = 0.0
with torch.no_grad():
    for i in range(8):
        x = torch.randn(2, 3, 6)
        if FIX == "always_all":
            y = model(x, output_attentions=True, return_dict=True)["hidden"]
        elif i % 4 == 3:
            y = model(x, output_attentions=True)["hidden"]
        elif i % 2:
            y = model(x, return_dict=False)[0]
        else:
            y = model(x)["hidden"]
        total += y.sum().item()
print(f"{total:.4f}")
