"""A torch.compile program with two things that people look for: a recompile and a graph break.

    dyntrace run --python PYTHON_WITH_TORCH examples/recompiles.py
    dyntrace why scale recompiles.db
"""
import torch


def backend(graph, inputs):  # compiles nothing: the decisions are what counts here
    return graph.forward


@torch.compile(backend=backend)
def scale(x, factor):
    return x * factor


@torch.compile(backend=backend)
def report(x):
    y = x.sum()
    print("sum", y.item())
    return y * 2


for factor in (0.5, 0.25, 0.125):       # a float is part of the guards
    scale(torch.ones(4), factor)
for _ in range(2):
    report(torch.ones(4))
