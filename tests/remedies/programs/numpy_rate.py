"""A schedule made with numpy: each rate is a numpy.float64."""
import sys

import numpy as np
import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def descend(weight, grad, rate):
    return weight - rate * grad


torch.manual_seed(0)
weight = torch.randn(4)
for rate in np.linspace(0.5, 0.1, 9):
    if FIX == "tensor":
        rate = torch.tensor(rate, dtype=torch.float32)
    elif FIX == "float":
        rate = float(rate)
    weight = descend(weight, 2 * weight, rate)
print(f"{weight.abs().sum().item():.4f} {weight.dtype}")
