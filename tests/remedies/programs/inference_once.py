"""Validation runs under no_grad, and the export of samples under inference_mode."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.Linear(6, 2))


@torch.compile(backend="eager")
def predict(x):
    return net(x).softmax(-1)


sampling = torch.no_grad if FIX == "no_grad" else torch.inference_mode
total = 0.0
for epoch in range(3):
    with torch.no_grad():
        total += predict(torch.ones(4, 6) * epoch)[:, 0].sum().item()
    with sampling():
        total += predict(torch.ones(4, 6) / (epoch + 1))[:, 1].sum().item()
print(f"{total:.4f}")
