"""torch.set_num_threads() is called between training and export."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def work(x):
    return torch.cumsum(x, 0) * 2


total = 0.0
for i in range(6):
    if FIX != "once":
        torch.set_num_threads(1 + i % 2)
    total += work(torch.ones(4)).sum().item()
print(total)
