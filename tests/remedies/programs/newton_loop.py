"""An iteration that ends when a tensor says so: `while error > tolerance`."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def square_root(a):
    x = a.clone()
    if FIX == "fixed":
        for _ in range(12):
            x = 0.5 * (x + a / x)
        return x
    while (x * x - a).abs().max() > 1e-4:
        x = 0.5 * (x + a / x)
    return x


torch.manual_seed(0)
total = 0.0
for i in range(4):
    total += square_root(torch.rand(3) * 4 + i + 0.5).sum().item()
print(f"{total:.3f}")
