"""OneCycleLR moves the learning rate and, as it does unless told not to, the first beta."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.NAdam(model.parameters(), lr=0.001)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=30, cycle_momentum=FIX not in ("steady", "steady_lr"))
step = torch.compile(lambda: optimizer.step(), backend="eager")
for i in range(12):
    optimizer.zero_grad()
    model(torch.ones(2, 3)).sum().backward()
    group = optimizer.param_groups[0]
    if FIX in ("lr", "steady_lr"):
        group["lr"] = torch.tensor(float(group["lr"]))
    step()
    if FIX in ("lr", "steady_lr"):
        group["lr"] = float(group["lr"])
    scheduler.step()
print("done")
