"""Matrices in a dict, chosen by the name of a layer."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""

torch.manual_seed(0)
tables = {f"layer{i}": torch.randn(4, 4) for i in range(6)}


if FIX == "value":

    @torch.compile(backend="eager")
    def step(x, table):
        return (x @ table).tanh()

else:

    @torch.compile(backend="eager")
    def step(x, name):
        return (x @ tables[name]).tanh()


x = torch.ones(2, 4)
for epoch in range(2):
    for name in tables:
        x = step(x, tables[name] if FIX == "value" else name)
print(f"{x.sum().item():.4f}")
