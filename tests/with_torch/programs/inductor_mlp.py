"""The real backend: an MLP trained with inductor, forward and backward compiled by it to C++, caches of its own off."""
import torch
import torch.nn as nn

from know import Know

know = Know(__file__, compiler=True)
torch._inductor.config.force_disable_caches = True

model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1))


@torch.compile(backend=know.backend("inductor"))
def loss_of(x):
    return (model(x) - 1).square().mean()


x = torch.randn(16, 4)
wanted = (model(x) - 1).square().mean()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for turn in range(3):
    optimizer.zero_grad()
    loss = know.call(f"loss_of: {'hit' if turn else 'compiled'}", loss_of, x)
    loss.backward()
    optimizer.step()
    losses.append(round(loss.item(), 5))
assert abs(losses[0] - wanted.item()) < 1e-4 and losses[2] < losses[0]
know.done(loss_of, losses=losses)
