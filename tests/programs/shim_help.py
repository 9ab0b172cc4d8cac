"""What the shim's test programs share. Each is a script that any Python runs: alone, or under `dyntrace run`.

    under(callback, function, *args)    function(*args) with CALLBACK set on this thread
    replacing(*functions)               a callback that has a copy of their code run in place of it
"""
import sys
import unittest

from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import ConvertFrameReturn, FrameAction, FrameExecStrategy, GuardedCode

DEFAULT, SKIP, RUN_ONLY = FrameAction
OURS = ".so"


def under(callback, function, *args, **named):
    prior = set_eval_frame(callback)
    try:
        return function(*args, **named)
    finally:
        set_eval_frame(prior)


def true(f_locals):
    return True


def false(f_locals):
    return False


def copied(code):
    """Another code object that does the same."""
    return code.replace(co_name=code.co_name)


def returning(code, value):
    """CODE's arguments, and VALUE as its result."""
    made = (lambda: "\0value").__code__
    assert not code.co_freevars
    return made.replace(co_argcount=code.co_argcount, co_kwonlyargcount=code.co_kwonlyargcount,
                        co_posonlyargcount=code.co_posonlyargcount, co_nlocals=code.co_nlocals,
                        co_varnames=code.co_varnames, co_cellvars=(), co_flags=code.co_flags,
                        co_consts=tuple(value if c == "\0value" else c for c in made.co_consts),
                        co_name=code.co_name)


# Leave this call, and those of the same code later, alone for now: ask again.
PASS = ConvertFrameReturn(FrameExecStrategy(DEFAULT, DEFAULT), apply_to_code=False)


class Recorder:
    """A callback that answers ANSWERS[name] (a value, or what a function of (frame, entry, frame_state) returns) and
    leaves other code alone. `.asked` has the names it was asked about, in order."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    def __call__(self, frame, entry, frame_state):
        name = frame.f_code.co_name
        if name not in self.answers:
            return PASS
        self.asked.append(name)
        answer = self.answers[name]
        return answer(frame, entry, frame_state) if callable(answer) else answer


def copy_of(frame, entry, frame_state):
    """Answer: a copy of the code, always."""
    return GuardedCode(copied(frame.f_code), true)


def replacing(*functions):
    return Recorder(**{f.__name__: copy_of for f in functions})


def decline(frame, entry, frame_state):
    """A callback that replaces nothing."""
    return PASS


class ReplaceAll:
    """A callback that replaces the frames of one file by copies, or what MAKE makes of their code. `.asked`: their code."""

    def __init__(self, file, make=copied):
        self.file, self.make, self.asked = file, make, []

    def __call__(self, frame, entry, state):
        if frame.f_code.co_filename != self.file:
            return PASS
        made = self.make(frame.f_code)
        if made is None:
            return PASS
        self.asked.append(frame.f_code)
        return GuardedCode(made, true)


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--list":
        for suite in unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]):
            for test in suite:
                print(test.id())
        return
    unittest.main(module="__main__", verbosity=1)
