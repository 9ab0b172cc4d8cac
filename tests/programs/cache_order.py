"""A random program for the evaluator's cache: entries that fit several inputs are added, hit, invalidated and reset, by two
backends, with run-only stretches, a limit, and a fork. The same for the same seed.

usage: cache_order.py SEED [CALLS]"""
import os
import random
import sys

import dyntrace.config
from dyntrace.eval_frame import _debug_get_cache_entry_list, reset_code, set_eval_frame
from dyntrace.types import GuardedCode

choose = random.Random(int(sys.argv[1]))
dyntrace.config.recompile_limit = choose.choice([3, 6, 20])


def f(x):
    return x


def g(x):
    return x


def h(x):
    return x


FUNCTIONS = [f, g, h]


class Backend:
    def __init__(self, name):
        self.__qualname__ = name

    def __call__(self, frame, entry, state):
        if frame.f_code.co_name not in "fgh":
            return None
        modulus, x = choose.randrange(2, 9), frame.f_locals["x"]
        return GuardedCode(frame.f_code.replace(), lambda f_locals: f_locals["x"] % modulus == x % modulus)


BACKENDS = [Backend("one"), Backend("two")]


def act(calls):
    set_eval_frame(BACKENDS[0])
    for _ in range(calls):
        function, chance = choose.choice(FUNCTIONS), choose.random()
        function(choose.randrange(60))
        if chance < 0.1:
            set_eval_frame(None)
            entries = [entry for entry in _debug_get_cache_entry_list(function.__code__) if entry.code]
            if entries and chance < 0.08:
                choose.choice(entries).invalidate("a random death")
            elif chance > 0.09:
                reset_code(function.__code__)
            set_eval_frame(choose.choice([*BACKENDS, *BACKENDS, False]))
        elif chance < 0.2:
            set_eval_frame(choose.choice(BACKENDS))
    set_eval_frame(None)


act(int(sys.argv[2]) if len(sys.argv) > 2 else 300)
child = os.fork()
act(100)
if not child:
    os._exit(0)
os.waitpid(child, 0)
