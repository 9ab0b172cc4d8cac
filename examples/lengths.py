"""Batches of many lengths, and a small last batch in an evaluation: many recompiles.

    dyntrace run --python PYTHON_WITH_TORCH examples/lengths.py
    dyntrace try lengths.db score
"""
import torch

torch.manual_seed(0)
layer = torch.nn.Linear(4, 4)


@torch.compile(backend="eager")
def score(x):
    return torch.relu(layer(x)).reshape(x.shape[0], -1).sum()


for epoch in range(2):
    for batch, length in (8, 27), (8, 32), (8, 24), (8, 30), (2, 27):
        score(torch.randn(batch, length, 4))
    with torch.no_grad():
        for batch, length in (8, 26), (8, 28), (1, 14):
            score(torch.randn(batch, length, 4))
