"""Iterators of `reversed(list)` as arguments: torch 2.14 and later compile for each length."""
import torch

from know import Know

know = Know(__file__, needs=(2, 14))
backend = know.backend()


@torch.compile(backend=backend, dynamic=False)
def f(x, items):
    for item in items:
        x = x + item
    return x


results = []
for length in (2, 3, 4):
    results.append(know.call("f: compiled", f, torch.ones(2), reversed([1] * length)))
    for older in range(length - 2):
        know.cause("f", length - 2, older, "L['items']", older + 2, length, "LAMBDA_GUARD")
        know.cause("f", length - 2, older, "___list_reverseiterator_backing_list(L['items'])", older + 2, length, "LENGTH_CHECK")
results.append(know.call("f: hit", f, torch.ones(2), reversed([1] * 3)))
know.done(f, results=results)
