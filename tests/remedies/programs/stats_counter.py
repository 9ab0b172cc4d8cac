"""A module counts calls and rows in a collections.Counter."""
import collections
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "unspec":
    torch._dynamo.config.allow_unspec_int_on_nn_module = True


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.stats = collections.Counter()

    def forward(self, x):
        if FIX != "outside":
            self.count(x)
        return self.fc(x).relu()

    def count(self, x):
        self.stats["calls"] += 1
        self.stats["rows"] += x.shape[0]


torch.manual_seed(0)
net = Model()
model = torch.compile(net, backend="eager")
with torch.no_grad():
    for i in range(12):
        x = torch.randn(4, 3)
        if FIX == "outside":
            net.count(x)
        model(x)
print({name: int(count) for name, count in net.stats.items()})
