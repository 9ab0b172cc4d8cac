"""torch.compile(optimizer.step), with a scheduler that changes the float learning rate after each epoch."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
rate = torch.tensor(0.1) if FIX == "tensor_lr" else 0.1
optimizer = torch.optim.Adam(model.parameters(), lr=rate)
step = torch.compile(optimizer.step, backend="eager")
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
data = torch.randn(8, 4)

for epoch in range(6):
    for _ in range(2):
        optimizer.zero_grad()
        loss = model(data).pow(2).mean()
        loss.backward()
        step()
    scheduler.step()
print(f"loss {loss.item():.3f} lr {float(optimizer.param_groups[0]['lr']):.4f}")
