"""A distance of two embeddings, which is called with one tensor twice to check that it is zero."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def distance(one, other):
    return (one - other).square().sum(-1)


torch.manual_seed(0)
total = 0.0
for step in range(6):
    anchor, positive = torch.randn(4, 8), torch.randn(4, 8)
    assert distance(anchor, anchor.clone() if FIX == "clone" else anchor).sum() == 0
    total += distance(anchor, positive).sum().item()
print(f"{total:.3f}")
