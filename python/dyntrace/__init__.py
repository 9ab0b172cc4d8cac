"""dyntrace from inside a program: a frame evaluator that runs what your compiler returns, and
graphs of array operations for it.

Runs in: the traced process. The work is done in C (`_dyntrace`); this package gives it names.

    dyntrace.eval_frame   set_eval_frame and what goes with it, as in torch._C._dynamo.eval_frame
    dyntrace.types        what callbacks get and return
    dyntrace.bytecode     questions about code objects
    dyntrace.record       record("trace.db"): a context manager that records the process it runs in
    dyntrace.guards       native guards
    dyntrace.note         what a callback has to say of its compile
    dyntrace.resume       functions split in two, where compiled code ends and Python goes on
    dyntrace.graph        the graphs that dyntrace.compile makes
    dyntrace.config       recompile_limit, accumulated_recompile_limit

    compile, explain, disable, graph_break, register_array: dyntrace.capture, loaded when one of
    them is first asked for
"""

import importlib
import sys

from . import _names, _native, config
from .record import record

__all__ = _names.ALL


def reset():
    """Forget the cache entries and marks of every code object."""
    _native.native.reset()
    if __name__ + ".capture" in sys.modules:
        sys.modules[__name__ + ".capture"].reset_names()


def __getattr__(name):
    if name in _names.MODULES:  # these load the extension
        return importlib.import_module("." + name, __name__)
    if name not in _names.CAPTURE:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    capture = importlib.import_module(".capture", __name__)
    # Captured code reads them as it reads any module's.
    globals().update({name: getattr(capture, name) for name in _names.CAPTURE})
    return globals()[name]
