"""A graph layer whose adjacency is a sparse tensor."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)

    @torch.compile(backend="eager")
    def forward(self, x, adjacency):
        x = torch.relu(self.mix(x))
        if FIX == "edges":
            source, target = adjacency
            x = torch.zeros_like(x).index_add_(0, source, x[target])
        elif FIX == "dense":
            x = adjacency @ x
        else:
            x = torch.sparse.mm(adjacency, x)
        return torch.tanh(x)


torch.manual_seed(0)
layer = Layer()
edges = torch.tensor([[0, 0, 1, 2], [1, 2, 3, 0]])
adjacency = torch.sparse_coo_tensor(edges, torch.ones(4), (4, 4))
adjacency = {"edges": edges, "dense": adjacency.to_dense()}.get(FIX, adjacency)
with torch.no_grad():
    print(f"{sum(layer(torch.randn(4, 4), adjacency).sum().item() for _ in range(6)):.3f}")
