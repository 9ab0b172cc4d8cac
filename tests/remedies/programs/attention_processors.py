"""Blocks that are compiled one by one, each of which has an attention processor, an object of its own."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Processor:
    def __call__(self, attention, x):
        scores = torch.softmax(x @ x.transpose(-1, -2), -1)
        return attention.out(scores @ x)


class Attention(nn.Module):
    def __init__(self, processor):
        super().__init__()
        self.processor = processor
        self.out = nn.Linear(4, 4)

    def forward(self, x):
        return self.processor(self, x)


class Block(nn.Module):
    def __init__(self, processor):
        super().__init__()
        self.attention = Attention(processor)

    def forward(self, x):
        return x + self.attention(x)


torch.manual_seed(0)
shared = Processor()
blocks = [Block(shared if FIX == "shared" else Processor()) for _ in range(11)]
more = {"isolate_recompiles": True} if FIX == "isolate" else {}
compiled = [torch.compile(block, backend="eager", **more) for block in blocks]
with torch.no_grad():
    for _ in range(2):
        x = torch.ones(1, 3, 4)
        for block in compiled:
            x = block(x)
print(f"{x.sum().item():.3f}")
