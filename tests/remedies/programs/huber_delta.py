"""The delta of a Huber loss follows a schedule."""
import sys

import torch
import torch.nn.functional as F

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def criterion(pred, target, delta):
    if FIX == "tensor":
        error = (pred - target).abs()
        return torch.where(error < delta, 0.5 * error * error, delta * (error - 0.5 * delta)).mean()
    return F.huber_loss(pred, target, delta=delta)


torch.manual_seed(0)
total = 0.0
for epoch in range(10):
    delta = 2.0 - 0.1 * epoch
    if FIX == "tensor":
        delta = torch.tensor(delta)
    total += criterion(torch.randn(6), torch.randn(6), delta).item()
print(f"{total:.3f}")
