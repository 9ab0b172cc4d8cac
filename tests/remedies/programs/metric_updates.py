"""A metric as libraries have them: a module that counts its updates, and adds up in tensors."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""

if FIX == "unspec":
    torch._dynamo.config.allow_unspec_int_on_nn_module = True


class Accuracy(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("right", torch.zeros(()))
        self.register_buffer("total", torch.zeros(()))
        self._update_count = torch.tensor(0) if FIX == "tensor" else 0
        self._computed = None

    def update(self, scores, labels):
        self._computed = None
        self._update_count += 1
        self.right += (scores.argmax(-1) == labels).sum()
        self.total += labels.numel()


torch.manual_seed(0)
metric = Accuracy()
update = torch.compile(metric.update, backend="eager")
for _ in range(12):
    update(torch.randn(8, 3), torch.randint(0, 3, (8,)))
print(int(metric.right), int(metric.total), int(metric._update_count))
