"""Find capture's C extension `_dyntrace_capture` and attach it to the shim.

    from ._capture_native import native

Runs in: the traced process. The extension lies beside `_dyntrace`. `dyntrace run --capture` loads
it at the start. Otherwise it is loaded when dyntrace.capture is imported, for example by a use of
dyntrace.compile. Everything else works without it.
"""

from __future__ import annotations

import sys

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import _dyntrace_capture

    native = _dyntrace_capture


def _load():
    shim = _native.native._shim  # raises in a sub-interpreter, which has no shim
    module = sys.modules.get("_dyntrace_capture")
    if not module:
        module = _native.load(
            "_dyntrace_capture",
            "dyntrace.compile needs capture, which is not in this installation",
        )
        sys.modules["_dyntrace_capture"] = module
    if not hasattr(module, "Capture"):
        module._attach(shim)
    return module


if not TYPE_CHECKING:
    native = _load()
