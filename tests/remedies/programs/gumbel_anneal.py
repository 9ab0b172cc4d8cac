"""Gumbel softmax with a temperature that falls, and hard samples in every second call."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def sample(logits, noise, temperature, hard):
    soft = torch.softmax((logits + noise) / temperature, -1)
    if FIX == "tensor":
        one = torch.zeros_like(soft).scatter(-1, soft.argmax(-1, keepdim=True), 1.0)
        return torch.where(hard, one - soft.detach() + soft, soft)
    if hard:
        one = torch.zeros_like(soft).scatter(-1, soft.argmax(-1, keepdim=True), 1.0)
        return one - soft.detach() + soft
    return soft


torch.manual_seed(0)
total = 0.0
for step in range(12):
    temperature, hard = 2.0 * 0.9 ** step, step % 2 == 1
    if FIX in ("tensor", "temperature"):
        temperature = torch.tensor(temperature)
    if FIX == "tensor":
        hard = torch.tensor(hard)
    total += sample(torch.randn(3, 5), torch.rand(3, 5), temperature, hard).square().sum().item()
print(f"{total:.4f}")
