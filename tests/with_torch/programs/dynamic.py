"""Sizes that vary: dynamic=True, dynamic=False, mark_dynamic, mark_static, automatic dynamic of sizes, ints and floats."""
import torch
import torch._dynamo

from know import Know

know = Know(__file__)
backend = know.backend()
results = []


@torch.compile(backend=backend, dynamic=True)
def always(x):
    return x * x.shape[0]


for size in (5, 7, 100):
    results.append(know.call(f"always: {'compiled' if size == 5 else 'hit'}", always, torch.ones(size, 3)))


@torch.compile(backend=backend)
def marked(x):
    return x.sum(0) / x.shape[0]


for size in (6, 8, 10):
    x = torch.ones(size, 3)
    torch._dynamo.mark_dynamic(x, 0)
    results.append(know.call(f"marked: {'compiled' if size == 6 else 'hit'}", marked, x))


@torch.compile(backend=backend)
def automatic(x):
    return x.flatten() + 1


results.append(know.call("automatic: compiled", automatic, torch.ones(4, 3)))
results.append(know.call("automatic: compiled", automatic, torch.ones(5, 3)))
know.cause("automatic", 1, 0, "L['x'].size()[0]", 4, 5, "TENSOR_MATCH")
results.append(know.call("automatic: hit", automatic, torch.ones(6, 3)))
results.append(know.call("automatic: hit", automatic, torch.ones(4, 3)))
results.append(know.call("automatic: compiled", automatic, torch.ones(6, 8)))
know.cause("automatic", 2, 0, "L['x'].size()[0]", 4, 6, "TENSOR_MATCH")
know.cause("automatic", 2, 1, "L['x'].size()[1]", 3, 8, "TENSOR_MATCH")
results.append(know.call("automatic: hit", automatic, torch.ones(7, 9)))
# Another type and another number of dimensions are never dynamic.
results.append(know.call("automatic: compiled", automatic, torch.ones(7, 9, dtype=torch.float64)))
for older in range(3):
    know.cause("automatic", 3, older, "L['x'].dtype", "torch.float32", "torch.float64", "TENSOR_MATCH")
results.append(know.call("automatic: compiled", automatic, torch.ones(7)))
for older in range(3):
    know.cause("automatic", 4, older, "L['x'].ndim", 2, 1, "TENSOR_MATCH")
know.cause("automatic", 4, 3, "L['x'].dtype", "torch.float64", "torch.float32", "TENSOR_MATCH")


@torch.compile(backend=backend)
def scaled(x, times):
    return x * times


for times, wants in ((3, "compiled"), (4, "compiled"), (5, "hit"), (-6, "hit"), (1, "hit")):
    results.append(know.call(f"scaled: {wants}", scaled, torch.ones(2), times))
know.cause("scaled", 1, 0, "L['times']", 3, 4)
# Another type is never dynamic.
results.append(know.call("scaled: compiled", scaled, torch.ones(2), 2.5))
know.cause("scaled", 2, 0, "L['times']", 3, 2.5)
know.cause("scaled", 2, 1, "L['times']", "int", "float", "TYPE_MATCH")
know.done(always, marked, automatic, scaled, results=results)
