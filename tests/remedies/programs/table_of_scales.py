"""Blocks look their table up in a global dict, by a float that each block has for itself. There are more blocks than the limit."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
TABLES = {}


class Block(nn.Module):
    def __init__(self, theta):
        super().__init__()
        self.theta = theta
        if theta not in TABLES:
            TABLES[theta] = torch.arange(4) / theta
        if FIX == "buffer":
            self.register_buffer("table", TABLES[theta], persistent=False)

    def forward(self, x):
        return x + (self.table if FIX == "buffer" else TABLES[self.theta])


blocks = [Block(float(theta)) for theta in range(1, 11)]
for block in blocks:
    block.compile(backend="eager", **({"isolate_recompiles": True} if FIX == "isolate" else {}))
total = 0.0
for _ in range(3):
    x = torch.ones(4)
    for block in blocks:
        x = block(x)
    total += x.sum().item()
print(f"{total:.4f}")
