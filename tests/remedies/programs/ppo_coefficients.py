"""PPO whose clip range and entropy coefficient both fall during training."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def ppo_loss(ratio, advantage, entropy, clip_range, entropy_coef):
    clipped = torch.clamp(ratio, 1 - clip_range, 1 + clip_range)
    return -(torch.minimum(ratio * advantage, clipped * advantage)).mean() - entropy_coef * entropy.mean()


torch.manual_seed(0)
total = 0.0
for update in range(12):
    left = 1 - update / 20
    clip, coefficient = 0.2 * left, 0.01 * left
    if FIX in ("both", "clip"):
        clip = torch.tensor(clip)
    if FIX == "both":
        coefficient = torch.tensor(coefficient)
    total += ppo_loss(torch.rand(6) + 0.5, torch.randn(6), torch.rand(6), clip, coefficient).item()
print(f"{total:.4f}")
