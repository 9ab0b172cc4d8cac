"""A rank of a gloo job: a compiled model, a sum over all ranks after each step. FAULT RANK: what that rank does otherwise."""
import os
import signal
import sys
import time

began = time.monotonic()
import torch
import torch.distributed as dist

fault, faulty = (sys.argv[1:] + ["none", "-1"])[:2]
FLAG = 1


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2

    def forward(self, x):
        return torch.relu(x * self.scale + FLAG).sum()


rank = int(os.environ["RANK"])
ours = rank == int(faulty)
print(f"rank {rank} has torch", flush=True)  # what the test waits for, however long that takes
if ours and fault == "late":
    for _ in range(int(4 + 2 * (time.monotonic() - began))):  # more than starts differ by where processors are short
        time.sleep(1)
        print(f"rank {rank} is late", flush=True)
dist.init_process_group("gloo")
model = Model()
compiled = torch.compile(model, backend="eager", dynamic=False)
sizes = [8, 16, 8, 16]
if ours and fault == "order":
    sizes = [16, 8, 16, 8]
for step, size in enumerate(sizes):
    if ours and step == 2 and fault == "shape":
        size = 12
    if ours and step == 2 and fault == "flag":
        FLAG = 7
    if ours and step == 2 and fault == "attribute":
        model.scale = 5
    if ours and step == 3 and fault == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    total = compiled(torch.ones(size, dtype=torch.float64 if ours and step == 2 and fault == "dtype" else torch.float32))
    dist.all_reduce(total := total.to(torch.float32))
    dist.barrier()
    print(f"rank {rank} has done step {step}", flush=True)
print(f"rank {rank}: {float(total)}", flush=True)
dist.destroy_process_group()
