"""An operator that copies its input where the memory is not aligned, as kernels want it."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


def aligned(x):
    return x if x.data_ptr() % 16 == 0 else x.clone()


@torch.compile(backend="eager")
def normed(x, weight):
    if FIX != "outside":
        x = aligned(x)
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


torch.manual_seed(0)
weight = torch.ones(8)
total = 0.0
for step in range(6):
    x = torch.randn(4, 8)
    total += normed(aligned(x) if FIX == "outside" else x, weight).sum().item()
print(f"{total:.3f}")
