"""A forward hook is registered for some batches and removed again."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


seen = []
wanted = [False]


def keep(module, inputs, output):
    seen.append(output.detach().mean())


def keep_if_wanted(module, inputs, output):
    return None


torch.manual_seed(0)
net = Net()
model = torch.compile(net, backend="eager")
total = 0.0
with torch.no_grad():
    for i in range(6):
        handle = None
        if i % 2 and FIX != "without":
            handle = net.body.register_forward_hook(keep)
        total += model(torch.randn(2, 3)).sum().item()
        if handle:
            handle.remove()
print(f"{total:.4f}")
