#!/usr/bin/env python3
"""Random hostile functions under dyntrace.compile, dyntrace.resume and callbacks of their own: no process may crash or hang.

    make capture-fuzz FUZZ_SECONDS=600 [PYTHONS=...]
    capture/tests/fuzz_captured.py [--python PY]... [--build DIR]... [--seconds N] [--without NAME,...] [SEED...]

A seed is a function f(x, y, o) of random statements (EXPRESSIONS, STATEMENTS): arrays, objects whose special methods are
the program's code, inner functions with cells, generators, coroutines. It is compiled, split or left as it is, and called
some times. Wherever code of the program's runs, foreign() does one act of ACTS at random: it resets, compiles, traces,
reads frames and writes their variables, collects garbage, raises, forks, switches greenlets ... Exceptions are the
program's own; what it computes is compared by capture/tests/random_functions.py, not here.

Each act is first tried in a control run, in which dyntrace only gets imported: an act that CPython itself does not survive
is left out, by its name. Some acts CPython survives alone, but not with one another: APART. A batch whose control fails in one
of some runs (threads run differently each time) is CPython's own failure.
"""
import argparse
import asyncio
import contextlib
import ctypes
import dis
import faulthandler
import gc
import inspect
import itertools
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
import tracemalloc
import types
import warnings
import weakref
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "fuzz"))
from evaluator import Runner  # noqa: E402

BATCH = 20      # seeds of one process
DEEP = 3        # foreign() inside foreign()
THREADS = 6     # at a time
JUMPS = 5       # back to a function's first line, by one act: each may double the arrays that it made
# CPython judges a jump by a model of the stack that holds so many values. When a deeper stack comes before a SWAP, the model
# is wrong from there on, and the jump pops variables, cells among them, as if they lay on the stack. 3.11.7, 3.12.1 and 3.13.0
# do so alone.
MODELLED = 21
CONTROLS = 5    # runs in which a batch that failed may fail without dyntrace
# A batch has the acts of one of these, and those of none. CPython ends by a signal when threads and greenlets run while trace
# functions come and go: 7 of 10 batches of a control did with 3.12.1, 2 of 10 with 3.13.0.
APART = ("settrace setprofile frame_trace jump monitor frame_write tracemalloc".split(), ["thread"], ["greenlet", "switch"])
FILE = "<random function>"


# ---- a function ----

EXPRESSIONS = """x + y|x * 2|np.sin(x)|x.sum()|helper(x, y)|o.scaled(x)|o.half|descriptor.value|x[1:]|np.where(x > 1, x, y)|shared[0]|table['a']
    number * x|own + x|x - own|own.sum()|list(values(2, x))|next(values(1, x))|recursive(3, x)|[x + i for i in range(2)]|[(lambda: x + i)() for i in range(2)]
    (lambda q: q + x)(y)|len(o)|o == 1|o + x|Measured.factor * x|isinstance(x, Measured)|sorted([3, 1], key=lambda q: foreign(.2) or q)
    list(map(lambda q: q + x, [1, 2]))|str(x)|Dies()|O(x)|[*o]|not o|o if o else x|{o: x}|{'k': x}['k']|sum([x, y])|f'{x}'|sum(x + i for i in range(2))
    [sum(i * j for j in range(2)) for i in range(2)]""".replace("\n    ", "|").split("|")
STATEMENTS = """foreign()|foreign()|foreign(.5)|z = {e}|x = {e}|w = {e}|y = {e}|if {e} is None: foreign()|o.v = {e}|shared[0] = {e}|table['a'] = x
    shared.append(x)|x = x + 1; foreign(.6)|x += 1|del w|descriptor.value = x|kept.append(x)|x[0] = 1|z = Dies(); z = 1""".replace("\n    ", "|").split("|")
NESTED = {
    "for i in {}:": ("range(2)", "o", "values(2, x)", "[x, y]", "x"),
    "if {}:": ("x.sum() > 1", "number", "o", "len(o)", "chance(.5)"),
    "with Manager():": ("",),
}
HANDLERS = "except Exception as error: foreign(.3)", "except BaseException: pass", "finally: foreign(.2)"


