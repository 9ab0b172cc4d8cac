"""Batches of sequences of different lengths, as jagged nested tensors."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager", dynamic=True if FIX == "dynamic" else None)
def score(x, weight):
    return torch.tanh(x * weight).sum()


torch.manual_seed(0)
weight, total = torch.randn(4), 0.0
for lengths in ((3, 5), (2, 4, 6), (7, 1), (3, 3, 3, 3), (5, 8, 2)):
    batch = torch.nested.nested_tensor([torch.randn(n, 4) for n in lengths], layout=torch.jagged)
    total += score(batch, weight).item()
print(f"{total:.3f}")
