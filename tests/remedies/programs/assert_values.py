"""An assert on a tensor, whose message has a value of the tensor."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def log_prob(p):
    if FIX == "constant":
        assert (p > 0).all(), "p must be positive"
    elif FIX != "outside":
        assert (p > 0).all(), f"p must be positive, not {p.min().item()}"
    return p.log().sum()


print(f"{sum(log_prob(torch.full((4,), 0.1 * i)).item() for i in range(1, 7)):.4f}")
