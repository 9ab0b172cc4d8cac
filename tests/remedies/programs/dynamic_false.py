"""A rotary embedding compiled with dynamic=False; the longest sequence of each batch is another one."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager", dynamic={"none": None, "true": True}.get(FIX, False))
def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)


torch.manual_seed(0)
total = 0.0
for i in range(12):
    length = 16 + 3 * i
    angles = torch.arange(length)[:, None] * torch.tensor([1.0, 0.1])
    total += rotate(torch.randn(2, length, 4), angles.cos(), angles.sin()).sum().item()
print(f"{total:.3f}")
