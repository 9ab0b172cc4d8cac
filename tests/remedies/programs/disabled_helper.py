"""A helper was taken out of the compiler long ago, and nobody remembers why."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


def rotate(x):
    return torch.cat([x[..., 1:], x[..., :1]], -1)


if FIX != "enabled":
    rotate = torch.compiler.disable(rotate)


@torch.compile(backend="eager")
def mix(x):
    y = x * 2
    y = rotate(y)
    return y + x


torch.manual_seed(0)
print(f"{sum((mix(torch.randn(2, 4)) ** 2).sum().item() for _ in range(4)):.3f}")
