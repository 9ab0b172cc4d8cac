"""Returns are computed backwards; `done` is a Python bool for each step."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def discount(following, reward, done):
    if FIX == "tensor":
        return reward + 0.9 * following * (1 - done)
    if done:
        return reward
    return reward + 0.9 * following


torch.manual_seed(0)
following = torch.zeros(3)
for i in range(10):
    done = i % 4 == 3
    if FIX == "tensor":
        done = torch.tensor(float(done))
    following = discount(following, torch.randn(3), done)
print(f"{following.sum().item():.4f}")
