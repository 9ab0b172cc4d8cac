"""A compiled helper with dynamic=True is called from a function compiled with dynamic=False."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager", dynamic=True)
def helper(x):
    return torch.softmax(x, -1)


@torch.compile(backend="eager", dynamic=None if FIX == "auto" else FIX == "dynamic")
def outer(x):
    return helper(x) * 2


total = 0.0
for n in range(3, 14):
    total += outer(torch.arange(float(n))).sum().item()
print(f"{total:.2f}")
