"""A DataLoader with worker processes: forked after a compilation; the workers compile and hit on their own."""
import os

import torch
from torch.utils.data import DataLoader, Dataset

from know import Know

know = Know(__file__)
backend = know.backend()
PARENT = os.getpid()


@torch.compile(backend=backend)
def augment(x):
    return x * 2 + 1


@torch.compile(backend=backend)
def in_worker(x):
    return augment(x) - 1


class Numbers(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, at):
        x = torch.full((3,), float(at))
        return in_worker(x), os.getpid() != PARENT


@torch.compile(backend=backend)
def model(batch):
    return batch.square().sum()


def pairs(worker):
    """What a worker decides: six items each, one compilation each."""
    know.expect("in_worker: compiled, " + ", ".join(["in_worker: hit"] * 5))


if __name__ == "__main__":
    results = [know.call("augment: compiled", augment, torch.ones(3))]
    losses = []
    for epoch in range(2):
        loader = DataLoader(Numbers(), batch_size=3, num_workers=2, multiprocessing_context="fork")
        for number, (batch, elsewhere) in enumerate(loader):
            assert elsewhere.all()
            losses.append(know.call(f"model: {'hit' if epoch or number else 'compiled'}", model, batch))
        for worker in range(2):
            pairs(worker)
    results.append(know.call("augment: hit", augment, torch.ones(3)))
    know.processes = 5
    know.done(augment, in_worker, model, losses=losses, results=results)
