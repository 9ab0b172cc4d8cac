"""A patch embedding cuts its table of positions out of the middle, by the number of patches: images have several sizes."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Patches(nn.Module):
    def __init__(self, side=8, dim=3):
        super().__init__()
        self.side = side
        self.positions = nn.Parameter(torch.arange(side * side * dim).reshape(side * side, dim) / 100)

    def indices(self, h, w):
        table = torch.arange(self.side ** 2).view(self.side, self.side)
        top, left = self.side // 2 - h // 2, self.side // 2 - w // 2
        return table[top:top + h, left:left + w].flatten()

    def forward(self, latent, where=None):
        h, w = latent.shape[-2] // 2, latent.shape[-1] // 2
        patches = latent.view(1, -1, h, 2, w, 2).permute(0, 2, 4, 1, 3, 5).flatten(-3).flatten(1, 2)
        if where is None:
            where = self.indices(h, w)
        return patches + self.positions[where].sum(-1, keepdim=True)


net = Patches()
model = torch.compile(net, backend="eager", dynamic=True if FIX == "dynamic" else None)
total = 0.0
with torch.no_grad():
    for h, w in ((8, 8), (8, 12), (12, 8), (10, 6), (16, 16), (6, 10)):
        latent = torch.ones(1, 1, h, w)
        if FIX == "mark":
            torch._dynamo.maybe_mark_dynamic(latent, 2)
            torch._dynamo.maybe_mark_dynamic(latent, 3)
        total += model(latent, *([net.indices(h // 2, w // 2)] if FIX == "outside" else [])).sum().item()
print(f"{total:.2f}")
