"""Features in a dict: the order of its keys depends on which loader filled it."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def combine(features):
    total = 0
    if FIX == "sorted":
        features = {name: features[name] for name in sorted(features)}
    for name, value in features.items():
        total = total + value * len(name)
    return total


torch.manual_seed(0)
names = ["age", "income", "zip"]
sums = []
for i in range(9):
    order = names[i % 3:] + names[:i % 3]
    if FIX == "one_order":
        order = names
    sums.append(combine({name: torch.full((2,), float(len(name) + i)) for name in order}).sum().item())
print(sums)
