"""A prompt goes into the compiled function as a text, which makes a tensor of its bytes."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
torch.manual_seed(0)
table = torch.randn(128, 4)


def tokens(text):
    return torch.tensor(list(text.encode()))


@torch.compile(backend="eager")
def predict(text):
    ids = text if FIX == "outside" else tokens(text)
    return table[ids].mean(0).sum()


total = 0.0
for i in range(12):
    text = f"a note {10 + i} about compilers"
    total += predict(tokens(text) if FIX == "outside" else text).item()
print(f"{total:.3f}")
