"""Rays are rendered in chunks; the last chunk of an image is smaller, and images are of other sizes."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager", dynamic=True if FIX == "dynamic" else None)
def render(rays):
    t = torch.linspace(0, 1, 5)
    points = rays[:, None, :] * t[None, :, None]
    return torch.exp(-points.square().sum(-1)).sum(-1)


torch.manual_seed(0)
total = 0.0
for pixels in (40, 37, 51):
    for chunk in torch.randn(pixels, 3).split(16):
        n = chunk.shape[0]
        if FIX == "pad":
            chunk = torch.cat([chunk, chunk.new_zeros(16 - n, 3)])
        total += render(chunk)[:n].sum().item()
print(f"{total:.3f}")
