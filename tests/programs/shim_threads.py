"""Four threads turn callbacks on and off, compile, hit, miss, raise and reset, for SECONDS. usage: shim_threads.py [SECONDS]

Each thread counts what its callback and guards were asked, and checks every result: nothing of one thread reaches another.
"""
import gc
import random
import sys
import threading
import time

import dyntrace
from dyntrace._native import native
from dyntrace.eval_frame import get_eval_frame_callback, reset_code, set_eval_frame, skip_code
from dyntrace.types import ConvertFrameReturn, FrameAction, FrameExecStrategy, GuardedCode
from shim_help import copied, decline

THREADS = 4
AT_REST = native._owner()
failed = []


def shared(x, *args, key=1):
    return x + key + len(args)


def many(x):
    return [shared(y) for y in range(x)]


def gen(x):
    for i in range(x):
        yield shared(i)


class Thing:
    def __init__(self, x):
        self.x = x

    def get(self):
        return shared(self.x)


class Mine:
    """The callback of one thread."""

    def __init__(self, seed):
        self.random, self.thread = random.Random(seed), threading.get_ident()
        self.asked = self.guarded = self.passed = self.raised = 0

    def __call__(self, frame, entry, state):
        assert threading.get_ident() == self.thread, "a callback was called on another thread"
        assert get_eval_frame_callback() is None
        self.asked += 1
        if frame.f_code.co_filename != __file__:
            return None
        choice = self.random.randrange(20)
        if choice == 0:
            self.raised += 1
            raise KeyError("callback")
        if choice == 1:
            reset_code(frame.f_code)
        if choice == 2:
            return ConvertFrameReturn(FrameExecStrategy(FrameAction(self.random.randrange(3)), FrameAction(self.random.randrange(3))),
                                      self.random.random() < 0.5)
        backend = self

        def guard(f_locals):
            assert get_eval_frame_callback() is None
            if backend.random.random() < 0.02:
                time.sleep(0)  # another thread's turn
            if backend.random.random() < 0.02:
                raise ValueError("guard")
            return backend.random.random() < 0.7
        return GuardedCode(copied(frame.f_code), guard)


def work(seed, until):
    r = random.Random(seed)
    rounds = 0
    try:
        while time.monotonic() < until:
            rounds += 1
            mine = r.choice([Mine(r.random()), Mine(r.random()), False])
            local = {}
            exec(compile("def f(x): return [x, x]", __file__, "exec"), local)
            for _ in range(r.randrange(5)):
                set_eval_frame(mine)
                try:
                    x = r.randrange(5)
                    assert shared(x, 1, key=2) == x + 3
                    assert many(x) == [y + 1 for y in range(x)]
                    assert list(gen(x)) == [y + 1 for y in range(x)]
                    assert Thing(x).get() == x + 1
                    assert local["f"](x) == [x, x]
                except (KeyError, ValueError):
                    assert get_eval_frame_callback() is None
                finally:
                    set_eval_frame(None)
            if r.random() < 0.1:
                r.choice([dyntrace.reset, gc.collect, lambda: reset_code(shared.__code__), lambda: skip_code(gen.__code__)])()
            if r.random() < 0.02:  # ends with its callback set
                t = threading.Thread(target=set_eval_frame, args=(r.choice([decline, False]),))
                t.start()
                t.join()
    except BaseException as error:
        set_eval_frame(None)
        failed.append(error)
        raise
    counts.append(rounds)


counts = []


def main(seconds=2.0):
    sys.setswitchinterval(1e-5)
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=work, args=(n, until)) for n in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for _ in range(100):
        if native._owner() == AT_REST:
            break
        time.sleep(0.02)
    assert not failed, failed
    assert native._owner() == AT_REST, "the hook is still in"
    assert get_eval_frame_callback() is None
    dyntrace.reset()
    print(f"{THREADS} threads, {sum(counts)} rounds")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
