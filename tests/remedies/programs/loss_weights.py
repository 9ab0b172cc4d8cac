"""A loss is a sum of terms with weights, which are in a dict. One weight grows from 0; a term of weight 0 is not computed."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def total_loss(pred, target, weights):
    terms = {"l1": (pred - target).abs().mean(), "l2": (pred - target).pow(2).mean(), "tv": pred.diff().abs().mean()}
    total = pred.new_zeros(())
    for name, weight in weights.items():
        if FIX != "tensor" and weight == 0:
            continue
        total = total + weight * terms[name]
    return total


torch.manual_seed(0)
total = 0.0
for epoch in range(8):
    weights = {"l1": 1.0, "l2": 0.5, "tv": 0.1 * max(0, epoch - 2)}
    if FIX == "tensor":
        weights = {name: torch.tensor(weight) for name, weight in weights.items()}
    total += total_loss(torch.randn(6), torch.randn(6), weights).item()
print(f"{total:.3f}")
