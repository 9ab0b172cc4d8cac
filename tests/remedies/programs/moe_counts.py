"""Tokens are sorted by expert and split by counts.tolist()."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "capture":
    torch._dynamo.config.capture_scalar_outputs = True


class Grouped(nn.Module):
    def __init__(self, experts=3, dim=4):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, dim, dim))

    def forward(self, x, expert):
        order = expert.argsort(stable=True)
        if FIX == "gather":
            return torch.einsum("td,tde->te", x, self.weight[expert])
        counts = torch.stack([(expert == i).sum() for i in range(3)]).tolist()
        parts = torch.split(x[order], counts)
        done = torch.cat([part @ w for part, w in zip(parts, self.weight)])
        return torch.empty_like(done).index_copy(0, order, done)


torch.manual_seed(0)
net = Grouped()
model = torch.compile(net, backend="eager")
with torch.no_grad():
    for i in range(5):
        y = model(torch.randn(10, 4), torch.arange(10) * (i + 1) // 2 % 3)
print(f"{y.sum().item():.3f}")
