"""Gradient clipping with an `if` on the norm, which is a tensor."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def clip(grads, limit):
    norm = torch.stack([g.norm() for g in grads]).norm()
    if FIX == "where":
        scale = torch.where(norm > limit, limit / norm, torch.ones_like(norm))
        return [g * scale for g in grads]
    if norm > limit:
        grads = [g * (limit / norm) for g in grads]
    return grads


torch.manual_seed(0)
sums = []
for i in range(6):
    grads = [torch.randn(3, 3) * i, torch.randn(3) * i]
    sums.append(sum(g.sum().item() for g in clip(grads, 1.0)))
print([round(one, 4) for one in sums])
