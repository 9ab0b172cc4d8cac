"""Exploration by a float that decays, and a counter of steps, both plain Python numbers."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def act(values, noise, epsilon, temperature):
    mixed = (1 - epsilon) * torch.softmax(values / temperature, -1) + epsilon * noise
    return mixed.argmax(-1)


torch.manual_seed(0)
epsilon, taken = 1.0, []
for step in range(12):
    values, noise = torch.randn(3, 4), torch.rand(3, 4)
    heat = 1.0 + step / 10
    if FIX == "both":
        taken.append(act(values, noise, torch.tensor(epsilon), torch.tensor(heat)).sum().item())
    elif FIX == "one":
        taken.append(act(values, noise, torch.tensor(epsilon), heat).sum().item())
    else:
        taken.append(act(values, noise, epsilon, heat).sum().item())
    epsilon *= 0.8
print(taken)
