"""Gradient accumulation: a flag tells the compiled function that the window ends."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
WINDOW = 4


@torch.compile(backend="eager")
def accumulate(total, grad, count, last):
    total = total + grad
    if last:
        return total / count
    return total


@torch.compile(backend="eager")
def add(total, grad):
    return total + grad


torch.manual_seed(0)
grads = torch.randn(12, 5)
total, means = torch.zeros(5), []
for i, grad in enumerate(grads):
    last = (i + 1) % WINDOW == 0
    if FIX == "outside":
        total = accumulate(total, grad, WINDOW, False)
        if last:
            total = total / WINDOW
    else:
        total = accumulate(total, grad, WINDOW, last)
    if last:
        means.append(total.sum().item())
        total = torch.zeros(5)
print([round(mean, 3) for mean in means])
