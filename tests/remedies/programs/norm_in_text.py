"""The norm of the gradients goes into a line of the log, made within the compiled step."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""

LINES = []


@torch.compile(backend="eager")
def clip(grads, most):
    norm = torch.stack([g.norm() for g in grads]).norm()
    if FIX != "after":
        LINES.append(f"norm {norm.item():.3f}")
    factor = torch.clamp(most / (norm + 1e-6), max=1.0)
    grads = [g * factor for g in grads]
    return (grads, norm) if FIX == "after" else grads


torch.manual_seed(0)
for _ in range(5):
    grads = [torch.randn(3), torch.randn(2)]
    made = clip(grads, 1.0)
    if FIX == "after":
        LINES.append(f"norm {made[1].item():.3f}")
print(LINES)
