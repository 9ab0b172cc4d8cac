"""An attention mask that is only passed when there is padding."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x, mask=None):
        scores = self.proj(x) @ x.transpose(1, 2)
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, :], -1e9)
        return torch.softmax(scores, -1) @ x


torch.manual_seed(0)
net = Encoder()
model = torch.compile(net, backend="eager")
total = 0.0
with torch.no_grad():
    for lengths in ((5, 5), (5, 3), (5, 5), (4, 5), (5, 5)):
        x = torch.randn(2, 5, 4)
        mask = torch.arange(5)[None] < torch.tensor(lengths)[:, None]
        if FIX != "always" and mask.all():
            mask = None
        total += model(x, mask).sum().item()
print(f"{total:.4f}")
