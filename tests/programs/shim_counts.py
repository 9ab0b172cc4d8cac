"""Counts what the shim asks of it, for tests/test_shim_trace.py: callbacks by answer, guards by result, calls."""
import collections
import json
import random

from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode

counts = collections.Counter()
rng = random.Random(7)


def compiled(x):
    counts["calls"] += 1
    return x


def declined(x):
    counts["declined calls"] += 1
    return x


class IsType:
    def __init__(self, kind):
        self.kind = kind

    def __call__(self, f_locals):
        passed = type(f_locals["x"]) is self.kind
        counts["guard pass" if passed else "guard fail"] += 1
        return passed


def callback(frame, entry, state):
    if frame.f_code is compiled.__code__:
        counts["compiles"] += 1
        return GuardedCode(frame.f_code.replace(), IsType(type(frame.f_locals["x"])))
    if frame.f_code is declined.__code__:
        counts["declines"] += 1
    return None


values = [1, 2.0, "three", None, b"five", (6,), [7], {8}, {9: 9}, range(10), ...]  # more types than the limit of 8
set_eval_frame(callback)
for _ in range(2000):
    compiled(rng.choice(values))
    if rng.random() < 0.1:
        declined(1)
set_eval_frame(None)
print(json.dumps(counts))
