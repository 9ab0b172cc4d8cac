"""An agent sees its last four frames, which a deque of limited length keeps."""
import collections
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, frames):
        return self.fc(torch.stack(list(frames)).mean(0))


torch.manual_seed(0)
agent = torch.compile(Agent(), backend="eager")
frames = collections.deque(maxlen=4)
first = torch.randn(3)
if FIX == "filled":
    frames.extend(first.clone() for i in range(3))
total = 0
with torch.no_grad():
    for i in range(10):
        frames.append(first if i == 0 else torch.randn(3))
        total += agent(frames).shape[0]
print(total)
