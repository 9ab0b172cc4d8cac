"""model.train() and model.eval() in turn; dropout needs the flag."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.drop = torch.nn.Linear(3, 3), torch.nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.fc(x))


torch.manual_seed(0)
net = Net()
model = torch.compile(net, backend="eager")
for epoch in range(3):
    net.train()
    model(torch.ones(2, 3)).sum().backward()
    net.eval()
    if FIX == "with_grad":
        value = model(torch.ones(2, 3)).sum().item()
    else:
        with torch.no_grad():
            value = model(torch.ones(2, 3)).sum().item()
print(f"{value:.4f}")
