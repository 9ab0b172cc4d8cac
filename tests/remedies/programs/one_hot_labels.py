"""Label smoothing with one_hot, which is not told how many classes there are."""
import sys

import torch
import torch.nn.functional as F

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
CLASSES = 5 if FIX == "classes" else -1


@torch.compile(backend="eager")
def smoothed_loss(logits, labels):
    target = F.one_hot(labels, CLASSES).float() * 0.9 + 0.02
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


torch.manual_seed(0)
total = 0.0
for step in range(6):
    total += smoothed_loss(torch.randn(10, 5), torch.arange(10) % 5).item()
print(f"{total:.4f}")
