"""Attention scaled by the logarithm of the length, taken with math.log."""
import math
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def scaled_attention(q, k, scale):
    if scale is None:
        scale = math.log(int(k.shape[0]))
    return torch.softmax(q @ k.t() * scale, -1) @ k


torch.manual_seed(0)
total = 0.0
for length in range(5, 17):
    k = torch.randn(length, 4)
    scale = torch.tensor(math.log(length)) if FIX == "outside" else None
    total += scaled_attention(k[:1].clone(), k, scale).sum().item()
print(f"{total:.3f}")
