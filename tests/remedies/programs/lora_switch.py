"""LoRA adapters in a dict, chosen by a name on the layer."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class LoraLinear(nn.Module):
    def __init__(self, names, dim=4, rank=2):
        super().__init__()
        self.base = nn.Linear(dim, dim)
        self.names = list(names)
        self.down = nn.ParameterDict({n: nn.Parameter(torch.randn(rank, dim)) for n in names})
        self.up = nn.ParameterDict({n: nn.Parameter(torch.randn(dim, rank)) for n in names})
        self.active = self.names[0]
        self.register_buffer("chosen", torch.tensor([0]))

    def switch(self, name):
        if FIX == "buffer":
            self.chosen.fill_(self.names.index(name))
        else:
            self.active = name

    def forward(self, x):
        if FIX == "buffer":
            down = torch.stack([self.down[n] for n in self.names]).index_select(0, self.chosen)[0]
            up = torch.stack([self.up[n] for n in self.names]).index_select(0, self.chosen)[0]
        else:
            down, up = self.down[self.active], self.up[self.active]
        return self.base(x) + x @ down.t() @ up.t()


torch.manual_seed(0)
layer = LoraLinear(["base", "cat", "dog", "bird"])
model = torch.compile(layer, backend="eager")
total = 0.0
with torch.no_grad():
    for name in ["base", "cat", "dog", "cat", "bird", "base"]:
        layer.switch(name)
        total += model(torch.ones(1, 4)).sum().item()
print(f"{total:.4f}")
