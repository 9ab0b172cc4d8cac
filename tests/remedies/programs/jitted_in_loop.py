"""A loss is defined and compiled anew in each epoch, as it closes over that epoch's weight."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


def make(weight):
    @torch.compile(backend="eager")
    def loss(x):
        return (x.square() * weight).mean()
    return loss


@torch.compile(backend="eager")
def weighted(x, weight):
    return (x.square() * weight).mean()


torch.manual_seed(0)
total = 0.0
for epoch in range(12):
    weight = 0.5 + 0.1 * epoch
    if FIX == "argument":
        total += weighted(torch.ones(4), torch.tensor(weight)).item()
    elif FIX == "tensor":
        total += make(torch.tensor(weight))(torch.ones(4)).item()
    else:
        total += make(weight)(torch.ones(4)).item()
print(f"{total:.3f}")
