"""An optimizer of one's own that compiles the update of a group of parameters; groups have parameters of other shapes."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""

if FIX == "unforced":
    torch._dynamo.config.force_parameter_static_shapes = False


@torch.compile(backend="eager")
def apply_updates(params, updates):
    torch._foreach_mul_(params, 0.9)
    torch._foreach_add_(params, updates, alpha=-0.1)


torch.manual_seed(0)
groups = [[nn.Parameter(torch.ones(n, m)) for _ in range(2)] for n, m in ((8, 4), (6, 4), (4, 4), (12, 6), (10, 5), (9, 3), (7, 2), (5, 9), (3, 11), (11, 7))]
for _ in range(2):
    with torch.no_grad():
        for params in groups:
            updates = [torch.full_like(p, 0.5).detach() for p in params]
            apply_updates([p.data for p in params] if FIX == "data" else params, updates)
print(f"{sum(p.sum().item() for params in groups for p in params):.3f}")
