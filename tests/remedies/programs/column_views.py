"""Tables of several widths: the label column is cut out as a view, whose stride is the width of its table."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def weighted(column, weight):
    return (column * weight).sum()


torch.manual_seed(0)
total = 0.0
for width in range(1, 11):
    table = torch.rand(4, width)
    column = table[:, :1]
    if FIX == "clone":
        column = column.clone(memory_format=torch.contiguous_format)
    total += weighted(column, torch.ones(4, 1)).item()
print(f"{total:.4f}")
