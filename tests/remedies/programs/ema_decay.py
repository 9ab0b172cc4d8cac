"""An exponential moving average of weights whose decay warms up: a new float for each step."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def update_average(average, weights, decay):
    for kept, now in zip(average, weights):
        kept.mul_(decay).add_(now * (1 - decay))


torch.manual_seed(0)
net = torch.nn.Linear(4, 4)
average = [p.detach().clone() for p in net.parameters()]
for step in range(10):
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.1)
        decay = min(0.999, (1 + step) / (10 + step))
        if FIX == "tensor":
            decay = torch.tensor(decay)
        update_average(average, [p.detach() for p in net.parameters()], decay)
print(f"{average[0].sum().item():.3f}")
