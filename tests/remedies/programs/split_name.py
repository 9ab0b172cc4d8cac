"""The name of the split, a string, is passed along and chooses the augmentation."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def augment(x, noise, split):
    if split == "train":
        x = x + 0.1 * noise
    return x.clamp(-1, 1)


torch.manual_seed(0)
total = 0.0
for i in range(9):
    split = ("train", "valid", "test")[i % 3]
    x, noise = torch.randn(4), torch.randn(4)
    if FIX == "noise":
        noise = noise if split == "train" else torch.zeros(4)
        split = "train"
    total += augment(x, noise, split).sum().item()
print(f"{total:.4f}")
