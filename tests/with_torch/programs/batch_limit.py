"""Batch after batch of another size with static shapes: up to the recompile limit, and beyond."""
import torch

from know import Know, recompile_limit

know = Know(__file__)
recompile_limit(4)


@torch.compile(backend=know.backend(), dynamic=False)
def score(batch, weight):
    return (batch @ weight).relu().sum(dim=1)


weight = torch.randn(6, 3)
sums = []
for turn, size in enumerate((2, 3, 4, 5)):
    sums.append(know.call("score: compiled", score, torch.ones(size, 6), weight).sum())
    for older in range(turn):
        know.cause("score", turn, older, "L['batch'].size()[0]", 2 + older, size, "TENSOR_MATCH")
# The first call above the limit makes torch stop compiling this function for good; entries that fit are still used.
sums.append(know.call("score: limit", score, torch.ones(6, 6), weight).sum())
for older in range(4):
    know.cause("score", 4, older, "L['batch'].size()[0]", 2 + older, 6, "TENSOR_MATCH")
sums.append(know.call("score: limit", score, torch.ones(7, 6), weight).sum())
for size in (2, 5, 5, 2):
    sums.append(know.call("score: hit", score, torch.ones(size, 6), weight).sum())
sums.append(know.call("score: limit", score, torch.ones(8, 6), weight).sum())
# Other functions are not touched by that.
other = torch.compile(lambda x: x - 1, backend=know.backend())
sums.append(know.call("<lambda>: compiled", other, torch.ones(2)).sum())
know.done(score, sums=sums)
