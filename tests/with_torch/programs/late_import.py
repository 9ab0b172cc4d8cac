"""torch is imported late, in a function, after much plain Python, and compiled on in another thread than it was imported on."""
import threading


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


numbers = [fib(n) for n in range(15)]


def load():
    import torch
    return torch


torch = load()
from know import Know                                               # noqa: E402

know = Know(__file__)
results = []


def f(x):
    return x * 2 + 1


def work():
    torch.set_num_threads(1)
    fast = torch.compile(f, backend=know.backend())
    results.append(know.call("f: compiled", fast, torch.ones(4)))
    results.append(know.call("f: hit", fast, torch.ones(4)))


thread = threading.Thread(target=work)
thread.start()
thread.join()
# fib(0..14), each calling itself: 2 * fib(n + 1) - 1 calls
know.frames = {"fib": sum(2 * fib_ - 1 for fib_ in [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610]), "f": 2}
know.done(f, results=results, numbers=numbers)
