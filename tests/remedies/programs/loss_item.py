"""A compiled training step that logs the loss: .item() in it breaks the graph."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "capture":
    torch._dynamo.config.capture_scalar_outputs = True
history = []


@torch.compile(backend="eager")
def step(weight, x, y):
    error = x @ weight - y
    loss = error.pow(2).mean()
    if FIX != "outside":
        value = loss.item()
        loss = loss * 1.0
    else:
        value = loss
    return weight - 0.1 * x.t() @ error, loss, value


torch.manual_seed(0)
x, y, weight = torch.randn(16, 3), torch.randn(16, 1), torch.zeros(3, 1)
for _ in range(6):
    weight, loss, value = step(weight, x, y)
    history.append(round(float(value), 4))
print(history)
