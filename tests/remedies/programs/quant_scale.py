"""Dynamic quantization: the scale is taken out of the tensor with .item()."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "capture":
    torch._dynamo.config.capture_scalar_outputs = True


@torch.compile(backend="eager")
def quantize(x):
    peak = x.abs().max()
    scale = peak / 127 if FIX == "tensor" else peak.item() / 127
    return torch.clamp((x / scale).round(), -128, 127) * scale


torch.manual_seed(0)
total = 0.0
for i in range(6):
    total += quantize(torch.randn(16) * (i + 1)).abs().sum().item()
print(f"{total:.2f}")
