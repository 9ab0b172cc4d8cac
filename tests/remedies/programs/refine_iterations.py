"""Iterative refinement: an attribute, the number of iterations, is raised by a schedule."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "unspec":
    torch._dynamo.config.allow_unspec_int_on_nn_module = True


class Refine(nn.Module):
    def __init__(self):
        super().__init__()
        self.update = nn.Linear(4, 4)
        self.iterations = 2

    def forward(self, x):
        if FIX == "body":
            return x + 0.1 * torch.tanh(self.update(x))
        for _ in range(self.iterations):
            x = x + 0.1 * torch.tanh(self.update(x))
        return x


torch.manual_seed(0)
refine = Refine()
model = torch.compile(refine, backend="eager")
total = 0.0
with torch.no_grad():
    for i in range(12):
        refine.iterations = 2 + i
        x = torch.ones(2, 4)
        for _ in range(refine.iterations if FIX == "body" else 1):
            x = model(x)
        total += x.sum().item()
print(f"{total:.4f}")
