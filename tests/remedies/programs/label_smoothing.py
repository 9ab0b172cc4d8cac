"""Label smoothing is ramped up while training."""
import sys

import torch
import torch.nn.functional as F

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def criterion(logits, labels, smoothing):
    if FIX == "tensor":
        logs = logits.log_softmax(-1)
        picked = F.nll_loss(logs, labels)
        return (1 - smoothing) * picked - smoothing * logs.mean()
    return F.cross_entropy(logits, labels, label_smoothing=smoothing)


torch.manual_seed(0)
total = 0.0
for epoch in range(10):
    smoothing = 0.01 + 0.01 * epoch
    if FIX == "tensor":
        smoothing = torch.tensor(smoothing)
    total += criterion(torch.randn(4, 5), torch.arange(4), smoothing).item()
print(f"{total:.3f}")
