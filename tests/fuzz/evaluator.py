#!/usr/bin/env python3
"""Random hostile programs for the evaluator (docs/shim.md): whatever they do, every call gives what it gives without us.

    make evaluator-fuzz FUZZ_SECONDS=600 [PYTHONS=...]
    tests/fuzz/evaluator.py [--python PY]... [--build DIR]... [--seconds N] [--mode MODE] [--without NAME,...] [SEED...]

A program has some functions of all kinds (SHAPES) that call one another. They are called a few hundred times, by several
threads, under callbacks whose answers, guards, backends and hooks are the program's own code; and from each place where
such code runs (`foreign(PLACE)`) some act of ACTS is done at random: a reset, another callback, a fork, an exception ...
All compiled code is a copy of the original, so that results are known beforehand. What else must hold:
  * an entry runs only after its guard has said yes, or its callback has just returned it, once for each time;
  * after a reset nothing of it is alive; no exception but those that the program raised or docs/shim.md tells;
  * forked children too end with status 0; under `dyntrace run` the trace is sound, and replays (fsck, replay --verify).
A build with sanitizers in it (--build build/san) is run with their runtime.

A seed that fails is run again without one act, place or feature after the other, and printed as the command to repeat it.
"""
import argparse
import gc
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
import weakref

MODES = "alone", "recorded"
FEATURES = "threads", "signals", "trace", "gc-callbacks", "hooks", "switches"
BATCH = 12      # programs of one process
PATIENCE = 300  # seconds of processor time until a process hangs, however busy the machine is
ASLEEP = 60     # seconds in which none of its threads runs
MEMORY = 2 << 30  # bytes that a process may have in memory; a limit of the kernel's would count the sanitizer's shadow memory

# {f}: the function, {g} another one, {a} a number. `ran` and `foreign` as in World.
SHAPES = {
    "plain": "def {f}(x):\n ran('tag:0'); foreign('body'); return x * {a} + len(str({g}(x)))",
    "arguments": "def {f}(x, y={a}, *rest, k=3, **kw):\n ran('tag:0'); return x, y, rest, k, sorted(kw), {g}(x, *[])",
    "named": "def {f}(x, *, k={a}):\n ran('tag:0')\n return ({f}(x, k=k - 1) if k > {a} - 2 else {g}(x)), sorted(locals())",
    "recursion": "def {f}(x):\n ran('tag:0'); foreign('body')\n return [x] + {f}(x - 1) if x > 0 else [{g}(0)]",
    "closure": "def {f}(x):\n ran('tag:0'); n = x\n def inner(y, *, z={a}):\n  nonlocal n\n  ran('tag:0'); foreign('body'); n += y + z\n"
               "  return n\n return inner(1), inner(2, z=3), {g}(x), n",
    "generator": "def {f}(x):\n def values(n):\n  ran('tag:0')\n  for i in range(n):\n   foreign('body'); yield i, {g}(i)\n"
                 " ran('tag:0'); return list(values(2)), next(values(x + 1)), [y for y in values({a} - 1)]",
    "coroutine": "def {f}(x):\n async def later(y):\n  ran('tag:0'); foreign('body'); return {g}(y)\n"
                 " async def main():\n  ran('tag:0'); return [await later(i) for i in range(2)]\n"
                 " ran('tag:0')\n try: main().send(None)\n except StopIteration as stop: return stop.value",
    "async-generator": "def {f}(x):\n async def values(n):\n  ran('tag:0')\n  for i in range(n): foreign('body'); yield {g}(i)\n"
                       " async def main(): return [i async for i in values(2)]\n"
                       " ran('tag:0')\n try: main().send(None)\n except StopIteration as stop: return stop.value",
    "class": "class {f}_class:\n ran('tag:0')\n def __init__(self, x, *, k={a}):\n  ran('tag:0'); super().__init__(); foreign('body'); self.x = x + k\n"
             " @property\n def double(self): ran('tag:0'); return self.x * 2, {g}(self.x)\n"
             "def {f}(x): ran('tag:0'); return {f}_class(x).double, {f}_class(x, k=1).x",
    "class-body": "def {f}(x):\n ran('tag:0')\n class Local:\n  ran('tag:0'); foreign('body'); value = [x, {a}, {g}(x)]\n  def get(self): return self.value\n return Local().get()",
    "errors": "def {f}(x):\n ran('tag:0')\n try:\n  if x % 2: raise KeyError(x)\n  return {g}(x)\n except KeyError as error: foreign('body'); return repr(error)\n"
              " finally: x = {a}; {g}(x)",
    "lambdas": "def {f}(x):\n ran('tag:0'); return [(lambda z, *y: (ran('tag:0'), z, y))(i)[1:] for i in range({a})], sorted(range(3), key=lambda i: (foreign('body'), -i)[1]), {g}(x=x)",
    "wrapped": "@functools.wraps(len)\ndef {f}(x, **kw):\n ran('tag:0')\n with contextlib.suppress(IndexError):\n  [].pop()\n return {g}(**{{'x': x}})",
    "dies": "def {f}(x):\n ran('tag:0'); space = {{'ran': ran, 'foreign': foreign, 'x': x}}\n"
            " exec(compile('def t(y): ran(\"tag:0\"); foreign(\"body\"); return y + x\\nz = t({a}) + t(1)', ran.file, 'exec'), space); return space['z'], {g}(x)",
}
# CPython 3.14 says around a TypeError of __hash__ what the object was wanted for.
UNHASHABLE = re.compile(r"cannot use '[^']*' as a (?:dict key|set element) \((.*)\)", re.S)
DOCUMENTED = re.compile(r"(?s)the (callback|code|guard)\b.* (for|of|returned) .*|.*\bis not a FrameAction|.* object cannot be interpreted as an integer|an integer is required.*"
                        r"|'\w+' object has no attribute '\w+'")


