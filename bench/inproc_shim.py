"""Times the shim's decisions on calls of a function that does nothing, side by side in this one process.

shim.py starts this program, alone or under `dyntrace run`, and reads the JSON that it writes to --report. A mode is a
function, the callback or hook under which the function is called, and whether the calls are recorded. Modes take turns,
and each round begins with another mode. Each mode has its own code objects, so that CPython specialises them separately.

    python3 inproc_shim.py calls --yardstick DIR --package DIR --report FILE
    python3 inproc_shim.py torch ...      the same on tensors, and torch's own hit
    python3 inproc_shim.py memory ...     bytes of cache entries and guards
"""
import argparse
import array
import gc
import itertools
import json
import os
import sys
import time
import types

DRAIN_S = 0.05
MISSED = object()  # an argument for which every guard fails


# ---- the calls -------------------------------------------------------------

def target(a, b):
    return a


def compiled(a, b):
    return a


def ten_calls(times, f, a, b):
    for _ in range(times):
        f(a, b); f(a, b); f(a, b); f(a, b); f(a, b)
        f(a, b); f(a, b); f(a, b); f(a, b); f(a, b)


lines = itertools.count(10 ** 6)


def copied(function):
    """Return a copy of FUNCTION whose code object is not equal to any other."""
    return types.FunctionType(function.__code__.replace(co_firstlineno=next(lines)), function.__globals__, function.__name__)


class Mode:
    """A way to call `function(a, b)`: under HOOK ("none", "pass" or "shim"), recorded or not."""

    def __init__(self, name, hook="none", recorded=False, arguments=(None, None), function=None):
        self.name = name
        self.hook = hook
        self.recorded = recorded
        self.arguments = arguments
        self.function = function or copied(target)
        self.loop = copied(ten_calls)
        self.seconds = []


# ---- what is guarded -------------------------------------------------------

class Layer:
    def __init__(self, i):
        self.name = "layer%d" % i
        self.width = 64 + i
        self.training = True
        self.bias = None
        self.activation = target
        self.shape = (64, 128 + i)
        self.weight = array.array("d", [0.5] * 8)
        self.hooks = {"before": None}


class Model:
    def __init__(self):
        self.name = "model"
        self.training = True
        self.layers = [Layer(i) for i in range(8)]


def six_guards(guards, L):
    """On two array arguments."""
    a, b = L["a"], L["b"]
    return [guards.TYPE_MATCH(a), guards.TYPE_MATCH(b), guards.TENSOR_MATCH(a), guards.TENSOR_MATCH(b),
            guards.SEQUENCE_LENGTH(a), guards.NO_ALIASING([a, b])]


def six_tensor_guards(guards, L):
    """On two tensors, as torch guards them."""
    a, b = L["a"], L["b"]
    return [guards.TENSOR_MATCH(a), guards.TENSOR_MATCH(b), guards.NO_HASATTR(a, "_dynamo_dynamic_indices"),
            guards.NO_HASATTR(b, "_dynamo_dynamic_indices"), guards.TYPE_MATCH(a), guards.NO_ALIASING([a, b])]


def hundred_guards(guards, L):
    """On a nested object: 100 guards on 83 sources."""
    model = L["a"]
    found = [guards.TYPE_MATCH(model), guards.TRUE_MATCH(model.training), guards.EQUALS_MATCH(model.name),
             guards.LIST_LENGTH(model.layers)]
    for i in range(8):
        layer = model.layers[i]
        found += [guards.TYPE_MATCH(layer), guards.NO_HASATTR(layer, "forward"), guards.EQUALS_MATCH(layer.name),
                  guards.EQUALS_MATCH(layer.width), guards.TRUE_MATCH(layer.training), guards.NONE_MATCH(layer.bias),
                  guards.FUNCTION_MATCH(layer.activation), guards.TUPLE_LENGTH(layer.shape),
                  guards.EQUALS_MATCH(layer.shape[1]), guards.TENSOR_MATCH(layer.weight),
                  guards.DICT_LENGTH(layer.hooks), guards.DICT_CONTAINS(layer.hooks, "before")]
    assert len(found) == 100
    return found


def python_guard(a, b):
    """Return a Python function that checks about the same as six_guards."""
    kind_a, kind_b, length, code = type(a), type(b), len(a), getattr(a, "typecode", None)
    length_b, code_b = len(b), getattr(b, "typecode", None)

    def check(f_locals):
        a, b = f_locals["a"], f_locals["b"]
        return (type(a) is kind_a and type(b) is kind_b and a.typecode == code and b.typecode == code_b and
                len(a) == length and len(b) == length_b and a is not b)
    return check


