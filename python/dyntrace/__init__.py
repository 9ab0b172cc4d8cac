"""dyntrace from inside a program: evaluate frames, compile functions, record what happens.

    dyntrace.record       record("trace.db"): a context manager that records this process
    dyntrace.open         open("trace.db"): a trace that can be queried; for notebooks, too
    dyntrace.span         span("request", id=271): a named stretch of time, also a decorator
    dyntrace.compile      capture a function's array operations as graphs; also explain, disable,
                          graph_break, register_array
    dyntrace.reset        forget every cache entry
    dyntrace.config       recompile_limit, accumulated_recompile_limit

    dyntrace.eval_frame set_eval_frame and related functions, as in torch._C._dynamo.eval_frame
    dyntrace.types        arguments and results of callbacks
    dyntrace.guards       guards that are built in Python and checked in C
    dyntrace.note         facts about a compile, for the trace
    dyntrace.resume       split a function in two, where compiled code ends and Python goes on
    dyntrace.graph        the graphs that dyntrace.compile makes
    dyntrace.trace        traces and their rows, as dyntrace.open has them
    dyntrace.bytecode     questions about code objects

`import dyntrace` alone is cheap: the C extension and the compiler are loaded at their first use.

Runs in: the traced process.
"""

from __future__ import annotations

import sys

from . import _native, config
from .record import record, snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any

    from ._dyntrace import span
    from .capture import compile, disable, explain, graph_break, register_array
    from .trace import Trace

    __version__: str

# The public names, which `import *`, dir(), the docs and the tests use. Names that are not defined
# below are those of dyntrace.capture.
__all__ = [
    "compile",
    "config",
    "disable",
    "explain",
    "graph_break",
    "load_ipython_extension",
    "open",
    "record",
    "register_array",
    "reset",
    "snapshot",
    "span",
]

# Public modules, loaded at their first use.
_MODULES = (
    "bytecode",
    "capture",
    "eval_frame",
    "graph",
    "guards",
    "note",
    "resume",
    "trace",
    "types",
)


def reset() -> None:
    """Drop the cache entries of every code object, and forget which code is never compiled."""
    _native.native.reset()
    capture = sys.modules.get(__name__ + ".capture")
    if capture:
        capture.reset_names()


def open(path: str | os.PathLike[str]) -> Trace:
    """Open a trace, to query it from Python. The trace may still be in the middle of a recording.

        trace = dyntrace.open("trace.db")
        trace.functions().df

    Parameters
    ----------
    path
        The trace. Nothing is written into it.

    Raises
    ------
    dyntrace.trace.TraceError
        The file does not exist, or is not a readable trace. The message says why.
    """
    from .trace import _open_trace

    return _open_trace(path)


def load_ipython_extension(ipython: Any) -> None:
    """Add the cell magic %%dyntrace. IPython calls this function for `%load_ext dyntrace`.

    Parameters
    ----------
    ipython
        The shell.
    """
    from ._notebook import load

    load(ipython)


if not TYPE_CHECKING:  # hide __getattr__ from type checkers, which would otherwise accept any name

    def __getattr__(name):
        if name == "__version__":
            return _native.native.__version__
        if name not in _MODULES and name not in __all__:
            raise AttributeError("module %r has no attribute %r" % (__name__, name))
        if name == "span":
            return globals().setdefault(name, _native.native.span)
        import importlib

        if name in _MODULES:
            return importlib.import_module("." + name, __name__)
        capture = importlib.import_module(".capture", __name__)
        # Store the names as attributes of this module, because captured code reads them like the
        # globals of any module.
        scope = globals()
        own = {*scope, "span"}
        scope.update({name: getattr(capture, name) for name in __all__ if name not in own})
        return scope[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES, "__version__"})
