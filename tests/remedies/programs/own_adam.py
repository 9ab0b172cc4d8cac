"""An optimizer of one's own that counts its steps in a Python int for the bias correction."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class TinyAdam:
    def __init__(self, params, lr=0.05, betas=(0.9, 0.99)):
        self.params = list(params)
        self.lr, self.betas = lr, betas
        self.m = [torch.zeros_like(p) for p in self.params]
        self.v = [torch.zeros_like(p) for p in self.params]
        self.t = torch.tensor(0.0) if FIX == "tensor_t" else 0

    @torch.compile(backend="eager")
    def update(self, grads):
        b1, b2 = self.betas
        c1, c2 = 1 - b1 ** self.t, 1 - b2 ** self.t
        for p, g, m, v in zip(self.params, grads, self.m, self.v):
            m.lerp_(g, 1 - b1)
            v.lerp_(g * g, 1 - b2)
            p.sub_(self.lr * (m / c1) / ((v / c2).sqrt() + 1e-8))

    @torch.no_grad()
    def step(self, grads):
        self.t = self.t + 1
        self.update(grads)


torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
optimizer = TinyAdam(net.parameters())
x = torch.randn(8, 3)
for _ in range(12):
    loss = (net(x) - 1).pow(2).mean()
    optimizer.step(torch.autograd.grad(loss, optimizer.params))
print(f"loss {loss.item():.4f}")
