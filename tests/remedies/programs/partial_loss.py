"""functools.partial with another weight for each task is handed to the compiled step."""
import functools
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


def weighted(x, y, weight):
    return weight * (x - y).pow(2).mean()


@torch.compile(backend="eager")
def evaluate(loss, x, y):
    return loss(x, y)


torch.manual_seed(0)
total = 0.0
for task in range(8):
    weight = 0.5 + 0.25 * task
    loss = functools.partial(weighted, weight=torch.tensor(weight) if FIX == "tensor" else weight)
    total += evaluate(loss, torch.randn(4), torch.randn(4)).item()
print(f"{total:.4f}")
