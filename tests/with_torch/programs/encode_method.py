"""A model is compiled, but the program calls a method of it that is not forward; another one is called by forward alone."""
import torch
import torch.nn as nn


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Linear(4, 2)
        self.up = nn.Linear(2, 4)
        self.calls = 0

    def encode(self, x):
        return self.down(x).relu()

    @torch.compiler.disable
    def count(self):
        self.calls += 1

    def forward(self, x):
        self.count()
        return self.up(self.encode(x))


model = torch.compile(Autoencoder(), backend="eager")
with torch.no_grad():
    for i in range(4):
        model(torch.randn(3, 4))
    for i in range(10):
        model.encode(torch.randn(3, 4))
