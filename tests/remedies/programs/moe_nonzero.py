"""A mixture of experts that takes each expert's tokens with nonzero()."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "capture":
    torch._dynamo.config.capture_dynamic_output_shape_ops = True


class MoE(nn.Module):
    def __init__(self, experts=3, dim=4):
        super().__init__()
        self.gate = nn.Linear(dim, experts)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(experts))

    def forward(self, x):
        weights, chosen = torch.softmax(self.gate(x), -1).max(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            if FIX == "dense":
                out = out + expert(x) * (weights * (chosen == i))[:, None]
            else:
                rows = torch.nonzero(chosen == i).squeeze(-1)
                out = out.index_add(0, rows, expert(x[rows]) * weights[rows, None])
        return out


torch.manual_seed(0)
net = MoE()
model = torch.compile(net, backend="eager")
with torch.no_grad():
    total = sum(model(torch.randn(12, 4)).sum().item() for _ in range(4))
print(f"{total:.3f}")
