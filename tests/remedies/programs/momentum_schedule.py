"""SGD with momentum and a scheduler: its state is made in the first step, and the learning rate changes before the second."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""

torch.manual_seed(0)
net = nn.Linear(4, 4)
rate = torch.tensor(0.1) if FIX in ("tensor", "both") else 0.1
optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
if FIX in ("first", "both"):
    for parameter in net.parameters():  # with zeros the first step gives what it gives without a state
        optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
compiled = torch.compile(optimizer.step, backend="eager")
x = torch.ones(2, 4)
for _ in range(8):
    net(x).sum().backward()
    compiled()
    scheduler.step()
    optimizer.zero_grad()
print(f"{net.weight.sum().item():.3f}")
