"""The training loop sets model.global_step, and the model warms something up by it."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""

if FIX == "unspec":
    torch._dynamo.config.allow_unspec_int_on_nn_module = True


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.global_step = 0

    def forward(self, x):
        return self.fc(x).tanh() * (self.global_step / 100)


torch.manual_seed(0)
net = Model()
model = torch.compile(net, backend="eager")
total = 0.0
for step in range(12):
    net.global_step = torch.tensor(step) if FIX == "tensor" else step
    total += model(torch.randn(2, 3)).sum().item()
print(f"{total:.4f}")
