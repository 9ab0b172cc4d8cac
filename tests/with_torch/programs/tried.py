"""Programs that a setting of `dyntrace run --set` helps, and what it must not be: argv[1] is which, argv[2] "hand" the edit that the
setting stands for. What torch counted goes to the file $COUNTED, for output is compared."""
import math
import os
import sys

import torch
from torch._dynamo.utils import counters

WHICH, HAND = sys.argv[1], "hand" in sys.argv


def step(params, grads, lr):
    with torch.no_grad():
        for p, g in zip(params, grads):
            p.sub_(lr * g)


def rate():
    """A learning rate that falls: compiled again for each value until torch makes it dynamic; a tensor is compiled once."""
    f = torch.compile(step, backend="eager")
    params, grads = [torch.ones(4, 4) for _ in range(3)], [torch.ones(4, 4) for _ in range(3)]
    for i in range(12):
        lr = 0.5 * (1 + math.cos(math.pi * i / 12))
        f(params, grads, torch.tensor(lr) if HAND else lr)
    print("%.3f" % params[0].sum())


linear = torch.nn.Linear(4, 4)


def forward(x):
    return torch.relu(linear(x)).reshape(x.shape[0], -1).sum()


def sizes():
    """Lengths that change, a small last batch, and an evaluation: both dimensions are dynamic in the end."""
    f = torch.compile(forward, backend="eager", dynamic=True if HAND else None)
    for epoch in range(2):
        for b, t in ((8, 27), (8, 32), (8, 24), (8, 30), (2, 27)):
            f(torch.ones(b, t, 4))
        with torch.no_grad():
            for b, t in ((8, 26), (8, 28), (1, 14)):
                f(torch.ones(b, t, 4))


@torch.compile(backend="eager")
def broken(x):
    y = x * 2
    print("break")
    return x + y


def mark():
    """mark_dynamic() on x is an error: what comes after the break needs its size as a number."""
    for n in (6, 3):
        broken(torch.ones(n))


{"rate": rate, "sizes": sizes, "mark": mark}[WHICH]()
if os.environ.get("COUNTED"):
    with open(os.environ["COUNTED"], "w") as file:
        file.write(str(counters["stats"]["unique_graphs"]))