class Writer:
    """The text of a function, by what CHOOSER chooses."""

    def __init__(self, chooser):
        self.chooser = chooser
        self.kind = chooser.choices(["def", "generator", "coroutine", "cells", "stack"], [80, 6, 6, 4, 4])[0]

    def statement(self, indent, depth):
        pick, chance, deeper = self.chooser.choice, self.chooser.random(), indent + "  "
        expression = pick(EXPRESSIONS)
        if depth < 2 and chance < 0.14:
            head = pick(list(NESTED))
            return [indent + head.format(pick(NESTED[head]))] + self.block(deeper, 2, depth + 1)
        if depth < 2 and chance < 0.2:
            return [indent + "try:"] + self.block(deeper, 2, depth + 1) + [indent + pick(HANDLERS)]
        if chance < 0.25:
            inner = ["def inner(q, b=x):", "  nonlocal z", "  z = q; foreign(.3)", "  return b + q", "x = inner(%s)" % expression]
            return [indent + line for line in inner]
        if chance < 0.28 and self.kind == "generator":
            return [indent + "x = (yield x) or x"]
        if chance < 0.3 and self.kind == "coroutine":
            return [indent + "x = await later(x)"]
        return [indent + pick(STATEMENTS).format(e=expression)]

    def block(self, indent, count, depth=0):
        return [line for _ in range(count) for line in self.statement(indent, depth)]

    def text(self):
        lines = self.block("  ", self.chooser.randrange(3, 12))
        if self.kind == "generator":
            lines.append("  yield z")
        if self.kind == "cells":
            names = ["c%d" % i for i in range(self.chooser.choice([50, 120, 300]))]
            lines[:0] = ["  %s = x" % " = ".join(names), "  big = lambda: (%s)" % ", ".join(names)]
        if self.kind == "stack":
            lines.append("  z = [%s foreign(.9)]" % ("x, " * self.chooser.choice([50, 255, 600])))
        head = "async def" if self.kind == "coroutine" else "def"
        return "%s f(x, y, o):\n  z = w = x\n%s\n  return x, z\n" % (head, "\n".join(lines))


def may_jump(code):
    """May a frame of CODE jump to its first line? Since 3.12 the variable of a comprehension may lie in the place of the function's cell,
    which is on the stack meanwhile. A jump drops that cell: then CPython takes what the comprehension left there for a cell."""
    if code.co_filename != FILE or code.co_stacksize > MODELLED or code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
        return False
    return not any(at.opname == "LOAD_FAST_AND_CLEAR" and at.argval in code.co_cellvars for at in dis.get_instructions(code))


# ---- the world around it ----

