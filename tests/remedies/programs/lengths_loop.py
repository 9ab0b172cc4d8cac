"""An RNN cell is stepped up to the longest length of the batch, a number that is taken from a tensor."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "capture":
    torch._dynamo.config.capture_scalar_outputs = True


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x, lengths):
        h = x.new_zeros(x.size(0), 4)
        steps = x.size(1) if FIX == "padded" else int(lengths.max())
        for t in range(steps):
            new = self.cell(x[:, t], h)
            h = torch.where((t < lengths).unsqueeze(1), new, h)
        return h


torch.manual_seed(0)
model = torch.compile(Encoder(), backend="eager")
total = 0.0
with torch.no_grad():
    for i in range(6):
        lengths = torch.tensor([2 + i % 3, 1, 3])
        total += model(torch.randn(3, 5, 4), lengths).sum().item()
print(f"{total:.3f}")
