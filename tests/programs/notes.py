"""A compiler of one's own that says what it does (tests/test_note.py). Prints what its functions give."""
import os
import sys
import threading

from dyntrace import note
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode


def f(x):
    y = x + 1
    print(y)
    return y * 2


def rest(y):
    return y * 2


def inner(x):
    return x


def refused(x):
    return x


def compile_inner(frame, entry, state):
    if frame.f_code is inner.__code__:
        note.listing("who", "inner")
        return GuardedCode(frame.f_code.replace(), lambda variables: True)


def callback(frame, entry, state):
    if frame.f_code is refused.__code__:
        note.graph_break("a yield", hint="")
        raise KeyError("refused")
    if frame.f_code is not f.__code__:
        return None
    x = frame.f_locals["x"]
    with note.phase("capture"):
        note.graph("__compiled_fn_0", [("placeholder", "x", "x", (), {}), ("call_function", "add", int.__add__, ("x", 1), {}), ("output", "output", "output", ("add",), {})])
    note.input("x", repr(x))
    prior = set_eval_frame(compile_inner)
    inner(x)
    set_eval_frame(prior)
    if x == 1:  # no thread has been there
        child = os.fork()
        if not child:
            note.listing("who", "a child")
            os._exit(0)
        os.waitpid(child, 0)
    thread = threading.Thread(target=note.listing, args=("who", "another thread"))
    thread.start()
    thread.join()
    note.listing("who", "f")
    note.graph_break("a call of print\n  Explanation: it prints", offset=offset_of_print(frame.f_code), hint="print the result", resume=rest)
    return GuardedCode(frame.f_code.replace(), lambda variables: variables["x"] == x)


def offset_of_print(code):
    return next(start for start, end, line in code.co_lines() if line == code.co_firstlineno + 2)


note.listing("who", "nobody")
note.graph("nothing", iter(lambda: 1 / 0, 0))  # which is not looked at
with note.phase("nothing"):
    pass
set_eval_frame(callback)
print(f(1), f(1), f(2))
for _ in range(2):
    set_eval_frame(callback)
    try:
        refused(1)
    except KeyError as error:
        print(error)
set_eval_frame(None)
note.listing("who", "nobody")
for call in (lambda: note.graph(1, []), lambda: note.graph_break(None), lambda: note.listing("who", b""), lambda: note.input("x", 1), lambda: note.phase(2).__enter__()):
    try:
        call()
    except TypeError as error:
        print(error)
sys.exit(3)
