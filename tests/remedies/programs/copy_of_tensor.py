"""A block that keeps its input for a residual by copy.copy and copy.deepcopy."""
import copy
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def block(x, weight):
    residual = x.clone() if FIX == "clone" else copy.deepcopy(x)
    x.mul_(2)
    return torch.tanh(x @ weight) + residual


torch.manual_seed(0)
weight = torch.randn(4, 4)
print(f"{sum(block(torch.randn(2, 4), weight).sum().item() for _ in range(6)):.3f}")
