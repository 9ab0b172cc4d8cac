"""A step of scipy-like code in numpy, in the middle of a compiled function."""
import sys

import numpy as np
import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch._dynamo.disable
def spectrum(a):
    return np.abs(np.fft.rfft(a)).astype(np.float32)


@torch.compile(backend="eager")
def features(x):
    x = x * 2
    if FIX == "torch":
        y = torch.fft.rfft(x).abs()
    else:
        y = torch.from_numpy(spectrum(x.numpy()))
    return torch.log1p(y).sum()


torch.manual_seed(0)
print(f"{sum(features(torch.randn(16)).item() for _ in range(5)):.3f}")
