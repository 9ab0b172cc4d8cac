"""Message passing on graphs of other numbers of nodes and edges."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, edges):
        messages = self.lin(x)[edges[0]]
        out = torch.zeros_like(x).index_add(0, edges[1], messages)
        return torch.relu(out).sum()


torch.manual_seed(0)
net = Conv()
more = {"dynamic": True} if FIX == "dynamic" else {}
model = torch.compile(net, backend="eager", **more)
total = 0.0
with torch.no_grad():
    for nodes, count in ((5, 8), (5, 11), (7, 11), (6, 9), (9, 14), (4, 5), (8, 16)):
        x, edges = torch.randn(nodes, 3), torch.randint(0, nodes, (2, count))
        if FIX == "mark":
            torch._dynamo.maybe_mark_dynamic(x, 0)
            torch._dynamo.maybe_mark_dynamic(edges, 1)
        total += model(x, edges).item()
print(f"{total:.3f}")
