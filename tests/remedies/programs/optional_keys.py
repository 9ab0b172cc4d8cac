"""A batch is a dict in which some keys are there only sometimes."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def loss(batch):
    error = (batch["x"] - batch["y"]).pow(2)
    if "weight" in batch:
        error = error * batch["weight"]
    return error.mean()


torch.manual_seed(0)
total = 0.0
for i in range(8):
    batch = {"x": torch.randn(5), "y": torch.randn(5)}
    if i % 3 == 2:
        batch["weight"] = torch.rand(5)
    elif FIX == "always":
        batch["weight"] = torch.ones(5)
    total += loss(batch).item()
print(f"{total:.4f}")
