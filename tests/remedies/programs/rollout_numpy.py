"""A rollout: a policy gets numpy observations of as many environments as are still running."""
import sys

import numpy as np
import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
torch.manual_seed(0)
weight = torch.randn(4, 2)


@torch.compile(backend="eager", dynamic=True if FIX == "dynamic" else None)
def policy(obs):
    x = np.tanh(obs)
    return x.sum(-1) * 2


rng = np.random.default_rng(0)
total = 0.0
for running in (8, 7, 6, 5, 4, 3, 2):
    total += float(policy(rng.standard_normal((running, 4))).sum())
print(f"{total:.4f}")