def play(seeds, without, only, control):
    """Runs them in this process. CONTROL: as they are."""
    import dyntrace
    from dyntrace import eval_frame, note, resume
    from dyntrace.types import GuardedCode
    try:
        import numpy as np
    except ImportError:
        np = types.ModuleType("np")
    try:
        import greenlet
    except ImportError:
        greenlet = None

    deepest = 1 if only else DEEP  # one act that calls two functions, each time, would go on for ever
    chooser, main_pid, state = random.Random(), os.getpid(), threading.local()
    kept, shared, table, now = [], [1.0, 2.0], {"a": 1.0}, {}

    def chance(p):
        return chooser.random() < p

    def foreign(p=1.0):
        deep = getattr(state, "deep", 0)
        if not chance(p) or deep > deepest:
            return None
        state.deep = deep + 1
        try:
            return chooser.choice(acts)()
        finally:
            state.deep = deep

    def quiet(function, *args):
        try:
            return function(*args)
        except BaseException as error:
            if isinstance(error, SystemExit):
                raise
            kept.append(error if chance(0.2) else None)
            return None

    class Own:
        """An array type of the program's own."""
        shape = property(lambda self: (foreign(0.1), (4,))[1])
        dtype = property(lambda self: chooser.choice(["f8", None, 5]))

        def __init__(self, v=0.0):
            self.v = v

        def __add__(self, other):
            foreign(0.3)
            return Own(self.v)
        __sub__ = __rsub__ = __mul__ = __radd__ = __rmul__ = __add__

        def __gt__(self, other):
            return self

        def __getitem__(self, key):
            return self

        def __setitem__(self, key, value):
            foreign(0.2)

        def __iter__(self):
            return iter((self, self))

        def sum(self):
            foreign(0.3)
            return self.v

    class O:
        def __init__(self, v=2.0):
            self.v = v

        def scaled(self, x):
            return x * self.v

        @property
        def half(self):
            foreign(0.2)
            return self.v

        def __eq__(self, other):
            foreign(0.3)
            return True

        def __hash__(self):
            return 1

        def __bool__(self):
            foreign(0.2)
            return True

        def __len__(self):
            foreign(0.2)
            return 2

        def __iter__(self):
            foreign(0.2)
            return iter([1, 2])

        def __add__(self, other):
            foreign(0.2)
            return other

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            foreign(0.2)
            return 3

        def __setattr__(self, name, value):
            foreign(0.1)
            object.__setattr__(self, name, value)

    class Dies:
        def __del__(self):
            quiet(inspect.currentframe)
            quiet(foreign, 0.5)

    class Descriptor:
        def __get__(self, owner, cls=None):
            foreign(0.4)
            return 4.0

        def __set__(self, owner, value):
            foreign(0.4)

    class Described:
        value = Descriptor()

    class Manager:
        def __enter__(self):
            foreign(0.3)

        def __exit__(self, *args):
            foreign(0.3)
            return chance(0.3)

    class Meta(type):
        def __getattribute__(cls, name):
            if not name.startswith("__"):
                foreign(0.1)
            return type.__getattribute__(cls, name)

        def __instancecheck__(cls, other):
            foreign(0.3)
            return True

    class Measured(metaclass=Meta):
        factor = 2.0

    def helper(a, b=2):
        return a * b

    def values(count, a):
        for i in range(count):
            try:
                yield a + i
            finally:
                foreign(0.2)

    async def later(x):
        await asyncio.sleep(0)
        return x + 1

    def recursive(n, a):
        return a if n <= 0 else recursive(n - 1, a) + 1

    chooser.seed(seeds[0])
    state.deep = deepest + 1  # not yet
    object_ = O()
    space = {"np": np, "o": object_, "own": Own(), "descriptor": Described(), "number": 3, "range": range, "__name__": "fuzz"}
    space.update((thing.__name__, thing) for thing in (foreign, chance, helper, values, later, recursive, Own, O, Dies, Manager, Measured))
    space.update(kept=kept, shared=shared, table=table)
    arrays = [np.arange(4.0), np.arange(4), np.arange(6.0).reshape(2, 3)] if hasattr(np, "arange") else [Own()]
    dyntrace.register_array(Own)

    # -- callbacks, which split or copy --

    def cut(frame, entry, frame_state):
        code = frame.f_code
        if code.co_filename != FILE:
            return None
        foreign(0.1)
        points = resume.points(code)
        if not points:
            return None
        guard = chooser.choice([lambda f_locals: True, lambda f_locals: foreign(0.4) or True, lambda f_locals: chance(0.5),
                                lambda f_locals: f_locals.clear() or True])
        return GuardedCode(resume.split(code, chooser.choice(points)).prefix, guard)

    def whole(frame, entry, frame_state):
        if frame.f_code.co_filename != FILE:
            return None
        return GuardedCode(frame.f_code.replace(), lambda f_locals: foreign(0.2) or chance(0.7))

    def read(frame):
        # since 3.13 f_locals alone reads nothing; 3.13.0 crashes when a generator has been closed: gh-125723
        if not frame.f_code.co_flags & inspect.CO_GENERATOR:
            dict(frame.f_locals)

    def trace(frame, event, argument):
        if chance(0.02):
            foreign(0.5)
        if chance(0.05):
            frame.f_trace_opcodes = True
        if chance(0.1):
            read(frame)
        return trace

    def jumping(frame, event, argument):
        code, left = frame.f_code, getattr(state, "jumps", 0)
        if event == "line" and left and chance(0.05) and may_jump(code):
            state.jumps = left - 1
            with contextlib.suppress(ValueError):
                frame.f_lineno = frame.f_code.co_firstlineno
        return jumping

    def backend(module, inputs):
        foreign(0.3)
        kind = chooser.randrange(10)
        if kind == 0:
            raise chooser.choice([ValueError, KeyboardInterrupt, MemoryError, StopIteration])("backend")
        if kind == 1:
            kept.append((module, inputs))
        if kind == 2:
            module.graph.nodes[:] = module.graph.nodes[:1]
        return {3: 5, 4: len, 5: lambda *args: None, 6: lambda *args: [object()] * 5,
                7: lambda *args: (foreign(0.5), module.forward(*args))[1]}.get(kind, module.forward)

    def set_callback(value):
        if not control:
            eval_frame.set_eval_frame(value)

    def compiled(function, **options):
        return function if control else dyntrace.compile(function, **options)

    def entries():
        return eval_frame._debug_get_cache_entry_list(now["f"].__code__) or []

    def call(function=None):
        return quiet(function or now["g"], chooser.choice(arrays), arrays[0], object_)

    # -- the acts --

    def act_reset(): dyntrace.reset()
    def act_reset_code(): eval_frame.reset_code(now["f"].__code__)
    def act_collect(): gc.collect(chooser.randrange(3))
    def act_raise(): raise chooser.choice([ValueError("e"), KeyboardInterrupt(), RecursionError(), MemoryError(), StopIteration(1), TypeError("t")])
    def act_code(): now["f"].__code__ = chooser.choice([now["code"], now["f"].__code__.replace(co_name="z")])
    def act_helper(): helper.__defaults__ = (chooser.random(),)
    def act_type(): O.scaled = chooser.choice([lambda self, x: x, lambda self, x: x * self.v])
    def act_globals(): space.update(number=chooser.random())
    def act_call(): call()
    def act_plain(): call(now["f"])
    def act_compile(): call(compiled(now["f"], backend=chooser.choice(["eager", backend])))
    def act_callback(): set_callback(chooser.choice([None, False, cut, whole]))
    def act_settrace(): sys.settrace(chooser.choice([None, trace]))
    def act_jump(): state.jumps = JUMPS; sys.settrace(jumping)
    def act_setprofile(): sys.setprofile(chooser.choice([None, lambda *args: None, lambda frame, *args: read(frame)]))
    def act_deep(): quiet(deep, chooser.choice([50, 150, 400]))
    def act_signal(): signal.raise_signal(signal.SIGUSR1)
    def act_inspect(): inspect.stack(0), sys._current_frames()
    def act_referrers(): gc.get_referrers(space["o"], now["f"].__code__)
    def act_switches(): sys.setswitchinterval(chooser.choice([1e-6, 0.005]))
    def act_tracemalloc(): chooser.choice([tracemalloc.start, tracemalloc.stop])()
    def act_keep(): kept.clear()
    def act_weakref(): kept.append(weakref.ref(Dies(), lambda _: quiet(foreign)))
    def act_faulthandler(): faulthandler.dump_traceback(null)
    def act_numbers(): dyntrace.config.recompile_limit = chooser.choice([1, 2, 8, 64])
    def act_explain(): control or quiet(dyntrace.explain(now["f"]), arrays[0], arrays[0], object_)
    def act_note(): quiet(note.graph_break, "x" * 100), quiet(note.listing, "k", "t" * 1000)

    def act_limit():
        # 3.11 aborts when an exception is made on a stack that is deeper than the new limit: another thread's or greenlet's
        stacks = threading.active_count() + bool(greenlet and "greenlet" not in without)
        sys.setrecursionlimit(chooser.choice([200, 400, 1000]) if stacks == 1 else 1000)

    def deep(n):
        return deep(n - 1) if n else call()

    def act_frame():
        frame = sys._getframe(chooser.randrange(1, 5))
        kept.append(frame)
        del kept[:-30]
        read(frame), frame.f_lineno, frame.f_back
        traceback.extract_stack(frame)
        frame.clear()

    def act_frame_trace():
        frame = sys._getframe(chooser.randrange(2, 4))
        if frame.f_code is play.__code__:
            return  # nothing catches there
        frame.f_trace = trace
        frame.f_trace_opcodes = True
        sys.settrace(trace)

    def act_frame_write():
        frame = sys._getframe(2)
        if frame.f_code.co_filename == FILE or frame.f_code.co_name.startswith("__resume"):
            frame.f_locals.update(x=arrays[0], z=5)
            if sys.version_info < (3, 13):
                ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))

    def act_entries():
        for entry in entries():
            if chance(0.5):
                entry.invalidate("fuzz")
            kept.append(entry)

    def act_constants():
        for entry in entries():
            for constant in getattr(entry.code, "co_consts", ()):
                kept.append(constant)
                quiet(constant) if callable(constant) else None
            if not entry.code.co_freevars:
                quiet(types.FunctionType(entry.code, space), arrays[0], arrays[0], object_)

    def act_functions():
        for thing in gc.get_objects()[-2000:]:
            if type(thing) is types.FunctionType and thing.__code__.co_name.startswith("__resume_at_"):
                quiet(thing, *range(thing.__code__.co_argcount))

    def act_thread():
        if threading.active_count() > THREADS:
            return
        target = chooser.choice([call, gc.collect, dyntrace.reset, act_callback, act_inspect])
        thread = threading.Thread(target=deeper, args=(state.deep, target), daemon=True)
        thread.start()
        thread.join(0.02)

    def deeper(deep, target):
        state.deep = deep  # else each thread makes as many as the first one
        quiet(target)

    def act_fork():
        if os.getpid() != main_pid or chance(0.7):
            return
        pid = os.fork()
        if not pid:
            signal.alarm(5)
            try:
                call()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)

    def switch(to, *args):
        deep = state.deep
        try:
            to.switch(*args)
        finally:
            state.deep = deep  # how deep this stack is, which another one does not know

    def act_greenlet():
        if greenlet:
            deep = state.deep
            one = greenlet.greenlet(lambda: (deeper(deep, call), quiet(switch, greenlet.getcurrent().parent, 1), call()))
            switch(one)
            kept.append(one) if chance(0.5) else switch(one)

    def act_switch():
        if greenlet and greenlet.getcurrent().parent:
            switch(greenlet.getcurrent().parent, 1)

    def act_monitor():
        monitoring = getattr(sys, "monitoring", None)
        if monitoring:
            quiet(monitoring.use_tool_id, 3, "fuzz")
            events = monitoring.events
            for event in events.PY_START, events.INSTRUCTION:
                monitoring.register_callback(3, event, lambda *args: None)
            monitoring.set_events(3, chooser.choice([0, events.PY_START, events.INSTRUCTION | events.LINE]))

    every = {name[4:]: thing for name, thing in locals().items() if name.startswith("act_")}
    acts = [thing for name, thing in every.items() if name not in without and (not only or name in only)]
    null = open(os.devnull, "w")
    signal.signal(signal.SIGUSR1, lambda *args: foreign(0.7))

    def drive(function):
        result = function(chooser.choice(arrays), arrays[0], object_)
        if inspect.isgenerator(result):
            for value in (None, 1, 2):
                quiet(result.send, value)
            chooser.choice([result.close, lambda: quiet(result.throw, ValueError()), lambda: kept.append(result)])()
        elif inspect.iscoroutine(result):
            with contextlib.suppress(StopIteration):
                for _ in range(6):
                    result.send(None)
            result.close()

    def calm():
        while True:
            try:
                sys.settrace(None)
                sys.setprofile(None)
                set_callback(None)
                sys.setrecursionlimit(1000)
                state.deep = deepest + 1  # until the next function is there
                if hasattr(sys, "monitoring"):
                    quiet(sys.monitoring.set_events, 3, 0)
                return
            except BaseException:
                pass

    for seed in seeds:
        os.write(1, b"%d " % seed)
        chooser.seed(seed)
        exec(compile(Writer(chooser).text(), FILE, "exec"), space)
        f = space["f"]
        ways = [lambda: compiled(f), lambda: compiled(f, backend=backend), lambda: compiled(f, dynamic=True), lambda: compiled(f, fullgraph=True), lambda: f]
        now.update(f=f, code=f.__code__, g=f)
        now["g"] = quiet(chooser.choice(ways)) or f
        for _ in range(4):
            try:
                state.deep = 0
                if chance(0.4):
                    set_callback(chooser.choice([cut, whole, False]))
                drive(now["g"])
            except BaseException:
                if os.getpid() != main_pid:
                    os._exit(0)
            try:
                # the trace function is called for calm(), too, and is removed when it raises
                calm()
            except BaseException:
                pass
            calm()
        del kept[:-10]
        if chance(0.2):
            quiet(dyntrace.reset)
    kept.clear()
    quiet(gc.collect)
    os.write(1, b"done\n")
    os._exit(0)  # threads may still run


