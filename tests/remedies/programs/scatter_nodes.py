"""A message passing layer takes the number of nodes from the largest index, as graph code does without num_nodes."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "capture":
    torch._dynamo.config.capture_scalar_outputs = True


@torch.compile(backend="eager")
def aggregate(messages, index, num_nodes=None):
    if num_nodes is None:
        num_nodes = int(index.max()) + 1
    out = torch.zeros(num_nodes, messages.size(1))
    return out.index_add(0, index, messages).relu()


torch.manual_seed(0)
total = 0.0
for i in range(6):
    index = torch.arange(8) % (3 + i % 2)
    messages = torch.randn(8, 4)
    if FIX == "argument":
        total += aggregate(messages, index, 4).sum().item()
    else:
        total += aggregate(messages, index).sum().item()
print(f"{total:.3f}")
