"""Gradient clipping with an `if` on a norm that is taken with .item()."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "capture":
    torch._dynamo.config.capture_scalar_outputs = True


@torch.compile(backend="eager")
def clip_norm(g, bound):
    if FIX == "where":
        return torch.where(g.norm() > bound, g * (bound / g.norm()), g) * 2
    if g.norm().item() > bound:
        g = g * (bound / g.norm())
    return g * 2


print(f"{sum(clip_norm(torch.full((4,), 0.2 * i), 1.5).sum().item() for i in range(8)):.4f}")
