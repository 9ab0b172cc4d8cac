"""One compiled function for the whole step: optimizer.step() and scheduler.step() in it, as the recipe for schedulers has it."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=8)


def train_step():
    optimizer.step()
    scheduler.step()


if FIX == "step_alone":
    compiled = torch.compile(torch.optim.SGD.step, backend="eager")

    def step():
        compiled(optimizer)
        scheduler.step()
else:
    step = torch.compile(train_step, backend="eager")

data = torch.randn(8, 4)
for _ in range(10):
    optimizer.zero_grad()
    loss = model(data).pow(2).mean()
    loss.backward()
    step()
print(f"loss {loss.item():.4f}")
