"""Sizes of boxes as ints of tensors, as detectors compute them."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""

if FIX == "capture":
    torch._dynamo.config.capture_scalar_outputs = True


@torch.compile(backend="eager")
def area(box, scale):
    box = box * scale
    if FIX == "tensor":
        w, h = (box[2] - box[0]).long(), (box[3] - box[1]).long()
        return w * h
    w = int(box[2] - box[0])
    h = int(box[3] - box[1])
    return torch.tensor(w * h)


torch.manual_seed(0)
total = 0
for _ in range(10):
    corner = torch.randint(0, 100, (2,))
    total += int(area(torch.cat([corner, corner + torch.randint(1, 50, (2,))]).float(), 2.0))
print(total)
