"""Guidance is only on while its scale is above 1; the scale falls during sampling."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def denoise(x, weight, scale):
    if FIX == "always":
        both = torch.cat([x, torch.zeros_like(x)]) @ weight
        conditional, unconditional = both.chunk(2)
        return unconditional + torch.clamp(scale, min=1.0) * (conditional - unconditional)
    if scale > 1.0:
        both = torch.cat([x, torch.zeros_like(x)]) @ weight
        conditional, unconditional = both.chunk(2)
        return unconditional + scale * (conditional - unconditional)
    return x @ weight


torch.manual_seed(0)
x, weight = torch.randn(1, 4), torch.randn(4, 4) / 4
for i in range(10):
    scale = 4.0 - 0.4 * i
    x = denoise(x, weight, torch.tensor(scale) if FIX == "always" else scale)
print(f"{x.sum().item():.4f}")
