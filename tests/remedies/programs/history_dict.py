"""A compiled train step writes its loss into a dict of lists, as Keras' history does."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "capture":
    torch._dynamo.config.capture_scalar_outputs = True
torch.manual_seed(0)
net = nn.Linear(4, 1)
history = {"loss": [], "mean": []}


@torch.compile(backend="eager")
def loss_of(x, y):
    out = net(x)
    loss = (out - y).pow(2).mean()
    if FIX != "outside":
        history["loss"].append(loss.item())
    return loss * 1.0


for i in range(12):
    loss = loss_of(torch.randn(3, 4), torch.randn(3, 1))
    if FIX == "outside":
        history["loss"].append(loss.item())
    loss.backward()
print(f"{sum(history['loss']):.3f}")
