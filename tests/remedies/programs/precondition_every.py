"""A Shampoo-like step that renews its preconditioner every third step."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def update(p, grad, root, step):
    renew = step if FIX == "flag" else step % 3 == 0
    if renew:
        root = torch.linalg.inv(torch.eye(3) + grad.outer(grad))
    p.sub_(0.1 * (root @ grad))
    return root


torch.manual_seed(0)
p, root = torch.randn(3), torch.eye(3)
for step in range(12):
    root = update(p, 2 * p, root, step % 3 == 0 if FIX == "flag" else step)
print(f"{p.abs().sum().item():.5f}")
