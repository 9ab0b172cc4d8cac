"""mixup: the share of the second sample comes from numpy's beta distribution."""
import sys

import numpy as np
import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def mix(x, order, share):
    return share * x + (1 - share) * x[order]


torch.manual_seed(0)
random = np.random.default_rng(0)
total = 0.0
for _ in range(12):
    share = float(random.beta(0.4, 0.4))
    x, order = torch.randn(6, 2), torch.randperm(6)
    total += mix(x, order, torch.tensor(share) if FIX == "tensor" else share).square().sum().item()
print(f"{total:.3f}")
