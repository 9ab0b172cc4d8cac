"""Some inputs are a subclass of Tensor that carries a name."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Labelled(torch.Tensor):
    pass


@torch.compile(backend="eager")
def scale(x):
    return x / x.abs().amax()


torch.manual_seed(0)
total = 0.0
for i in range(6):
    x = torch.randn(4)
    if i % 2:
        x = x.as_subclass(Labelled)
    if FIX == "plain":
        x = x.as_subclass(torch.Tensor)
    total += float(scale(x).sum())
print(f"{total:.4f}")
