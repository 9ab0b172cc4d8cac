"""Times dyntrace.compile and torch.compile, both with backend="eager", on the same functions. capture.py starts it.

    python3 inproc_capture.py numpy|torch --package DIR --report FILE
"""
import argparse
import gc
import importlib
import json
import os
import sys
import time
import tracemalloc

COUNTS = (10, 100, 1000)
CALLS = 20_000


def function(library, count, number):
    """Return a new function with COUNT operations. Another NUMBER makes another function."""
    scope = {"np": library}
    lines = ["    x = np.sin(x)" if i % 2 else f"    x = x + {number % 1000}.5" for i in range(count)]
    exec(compile("def f(x):\n" + "\n".join(lines) + "\n    return x\n", f"/program/{number}.py", "exec"), scope)
    return scope["f"]


def first_call(compile, f, x):
    """Return the processor time of the first call of the compiled F, which captures F."""
    compiled = compile(f)
    start = time.process_time()
    compiled(x)
    return time.process_time() - start


def captures(library, x, rounds, sides):
    seconds, number = {side: {count: [] for count in COUNTS} for side in sides}, 0
    for side, (compile, _) in sides.items():  # let both sides do the work that they do only once
        first_call(compile, function(library, 10, 10 ** 6), x)
    for _ in range(rounds):
        for count in COUNTS:
            for side, (compile, reset) in sides.items():
                number += 1
                f = function(library, count, number)
                gc.collect()
                seconds[side][count].append(first_call(compile, f, x))
                reset()
    return seconds


def two(a, b):
    return a + b


def times(f, a, b):
    start = time.perf_counter_ns()
    for _ in range(CALLS // 10):
        f(a, b); f(a, b); f(a, b); f(a, b); f(a, b)
        f(a, b); f(a, b); f(a, b); f(a, b); f(a, b)
    return (time.perf_counter_ns() - start) / CALLS


def hits(library, x, rounds, dyntrace, torch):
    """Time calls of two(). Returns ({way: [ns, ...]}, number of guards). The ways: plain; captured (`ours`, `torch`); and entries made
    by hand that have the guards of `ours` and the code of two() (`shim`) or the captured code (`same`)."""
    from dyntrace._native import native
    from dyntrace.eval_frame import _debug_get_cache_entry_list, set_eval_frame
    from dyntrace.types import GuardedCode
    copies = [type(two)(two.__code__.replace(co_firstlineno=n), globals()) for n in range(5)]
    y = x + 1
    native.set_eval_frame(None)
    compiled = dyntrace.compile(copies[1])
    compiled(x, y)
    entry_of_ours, = _debug_get_cache_entry_list(copies[1].__code__)
    text = repr(entry_of_ours.guard_manager)

    def by_hand(code, replacement):
        return lambda frame, entry, state: GuardedCode(replacement, entry_of_ours.guard_manager) if frame.f_code is code else None
    shim = by_hand(copies[2].__code__, two.__code__.replace(co_firstlineno=77))
    same = by_hand(copies[4].__code__, entry_of_ours.code)
    theirs = torch and torch.compile(copies[3], backend="eager")
    found = {"plain": [], "ours": [], "shim": [], "same": [], **({"torch": []} if torch else {})}

    def inside(callback, f):
        set_eval_frame(callback)
        try:
            return times(f, x, y)
        finally:
            set_eval_frame(None)
    for _ in range(rounds + 1):
        found["plain"].append(times(copies[0], x, y))
        found["ours"].append(inside(compiled.callback, copies[1]))
        found["shim"].append(inside(shim, copies[2]))
        found["same"].append(inside(same, copies[4]))
        if torch:
            found["torch"].append(times(theirs, x, y))
    return {what: values[1:] for what, values in found.items()}, text.count("\n") + 1


def memory(library, x, dyntrace):
    kept = []
    compiled = dyntrace.compile(function(library, 998, 5), backend=lambda module, inputs: kept.append(module) or module.forward)
    dyntrace.compile(function(library, 10, 6), backend=lambda module, inputs: module.forward)(x)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    compiled(x)
    bytes = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert len(kept[0].graph.nodes) == 1000
    return bytes


def main():
    parser = argparse.ArgumentParser(description="Times captures.")
    parser.add_argument("library", choices=["numpy", "torch"])
    parser.add_argument("--package", required=True, help="directory of the package dyntrace")
    parser.add_argument("--report", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpu", type=int, default=min(os.sched_getaffinity(0)))
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.cpu})
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.path[0] = options.package
    library, torch = importlib.import_module(options.library), None
    import dyntrace
    x, sides = library.ones(8), {"ours": (dyntrace.compile, dyntrace.reset)}
    if options.library == "torch":
        import torch
        import torch._dynamo
        torch.set_num_threads(1)
        sides["torch"] = lambda f: torch.compile(f, backend="eager"), torch._dynamo.reset
    report = {"good": True, "seconds": captures(library, x, options.rounds, sides)}
    report["hit"], report["guards"] = hits(library, x, options.rounds, dyntrace, torch)
    report["bytes"] = memory(library, x, dyntrace)
    with open(options.report, "w") as file:
        json.dump(report, file)


if __name__ == "__main__":
    main()
