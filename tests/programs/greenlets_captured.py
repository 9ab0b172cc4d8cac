"""Greenlets that switch wherever code of the program's runs below dyntrace: in functions that are captured and what they call, in operators,
finalisers, backends, graphs, generators and resume functions; and that die there.

    greenlets_captured.py [plain] [SEED]

Prints what each did. As plain, nothing is compiled: the output must be the same. Without `plain`, that afterwards no thread and no greenlet has a
callback, that functions were captured, and that what was set by one greenlet was never another's.
"""
import gc
import random
import sys
import weakref

import greenlet
import numpy as np

import dyntrace
from dyntrace.eval_frame import get_eval_frame_callback

PLAIN = "plain" in sys.argv
rng = random.Random(int(sys.argv[-1]) if sys.argv[-1].isdigit() else 1)
hub, out, ready, wrong, compiles = greenlet.getcurrent(), [], [], [], []


def pause(chance=1.0):
    """Elsewhere for a while, then goes on here."""
    if rng.random() < chance and greenlet.getcurrent() is not hub:
        ready.append(greenlet.getcurrent())
        hub.switch()


def backend(module, inputs):
    compiles.append(module)
    pause(0.5)

    def run(*values):
        pause(0.3)
        return module.forward(*values)
    return run


def compile(function):
    return function if PLAIN else dyntrace.compile(function, backend=rng.choice(["eager", backend]))


def helper(x):
    return x + 1


def inner(x):
    y = x * 2
    pause()
    return y + 1


@compile
def calls(x):
    y = helper(x)
    z = inner(y)
    return helper(z) * 2


def numbers(x):
    for i in range(3):
        pause()
        yield x + i


@compile
def steps(x):
    total = x
    for one in numbers(x):
        total = total + one
    return total * 2


@compile
def breaks(x):
    y = x + 1
    pause()
    z = y * 2
    pause()
    return z - 1


class Switching:
    """Switches in an operator, as an item of an object array as well."""

    def __init__(self, n):
        self.n = n

    def __add__(self, other):
        pause()
        return Switching(self.n + (other.n if isinstance(other, Switching) else other))

    def __eq__(self, other):
        pause(0.3)
        return isinstance(other, Switching) and self.n == other.n

    __hash__ = None


@compile
def operators(a, b, x):
    return (a + b).n, x + 1


@compile
def objects(a):
    return [one.n for one in a + 1]


class Dies:
    def __del__(self):
        pause()


@compile
def finalisers(x):
    d = Dies()
    y = x + 1
    d = None
    return y * 2


@compile
def raises(x):
    y = x + 1
    try:
        pause()
        raise ValueError
    except ValueError:
        y = y * 2
    return y


def work(k):
    did, what = [], random.Random(k)
    for _ in range(6):
        x = np.arange(2.0) + k
        did.append([lambda: calls(x), lambda: steps(x), lambda: breaks(x), lambda: operators(Switching(1), Switching(k), x), lambda: objects(np.array([Switching(k)])),
                    lambda: finalisers(x), lambda: raises(x), lambda: calls(x) + steps(x)][what.randrange(8)]())
        if not PLAIN and get_eval_frame_callback() is not None:
            wrong.append(k)
        pause(0.3)
    out.append((k, [np.asarray(one, dtype=object).tolist() if not isinstance(one, np.ndarray) else one.tolist() for one in did]))


def dies(k):
    try:
        calls(np.arange(2.0) + k)
    finally:
        out.append(("died", k))


def main():
    for k in range(30):
        made = greenlet.greenlet(work)
        made.switch(k)
    for k in range(5):
        made = greenlet.greenlet(dies)
        made.switch(k)
        ready.remove(made)
        mark = weakref.ref(made)
        del made
        gc.collect()
        if mark() is not None:
            out.append("it lives")
    while ready:
        one = ready.pop(rng.randrange(len(ready)))
        if not PLAIN and get_eval_frame_callback() is not None:
            wrong.append("hub")
        one.switch()
        helper(1)
    thrown = greenlet.greenlet(work)
    thrown.switch(99)
    while not thrown.dead:
        try:
            thrown.throw(KeyError)
        except KeyError:
            out.append("thrown")
    ready.clear()
    for one in sorted(map(repr, out)):
        print(one)
    if not PLAIN:
        assert get_eval_frame_callback() is None and not wrong, wrong
        assert compiles, "nothing was captured"


main()
