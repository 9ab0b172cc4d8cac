"""A policy loss with two temperatures: tokens with a positive advantage get one, the others the other, by boolean masks."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "capture":
    torch._dynamo.config.capture_dynamic_output_shape_ops = True


def soft(ratio, temperature):
    return torch.sigmoid(temperature * (ratio - 1)) * 4 / temperature


@torch.compile(backend="eager")
def policy_loss(ratio, advantage):
    positive = advantage > 0
    if FIX == "where":
        loss = torch.where(positive, soft(ratio, 1.0), soft(ratio, 1.05))
    else:
        loss = torch.empty_like(ratio)
        loss[positive] = soft(ratio[positive], 1.0)
        loss[~positive] = soft(ratio[~positive], 1.05)
    return -(loss * advantage).mean()


torch.manual_seed(0)
total = 0.0
for _ in range(5):
    total += policy_loss(torch.rand(3, 8) + 0.5, torch.randn(3, 8)).item()
print(f"{total:.4f}")
