"""An optimizer orthogonalizes parameters of many shapes with one compiled helper."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "unforced":
    torch._dynamo.config.force_parameter_static_shapes = False


@torch.compile(backend="eager")
def orthogonalize(weights):
    done = []
    for w in weights:
        x = w / (w.norm() + 1e-7)
        done.append(1.5 * x - 0.5 * x @ x.t() @ x)
    return done


torch.manual_seed(0)
total = 0.0
with torch.no_grad():
    for width in (4, 6, 8, 10, 12, 14, 16, 18, 20, 22):
        parameter = torch.nn.Parameter(torch.randn(3, width))
        if FIX == "data":
            parameter = parameter.data
        total += orthogonalize([parameter])[0].sum().item()
print(f"{total:.3f}")
