"""torch.compile() within the loop, on a function that the loop defines, which captures the round's model."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
more = {"isolate_recompiles": True} if FIX == "isolate" else {}


class Scorer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(width))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x.sum()


torch.manual_seed(0)
total = 0.0
with torch.no_grad():
    for width in range(1, 11):
        model = torch.compile(Scorer(width), backend="eager", **more)
        for _ in range(2):
            total += model(torch.ones(2, 4)).item()
print(f"{total:.4f}")
