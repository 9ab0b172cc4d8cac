"""The same compiled function plainly and under vmap."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def energy(x):
    return (x.sin() * x).sum(-1)


torch.manual_seed(0)
x = torch.randn(3, 4)
total = 0.0
for _ in range(3):
    total += energy(x).sum().item()
    total += (energy(x) if FIX == "batched" else torch.vmap(energy)(x)).sum().item()
print(f"{total:.4f}")
