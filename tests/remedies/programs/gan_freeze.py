"""A GAN that freezes the discriminator while the generator is trained."""
import sys

import torch
import torch.nn as nn

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 1))

    def forward(self, x):
        return self.body(x)


torch.manual_seed(0)
critic, maker = Critic(), nn.Linear(3, 2)
judge = torch.compile(critic, backend="eager")
d_opt = torch.optim.SGD(critic.parameters(), lr=0.01)
g_opt = torch.optim.SGD(maker.parameters(), lr=0.01)
for _ in range(4):
    fake = maker(torch.randn(8, 3))
    if FIX != "unfrozen":
        critic.requires_grad_(True)
    d_loss = judge(fake.detach()).mean() - judge(torch.randn(8, 2)).mean()
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()
    if FIX != "unfrozen":
        critic.requires_grad_(False)
    g_loss = -judge(fake).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
print(f"{d_loss.item():.4f} {g_loss.item():.4f}")
