"""An optimizer makes its state at the first step, when it sees a parameter without any."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Lion:
    def __init__(self, params, lr=0.01):
        self.params, self.lr, self.state = list(params), lr, {}
        if FIX == "made":
            for i, p in enumerate(self.params):
                self.state[i] = torch.zeros_like(p)

    @torch.compile(backend="eager")
    def step(self, grads):
        for i, (p, g) in enumerate(zip(self.params, grads)):
            if i not in self.state:
                self.state[i] = torch.zeros_like(p)
            momentum = self.state[i]
            p.sub_(self.lr * torch.sign(0.9 * momentum + 0.1 * g))
            momentum.mul_(0.99).add_(g, alpha=0.01)


torch.manual_seed(0)
params = [torch.randn(3), torch.randn(2, 2)]
optimizer = Lion(params)
for _ in range(5):
    optimizer.step([2 * p for p in params])
print(f"{sum(p.abs().sum().item() for p in params):.4f}")
