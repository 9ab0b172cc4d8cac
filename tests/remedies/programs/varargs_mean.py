"""def mean(*tensors), called with as many models of an ensemble as there are."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def mean(*tensors):
    total = tensors[0]
    for one in tensors[1:]:
        total = total + one
    return total / len(tensors)


@torch.compile(backend="eager")
def mean_stacked(tensors):
    return tensors.sum(0) / tensors.shape[0]


torch.manual_seed(0)
out = []
for count in (2, 3, 4, 5, 6, 7, 8, 9, 10, 11):
    given = [torch.full((3,), float(i)) for i in range(count)]
    y = mean_stacked(torch.stack(given)) if FIX == "stack" else mean(*given)
    out.append(round(y.sum().item(), 3))
print(out)
