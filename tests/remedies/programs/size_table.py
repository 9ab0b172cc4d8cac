"""Work that depends on a table by the sequence's length, as speech models have it for special lengths."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""

SPECIAL = {3: 0.5, 7: 2.0}


@torch.compile(backend="eager")
def encode(x, weight=None):
    if FIX == "outside":
        return (x * weight).cumsum(0)
    return (x * SPECIAL.get(x.shape[0], 1.0)).cumsum(0)


total = 0.0
for n in (3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14):
    weight = torch.tensor(SPECIAL.get(n, 1.0))
    total += encode(torch.ones(n), weight).sum().item() if FIX == "outside" else encode(torch.ones(n)).sum().item()
print(f"{total:.1f}")
