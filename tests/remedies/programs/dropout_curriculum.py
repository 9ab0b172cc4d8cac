"""The probability of dropout rises with training, and is passed as a float."""
import sys

import torch
import torch.nn.functional as F
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def drop(x, p):
    if FIX == "mask":
        keep = (torch.rand_like(x) >= p).float() / (1 - p)
        return x * keep
    return F.dropout(x, p)


torch.manual_seed(0)
shapes = []
for step in range(12):
    p = 0.02 * (step + 1)
    shapes.append(tuple(drop(torch.ones(3, 4), torch.tensor(p) if FIX == "mask" else p).shape))
print(set(shapes))
