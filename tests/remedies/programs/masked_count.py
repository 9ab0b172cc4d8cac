"""A masked loss returns early when a batch has no labels: the count is taken on one line and tested on the next."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "capture":
    torch._dynamo.config.capture_scalar_outputs = True


@torch.compile(backend="eager")
def masked_loss(pred, target, mask):
    if FIX == "where":
        n = mask.sum()
        return ((pred - target) ** 2 * mask).sum() / n.clamp(min=1)
    n = int(mask.sum())
    if n == 0:
        return pred.sum() * 0.0
    return ((pred - target) ** 2 * mask).sum() / n


torch.manual_seed(0)
total = 0.0
for i in range(8):
    mask = torch.zeros(6) if i % 4 == 3 else (torch.arange(6) <= i % 4).float()
    total += masked_loss(torch.randn(6), torch.randn(6), mask).item()
print(f"{total:.3f}")
