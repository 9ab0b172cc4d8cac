"""A dropout rate that is an attribute of the class, and rises."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Block(torch.nn.Module):
    rate = 0.0
    rate_tensor = torch.tensor(0.0)

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        x = self.layer(x)
        if FIX == "tensor":
            kept = (torch.rand_like(x) >= self.rate_tensor).to(x.dtype)
            return x * kept / (1 - self.rate_tensor)
        return torch.nn.functional.dropout(x, self.rate, self.training)


torch.manual_seed(0)
model = torch.compile(Block(), backend="eager")
for epoch in range(6):
    Block.rate = epoch / 32
    Block.rate_tensor.fill_(epoch / 32)
    out = model(torch.ones(2, 4))
print(tuple(out.shape))
