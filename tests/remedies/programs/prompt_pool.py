"""Continual learning: a pool of prompts in an nn.ParameterList gets one more for each task."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "unspec":
    torch._dynamo.config.allow_unspec_int_on_nn_module = True


class Pool(nn.Module):
    def __init__(self, prompts):
        super().__init__()
        self.prompts = nn.ParameterList(nn.Parameter(torch.full((4,), float(i))) for i in range(prompts))

    def forward(self, x, mask):
        if FIX == "all":
            return (torch.sigmoid(x * torch.stack(list(self.prompts))).sum(1) * mask).sum()
        return sum(torch.sigmoid(x * p).sum() for p in self.prompts)


pool = Pool(10 if FIX == "all" else 1)
model = torch.compile(pool, backend="eager")
total = 0.0
with torch.no_grad():
    for task in range(10):
        if task and FIX != "all":
            pool.prompts.append(nn.Parameter(torch.full((4,), float(task))))
        for _ in range(2):
            total += model(torch.ones(4), torch.arange(10) <= task).item()
print(f"{total:.3f}")
