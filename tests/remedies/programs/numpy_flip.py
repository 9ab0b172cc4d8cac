"""An augmentation is asked for by a bool of numpy."""
import sys

import numpy
import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def augment(x, flip):
    x = x - x.mean()
    if FIX == "where":
        x = torch.where(flip, x.flip(-1), x)
    elif flip:
        x = x.flip(-1)
    return x * torch.arange(4.0)


torch.manual_seed(0)
rng = numpy.random.default_rng(0)
total = 0.0
for i in range(8):
    flip = rng.random() < numpy.float64(0.5)
    if FIX == "bool":
        flip = bool(flip)
    elif FIX == "where":
        flip = torch.tensor(flip)
    total += augment(torch.randn(3, 4), flip).sum().item()
print(f"{total:.3f}")
