"""A weight norm that is removed after the model has been compiled."""
import sys

import torch
import torch.nn as nn
from torch.nn.utils import parametrizations, parametrize

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Vocoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = parametrizations.weight_norm(nn.Linear(4, 4))

    def forward(self, x):
        return torch.tanh(self.layer(x)).sum()


torch.manual_seed(0)
vocoder = Vocoder()
model = torch.compile(vocoder, backend="eager")
total = 0.0
with torch.no_grad():
    for i in range(6):
        if i == (0 if FIX == "first" else 3):
            parametrize.remove_parametrizations(vocoder.layer, "weight")
        total += model(torch.ones(2, 4)).item()
print(f"{total:.4f}")
