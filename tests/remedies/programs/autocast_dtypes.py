"""Two autocast dtypes for the same function: bfloat16 for one head and float16 for the other."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def head(x, weight):
    return (x @ weight).float()


torch.manual_seed(0)
x, weight = torch.ones(2, 4), torch.ones(4, 2)
total = 0.0
for i in range(6):
    dtype = torch.float16 if i % 2 and FIX != "one" else torch.bfloat16
    with torch.autocast("cpu", dtype=dtype):
        total += head(x, weight).sum().item()
print(total)
