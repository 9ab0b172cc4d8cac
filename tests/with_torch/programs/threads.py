"""Several threads: one cache for all, callbacks per thread; some calls at the same time, some one by one."""
import collections
import threading

import torch

from know import Know

know = Know(__file__)
backend = know.backend()
THREADS, TURNS = 4, 25


@torch.compile(backend=backend, dynamic=False)
def shared(x):
    return (x * 2 + 1).sum()


@torch.compile(backend=backend)
def alike(x):
    return x.sum()


def own_functions(number):
    """A code object of this thread's own."""
    space = {}
    exec(compile(f"def own_{number}(x):\n    return x + {number}\n", __file__, "exec"), space)
    return space[f"own_{number}"]


def plain(x):
    return x - 1


know.call("alike: compiled", alike, torch.ones(2))
# The entries that all share are made before; so each later call is a hit, whoever makes it. But not at the same time:
# while torch walks a function's entries on one thread, a hit on another may move one past it.
for size in range(1, THREADS + 1):
    know.call("shared: compiled", shared, torch.ones(size))
for compilation in range(1, THREADS):
    for older in range(compilation):
        know.cause("shared", compilation, older, "L['x'].size()[0]", 1 + older, 1 + compilation, "TENSOR_MATCH")

turn_to_compile = threading.Condition()      # one thread compiles at a time, in order: so the ids are known
compiled_by = []
one_at_a_time = threading.Lock()
start = threading.Barrier(THREADS)
sums, plain_calls = {}, collections.Counter()


def work(number):
    own = torch.compile(own_functions(number), backend=backend)
    torch.set_num_threads(1)                # it is a thread's own number, and a guard
    with turn_to_compile:
        while len(compiled_by) != number: # a predicate would be called as often as threads happen to wake up
            turn_to_compile.wait()
        know.expect(f"own_{number}: compiled")
        own(torch.ones(2))
        compiled_by.append(number)
        turn_to_compile.notify_all()
    start.wait()
    total = 0.0
    for turn in range(TURNS):
        with one_at_a_time:
            total += shared(torch.ones(1 + (turn + number) % THREADS)).item()
        total += alike(torch.ones(2)).item()
        total += own(torch.ones(2)).sum().item()
        total += plain(torch.ones(2)).sum().item()
        plain_calls[number] += 1
    sums[number] = total


threads = [threading.Thread(target=work, args=(number,), name=f"worker-{number}") for number in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for number in range(THREADS):
    know.expect(", ".join([f"own_{number}: hit"] * TURNS))
know.expect(", ".join(["shared: hit", "alike: hit"] * THREADS * TURNS))
know.frames = {"plain": THREADS * TURNS, "work": THREADS, "shared": THREADS * (TURNS + 1),
               "alike": THREADS * TURNS + 1}
know.done(sums=[sums[number] for number in range(THREADS)], plain=sum(plain_calls.values()))
