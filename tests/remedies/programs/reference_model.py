"""Policy and reference are two models of one class, compiled apart: the reference is frozen and only evaluates."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(10, 4), nn.Linear(4, 10)
        self.dropout = nn.Dropout(0.0)

    def forward(self, tokens):
        return self.head(self.dropout(self.embed(tokens))).log_softmax(-1)


torch.manual_seed(0)
policy, reference = Model(), Model()
reference.load_state_dict(policy.state_dict())
reference.eval()
reference.requires_grad_(False)
if FIX == "dynamic":
    policy.compile(backend="eager", dynamic=True)
    reference.compile(backend="eager", dynamic=True)
else:
    policy.compile(backend="eager")
    reference.compile(backend="eager")
total = 0.0
for length in (6, 9, 7, 12, 5):
    tokens = torch.randint(0, 10, (2, length))
    if FIX == "mark":
        torch._dynamo.mark_dynamic(tokens, 1)
    with torch.no_grad():
        wanted = reference(tokens)
    loss = (policy(tokens) - wanted).pow(2).mean() + policy.head.weight.pow(2).mean()
    loss.backward()
    total += loss.item()
print(f"{total:.4f}")
