"""A frozen dataclass with settings, made anew for each call with another dropout-like strength."""
import dataclasses
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@dataclasses.dataclass
class Config:
    strength: float
    window: int = 3


@torch.compile(backend="eager")
def smooth(x, config):
    kernel = torch.ones(1, 1, config.window) / config.window
    y = torch.nn.functional.conv1d(x[None, None], kernel, padding=config.window // 2)
    return x + config.strength * (y[0, 0] - x)


torch.manual_seed(0)
x = torch.randn(10)
for step in range(8):
    strength = 0.1 * (step + 1)
    x = smooth(x, Config(torch.tensor(strength) if FIX == "tensor" else strength))
print(f"{x.sum().item():.4f}")
