"""Beam search: as many beams as are not finished, as a list."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager", dynamic=True if FIX == "stack" else None)
def extend(beams, logits):
    if FIX != "stack":
        beams = torch.stack(beams)
    return (beams[:, None] + logits[None]).amax(-1)


torch.manual_seed(0)
total = 0.0
for alive in (6, 5, 5, 4, 3, 2):
    beams = [torch.tensor(float(i)) for i in range(alive)]
    given = torch.stack(beams) if FIX == "stack" else beams
    total += extend(given, torch.randn(5)).sum().item()
print(f"{total:.4f}")