# ---- many of them ----

class Captured(Runner):
    """Runs seeds with one interpreter and build, as they are in a control."""

    def words(self, seeds, without):
        return [sys.executable, os.path.relpath(__file__), "--python", self.python, "--build", os.path.relpath(self.build),
                "--without", ",".join(without) or "-", *map(str, seeds)]

    def run(self, seeds, without=(), control=False, only=()):
        """What was wrong, or None."""
        argv = [self.python, os.path.abspath(__file__), "--play", "--without", ",".join(without) or "-", *map(str, seeds)]
        status, text = self.finish(argv + ["--control"] * control + ["--only=" + name for name in only])
        return f"status {status}: {text.strip()}" if status or not text.endswith("done\n") else None

    def survivable(self, names):
        """Those of NAMES that CPython does not survive, in a control run of some seeds for each."""
        return [name for name in names if self.run(range(BATCH), control=True, only=[name])]

    def shrink(self, seeds, without):
        """Few SEEDS, and many names to leave out, with which it still fails: what two minutes find."""
        until = time.monotonic() + 120
        seeds = next(([seed] for seed in reversed(seeds) if time.monotonic() < until and self.run([seed], without)), seeds)
        for name in sorted(set(NAMES) - set(without)):
            if time.monotonic() < until and self.run(seeds, without + [name]):
                without = without + [name]
        return seeds, without


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", action="append")
    parser.add_argument("--build", action="append")
    parser.add_argument("--seconds", type=float, default=0, help="go on with more seeds for so long, for each Python and build")
    parser.add_argument("--without", default="")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--play", action="store_true", help="in this process")
    parser.add_argument("--control", action="store_true")
    parser.add_argument("seed", nargs="*", type=int)
    options = parser.parse_args()
    without = [name for name in options.without.split(",") if name]
    if options.play:
        if "LD_PRELOAD" not in os.environ:
            faulthandler.enable()
        warnings.simplefilter("ignore")
        play(options.seed, set(without), options.only, options.control)
    failures = 0
    with tempfile.TemporaryDirectory(prefix="capture-fuzz-") as scratch:
        for python, build in itertools.product(options.python or [sys.executable], options.build or ["build"]):
            failures += run_all(Captured(python, build, "alone", scratch), options, without)
    return 1 if failures else 0


