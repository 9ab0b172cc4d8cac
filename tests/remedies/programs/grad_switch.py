"""Training with grad, validation under no_grad, and a final check in inference_mode: as it should be."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 1)

    def forward(self, x):
        return torch.tanh(self.fc(x))


torch.manual_seed(0)
net = Model()
model = torch.compile(net, backend="eager")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for _ in range(2):
        loss = (model(torch.ones(4, 3)) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        valid = model(torch.ones(4, 3)).mean().item()
print(f"{valid:.4f}")
