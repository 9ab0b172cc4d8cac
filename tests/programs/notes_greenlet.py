"""Two greenlets compile at once, and end out of order; each says what is its own (tests/test_greenlet.py)."""
import sys

import greenlet

from dyntrace import note
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode


def first(x):
    return x


def second(x):
    return x


def deep(n):
    return n if not n else deep(n - 1) + len([n] * 3)


def compiler(frame, entry, frame_state):
    if frame.f_code is first.__code__:
        main.switch()  # the C stack of this compile is moved away
        note.listing("who", "first")
    elif frame.f_code is second.__code__:
        one.switch()  # the compile that began before ends within this one
        note.listing("who", "second")
    else:
        return None
    return GuardedCode(frame.f_code.replace(), lambda variables: True)


def run(function):
    set_eval_frame(compiler)
    function(1)
    set_eval_frame(None)
    main.switch()


main = greenlet.getcurrent()
one, two = greenlet.greenlet(run), greenlet.greenlet(run)
one.switch(first)
set_eval_frame(None)
sorted(range(2000), key=lambda n: deep(50))  # what lies on the C stack now
note.listing("who", "nobody")
two.switch(second)
sorted(range(2000), key=lambda n: deep(50))
note.listing("who", "nobody")
two.switch()
set_eval_frame(None)
sorted(range(2000), key=lambda n: deep(50))
note.listing("who", "nobody")
print("done")
sys.exit(0)