def rest_of(seeds):
    """The acts of APART that a batch which begins with SEEDS[0] does not have."""
    turn = seeds[0] // BATCH % len(APART)
    return [name for acts in APART if acts is not APART[turn] for name in acts]


def run_all(runner, options, without):
    left_out = without or runner.survivable(NAMES)
    print("capture-fuzz: %s, %s: without %s" % (runner.python, os.path.relpath(runner.build), ", ".join(left_out) or "nothing"), flush=True)
    first, until = random.SystemRandom().randrange(10**9), time.monotonic() + options.seconds
    programs = failures = own = 0
    batches = [options.seed[at:at + BATCH] for at in range(0, len(options.seed), BATCH)]
    while batches or time.monotonic() < until:
        seeds = list(batches.pop(0) if batches else range(first, first := first + BATCH))
        programs += len(seeds)
        now = [name for name in left_out if name != "-"] + rest_of(seeds)
        wrong = runner.run(seeds, now)
        controls = (runner.run(seeds, now, control=True) for _ in range(CONTROLS if wrong else 0))
        fault = next(filter(None, controls), None)
        if fault:
            own += 1
            print("capture-fuzz: %d to %d: %s; without dyntrace: %s" % (seeds[0], seeds[-1], wrong.split(":")[0], fault.split(":")[0]), flush=True)
        elif wrong:
            failures += 1
            print(wrong[-6000:], flush=True)
            if not without:
                few, more = runner.shrink(seeds, now)
                print("capture-fuzz: to see it again: " + " ".join(runner.words(few, more)), flush=True)
    print(f"capture-fuzz: {programs} programs, {failures} failures, {own} batches that fail without dyntrace", flush=True)
    return failures


NAMES = re.findall(r"^    def act_(\w+)\(\)", Path(__file__).read_text(), re.M)

if __name__ == "__main__":
    sys.exit(main())
