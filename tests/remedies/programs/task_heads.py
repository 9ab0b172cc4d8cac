"""Several tasks: an attribute, the index of the head in use, is set by the loop."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "unspec":
    torch._dynamo.config.allow_unspec_int_on_nn_module = True


class Tasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(4, 2) for _ in range(10))
        self.task = 0

    def forward(self, x, weight, bias):
        if FIX == "pass":
            return nn.functional.linear(x.relu(), weight, bias).sum()
        return self.heads[self.task](x.relu()).sum()


torch.manual_seed(0)
tasks = Tasks()
model = torch.compile(tasks, backend="eager")
total = 0.0
with torch.no_grad():
    for i in range(20):
        head = tasks.heads[i % 10]
        if FIX != "pass":
            tasks.task = i % 10
        total += model(torch.ones(2, 4), head.weight, head.bias).item()
print(f"{total:.4f}")
