"""Cholesky with jitter where it fails: a branch on .item() within a try."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def solve(k, y):
    k = k / k.diagonal().mean()
    if FIX == "where":
        factor, info = torch.linalg.cholesky_ex(k)
        factor = torch.where(info > 0, torch.linalg.cholesky_ex(k + torch.eye(4)).L, factor)
    else:
        try:
            factor, info = torch.linalg.cholesky_ex(k)
            if info.item() > 0:
                raise ValueError("not positive definite")
        except ValueError:
            factor = torch.linalg.cholesky(k + torch.eye(4))
    return torch.cholesky_solve(y, factor).sum()


matrices = [torch.ones(4, 4), torch.eye(4)] * 3
print(f"{sum(solve(k, torch.ones(4, 1)).item() for k in matrices):.2f}")
