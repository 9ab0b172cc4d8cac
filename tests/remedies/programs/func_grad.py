"""The compiled energy is called by itself, and through torch.func.grad for the forces."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def energy(position):
    return (position.sin() ** 2).sum()


@torch.compile(backend="eager")
def energy_and_force(position):
    force, value = torch.func.grad_and_value(lambda p: (p.sin() ** 2).sum())(position)
    return value, force


torch.manual_seed(0)
position = torch.randn(3)
for _ in range(4):
    if FIX == "inside":
        value, force = energy_and_force(position)
    else:
        value, force = energy(position), torch.func.grad(energy)(position)
    position = position - 0.1 * force
print(f"{value.item():.4f}")
