"""ReduceLROnPlateau puts a float in the place of an optimizer's learning rate, which was a tensor."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.Adagrad(model.parameters(), lr=torch.tensor(0.1))
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)


@torch.compile(backend="eager")
def step():
    optimizer.step()


for i in range(12):
    optimizer.zero_grad()
    model(torch.ones(2, 3)).sum().backward()
    step()
    scheduler.step(1.0)
    if FIX == "tensor":
        optimizer.param_groups[0]["lr"] = torch.as_tensor(optimizer.param_groups[0]["lr"])
print(f"{float(optimizer.param_groups[0]['lr']):.6f} {model.weight.sum().item():.4f}")
