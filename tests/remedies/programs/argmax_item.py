"""An agent takes its action with .item() within the compiled policy."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
if FIX == "capture":
    torch._dynamo.config.capture_scalar_outputs = True


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)

    def forward(self, x):
        logits = self.net(x)
        if FIX == "outside":
            return logits.argmax(), logits.logsumexp(-1)
        action = logits.argmax().item()
        return action, logits.logsumexp(-1)


torch.manual_seed(0)
net = Agent()
agent = torch.compile(net, backend="eager")
actions = []
with torch.no_grad():
    for _ in range(6):
        action, value = agent(torch.randn(4))
        actions.append(int(action))
print(actions)
