"""A critic's loss with a gradient penalty: torch.autograd.grad within the compiled function."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""
torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))


def slope(mixed):
    return torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)[0]


@torch.compile(backend="eager")
def critic_loss(real, fake, gradient=None):
    gap = critic(fake).mean() - critic(real).mean()
    if gradient is None:
        mixed = (0.5 * real + 0.5 * fake).detach().requires_grad_()
        gradient = slope(mixed)
    return gap + 10 * (gradient.norm(dim=1) - 1).square().mean()


optimizer = torch.optim.SGD(critic.parameters(), lr=0.01)
for step in range(5):
    real, fake = torch.randn(8, 4), torch.randn(8, 4)
    gradient = slope((0.5 * real + 0.5 * fake).requires_grad_()) if FIX == "outside" else None
    loss = critic_loss(real, fake, gradient)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.4f}")
