"""Calls of a model with other sets of keywords, through **kwargs."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Model(nn.Module):
    def forward(self, x, **more):
        if more.get("bias") is not None:
            x = x + more["bias"]
        if more.get("scale") is not None:
            x = x * more["scale"]
        if more.get("mask") is not None:
            x = x * more["mask"]
        return x.sum()


model = torch.compile(Model(), backend="eager")
x, total = torch.ones(3), 0.0
neutral = {"bias": torch.zeros(3), "scale": torch.ones(3), "mask": torch.ones(3)}
values = {"bias": torch.full((3,), 2.0), "scale": torch.full((3,), 3.0), "mask": torch.tensor([1.0, 0, 1])}
for _ in range(2):
    for wanted in ((), ("bias",), ("scale",), ("mask",), ("bias", "scale"), ("bias", "mask"), ("scale", "mask")):
        given = {name: values[name] for name in wanted}
        total += model(x, **({**neutral, **given} if FIX == "always" else given)).item()
print(f"{total:.1f}")
