"""Captures every function, those without arrays as well: the callback of test programs that judge dyntrace.compile."""
import functools

from dyntrace import capture, resume
from dyntrace._capture_native import native


def unnamed(made, code, *args, **changes):
    """A resume function has the name of its original, so that programs that print names can be compared."""
    names = {key: getattr(code, key) for key in ("co_name", "co_qualname") if key in changes}
    return made(code, *args, **{**changes, **names})


class Everything:
    def __init__(self):
        self.count = 0
        self.callback = native.Capture((self.finish, "eager", None, False, None))
        resume._make_copy = functools.partial(unnamed, resume._make_copy)

    def finish(self, record):
        self.count += 1
        return capture.finish("eager", None, False, record)
