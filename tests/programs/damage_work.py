"""Every kind of row that the shim can make without torch: hits, misses, recompiles with causes, a limit, run-only, skip, declined,
errors, deaths, orders of guards, two threads, a fork, generators, exceptions."""
import os
import threading

import dyntrace.config
from dyntrace.eval_frame import reset_code, set_eval_frame, skip_code
from dyntrace.guards import EQUALS_MATCH, GuardTree, L, TYPE_MATCH
from dyntrace.types import GuardedCode

dyntrace.config.recompile_limit = 3


def f(x, y):
    return x


def g(x, y):
    return y


def excluded(x, y):
    return x


def bad(x, y):
    return x


def wrong(x, y):
    return x


def numbers(n):
    for i in range(n):
        yield i


def compiler(frame, entry, state):
    name = frame.f_code.co_name
    if name == "wrong":
        raise ValueError("the compiler raises")
    if name not in ("f", "g"):
        return None
    tree = GuardTree([TYPE_MATCH(L["x"]), EQUALS_MATCH(L["x"]), TYPE_MATCH(L["y"]), EQUALS_MATCH(L["y"])], example=frame.f_locals)
    return GuardedCode(frame.f_code.replace(), tree)


def work():
    set_eval_frame(compiler)
    for i in (1, 2, 1, 3, 1, 2, 4, 5, 1, 4):
        f(i, 0), f(i, i), g(i % 2, "a"), excluded(i, 0), bad(i, 0)
    set_eval_frame(False)
    g("never", 0)
    set_eval_frame(compiler)
    try:
        wrong(1, 2)
    except ValueError:
        pass
    set_eval_frame(None)


skip_code(excluded.__code__)
work()
sum(numbers(5))
thread = threading.Thread(target=work)
thread.start()
thread.join()
reset_code(g.__code__)
work()
pid = os.fork()
if not pid:
    work()
    os._exit(0)
os.waitpid(pid, 0)
