#!/usr/bin/env python3
"""Threads that capture, split and call functions with cells, while trace functions and other threads read and write their frames.

    PYTHONPATH=build/lib/python python3 capture/tests/threads.py [SECONDS [trace|read]] [--control]

Each thread has functions of its own and shares some with the others. The interpreter switches threads as often as it can. `trace`: some threads
have a trace function that reads f_locals. `read`: one thread reads f_locals of all others' frames, and resets what is compiled. --control: the
same without dyntrace. Every call must give what it gives uncaptured. Prints the number of calls.
"""
import inspect
import itertools
import sys
import threading
import time

import dyntrace
from dyntrace import eval_frame, resume
from dyntrace.types import GuardedCode

THREADS = 4
SOURCE = """
def cells(x, n):
    total, pair = n, (n, 2)
    def add(value):
        nonlocal total, pair
        total += value
        pair = (total, value)
        return lambda: total + pair[1]
    x = x + x
    get = add(3)
    a, b = pair
    return get(), a, b, x.v

def loop(x, n):
    made = [(lambda i=i: i + n) for i in range(3)]
    for one in made:
        x = x + x
        n += one()
    return n, [[n + j for j in range(2)] for _ in range(2)], x.v

def generator(x, n):
    def values():
        for i in range(3):
            yield x, n + i
    return [(x + y).v + i for y, i in values()]

def handled(x, n):
    try:
        y = x + x
        n = (lambda: y.v + n)()
        raise KeyError(n)
    except KeyError as error:
        return error.args, (lambda: n)()
"""


class Own:
    shape, dtype = (4,), "f8"

    def __init__(self, v=1.0):
        self.v = v

    def __add__(self, other):
        return Own(self.v + 1)


def split(frame, entry, state):
    """A callback: each function runs as two."""
    code = frame.f_code
    if code.co_filename != "<threads>":
        return None
    points = resume.points(code)
    return GuardedCode(resume.split(code, points[len(points) // 2]).prefix, lambda f_locals: True) if points else None


def trace(frame, event, argument):
    dict(frame.f_locals)  # since 3.13 f_locals alone reads nothing
    return trace


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    control = "--control" in sys.argv
    until = time.monotonic() + float(words[0] if words else 5)
    ways = words[1:]
    dyntrace.register_array(Own)
    shared = {"Own": Own}
    exec(compile(SOURCE, "<threads>", "exec"), shared)
    expected = {name: shared[name](Own(), 5) for name in ("cells", "loop", "generator", "handled")}
    calls, wrong = itertools.count(), []
    sys.setswitchinterval(1e-6)

    def work(number):
        space = dict(shared)
        exec(compile(SOURCE, "<threads>", "exec"), space)
        if "trace" in ways and number % 2:
            sys.settrace(trace)
        try:
            for round in itertools.count():
                for name, result in expected.items():
                    function = (shared if round % 2 else space)[name]
                    splits = not control and (round + number) % 3 == 0
                    if not control and not splits and not (round + number) % 5 == 0:
                        function = dyntrace.compile(function, backend="eager")
                    eval_frame.set_eval_frame(split if splits else None)
                    for _ in range(3):
                        next(calls)
                        got = function(Own(), 5)
                        if got != result:
                            wrong.append((name, got, result))
                    eval_frame.set_eval_frame(None)
                if time.monotonic() > until or wrong:
                    return
        finally:
            eval_frame.set_eval_frame(None)
            sys.settrace(None)

    def read():
        while time.monotonic() < until:
            for frame in sys._current_frames().values():
                while frame:
                    # 3.13.0 crashes in f_locals of a generator that was closed meanwhile: gh-125723
                    if not frame.f_code.co_flags & inspect.CO_GENERATOR:
                        dict(frame.f_locals), frame.f_lineno
                    frame = frame.f_back
            if not control:
                dyntrace.reset()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    threads += [threading.Thread(target=read)] * ("read" in ways)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("%d calls, %d wrong" % (next(calls), len(wrong)), *wrong[:3])
    return len(wrong)


if __name__ == "__main__":
    sys.exit(bool(main()))
