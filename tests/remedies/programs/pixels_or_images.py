"""A colour transform that takes a list of pixels, and images as well."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def transform(colours, matrix):
    return torch.tanh(colours @ matrix)


torch.manual_seed(0)
matrix = torch.randn(3, 3)
total = 0.0
for step in range(8):
    colours = torch.rand(24, 3) if step % 2 == 0 else torch.rand(4, 6, 3)
    if FIX == "flat":
        colours = colours.reshape(-1, 3)
    total += transform(colours, matrix).sum().item()
print(f"{total:.3f}")
