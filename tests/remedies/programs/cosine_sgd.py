"""Plain SGD written by hand; the learning rate follows a cosine and is a Python float."""
import math
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="aot_eager")
def sgd_step(params, grads, lr):
    with torch.no_grad():
        for p, g in zip(params, grads):
            p.add_(g, alpha=-lr)


def cosine(step, total, base=0.5):
    return base * 0.5 * (1 + math.cos(math.pi * step / total))


torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
x, y = torch.randn(16, 4), torch.randn(16, 1)
params = list(net.parameters())
for step in range(12):
    loss = torch.nn.functional.mse_loss(net(x), y)
    grads = torch.autograd.grad(loss, params)
    lr = cosine(step, 12)
    if FIX == "tensor":
        lr = torch.tensor(lr)
    sgd_step(params, grads, lr)
print(f"loss {loss.item():.3f}")
