"""A sliding window over tokens: range() over two numbers that move."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def window_sum(x, start, end):
    total = torch.zeros(x.shape[1])
    for i in range(start, end):
        total = total + x[i]
    return total


@torch.compile(backend="eager")
def slice_sum(part):
    return part.sum(0)


x = torch.arange(60.).reshape(20, 3)
for start in range(12):
    end = start + 3 + start % 3
    y = slice_sum(x[start:end].clone()) if FIX == "slice" else window_sum(x, start, end)
print(y.tolist())
