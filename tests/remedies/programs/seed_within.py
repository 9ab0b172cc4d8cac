"""A sampler that seeds torch's generator, by a number that is another one in each step."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def noisy(x, seed):
    h = torch.tanh(x * 2)
    if FIX != "outside":
        torch.manual_seed(seed)
    return (h + torch.randn(4)).sum()


total = 0.0
for i in range(8):
    if FIX == "outside":
        torch.manual_seed(i)
    total += noisy(torch.ones(4), 0 if FIX == "outside" else i).item()
print(f"{total:.4f}")
