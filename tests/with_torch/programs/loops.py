"""A rank of a gloo job that trains a compiled model: LOOP is ddp, fsdp or pipeline. FAULT RANK: what that rank does otherwise."""
import os
import sys

import torch
import torch.distributed as dist

loop, fault, faulty = (sys.argv[1:] + ["ddp", "none", "-1"])[:3]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
ours = rank == int(faulty)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.scale = 2

    def forward(self, x):
        return torch.relu(self.linear(x)) * self.scale


def batch(step):
    return torch.ones(12 if ours and step == 2 and fault == "shape" else 8 if step % 2 else 4, 8)


def train(model, blocks):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        if ours and step == 2 and fault == "attribute":
            blocks[0].scale = 5
        optimizer.zero_grad()
        loss = model(batch(step)).square().mean()
        loss.backward()
        optimizer.step()
    return loss


def ddp():
    model = torch.nn.Sequential(Block(), Block())
    return train(torch.compile(torch.nn.parallel.DistributedDataParallel(model), backend="eager", dynamic=False), list(model))


def fsdp():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    model = torch.nn.Sequential(Block(), Block())
    blocks = list(model)
    for block in blocks:
        fully_shard(block, mesh=init_device_mesh("cpu", (world,)))
    fully_shard(model)
    for block in blocks:
        block.compile(backend="eager", dynamic=False)
    return train(model, blocks)


def pipeline():
    block = Block()
    compiled = torch.compile(block, backend="eager", dynamic=False)
    for step in range(4):
        if ours and step == 2 and fault == "attribute":
            block.scale = 5
        x = batch(step)
        if rank:
            dist.recv(x, rank - 1)
        x = compiled(x)
        if rank + 1 < world:
            dist.send(x.detach().contiguous(), rank + 1)
    return x.sum()


dist.init_process_group("gloo")
loss = {"ddp": ddp, "fsdp": fsdp, "pipeline": pipeline}[loop]()
print(f"rank {rank}: {float(loss.detach())}", flush=True)
dist.destroy_process_group()
