"""A step of a sampler that draws its noise from a generator of its own, so that seeds can be repeated."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def ancestral_step(x, sigma, generator=None, noise=None):
    denoised = x / (1 + sigma)
    if noise is None:
        noise = torch.randn(x.shape, generator=generator)
    return denoised + 0.1 * noise


generator = torch.Generator().manual_seed(3)
x = torch.ones(2, 4, 8)
sigma = torch.tensor(0.5)
for step in range(6):
    if FIX == "outside":
        x = ancestral_step(x, sigma, noise=torch.randn(x.shape, generator=generator))
    else:
        x = ancestral_step(x, sigma, generator)
print(f"{x.sum().item():.3f}")
