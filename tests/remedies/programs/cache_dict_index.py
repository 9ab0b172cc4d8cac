"""A rolling cache as a dict, whose ends are ints that each call moves."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def attend(x, cache):
    end = cache["end"]
    at = (torch.arange(x.shape[0]) + end) % cache["k"].shape[0]
    cache["k"][at] = x
    cache["end"] = end + x.shape[0]
    seen = (torch.arange(cache["k"].shape[0]) < cache["end"]).float()
    return (x @ cache["k"].t() * seen).sum(-1)


cache = {"k": torch.zeros(24, 4), "end": torch.tensor(0) if FIX == "tensor" else 0}
total = 0.0
for i in range(11):
    total += attend(torch.full((1, 4), 0.1 * i), cache).sum().item()
print(f"{total:.4f} {int(cache['end'])}")
