"""dyntrace from inside a program: a frame evaluator that runs what your compiler returns.

Runs in: the traced process. The work is done in C (`_dyntrace`); this package gives it names.

    dyntrace.eval_frame   set_eval_frame and what goes with it, as in torch._C._dynamo.eval_frame
    dyntrace.types        what callbacks get and return
    dyntrace.bytecode     questions about code objects
    dyntrace.record       record("trace.db"): a context manager that records the process it runs in
    dyntrace.guards       native guards
    dyntrace.note         what a callback has to say of its compile
    dyntrace.resume       functions split in two, where compiled code ends and Python goes on
    dyntrace.config       recompile_limit, accumulated_recompile_limit
"""
import importlib

from . import _native, config
from .record import record

__all__ = ["config", "record", "reset"]


def reset():
    """Forget the cache entries and marks of every code object."""
    _native.native.reset()


def __getattr__(name):
    if name != "resume":  # loads the extension
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    return importlib.import_module(".resume", __name__)
