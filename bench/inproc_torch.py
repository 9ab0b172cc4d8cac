"""Times programs that use torch.compile, in this process, as they run on torch's own evaluator or on ours.

with_torch.py starts this program, alone or under `dyntrace run`, and reads the JSON that it writes to --report. The
report always has the cost of importing torch, too.

    python3 inproc_torch.py calls --report FILE     compiled calls, in slices of about a millisecond; then memory
    python3 inproc_torch.py compiles --report FILE  many different compiles, the processor time of each
"""
import argparse
import gc
import json
import os
import resource
import sys
import time

SETTLE_S = 0.2       # wait so long, until the collector has emptied the ring
FRAMES = 1_000_000   # run so many frames before memory is measured
LAYERS = 12


def processor_time():
    """Return the processor time of all threads since the process began."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


# ---- compiled calls --------------------------------------------------------

def small(x):
    return x + 1


def call(f, x, times):
    """Return the mean nanoseconds of a call."""
    start = time.perf_counter_ns()
    for _ in range(times):
        f(x)
    return (time.perf_counter_ns() - start) / times


def nothing(x):
    return x


def skip_in_torch(module, code):
    if hasattr(module, "set_code_exec_strategy"):
        action = module._FrameAction
        module.set_code_exec_strategy(code, module._FrameExecStrategy(action.SKIP, action.DEFAULT))
    else:  # torch 2.6
        module.skip_code(code)


def model(torch):
    class Layers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(LAYERS)])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    return Layers()


def time_calls(torch, options):
    """Time calls of a small function and of a module: in a region (the callback is set, and the caller's code is skipped)
    and from outside (by the function that torch.compile returned). The backend's code does nothing, so that only the
    search for compiled code is timed."""
    from torch._C._dynamo import eval_frame

    compiles = 0

    def backend(graph, inputs):
        nonlocal compiles
        compiles += 1

        def run(*arguments):
            return arguments[-1],

        return run

    net, other = model(torch), model(torch)
    outer = type(small)(small.__code__.replace(co_firstlineno=1), globals())
    callback = torch._dynamo.optimize(backend).callback
    skip_in_torch(eval_frame, call.__code__)
    ways = {  # name: (what is called, in a region?, calls in a slice)
        "in small": (small, True, 200),
        "in module": (net.forward, True, 80),
        "out small": (torch.compile(outer, backend=backend), False, 100),
        "out module": (torch.compile(other, backend=backend), False, 40),
        "plain": (nothing, False, 10000),
    }
    x = torch.ones(4)
    slices = {name: [] for name in ways}

    def one(name, times):
        f, inside, _ = ways[name]
        if not inside:
            return call(f, x, times)
        eval_frame.set_eval_frame(callback)
        try:
            return call(f, x, times)
        finally:
            eval_frame.set_eval_frame(None)

    with torch.no_grad():
        for name in ways:
            one(name, 50)
        expected = compiles
        gc.collect()
        gc.freeze()
        gc.disable()
        for _ in range(options.slices):
            for name, (_, _, times) in ways.items():
                slices[name].append(one(name, times))
    for _ in range(FRAMES):
        nothing(x)
    return {"good": compiles == expected == 4, "slices": slices, "memory": memory()}


def memory():
    gc.collect()
    time.sleep(SETTLE_S)
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    kilobytes = {name: int(lines[name].split()[0]) for name in ("VmRSS", "RssAnon", "RssShmem")}
    return {"resident": kilobytes["VmRSS"] * 1024, "own": (kilobytes["RssAnon"] + kilobytes["RssShmem"]) * 1024}


# ---- compiles --------------------------------------------------------------

SOURCES = [  # {n} becomes a different number in each function, so that no two compiles are the same
    """
def f(x, y):
    a = x + y * {n}
    b = a.sin() + x.cos()
    for j in range(4):
        b = b * x + a
    return (b - a).relu().sum()
""", """
def helper(x, scale=1, *, shift=0):
    return x * scale + shift

def f(x, y):
    sizes = [tuple(t.shape) for t in (x, y)]
    parts = {{"first": helper(x, {n}), "second": helper(y, shift={n})}}
    total = parts["first"]
    for name, part in parts.items():
        total = total + part if name != "first" else total
    return total.reshape(-1)[:{n} % 3 + 1] if sizes[0] == sizes[1] else total
""", """
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.scale = {n}

    def forward(self, x):
        return x + self.second(torch.relu(self.first(x))) * self.scale

blocks = torch.nn.Sequential(*[Block() for _ in range({n} % 2 + 1)])

def f(x, y):
    return blocks(x) - y
""", """
scale = {n}

def f(x, y):
    class_of = type(x)
    if x.dim() == 1 and isinstance(y, torch.Tensor) and scale > 0:
        first, *rest = [t * scale for t in (x, y, x - y)]
        return torch.stack([first, *rest]).mean(0), class_of is type(y)
    return torch.zeros(1)
""", """
def f(x, y):
    try:
        for i, part in enumerate(zip(x.unbind(), y.unbind())):
            x = x + part[0] * part[1] * i
        if {n} < 0:
            raise ValueError(x)
    except ValueError:
        return y
    return f"{{{n}}}", x
"""]


def compiled_sources(torch, backend, count):
    """Return COUNT functions, which are compiled at their first call."""
    functions = []
    for n in range(count):
        scope = {"torch": torch}
        source = SOURCES[n % len(SOURCES)].format(n=n + 1)
        exec(compile(source, f"/program/{backend}_{n}.py", "exec"), scope)  # a path of the program, not of a library
        functions.append(torch.compile(scope["f"], backend=backend))
    return functions


def time_compiles(torch, options):
    torch.manual_seed(0)
    x, y = torch.ones(4), torch.full((4,), 2.0)
    seconds, good = {}, True
    for backend in ("eager", "aot_eager"):
        warm = len(SOURCES)  # the first compiles do work that torch does only once, and import modules
        functions = compiled_sources(torch, backend, warm + options.compiles)
        seconds[backend] = []
        for function in functions[:warm]:
            function(x, y)
        before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
        gc.collect()
        for function in functions[warm:]:
            start = time.process_time()
            function(x, y)
            seconds[backend].append(time.process_time() - start)
        good = good and torch._dynamo.utils.counters["stats"]["unique_graphs"] - before == options.compiles
    return {"good": good, "seconds": seconds}


# ---- main ------------------------------------------------------------------

def main():
    options = parse_arguments()
    os.sched_setaffinity(0, {options.cpu})
    os.environ["OMP_NUM_THREADS"] = "1"
    del sys.path[0]  # our own modules are not the program's
    import torch
    import torch._dynamo

    start = {"end_ns": time.monotonic_ns(), "cpu_s": processor_time()}
    report = {"calls": time_calls, "compiles": time_compiles}[options.what](torch, options)
    with open(options.report, "w") as file:
        json.dump({"start": start, "version": torch.__version__, **report}, file)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Times torch.compile, in this process.")
    parser.add_argument("what", choices=["calls", "compiles"])
    parser.add_argument("--report", required=True, help="where to write the figures, as JSON")
    parser.add_argument("--slices", type=int, default=200, help="timings of each kind of call")
    parser.add_argument("--compiles", type=int, default=50, help="compiles with each backend")
    parser.add_argument("--cpu", type=int, default=min(os.sched_getaffinity(0)))
    return parser.parse_args()


if __name__ == "__main__":
    main()
