"""Threads in slow guards whose trees move, while the main thread resets, invalidates and collects."""
import gc
import threading
import time

import dyntrace
from dyntrace.eval_frame import _debug_get_cache_entry_list, reset_code, set_eval_frame
from dyntrace.guards import EQUALS_MATCH, GuardTree, L, LAMBDA
from dyntrace.types import GuardedCode


def f(a, b):
    return a


def slow(a):
    time.sleep(0.0005)
    return True


def callback(frame, entry, state):
    if frame.f_code is f.__code__:
        return GuardedCode(f.__code__.replace(), GuardTree([LAMBDA(slow, "slow", L["a"]), EQUALS_MATCH(L["b"])],
                                                           example=frame.f_locals))


def work():
    set_eval_frame(callback)
    for i in range(300):
        assert f(i, i % 3) == i


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
turn = 0
while any(thread.is_alive() for thread in threads):
    time.sleep(0.001)
    turn += 1
    if turn % 4 == 0:
        dyntrace.reset()
    elif turn % 4 == 1:
        reset_code(f.__code__)
    elif turn % 4 == 2:
        for entry in _debug_get_cache_entry_list(f.__code__):
            entry.invalidate("hostile")
    else:
        gc.collect()
for thread in threads:
    thread.join()
print("OK")
