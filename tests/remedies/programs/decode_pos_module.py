"""A static cache whose fill level is an int on the module."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "unspec":
    torch._dynamo.config.allow_unspec_int_on_nn_module = True


class Cache(nn.Module):
    def __init__(self, size, dim):
        super().__init__()
        self.register_buffer("keys", torch.zeros(size, dim))
        self.filled = 0

    def append(self, key):
        self.keys[self.filled:self.filled + key.shape[0]] = key
        self.filled += key.shape[0]
        return self.keys


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)
        self.cache = Cache(24, 4)

    def forward(self, x):
        keys = self.cache.append(self.proj(x))
        return torch.softmax(x @ keys.t(), -1) @ keys


torch.manual_seed(0)
layer = Layer()
model = torch.compile(layer, backend="eager")
with torch.no_grad():
    x = torch.ones(1, 4)
    for _ in range(14):
        x = model(x)
print(f"{x.sum().item():.4f} {layer.cache.filled}")
