"""An average of weights whose decay is computed from its own count of steps; it is no module."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Average:
    def __init__(self, size):
        self.shadow = torch.zeros(size)
        self.steps = torch.tensor(0) if FIX == "tensor" else 0

    @torch.compile(backend="eager")
    def update(self, weights):
        self.steps += 1
        warm = (1 + self.steps) / (10 + self.steps)
        decay = warm.clamp(max=0.99) if FIX == "tensor" else min(0.99, warm)
        self.shadow.mul_(decay).add_(weights * (1 - decay))


average = Average(4)
for i in range(12):
    average.update(torch.full((4,), float(i)))
print(f"{average.shadow.sum().item():.4f}")
