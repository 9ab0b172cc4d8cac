"""A step prints its loss every fifth time: the step's number comes as an argument."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def step_loss(x, y, step=0):
    loss = (x - y).abs().mean()
    if FIX != "outside" and step % 5 == 0:
        print("step %d loss %.3f" % (step, loss.item()))
    return loss * 2


torch.manual_seed(0)
total = 0.0
for step in range(12):
    x, y = torch.randn(4), torch.randn(4)
    if FIX == "outside":
        loss = step_loss(x, y)
        if step % 5 == 0:
            print("step %d loss %.3f" % (step, loss.item() / 2))
    else:
        loss = step_loss(x, y, step)
    total += loss.item()
print(f"{total:.3f}")
