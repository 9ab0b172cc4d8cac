"""A warning about a deprecated argument, within the compiled function."""
import sys
import warnings

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "reorder":
    torch._dynamo.config.reorderable_logging_functions.add(warnings.warn)


def normalize(x, eps):
    if eps is not None and FIX != "outside":
        warnings.warn("eps is deprecated")
    return x / (x.norm() + 1e-6)


@torch.compile(backend="eager")
def encode(x, eps=None):
    x = torch.sin(x)
    x = normalize(x, eps)
    return x + 1


torch.manual_seed(0)
warnings.simplefilter("ignore")
total = 0.0
for _ in range(5):
    total += encode(torch.randn(4), 1e-5).sum().item()
print(f"{total:.4f}")
