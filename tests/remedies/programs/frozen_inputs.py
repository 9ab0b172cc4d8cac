"""Under no_grad a helper is called with tensors that require grad and with others: torch compiles the two apart all the same."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def clipped(a, b):
    return (a + b).clip(0)


torch.manual_seed(0)
weights = torch.randn(6, requires_grad=True)
total = 0.0
with torch.no_grad():
    for i in range(4):
        for a in (torch.randn(6), weights):
            total += clipped(a.detach() if FIX == "detach" else a, torch.ones(6)).sum().item()
print(f"{total:.4f}")
