"""An activation is passed as a lambda, which is made again in each round of the loop."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def layer(x, weight, activation):
    return activation(x @ weight)


torch.manual_seed(0)
weight = torch.randn(4, 4)
once = lambda x: torch.relu(x) + 0.1  # noqa: E731
x = torch.randn(2, 4)
for _ in range(12):
    act = once if FIX == "once" else lambda x: torch.relu(x) + 0.1
    x = torch.tanh(layer(x, weight, act))
print(f"{x.sum().item():.4f}")
