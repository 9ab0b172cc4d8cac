"""One compiled function is given a different module each time."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def apply(module, x):
    return torch.relu(module(x))


@torch.compile(backend="eager")
def apply_weight(weight, bias, x):
    return torch.relu(nn.functional.linear(x, weight, bias))


torch.manual_seed(0)
x = torch.randn(2, 4)
modules = [nn.Linear(4, 4) if i % 2 else nn.Linear(4, 4, bias=False) for i in range(6)]
with torch.no_grad():
    for module in modules:
        if FIX == "weights":
            bias = module.bias if module.bias is not None else nn.Parameter(torch.zeros(4))
            x = apply_weight(module.weight, bias, x)
        else:
            x = apply(module, x)
print(f"{x.sum().item():.4f}")
