"""A tagger with an LSTM between two linear layers."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "allow":
    torch._dynamo.config.allow_rnn = True


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 4)
        self.lstm = nn.LSTM(4, 3, batch_first=True)
        self.out = nn.Linear(3, 2)

    @torch.compile(backend="eager")
    def forward(self, x):
        h = torch.relu(self.embed(x))
        h, _ = self.lstm(h)
        return self.out(torch.tanh(h))


torch.manual_seed(0)
model = Tagger()
with torch.no_grad():
    total = sum(model(torch.randn(2, 5, 4)).sum().item() for _ in range(6))
print(f"{total:.3f}")
