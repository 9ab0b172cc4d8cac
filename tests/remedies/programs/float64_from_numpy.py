"""Some inputs come from numpy, and are float64."""
import sys

import numpy as np
import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def normalize(x):
    return (x - x.mean()) / x.std()


rng = np.random.default_rng(0)
total = 0.0
for i in range(6):
    x = torch.from_numpy(rng.standard_normal(5)) if i % 2 else torch.arange(5.)
    if FIX == "float":
        x = x.float()
    total += normalize(x).abs().sum().item()
print(f"{total:.3f}")
