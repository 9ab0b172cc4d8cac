"""The norm of gradients, which are None at first and after each zero_grad()."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def gradient_norm(parameters):
    total = torch.zeros(())
    for p in parameters:
        if p.grad is not None:
            total = total + p.grad.square().sum()
    return total.sqrt()


torch.manual_seed(0)
net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
parameters = list(net.parameters())
if FIX == "zeros":
    for p in parameters:
        p.grad = torch.zeros_like(p)
total = 0.0
for i in range(8):
    total += gradient_norm(parameters).item()
    if i % 3 == 2:
        optimizer.zero_grad(set_to_none=FIX != "zeros")
    net(torch.ones(2, 4)).square().sum().backward()
print(f"{total:.4f}")