class Hostile(Exception):
    """Raised by the program where it should hurt."""


def fail(what):
    sys.stderr.write(f"FAILED: {what}\n")
    sys.stderr.flush()
    os._exit(99)


def play(seed, without):
    """Run the program of SEED, and look whether it did as it should."""
    import dyntrace
    import dyntrace.config
    from dyntrace import guards, reset as forget
    from dyntrace._native import native
    from dyntrace.eval_frame import (_debug_get_cache_entry_list, get_eval_frame_callback, reset_code, set_code_exec_strategy, set_eval_frame,
                                     set_guard_error_hook, set_guard_fail_hook, skip_code)
    from dyntrace.guards import G, L, GuardTree
    from dyntrace.types import CacheEntry, ConvertFrameReturn, FrameAction, FrameExecStrategy, GuardedCode

    FILE = f"<program {seed}>"
    mine = threading.local()  # .draw: this thread's random(); .depth of foreign(), .calls under way
    main_pid, fuel, at_rest = os.getpid(), itertools.count(), native._owner()
    approved = {}  # tag: one item for each time that its code may run
    tags, watched, kept, children, lowered, running = itertools.count(1), [], [], [], [], []
    timers = itertools.repeat(None, 40)
    functions, sources, space, expected, started = [], [], {}, {}, threading.Event()

    # ---- chance ----

    def enter(number):
        mine.draw, mine.depth, mine.calls = random.Random(f"{seed} {number}").random, 0, 0

    def chance(p):
        return mine.draw() < p

    def pick(things):
        return things[int(mine.draw() * len(things))]

    def has(feature):
        return feature not in without

    # ---- the program's functions ----

    def ran(tag):
        """The code that runs has this TAG: has somebody said yes to it?"""
        try:
            if tag in approved:
                approved[tag].pop()
        except IndexError:
            fail(f"{tag} ran, and its guard has not said yes")
    ran.file = FILE

    def codes():
        found = [f.__code__ for f in list(space.values()) if hasattr(f, "__code__") and f.__code__.co_filename == FILE]
        return found + [c for code in found for c in code.co_consts if hasattr(c, "co_code")]

    def expected_error(error):
        return (isinstance(error, Hostile) or isinstance(error, RecursionError) and lowered or
                isinstance(error, (TypeError, ValueError, AttributeError)) and DOCUMENTED.fullmatch(UNHASHABLE.sub(r"\1", str(error))))

    def call():
        name, x = pick(functions), pick((0, 1, 2, 3))
        argument, before = (Number(x) if chance(0.1) else x), mine.calls
        try:
            mine.calls += 1
            got = space[name](argument)
            if got != expected[name, x]:
                fail(f"{name}({x}) is {got!r}, not {expected[name, x]!r}")
        except Exception as error:
            if not expected_error(error):
                import traceback
                traceback.print_exc()
                fail(f"{name}({x}) raised {type(error).__name__}: {error}")
        mine.calls = before

    # ---- what the program passes to the evaluator ----

    class Number(int):
        def __eq__(self, other):
            foreign("value-eq")
            return int(self) == other
        __hash__ = int.__hash__

    class Key(str):
        def __eq__(self, other):
            foreign("key-eq")
            return str.__eq__(self, other)

        def __hash__(self):
            foreign("key-hash")
            return str.__hash__(self)

    class Thing:
        def __init__(self):
            self.items = {Key("k"): 1, "l": [1, 2]}

        @property
        def value(self):
            foreign("property")
            return 7

        def method(self):
            foreign("method")
            return True

        def __del__(self):
            foreign("del")

    class Backend:
        def __eq__(self, other):
            foreign("backend-eq")
            return chance(0.8)
        __hash__ = None

    class Acting:
        """An object with the attributes of VALUES, reading which runs the program's code."""
        def __init__(self, **values):
            object.__setattr__(self, "values", values)

        def __getattribute__(self, name):
            values = object.__getattribute__(self, "values")
            if name not in values:
                raise AttributeError(f"'Acting' object has no attribute '{name}'")
            foreign("attribute")
            return values[name]

        def __call__(self, *arguments):
            foreign("called")
            return object.__getattribute__(self, "values")["check"](*arguments)

        def __bool__(self):
            foreign("bool")
            return True

        def __index__(self):
            foreign("index")
            return object.__getattribute__(self, "values").get("index", 0)

        def __str__(self):
            foreign("str")
            return "acting"
        __repr__ = __str__

        def __del__(self):
            foreign("del")

    def watch(thing):
        watched.append(weakref.ref(thing, (lambda ref: foreign("weakref")) if chance(0.1) else None))
        return thing

    def copy(code):
        """Other code that does the same, and its tag."""
        tag = f"tag:{next(tags)}"
        return code.replace(co_consts=tuple(tag if isinstance(c, str) and c.startswith("tag:") else c for c in code.co_consts)), tag

    def guard(tag, f_locals):
        """A guard of a random kind for the code of TAG. Its check() is asked if TAG is in `approved`."""
        fits = 0.5 if chance(0.5) else 1.0
        bad = chance(0.03)

        def check(*values):
            gone = foreign("guard")
            if bad and chance(0.5):
                if chance(0.5):
                    raise Hostile("guard")
                return "yes"
            if not chance(fits):
                return False
            if tag in approved and not gone:
                approved[tag].append(1)
            return True
        check.thing = [Thing() if chance(0.3) else None]
        watch(check)
        kind = int(mine.draw() * 5)
        if tag != "tag:0":
            approved[tag] = []
        if kind == 0:
            return Acting(check=check)
        if kind > 2:
            parts = []
            makers = [lambda: guards.LAMBDA(check, "check", *[[L["x"]], [], [L["x"], G["thing"].value]][int(mine.draw() * 3)]),
                      lambda: guards.EQUALS_MATCH(L["x"]), lambda: guards.TYPE_MATCH(L["x"]), lambda: guards.EQUALS_MATCH(G["thing"].value),
                      lambda: guards.TRUE_MATCH(G["thing"].method()), lambda: guards.ID_MATCH(G["thing"]), lambda: guards.DICT_LENGTH(G["thing"].items),
                      lambda: guards.DICT_KEYS(G["thing"].items), lambda: guards.DICT_CONTAINS(G["thing"].items, Key("k")),
                      lambda: guards.EQUALS_MATCH(G["thing"].items[Key("k")]), lambda: guards.LIST_LENGTH(G["thing"].items["l"]),
                      lambda: guards.WEAKREF_ALIVE(G["alive"], space["alive"]()), lambda: guards.HASATTR(G["thing"], "value"),
                      lambda: guards.SHAPE_BOUND(L["x"], 0, 9), lambda: guards.FUNCTION_MATCH(G[pick(functions)]), lambda: guards.NOT_NONE(G["thing"]),
                      lambda: guards.NO_ALIASING([G["thing"], L["x"]]), lambda: guards.GLOBAL_STATE("fuzz", 1), lambda: guards.EQUALS_MATCH(L["x"], Number(1))]
            asked = chance(0.6)
            for maker in [makers[0]] * asked + [pick(makers[1:]) for _ in range(int(mine.draw() * 4))]:
                parts.insert(int(mine.draw() * (len(parts) + 1)), maker())
            try:
                tree = GuardTree(parts, globals=space, example=f_locals)
                if not asked:
                    approved.pop(tag, None)
                return tree
            except (KeyError, AttributeError, TypeError, ValueError):  # this function has no x
                pass
        return check

    def answer(frame):
        code = frame.f_code
        if chance(0.06):
            return pick([None, 7, "x", GuardedCode(None, len), GuardedCode(code, 5), GuardedCode((lambda p, q, r, s: p).__code__, len),
                         ConvertFrameReturn(Acting(cur_action=9, recursive_action=0))])
        action = [FrameAction.DEFAULT] * 6 + list(FrameAction)
        strategy = FrameExecStrategy(pick(action), pick(action))
        new, tag = copy(code) if chance(0.95) else (code, "tag:0")
        check = guard(tag, frame.f_locals)
        parts = {"code": new, "check_fn": check, "compile_id": "0/0", "trace_annotation": pick(["here", Thing(), Acting()])}
        guarded = pick([GuardedCode(new, check), GuardedCode(new, check, None, parts["trace_annotation"]), Acting(**parts), Acting(**parts, guard_manager=check)])
        if tag in approved:
            approved[tag].append(1)
        kind = int(mine.draw() * 6)
        if kind == 0:
            return ConvertFrameReturn(strategy, chance(0.2), guarded)
        if kind == 1:
            return Acting(frame_exec_strategy=Acting(cur_action=Acting(index=pick((0, 0, 0, 1, 2))), recursive_action=0), apply_to_code=Acting() if chance(0.1) else False,
                          guarded_code=guarded if chance(0.7) else None, skip_reason=Acting())
        return guarded

    def make_callback():
        def callback(frame, entry, state):
            foreign("callback")
            if frame.f_code.co_filename != FILE:
                return None if chance(0.9) else NOT_NOW
            if chance(0.1):
                state[pick("abc")] = pick([Thing(), frame, entry])
            if chance(0.05):
                kept.extend((frame, entry))
            return answer(frame) if chance(0.9) else NOT_NOW
        if chance(0.5):
            callback = Acting(check=callback, _torchdynamo_orig_backend=Backend()) if chance(0.3) else callback
        if chance(0.3) and not isinstance(callback, Acting):
            callback._torchdynamo_orig_backend = pick(backends)
        return callback
    NOT_NOW = ConvertFrameReturn(FrameExecStrategy(), apply_to_code=False)
    backends = [Backend(), Backend()]

    # ---- what the program does where its code runs ----

    acts = {}

    def act(function):
        acts[function.__name__] = function
        return function

    @act
    def reset():
        forget()
        return True  # whatever was asked about is gone

    @act
    def reset_one():
        reset_code(pick(codes()))

    @act
    def invalidate():
        for code in codes():
            for entry in _debug_get_cache_entry_list(code):
                if chance(0.5):
                    entry.invalidate("the program")

    @act
    def refill():
        before = set_eval_frame(make_callback())
        for _ in range(int(mine.draw() * 4)):
            call()
        set_eval_frame(before)

    @act
    def other_code():
        function = pick([f for f in list(space.values()) if hasattr(f, "__code__") and f.__code__.co_filename == FILE])
        function.__code__ = function.__code__.replace(co_name="other")

    @act
    def redefine():
        number = int(mine.draw() * len(functions))
        exec(sources[number], space)

    @act
    def collect():
        gc.collect(int(mine.draw() * 3))

    @act
    def garbage():
        thing = Thing()
        thing.cycle = [thing, pick(codes())]

    @act
    def other_thing():
        space["thing"] = Thing()
        space["target"] = Thing()
        space["alive"] = weakref.ref(space["target"])

    @act
    def callback():
        set_eval_frame(pick([None, False, make_callback(), make_callback()]))

    @act
    def strategy():
        pick([skip_code, lambda code: set_code_exec_strategy(code, FrameExecStrategy(pick(list(FrameAction)), pick(list(FrameAction))))])(pick(codes()))

    @act
    def throw():
        raise Hostile("act")

    @act
    def again():
        call()

    @act
    def limits():
        dyntrace.config.recompile_limit = pick((1, 2, 8, 30))
        dyntrace.config.accumulated_recompile_limit = pick((3, 256, 1000))

    @act
    def look():
        for entry in [e for e in kept if isinstance(e, CacheEntry)] + _debug_get_cache_entry_list(pick(codes())):
            entry.code, entry.check_fn, entry.guard_manager, entry.backend, entry.trace_annotation, entry.hits, entry.next, entry.valid, entry.invalid_reason
            if isinstance(entry.guard_manager, GuardTree):
                entry.guard_manager.order()
        get_eval_frame_callback()

    @act
    def keep():
        kept.extend(_debug_get_cache_entry_list(pick(codes())))
        if chance(0.5):
            del kept[:]

    @act
    def deep():
        lowered.append(True)
        try:
            frame, depth = sys._getframe(), 0
            while frame:
                frame, depth = frame.f_back, depth + 1
            sys.setrecursionlimit(depth + 20 + int(mine.draw() * 60))
            call()
        except RecursionError:
            pass
        finally:
            sys.setrecursionlimit(1000)

    @act
    def let_go():
        time.sleep(0)

    @act
    def fork():
        if len(children) < 2 and os.getpid() == main_pid:
            pid = os.fork()
            if pid:
                children.append(pid)
            else:
                mine.draw = random.Random(f"{seed} child").random

    def foreign(place):
        """The program's code runs at PLACE. True: all entries that there were are gone now."""
        if not running or place in without or not hasattr(mine, "draw") or mine.depth >= 3 or not chance(0.08 if place in OFTEN else 0.4) or next(fuel) > 500:
            return False
        name = pick(ACTS)
        mine.depth += 1
        try:
            return bool(name not in without and acts[name]())
        finally:
            mine.depth -= 1
    assert sorted(acts) == ACTS

    # ---- the run ----

    def on_alarm(number, frame):
        for _ in timers if running else ():  # one more
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.003 * mine.draw())
            if mine.calls:
                foreign("signal")
            break

    def on_trace(frame, event, argument):
        foreign("trace")
        return on_trace if chance(0.5) else None

    def rounds(number, count):
        enter(number)
        if number and has("trace") and chance(0.2):
            pick([sys.settrace, sys.setprofile])(on_trace)
        n = 0
        while n < count:
            n += 1
            try:
                if chance(0.2) or get_eval_frame_callback() is None:
                    set_eval_frame(pick([None, False] + [make_callback() for _ in range(6)]))
                for _ in range(int(mine.draw() * 6)):
                    call()
            except Exception as error:
                mine.calls = 0
                if not expected_error(error):
                    raise
        sys.settrace(None)
        sys.setprofile(None)
        if chance(0.8):
            set_eval_frame(None)

    def thread(number):
        started.wait()
        try:
            rounds(number, 12)
        except BaseException as error:  # on the way out it is asked for its callback and traced still
            if not expected_error(error):
                fail(f"a thread raised {error!r}")
        if os.getpid() != main_pid:
            os._exit(0)

    def on_gc(phase, info):
        foreign("gc")

    def unraisable(args):
        if not expected_error(args.exc_value):
            fail(f"unraisable: {args.exc_value!r} in {args.object!r}")

    def hook(*arguments):
        foreign("hook")
    enter(0)
    sys.unraisablehook = unraisable
    guards.register_global_state("fuzz", lambda: foreign("state") and 0 or 1)
    space.update(ran=ran, foreign=lambda place: None, functools=__import__("functools"), contextlib=__import__("contextlib"))
    other_thing()
    exec("def first(x): return abs(x)", space)
    for number in range(1 + int(mine.draw() * 5)):
        name, other = f"f{number}", pick(functions[:2] or ["first"])
        sources.append(compile(SHAPES[pick(sorted(SHAPES))].format(f=name, g=other, a=number % 3 + 1), FILE, "exec"))
        exec(sources[-1], space)
        functions.append(name)
        for x in range(4):
            expected[name, x] = space[name](x)
    space["foreign"] = foreign
    if has("hooks") and chance(0.5):
        set_guard_fail_hook(hook)
        set_guard_error_hook(hook)
    if has("gc-callbacks") and chance(0.3):
        gc.callbacks.append(on_gc)
        gc.set_threshold(50)
    if has("switches") and chance(0.5):
        sys.setswitchinterval(1e-6)
    signal.signal(signal.SIGALRM, on_alarm)
    threads = [threading.Thread(target=thread, args=(n + 1,)) for n in range(pick((0, 0, 1, 2, 3))) if has("threads")]
    for one in threads:
        one.start()
    if has("signals") and chance(0.3):
        signal.setitimer(signal.ITIMER_REAL, 0.001)
    running.append(True)
    started.set()
    try:
        rounds(0, 25)
    except Hostile:
        mine.calls = 0
    running.clear()
    sys.settrace(None)
    sys.setprofile(None)
    set_eval_frame(None)
    signal.setitimer(signal.ITIMER_REAL, 0)
    if os.getpid() != main_pid:
        os._exit(0)
    for one in threads:
        one.join()
    for pid in children:
        status = os.waitpid(pid, 0)[1]
        if status:
            fail(f"a forked child ended with wait status {status:#x}")
    if on_gc in gc.callbacks:
        gc.callbacks.remove(on_gc)
        gc.set_threshold(700, 10, 10)
    sys.setswitchinterval(0.005)
    set_guard_fail_hook(None)
    set_guard_error_hook(None)
    guards.register_global_state("fuzz", int)
    dyntrace.config.recompile_limit, dyntrace.config.accumulated_recompile_limit = 8, 256
    call()
    if native._owner() != at_rest:
        fail("no thread has a callback, and the hook is still in")
    for things in (kept, backends, space):
        things.clear()
    forget()
    for _ in range(4):
        gc.collect()
    alive = [ref() for ref in watched if ref() is not None]
    if alive:
        fail(f"{len(alive)} of {len(watched)} guards are alive after a reset")
    sys.unraisablehook = sys.__unraisablehook__


