"""isolate_recompiles: each torch.compile has entries of its own for one code object, and a limit of its own."""
import torch

from know import Know, recompile_limit

know = Know(__file__, needs=(2, 13))
recompile_limit(2)


def f(x):
    return x + 1


backend = know.backend()
first = torch.compile(f, backend=backend, dynamic=False, isolate_recompiles=True)
second = torch.compile(f, backend=backend, dynamic=False, isolate_recompiles=True)
shared = torch.compile(f, backend=backend, dynamic=False)

results = [know.call("f: compiled", first, torch.ones(2)), know.call("f: hit", first, torch.ones(2))]
# The other region does not see that entry, and the one that all share does not either.
results.append(know.call("f: compiled", second, torch.ones(2)))
results.append(know.call("f: compiled", shared, torch.ones(3)))
# An isolated region also looks into the shared one, after its own.
results.append(know.call("f: hit", first, torch.ones(3)))
results.append(know.call("f: hit", second, torch.ones(2)))

entries = torch._dynamo.eval_frame._get_cache_entries_for_region
know.done(results=results, regions=[[str(entry.compile_id) for entry in entries(f, region)] for region in (-1, 0, 1)])
