"""A module that counts its rounds; each second round half of it is frozen."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
torch._dynamo.config.allow_unspec_int_on_nn_module = FIX == "unspec"


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        if FIX == "tensor":
            self.register_buffer("rounds", torch.tensor(0))
        else:
            self.rounds = 0

    @torch.compile(backend="eager")
    def forward(self, x):
        x = self.second(x + self.first.bias)
        if FIX != "outside":
            self.rounds += 1
        return x


torch.manual_seed(0)
model = Model()
for i in range(10):
    for p in model.second.parameters():
        p.requires_grad = i % 2 == 1
    model(torch.randn(2, 3)).sum().backward()
    if FIX == "outside":
        model.rounds += 1
print(f"{int(model.rounds)} {model.first.bias.grad.sum().item():.3f}")
