"""Compiled autograd: the backward is captured when it runs and compiled as a function of its own."""
import torch
import torch.nn as nn
from torch._dynamo import compiled_autograd

from know import Know

know = Know(__file__)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * 2 * x


model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(5, 4)


def loss_of(x):
    return Square.apply(model(x)).sum()


def gradients():
    model.zero_grad()
    loss_of(x).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


wanted = gradients()
backend = know.backend("aot_eager", name="forwards")
backwards = know.backend("eager", name="backwards")
results = []
with compiled_autograd._enable(torch.compile(backend=backwards, dynamic=True)):
    for turn in range(3):
        know.expect(f"forward: {'hit' if turn else 'compiled'}")         # the backward, as a graph module's forward
        results.append(gradients())
        assert torch.allclose(results[-1], wanted, atol=1e-6)
    # Forward compiled, too.
    fast = torch.compile(loss_of, backend=backend)
    for turn in range(2):
        model.zero_grad()
        loss = know.call(f"loss_of: {'hit' if turn else 'compiled'}", fast, x)
        know.expect(f"forward: {'hit' if turn else 'compiled'}")         # another one: it calls the compiled backward
        loss.backward()
        results.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
        assert torch.allclose(results[-1], wanted, atol=1e-6)
# And out of it again.
model.zero_grad()
know.call("loss_of: hit", fast, x).backward()
results.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
know.done(loss_of, results=results)
