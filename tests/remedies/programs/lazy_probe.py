"""Attention that looks for a faster kernel within the call, by an import that may fail."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


def fast_kernel():
    try:
        import a_flash_attention_that_is_not_here
        return a_flash_attention_that_is_not_here.attention
    except ImportError:
        return None


FOUND = fast_kernel() if FIX == "outside" else None


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(4, 12)

    @torch.compile(backend="eager")
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        kernel = FOUND if FIX == "outside" else fast_kernel()
        if kernel is not None:
            return kernel(q, k, v)
        return torch.softmax(q @ k.transpose(-1, -2), -1) @ v


torch.manual_seed(0)
attention = Attention()
with torch.no_grad():
    print(f"{sum(attention(torch.randn(1, 3, 4)).sum().item() for _ in range(6)):.3f}")
