"""A table is made by a function behind functools.cache, which counts how often it was made. torch ignores the cache."""
import functools
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
made = torch.tensor(0) if FIX == "tensor" else 0


@functools.cache
def table(size):
    global made
    made += 1
    return torch.arange(size).float() + made


@torch.compile(backend="eager")
def embed(x, positions=None):
    if positions is None:
        positions = table(4)
    return (x * 2 + positions).sum()


total = 0.0
for i in range(7):
    x = torch.full((3, 4), float(i))
    total += (embed(x, table(4)) if FIX == "outside" else embed(x)).item()
print(f"{total > 0}")
