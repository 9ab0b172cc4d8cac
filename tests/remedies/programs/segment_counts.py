"""A loss that loops over the objects of each sample; their number is in a list of ints that comes with the batch."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def loss(logits, counts):
    if FIX == "mask":
        wanted = torch.arange(logits.shape[1])[None] < counts[:, None]
        return (logits.square() * wanted).sum()
    total = logits.new_zeros(())
    for i, count in enumerate(counts):
        for j in range(count):
            total = total + logits[i, j].square()
    return total


torch.manual_seed(0)
total = 0.0
for step in range(12):
    counts = [1 + step % 5, 2 + step % 3]
    logits = torch.randn(2, 6)
    total += loss(logits, torch.tensor(counts) if FIX == "mask" else counts).item()
print(f"{total:.3f}")
