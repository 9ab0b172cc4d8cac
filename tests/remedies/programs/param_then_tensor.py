"""A norm that is called for parameters and for plain tensors."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def unit(x):
    return x / x.norm()


torch.manual_seed(0)
params = [nn.Parameter(torch.randn(4)) for _ in range(3)]
total = 0.0
for p in params:
    total += unit(p * 1 if FIX == "plain" else p).sum().item()
    total += unit((p * 2 if FIX == "plain" else p * 2)).sum().item()
print(f"{total:.3f}")
