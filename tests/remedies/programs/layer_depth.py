"""Progressive stacking: an attribute, the number of active layers, is raised in training."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "unspec":
    torch._dynamo.config.allow_unspec_int_on_nn_module = True


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(10))
        self.depth = 1

    def forward(self, x, on):
        if FIX == "where":
            for i, layer in enumerate(self.layers):
                x = torch.where(on[i], torch.relu(layer(x)), x)
            return x.sum()
        for layer in self.layers[: self.depth]:
            x = torch.relu(layer(x))
        return x.sum()


torch.manual_seed(0)
stack = Stack()
model = torch.compile(stack, backend="eager")
total = 0.0
with torch.no_grad():
    for epoch in range(10):
        if FIX != "where":
            stack.depth = epoch + 1
        for _ in range(2):
            total += model(torch.ones(2, 4), torch.arange(10) <= epoch).item()
print(f"{total:.4f}")
