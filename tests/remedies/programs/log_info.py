"""logger.info() in forward."""
import logging
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
logging.basicConfig(level=logging.WARNING)
logger = logging.getLogger("net")
if FIX == "ignore":
    torch._dynamo.config.ignore_logging_functions.add(logger.info)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        x = self.fc(x)
        if FIX != "without":
            logger.info("after fc: %s", "ok")
        return torch.relu(x)


torch.manual_seed(0)
model = torch.compile(Net(), backend="eager")
with torch.no_grad():
    print(f"{sum(model(torch.randn(2, 3)).sum().item() for _ in range(4)):.4f}")
