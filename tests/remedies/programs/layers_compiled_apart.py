"""Each block of a model is compiled by itself; they share a forward, and each has its layer_idx."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "unspec":
    torch._dynamo.config.allow_unspec_int_on_nn_module = True


class Block(nn.Module):
    def __init__(self, layer_idx):
        super().__init__()
        self.layer_idx = layer_idx
        self.proj = nn.Linear(4, 4)

    def forward(self, x):
        return x + self.proj(x) / (1 + self.layer_idx)


torch.manual_seed(0)
more = {"isolate_recompiles": True} if FIX == "isolate" else {}
blocks = [Block(i) for i in range(11)]
compiled = [torch.compile(block, backend="eager", **more) for block in blocks]
if FIX == "whole":
    whole = torch.compile(nn.Sequential(*blocks), backend="eager")
with torch.no_grad():
    for _ in range(2):
        x = torch.ones(2, 4)
        if FIX == "whole":
            x = whole(x)
        else:
            for block in compiled:
                x = block(x)
print(f"{x.sum().item():.4f}")
