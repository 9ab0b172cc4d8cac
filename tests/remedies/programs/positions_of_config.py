"""A config object has the longest length of each batch, by which positions are made."""
import sys
import types

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager", dynamic=True if FIX == "dynamic" else None)
def add_positions(x, config):
    positions = torch.arange(config.length, dtype=x.dtype) / config.scale
    return x + positions.unsqueeze(-1)


torch.manual_seed(0)
config = types.SimpleNamespace(length=0, scale=10.0)
total = 0.0
for i in range(8):
    config.length = 6 + i % 4
    total += add_positions(torch.randn(config.length, 2), config).sum().item()
print(f"{total:.3f}")
