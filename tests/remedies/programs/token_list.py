"""A score of prompts that are lists of numbers: the tensor is made within the compiled function."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
torch.manual_seed(0)
table = torch.randn(50, 8)


@torch.compile(backend="eager")
def score(tokens):
    if FIX != "tensor":
        tokens = torch.tensor(tokens)
    return table[tokens].mean(0).sum()


total = 0.0
for step in range(12):
    tokens = [(step * 7 + i * i) % 50 for i in range(6)]
    total += score(torch.tensor(tokens) if FIX == "tensor" else tokens).item()
print(f"{total:.3f}")
