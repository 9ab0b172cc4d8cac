"""A model stops on NaN with an `if` on a tensor within a helper that is inlined."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


def check_finite(x, where):
    if torch.isnan(x).any():
        raise FloatingPointError(f"NaN in {where}")
    return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        if FIX == "after":
            x = torch.relu(self.first(x))
            return self.second(x)
        x = check_finite(torch.relu(self.first(x)), "first")
        return check_finite(self.second(x), "second")


torch.manual_seed(0)
net = Net()
model = torch.compile(net, backend="eager")
total = 0.0
with torch.no_grad():
    for _ in range(4):
        y = model(torch.randn(2, 4))
        if FIX == "after":
            check_finite(y, "the model")
        total += y.sum().item()
print(f"{total:.4f}")