class Compiler:
    """The callback for set_eval_frame(). It returns code for the functions in `guards`, and skips all others."""

    def __init__(self, GuardedCode):
        self.GuardedCode = GuardedCode
        self.guards = {}  # code object -> a function that makes its guard
        self.calls = 0

    def __call__(self, frame, entry, state):
        make = self.guards.get(frame.f_code)
        if make is None:
            return None
        self.calls += 1
        return self.GuardedCode(compiled.__code__, make(frame))


# ---- timing ----------------------------------------------------------------

class Switch:
    """Switches a mode on for a timing, and off after it."""

    def __init__(self, yardstick, set_eval_frame, callback, recorder):
        self.yardstick = yardstick
        self.set_eval_frame = set_eval_frame
        self.callback = callback
        self.recorder = recorder
        self.torch = None  # (set_eval_frame, callback)

    def time(self, mode, times):
        """Return the seconds that TIMES calls of MODE take, after a tenth as many calls to warm up."""
        tens = times // 10
        loop, f, (a, b) = mode.loop, mode.function, mode.arguments
        if mode.recorded:
            self.recorder.resume()
        if mode.hook == "shim":
            self.set_eval_frame(self.callback)
        elif mode.hook == "torch":
            self.torch[0](self.torch[1])
        elif mode.hook == "pass":
            self.yardstick.use("pass")
        loop(max(20, tens // 10), f, a, b)
        start = time.perf_counter()
        loop(tens, f, a, b)
        stop = time.perf_counter()
        if mode.hook == "shim":
            self.set_eval_frame(None)
        elif mode.hook == "torch":
            self.torch[0](None)
        elif mode.hook == "pass":
            self.yardstick.use("none")
        if mode.recorded:
            self.recorder.pause()
            time.sleep(DRAIN_S)
        return stop - start


def take_turns(modes, switch, rounds, times):
    for mode in modes:
        switch.time(mode, 1000)
    gc.collect()
    gc.freeze()
    gc.disable()
    for turn in range(rounds):
        first = turn % len(modes)
        for mode in modes[first:] + modes[:first]:
            mode.seconds.append(switch.time(mode, times))


def import_recorder():
    import _dyntrace
    _dyntrace.pause()
    return _dyntrace


def prepare(options):
    from dyntrace import guards
    from dyntrace.eval_frame import set_eval_frame
    from dyntrace.types import GuardedCode
    import _yardstick

    compiler = Compiler(GuardedCode)

    def tree(which):
        return lambda frame: guards.GuardTree(which(guards, guards.L), frame.f_globals, frame.f_locals)

    def hit(name, arguments, make):
        """Return two modes whose calls hit an entry: one not recorded, one recorded."""
        pair = []
        for suffix, recorded in (("", False), ("+rec", True)):
            mode = Mode(name + suffix, "shim", recorded, arguments)
            compiler.guards[mode.function.__code__] = make
            pair.append(mode)
        return pair

    return compiler, tree, hit, Switch(_yardstick, set_eval_frame, compiler, import_recorder())


def report_modes(modes, compiler, options):
    """Return the report. It is good if each mode that should hit was compiled exactly once."""
    from dyntrace.eval_frame import _debug_get_cache_entry_list
    good, hits = True, {}
    for mode in modes:
        if mode.function.__code__ in compiler.guards:
            entries = _debug_get_cache_entry_list(mode.function.__code__)
            good = good and len(entries) == 1
            hits[mode.name] = entries[0].hits if entries else 0
    good = good and compiler.calls == len(hits)
    return {"good": good, "calls": options.times, "hits": hits, "seconds": {mode.name: mode.seconds for mode in modes}}


def time_calls(options):
    from dyntrace.eval_frame import skip_code

    compiler, tree, hit, switch = prepare(options)
    arrays = array.array("d", range(8)), array.array("d", range(4))
    skipped, skipped_recorded = Mode("skip", "shim"), Mode("skip+rec", "shim", True)
    skip_code(skipped.function.__code__)
    skip_code(skipped_recorded.function.__code__)
    modes = [Mode("plain", arguments=arrays), Mode("pass", "pass", arguments=arrays), Mode("pass+rec", "none", True, arrays)]
    modes += [skipped, skipped_recorded]
    modes += hit("six", arrays, tree(six_guards))
    modes += hit("hundred", (Model(), None), tree(hundred_guards))
    modes += hit("python", arrays, lambda frame: python_guard(*arrays))
    try:
        import numpy
        modes += hit("numpy", (numpy.zeros((4, 3)), numpy.zeros(4)), tree(six_guards))
    except ImportError:
        pass
    take_turns(modes, switch, options.rounds, options.times)
    return report_modes(modes, compiler, options)


def skip_in_torch(module, code):
    if hasattr(module, "skip_code"):
        module.skip_code(code)
    else:  # torch >= 2.7 or so
        module.set_code_exec_strategy(code, module._FrameExecStrategy(module._FrameAction.SKIP, module._FrameAction.DEFAULT))


def added(a, b):
    return a + b


def time_torch(options):
    """Time hits of torch, which compiles a + b for a backend that does nothing. The mode `body` calls the compiled code directly."""
    import torch
    import torch._dynamo
    from torch._C._dynamo import eval_frame as torch_eval_frame

    def backend(graph, inputs):
        return lambda a, b: (a,)

    compiler, tree, hit, switch = prepare(options)
    tensors = torch.zeros(4, 3), torch.zeros(4, 3)
    modes = [Mode("plain", arguments=tensors)]
    modes += hit("tensor", tensors, tree(six_tensor_guards))
    bare = Mode("torch", "torch", False, tensors, copied(added))
    wrapped = Mode("torch.compile", "none", False, tensors)
    wrapped.function = torch.compile(bare.function, backend=backend)
    wrapped.function(*tensors)
    entries = torch_eval_frame._debug_get_cache_entry_list(bare.function.__code__)
    body = Mode("body", "none", False, tensors, types.FunctionType(entries[0].code, bare.function.__globals__))
    skip_in_torch(torch_eval_frame, bare.loop.__code__)
    switch.torch = torch_eval_frame.set_eval_frame, torch._dynamo.optimize(backend).callback
    modes += [bare, wrapped, body]
    take_turns(modes, switch, options.rounds, options.times)
    report = report_modes(modes, compiler, options)
    report["version"] = torch.__version__
    # torch.compile and the bare callback made at most one entry each, so nothing was compiled again.
    entries = torch_eval_frame._debug_get_cache_entry_list(bare.function.__code__)
    report["good"] = report["good"] and len(entries) <= 2
    return report


# ---- memory ----------------------------------------------------------------

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def each(make, count):
    """Call make(0), make(1), ... COUNT times. Returns (bytes of memory for each result, the results)."""
    kept = [None] * count
    before = resident()
    for i in range(count):
        kept[i] = make(i)
    return (resident() - before) / count, kept


def measure_memory(options):
    import dyntrace.config
    from dyntrace import guards
    from dyntrace.eval_frame import set_eval_frame
    from dyntrace.types import GuardedCode

    count = options.times
    dyntrace.config.recompile_limit = dyntrace.config.accumulated_recompile_limit = 10 ** 6
    wanted = set()

    def callback(frame, entry, state):
        return GuardedCode(compiled.__code__, check) if frame.f_code in wanted else None

    def run(function, b):
        set_eval_frame(callback)
        function(None, b)
        function(None, b)
        set_eval_frame(None)

    def check(f_locals):
        return f_locals["b"] is not MISSED

    def entry(functions, b):
        wanted.update(function.__code__ for function in functions)
        first = functions[0].__code__
        assert first in wanted
        return lambda i: run(functions[i % len(functions)], b)

    def trees(which, example):
        return lambda i: guards.GuardTree(which(guards, guards.L), globals(), example)

    pair = {"a": array.array("d", range(8)), "b": array.array("d", range(4))}
    six, hundred = trees(six_guards, pair), trees(hundred_guards, {"a": Model()})
    kept = [each(entry([copied(target) for _ in range(200)], None), 200), each(six, 200), each(hundred, 4)]  # warm up
    figures = {}
    for name, make, number, divisor in (
            ("entry", entry([copied(target) for _ in range(count)], None), count, 1),
            ("more", entry([copied(target) for _ in range(count // 100)], MISSED), count // 2, 2),
            ("six", six, count // 6, 6), ("hundred", hundred, count // 100, 100)):
        bytes_each, objects = each(make, number)
        kept.append(objects)
        figures[name] = bytes_each / divisor
    return {"good": True, "count": count, "bytes": figures}


# ---- main ------------------------------------------------------------------

def main():
    options = parse_arguments()
    os.sched_setaffinity(0, {options.cpu})
    sys.path[:0] = [options.yardstick, options.package]
    report = {"calls": time_calls, "torch": time_torch, "memory": measure_memory}[options.what](options)
    with open(options.report, "w") as file:
        json.dump(report, file)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Times the shim's decisions, in this process.")
    parser.add_argument("what", choices=["calls", "torch", "memory"])
    parser.add_argument("--yardstick", required=True, help="directory of the module _yardstick")
    parser.add_argument("--package", required=True, help="directory of the package dyntrace")
    parser.add_argument("--report", required=True, help="where to write the figures, as JSON")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--times", type=int, default=50000, help="calls in one timing; entries and guards in memory")
    parser.add_argument("--cpu", type=int, default=min(os.sched_getaffinity(0)))
    return parser.parse_args()


if __name__ == "__main__":
    main()
