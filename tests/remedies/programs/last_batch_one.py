"""A DataLoader whose last batch has one item: 33 items by 8."""
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Linear(12, 3))

    def forward(self, x):
        return self.body(x).log_softmax(-1)


torch.manual_seed(0)
data = TensorDataset(torch.randn(33, 6), torch.randint(0, 3, (33,)))
loader = DataLoader(data, batch_size=8, drop_last=FIX == "drop_last")
net = Classifier()
model = torch.compile(net, backend="eager", dynamic=True if FIX == "dynamic" else None)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        if FIX == "unbacked":
            torch._dynamo.decorators.mark_unbacked(x, 0)
        optimizer.zero_grad()
        loss = torch.nn.functional.nll_loss(model(x), y)
        loss.backward()
        optimizer.step()
print(f"epochs 2, loss below 2: {loss.item() < 2}")
