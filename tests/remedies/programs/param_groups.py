"""One compiled update for parameter groups of different length."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def decay(weights, factor):
    for w in weights:
        w.mul_(factor)


torch.manual_seed(0)
groups = [[torch.randn(4) for _ in range(count)] for count in (1, 2, 3, 5)]
for _ in range(3):
    for group in groups:
        if FIX == "one_by_one":
            for weight in group:
                decay([weight], 0.5)
        else:
            decay(group, 0.5)
print(f"{sum(w.sum().item() for group in groups for w in group):.4f}")
