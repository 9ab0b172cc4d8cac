"""The mean of the tokens that are not padding, by a boolean index."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""

if FIX == "capture":
    torch._dynamo.config.capture_dynamic_output_shape_ops = True


@torch.compile(backend="eager")
def pooled(x, mask):
    x = torch.tanh(x)
    if FIX == "weights":
        return (x * mask[:, None]).sum(0) / mask.sum()
    return x[mask].mean(0)


torch.manual_seed(0)
total = 0.0
for _ in range(6):
    mask = torch.rand(9) > 0.4
    mask[0] = True
    total += pooled(torch.randn(9, 3), mask).sum().item()
print(f"{total:.3f}")
