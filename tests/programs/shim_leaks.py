"""Many calls of every outcome leave nothing behind. usage: shim_leaks.py [CALLS]

For each way that a call can go: reference counts of its arguments, code, entry, guard, callback and of None are the same
after CALLS calls as after a few, and the process has not grown.
"""
import gc
import sys

import dyntrace
from dyntrace.eval_frame import (_debug_get_cache_entry_list, reset_code, set_eval_frame, set_guard_error_hook,
                                 set_guard_fail_hook)
from dyntrace.types import ConvertFrameReturn, FrameExecStrategy, GuardedCode
from shim_help import DEFAULT, PASS, SKIP, Recorder, copied


def rss():
    """Memory of our own: without the recorder's rings, which are shared and fill up."""
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon")) << 10


class Thing:
    pass


def plain(x): return x
def many(x, *args, key=None, **kw): return x
def cell(x): return (lambda: x)()
def gen(x): yield x
def fails(x): raise LookupError
def free(x): return Thing
async def co(x): return x


def true(f_locals): return True
def false(f_locals): return False
def raises(f_locals): raise ValueError
def rubbish(f_locals): return None


def compiled(guard):
    return lambda frame, entry, state: GuardedCode(copied(frame.f_code), guard)


def raising(frame, entry, state):
    raise KeyError


def use_plain(f, x): f(x)
def use_many(f, x): f(x, x, x, key=x, other=x)
def use_gen(f, x): next(f(x))
def use_co(f, x): f(x).close()


def use_fails(f, x):
    try:
        f(x)
    except (LookupError, ValueError, KeyError, TypeError):
        pass


# name: (function, how to call it, answer, what to do before each call)
def nothing(callback): pass
def again(callback): set_eval_frame(callback)


def fresh(callback):
    set_eval_frame(None)
    for f in FUNCTIONS:
        reset_code(f.__code__)
    set_eval_frame(callback)


FUNCTIONS = [plain, many, cell, gen, fails, free, co]
WAYS = {
    "hit": (plain, use_plain, compiled(true), nothing),
    "hit, every kind of argument": (many, use_many, compiled(true), nothing),
    "hit, cells": (cell, use_plain, compiled(true), nothing),
    "hit, generator": (gen, use_gen, compiled(true), nothing),
    "hit, coroutine": (co, use_co, compiled(true), nothing),
    "hit, raises": (fails, use_fails, compiled(true), nothing),
    "hit, same code": (plain, use_plain, lambda frame, e, s: GuardedCode(frame.f_code, true), nothing),
    "miss, at the limit": (plain, use_plain, compiled(false), nothing),
    "skip": (plain, use_plain, None, nothing),
    "skip, callees too": (plain, use_plain, ConvertFrameReturn(FrameExecStrategy(SKIP, SKIP)), nothing),
    "declined": (plain, use_plain, PASS, nothing),
    "callback raises": (plain, use_fails, raising, again),
    "callback answers rubbish": (plain, use_fails, 5, again),
    "code does not fit": (plain, use_fails, lambda *a: GuardedCode(co.__code__.replace(co_argcount=0), true), again),
    "guard raises": (plain, use_fails, compiled(raises), again),
    "guard returns no bool": (plain, use_fails, compiled(rubbish), again),
    "compiled afresh": (many, use_many, compiled(true), fresh),
    "invalidated": (plain, use_plain, compiled(true), lambda c: [e.invalidate() for e in _debug_get_cache_entry_list(plain.__code__)]
                    and fresh(c)),
}


def counts(thing, function, callback):
    found = [sys.getrefcount(o) for o in (thing, function, function.__code__, callback, Thing, true, false, raises,
                                          GuardedCode, PASS)]
    entries = _debug_get_cache_entry_list(function.__code__)
    for e in entries:
        found += [sys.getrefcount(e), sys.getrefcount(e.code), e.hits and 0]
    return found


def call(function, use, before, callback, thing, times):
    set_eval_frame(callback)
    for _ in range(times):
        before(callback)
        use(function, thing)
    set_eval_frame(None)


def main(calls=20000):
    told = []
    set_guard_error_hook(lambda *a: None)
    set_guard_fail_hook(lambda *a: None)
    bad = []
    for name, (function, use, answer, before) in [("warm up", WAYS["hit"])] + list(WAYS.items()):
        dyntrace.reset()
        thing, callback = Thing(), Recorder(**{function.__name__: answer})
        callback.asked = type("Nothing", (), {"append": lambda self, name: None})()
        slow = 20 if before is fresh or name == "invalidated" else 4 if use is use_fails else 1
        call(function, use, before, callback, thing, 300)
        gc.collect()
        first, blocks = counts(thing, function, callback), sys.getallocatedblocks()
        call(function, use, before, callback, thing, calls // slow // 10)
        warm = rss()
        call(function, use, before, callback, thing, calls // slow)
        gc.collect()
        last, grown, kept = counts(thing, function, callback), rss() - warm, sys.getallocatedblocks() - blocks
        ok = first == last and grown < 2 << 20 and kept < 100
        if name != "warm up":
            told.append(f"{name:30} {calls // slow:8} calls  {grown >> 10:5} KiB  {kept:4} blocks  {'ok' if ok else 'LEAKS'}")
        if not ok and name != "warm up":
            bad.append((name, first, last))
    print("\n".join(told))
    assert not bad, bad


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
