"""torch.compile as most people write it, with no backend named, and modes that choose one; breaks and recompiles with it."""
import torch

from know import Know

know = Know(__file__, compiler=True)
torch._inductor.config.force_disable_caches = True


@torch.compile
def f(x):
    y = x.sin() * 2
    print("between")                                                # @between
    return y.cos().sum()


results = []
know.breaks("f", "between")
for size in (8, 8):
    wants = "hit" if results else "compiled"
    results.append(round(know.call(f"f: {wants}, f@between: {wants}", f, torch.ones(size), graphs=0).item(), 5))
assert abs(results[0] - (torch.ones(8).sin() * 2).cos().sum().item()) < 1e-4
know.done(f, results=results)
