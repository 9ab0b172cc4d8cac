"""A small transformer: trained, evaluated, without gradients; eager, then compiled with aot_eager."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from know import Know

know = Know(__file__)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.drop = heads, nn.Dropout(0.0)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


class Model(nn.Module):
    def __init__(self, words=50, width=16, heads=2, layers=2):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def loss_of(model, tokens):
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


model = Model()
tokens = torch.randint(50, (4, 9))
eager = loss_of(model, tokens)
eager.backward()
wanted = {name: p.grad.clone() for name, p in model.named_parameters()}
model.zero_grad()

fast = torch.compile(model, backend=know.backend("aot_eager"))
losses = []
loss = know.call("Model.forward: compiled", loss_of, fast, tokens)
loss.backward()
worst = max((p.grad - wanted[name]).abs().max().item() for name, p in model.named_parameters())
assert worst < 1e-5 and torch.allclose(loss, eager), worst
losses.append(loss)

# Training: the parameters change in place, the compiled code stays.
optimizer = torch.optim.AdamW(fast.parameters(), lr=1e-2)
for _ in range(4):
    optimizer.zero_grad()
    loss = know.call("Model.forward: hit", loss_of, fast, tokens)
    loss.backward()
    optimizer.step()
    losses.append(loss)

# Evaluation: one flag of one module, and whether gradients are wanted, are guards.
fast.eval()
losses.append(know.call("Model.forward: compiled", loss_of, fast, tokens))
know.cause("Model.forward", 1, 0, "L['self']._modules['blocks']._modules['0']._modules['drop'].training", True, False)
with torch.no_grad():
    losses.append(know.call("Model.forward: compiled", loss_of, fast, tokens))
    know.cause("Model.forward", 2, 0, "grad_mode", True, False, "GLOBAL_STATE")
    know.cause("Model.forward", 2, 1, "grad_mode", True, False, "GLOBAL_STATE")
    losses.append(know.call("Model.forward: hit", loss_of, fast, tokens))
fast.train()
losses.append(know.call("Model.forward: hit", loss_of, fast, tokens))

know.frames = {"Block.forward": 2, "Model.forward": 10}     # the blocks ran as frames only in the eager run
know.done(Model.forward, losses=losses)
