"""Calls that the shim decides in every way a trace can hold: hits that change the order, misses, a limit, a death, two
backends, run-only, marks, a guard that raises. The same on every run.

usage: replay_work.py [CALLS]"""
import random
import sys

import dyntrace.config
from dyntrace.eval_frame import _debug_get_cache_entry_list, set_eval_frame
from dyntrace.types import GuardedCode

dyntrace.config.recompile_limit = 6


def f(x):
    return x


def g(x, y):
    return x, y


def h(x):
    return x


class Backend:
    def __init__(self, name):
        self.__qualname__ = name

    def __call__(self, frame, entry, state):
        name = frame.f_code.co_name
        if name not in ("f", "g", "h"):
            return None
        x = frame.f_locals["x"]
        if name == "h" and x > 3:
            return None

        def check(f_locals):
            if f_locals["x"] == "raise":
                raise ValueError("a guard that raises")
            return f_locals["x"] == x
        return GuardedCode(frame.f_code.replace(), check)


def main(calls):
    choose = random.Random(7)
    one, two = Backend("one"), Backend("two")
    for i in range(calls):
        if i % 50 == 0:
            set_eval_frame(two if i % 100 else one)
        f(choose.choice([1, 2, 2, 3, 3, 3, 4, 5, 6, 7, 8]))
        g(choose.randrange(3), i)
        if i % 10 == 0:
            h(choose.randrange(5))
        if i == 120:
            set_eval_frame(None)
            _debug_get_cache_entry_list(g.__code__)[0].invalidate("planted death")
            set_eval_frame(one)
    try:
        g("raise", 0)
    except ValueError:
        pass
    set_eval_frame(False)
    g(99, 0)
    f(1)
    set_eval_frame(None)


main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
