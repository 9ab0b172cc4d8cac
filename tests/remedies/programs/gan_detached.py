"""The discriminator sees real data, which needs no grad, and generated data, which does."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def score(weight, x):
    return torch.sigmoid(x @ weight).mean()


torch.manual_seed(0)
weight = nn.Parameter(torch.randn(4, 1))
maker = nn.Linear(2, 4)
for _ in range(3):
    real, fake = torch.randn(6, 4), maker(torch.randn(6, 2))
    if FIX == "detach":
        fake = fake.detach()
    loss = score(weight, fake) - score(weight, real)
    loss.backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
    weight.grad = None
print(f"{loss.item():.4f}")
