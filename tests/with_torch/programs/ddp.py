"""DistributedDataParallel on gloo, two ranks under torchrun; each rank compiles for itself.

run: -m torch.distributed.run --nnodes 1 --nproc-per-node 2 --master-addr 127.0.0.1 --master-port PORT ddp.py
"""
import json
import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

from know import Know, plain

know = Know(__file__)
dist.init_process_group("gloo")
rank = dist.get_rank()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, x):
        return self.layers(x)


net = DistributedDataParallel(Net())
fast = torch.compile(net, backend=know.backend("aot_eager"))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
generator = torch.Generator().manual_seed(rank)
losses = []
for turn in range(4):
    size = 6 if turn == 3 and rank == 1 else 4          # the last batch of one rank is another
    x = torch.randn(size, 4, generator=generator)
    optimizer.zero_grad()
    wants = "compiled" if turn == 0 or size == 6 else "hit"
    loss = know.call(f"Net.forward: {wants}", fast, x).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss)
if rank == 1:
    know.cause("Net.forward", 1, 0, "L['x'].size()[0]", 4, 6, "TENSOR_MATCH")

known = know.known((Net.forward,), {"losses": losses, "weights": torch.cat([p.flatten() for p in net.parameters()])})
mine = json.dumps({**known, "rank": rank, "local_rank": int(os.environ["LOCAL_RANK"])}, sort_keys=True, default=plain)
everyone = [None, None]
dist.all_gather_object(everyone, mine)
dist.destroy_process_group()
if rank == 0:
    print(json.dumps({"file": known["file"], "ranks": [json.loads(one) for one in everyone]}, sort_keys=True))
    sys.stdout.flush()
