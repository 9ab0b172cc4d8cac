"""fullgraph=True: works, or fails with an error that the program catches; error_on_graph_break for a part of it."""
import torch

from know import Know, recompile_limit

know = Know(__file__)
backend = know.backend()
x = torch.ones(3)
results = []


@torch.compile(backend=backend, fullgraph=True)
def whole(x):
    return (x + 1).sin()


for turn in range(3):
    results.append(know.call(f"whole: {'hit' if turn else 'compiled'}", whole, x))


@torch.compile(backend=backend, fullgraph=True)
def prints(x):
    x = x + 1
    print("never", x.shape)                                         # @prints
    return x


for _ in range(2):
    error = know.call("prints: callback_error", prints, x, raises=Exception)
    results.append([type(error).__name__, type(error).__mro__[1].__name__])


@torch.compile(backend=backend, fullgraph=True)
def data_dependent(x):
    if x.sum() > 2:
        return x
    return -x


error = know.call("data_dependent: callback_error", data_dependent, x, raises=Exception)
results.append(type(error).__name__)

# After an error the thread compiles and hits as before.
results.append(know.call("whole: hit", whole, x))
results.append(know.call("whole: compiled", whole, x.double()))
know.cause("whole", 1, 0, "L['x'].dtype", "torch.float32", "torch.float64", "TENSOR_MATCH")

# The limit under fullgraph is an error as well, and goes on being one.
recompile_limit(2)
results.append(type(know.call("whole: callback_error", whole, x.int(), raises=Exception)).__name__)
results.append(type(know.call("whole: callback_error", whole, x.int(), raises=Exception)).__name__)
for compilation in (2, 3):
    know.cause("whole", compilation, 0, "L['x'].dtype", "torch.float32", "torch.int32", "TENSOR_MATCH")
    know.cause("whole", compilation, 1, "L['x'].dtype", "torch.float64", "torch.int32", "TENSOR_MATCH")
results.append(know.call("whole: hit", whole, x.double()))
know.done(whole, prints, data_dependent, results=results)
