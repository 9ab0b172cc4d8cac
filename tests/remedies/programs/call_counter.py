"""A module counts its calls in an int that nothing else uses."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "unspec":
    torch._dynamo.config.allow_unspec_int_on_nn_module = True


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.calls = 0
        if FIX == "buffer":
            del self.calls
            self.register_buffer("calls", torch.tensor(0))

    def forward(self, x):
        self.calls += 1
        return self.fc(x)


torch.manual_seed(0)
net = Counted()
model = torch.compile(net, backend="eager")
with torch.no_grad():
    total = sum(model(torch.ones(2, 3)).sum().item() for _ in range(12))
print(f"{total:.4f} {int(net.calls)}")