# Where the program's code runs, and what it does there.
OFTEN = "body", "callback", "attribute", "del", "key-hash"
PLACES = """body guard callback attribute called bool index str del weakref value-eq key-eq key-hash property method backend-eq hook state signal trace
    gc""".split()
ACTS = """again callback collect deep fork garbage invalidate keep let_go limits look other_code other_thing redefine refill reset reset_one strategy
    throw""".split()


# ---- many programs, each in a process with some others ----

def look_at(group):
    """Of the processes of process group GROUP: bytes in memory of the largest, seconds of processor time of all, and does one run?"""
    largest, used, runs = 0, 0, False
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            # behind the name, which may have blanks: state, parent, group, ... ticks at 11 to 14, pages at 21
            fields = open("/proc/%s/stat" % name).read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            largest = max(largest, int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))
            used += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            runs |= fields[0] == "R"
    return largest, used, runs


class Runner:
    """Runs programs with one interpreter, build and mode."""

    def __init__(self, python, build, mode, scratch):
        self.python, self.build, self.mode, self.trace = python, os.path.abspath(build), mode, os.path.join(scratch, "fuzz.db")
        self.environment = dict(os.environ, PYTHONPATH=os.path.join(self.build, "lib", "python"), PYTHONHASHSEED="0")
        for suffix in os.listdir(os.path.join(self.build, "lib")):
            if suffix.startswith("_dyntrace") and b"__asan_init" in open(os.path.join(self.build, "lib", suffix), "rb").read():
                runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], stdout=subprocess.PIPE, text=True).stdout.strip()
                self.environment.update(LD_PRELOAD=runtime, UBSAN_OPTIONS="print_stacktrace=1",
                                        ASAN_OPTIONS="detect_leaks=0:abort_on_error=1:allocator_may_return_null=1")

    def words(self, seeds, without):
        return ([sys.executable, os.path.relpath(__file__), "--python", self.python, "--build", os.path.relpath(self.build), "--mode", self.mode] +
                (["--without", ",".join(without)] if without else []) + list(map(str, seeds)))

    def run(self, seeds, without=()):
        """What was wrong, or None."""
        argv = [self.python, os.path.abspath(__file__)]
        if self.mode == "recorded":
            argv = [os.path.join(self.build, "dyntrace"), "run", "--force", "-o", self.trace, "--python", self.python, "--", argv[1]]
        status, text = self.finish(argv + ["--play", "--without", ",".join(without), *map(str, seeds)])
        if status:
            return f"{'signal ' + str(-status) if status < 0 else 'status ' + str(status)}: {text.strip()}"
        for words in (["fsck", self.trace], ["replay", self.trace, "--verify"]) if self.mode == "recorded" else ():
            status, text = self.finish([os.path.join(self.build, "dyntrace"), *words])
            if status:
                kept = os.path.join(tempfile.gettempdir(), f"evaluator-fuzz-{seeds[0]}.db")
                shutil.copy(self.trace, kept)
                return f"{words[0]}: status {status}: {text.strip()}; the trace is kept: {kept}"
        return None

    def finish(self, argv):
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=self.environment,
                                       start_new_session=True)
            status, moved = None, time.monotonic()
            while status is None:
                try:
                    status = process.wait(1)
                except subprocess.TimeoutExpired:
                    largest, used, runs = look_at(process.pid)
                    moved = time.monotonic() if runs else moved
                    if largest > MEMORY:
                        status = "more than %d MB of memory" % (MEMORY >> 20)
                    elif used > PATIENCE or time.monotonic() > moved + ASLEEP:
                        status = "hangs"
                        process.send_signal(signal.SIGABRT)  # says where
                        time.sleep(1)
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            output.seek(0)
            return status, output.read()

    def shrink(self, seeds):
        """Few SEEDS, and many names to leave out, with which it still fails: what a minute finds."""
        until = time.monotonic() + 60
        for seed in reversed(seeds):
            if any(self.run([seed]) for _ in range(3)):
                seeds = [seed]
                break
        without = []
        for name in ("threads", "signals", "trace", "gc-callbacks", "hooks", "switches", *PLACES, *ACTS):
            if time.monotonic() < until and any(self.run(seeds, without + [name]) for _ in range(2)):
                without.append(name)
        return seeds, without


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", action="append")
    parser.add_argument("--build", action="append")
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--seconds", type=float, default=0, help="go on with more seeds for so long")
    parser.add_argument("--without", default="")
    parser.add_argument("--play", action="store_true", help="in this process")
    parser.add_argument("seed", nargs="*", type=int)
    options = parser.parse_args()
    without = [name for name in options.without.split(",") if name]
    if options.play:
        import faulthandler
        if "LD_PRELOAD" not in os.environ:
            faulthandler.enable()
        warnings.simplefilter("ignore")
        for seed in options.seed:
            os.write(1, b"%d " % seed)
            try:
                play(seed, set(without))
            except BaseException:
                import traceback
                traceback.print_exc()
                fail("the program itself")
        return 0
    programs = failures = 0
    with tempfile.TemporaryDirectory(prefix="evaluator-fuzz-") as scratch:
        runners = [Runner(python, build, mode, scratch) for python in options.python or [sys.executable] for build in options.build or ["build"]
                   for mode in options.mode or MODES]
        first, until = random.SystemRandom().randrange(10**9), time.monotonic() + options.seconds
        if options.seconds:
            print(f"evaluator-fuzz: seeds from {first}, {len(runners)} ways to run them", flush=True)
        batches = [options.seed[at:at + BATCH] for at in range(0, len(options.seed), BATCH)]
        for turn in itertools.count():
            if turn >= len(runners) * len(batches):
                if time.monotonic() > until:
                    break
                batches.append(range(first, first := first + BATCH))
            runner, seeds = runners[turn % len(runners)], list(batches[turn // len(runners)])
            programs += len(seeds)
            wrong = runner.run(seeds, without)
            if wrong:
                failures += 1
                print(wrong[-6000:], flush=True)
                if not without:
                    seeds, without_now = runner.shrink(seeds)
                    print("evaluator-fuzz: to see it again: " + " ".join(runner.words(seeds, without_now)), flush=True)
        print(f"evaluator-fuzz: {programs} programs, {failures} failures", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
