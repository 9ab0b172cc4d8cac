"""The members of an ensemble are one function with other parameters, bound by functools.partial and compiled apart."""
import functools
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


def member(weights, shift, x):
    return (x @ weights + shift).tanh()


torch.manual_seed(0)
members = []
for i in range(10):
    shift = 0.1 * i if FIX != "tensor" else torch.tensor(0.1 * i)
    bound = functools.partial(member, torch.randn(3, 3), shift)
    members.append(torch.compile(bound, backend="eager"))
total = 0.0
for step in range(3):
    x = torch.randn(2, 3)
    total += sum(one(x).sum().item() for one in members)
print(f"{total:.3f}")
