"""Tokens are pruned: a schedule says which share of them is kept."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager", dynamic=True if FIX == "dynamic" else None)
def prune(x, scores, keep):
    if FIX == "mask":
        rank = scores.argsort(descending=True).argsort()
        return x * (rank < keep).float().unsqueeze(-1)
    k = int(x.shape[0] * keep)
    kept = scores.topk(k).indices
    return x * torch.zeros(x.shape[0]).index_fill(0, kept, 1.0).unsqueeze(-1)


torch.manual_seed(0)
total = 0.0
for step in range(10):
    keep = 1.0 - 0.05 * step
    if FIX == "mask":
        keep = torch.tensor(int(20 * keep))
    total += prune(torch.randn(20, 2), torch.rand(20), keep).sum().item()
print(f"{total:.3f}")
