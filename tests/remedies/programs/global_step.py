"""A global step counter, which the compiled function reads."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
STEP = torch.tensor(0) if FIX == "tensor" else 0


@torch.compile(backend="eager")
def warm(x):
    return x * min(1.0, STEP / 8) if FIX != "tensor" else x * torch.clamp(STEP / 8, max=1.0)


total = 0.0
for i in range(12):
    total += warm(torch.ones(3)).sum().item()
    STEP = STEP + 1
print(f"{total:.3f}")
