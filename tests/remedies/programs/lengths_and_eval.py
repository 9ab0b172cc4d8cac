"""Batches of varying length with a small last one, and an evaluation under no_grad after each epoch."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens):
        x = self.embed(tokens)
        b, t, d = x.shape
        return self.head(torch.tanh(x)).reshape(b * t, -1)


torch.manual_seed(0)
net = Tagger()
model = torch.compile(net, backend="eager", dynamic=True if FIX == "dynamic" else None)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
train = [(8, 27), (8, 32), (8, 24), (2, 30)]
valid = [(8, 26), (8, 28), (1, 14)]
if FIX == "drop_last":
    train, valid = train[:-1], valid[:-1]


def batch(size, length):
    tokens = torch.arange(size * length).reshape(size, length) % 50
    if FIX == "mark_both":
        torch._dynamo.maybe_mark_dynamic(tokens, 0)
        torch._dynamo.maybe_mark_dynamic(tokens, 1)
    return tokens


for epoch in range(2):
    for shape in train:
        optimizer.zero_grad()
        model(batch(*shape)).logsumexp(-1).mean().backward()
        optimizer.step()
    with torch.no_grad():
        scores = [model(batch(*shape)).mean().item() for shape in valid]
print(f"valid {sum(scores) / len(scores):.2f}")
