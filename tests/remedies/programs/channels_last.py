"""Some inputs are transposed views: other strides, same shape."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def blur(x):
    return (x[:, 1:] + x[:, :-1]) / 2


torch.manual_seed(0)
total = 0.0
for i in range(6):
    x = torch.randn(6, 6)
    if i % 2:
        x = x.t()
    if FIX == "contiguous":
        x = x.contiguous()
    total += blur(x).sum().item()
print(f"{total:.4f}")
