"""SGD with momentum: a parameter's state is made in the first step, which is compiled for a call without any."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""

torch.manual_seed(0)
net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
if FIX == "first":
    for parameter in net.parameters():  # with zeros the first step gives what it gives without a state
        optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
compiled = torch.compile(optimizer.step, backend="eager")
x = torch.ones(2, 4)
for _ in range(8):
    net(x).sum().backward()
    compiled()
    optimizer.zero_grad()
print(f"{net.weight.sum().item():.3f}")
