"""Training under autocast, evaluation without."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def predict(x, weight):
    return torch.relu(x @ weight)


torch.manual_seed(0)
x, weight = torch.randn(4, 8), torch.randn(8, 2)
for epoch in range(3):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = predict(x, weight)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=FIX == "same"):
        z = predict(x, weight)
print(y.shape, z.shape)
