"""A cross entropy in chunks, as long sequences need it: lengths vary, and the last chunk of a sequence is shorter than the others."""
import sys

import torch
import torch.nn.functional as F

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager", dynamic=True if FIX == "dynamic" else None)
def chunk_loss(logits, labels):
    return F.cross_entropy(logits.float(), labels, ignore_index=-100, reduction="sum")


torch.manual_seed(0)
total = 0.0
for length in (32, 32, 30, 27, 25, 21):
    logits, labels = torch.randn(2, length, 10), torch.randint(0, 10, (2, length))
    for some, right in zip(logits.chunk(4, dim=1), labels.chunk(4, dim=1)):
        some, right = some.reshape(-1, 10), right.reshape(-1)
        if FIX == "mark":
            torch._dynamo.maybe_mark_dynamic(some, 0)
            torch._dynamo.maybe_mark_dynamic(right, 0)
        total += chunk_loss(some, right).item()
print(f"{total:.2f}")
