"""A factory makes a loss for each temperature; the number is captured."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


def make_loss(temperature):
    @torch.compile(backend="eager")
    def loss(logits):
        return torch.logsumexp(logits / temperature, -1).mean() * temperature

    return loss


@torch.compile(backend="eager")
def loss_with(logits, temperature):
    return torch.logsumexp(logits / temperature, -1).mean() * temperature


torch.manual_seed(0)
logits = torch.randn(4, 3)
total = 0.0
for i in range(8):
    temperature = 1.0 + 0.25 * i
    if FIX == "argument":
        total += loss_with(logits, torch.tensor(temperature)).item()
    else:
        total += make_loss(torch.tensor(temperature) if FIX == "tensor" else temperature)(logits).item()
print(f"{total:.3f}")
