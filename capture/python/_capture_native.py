"""Find capture's C extension `_dyntrace_capture` and attach it to the shim.

    from ._capture_native import native

Runs in: the traced process. The file of the extension lies beside the file of the extension
`_dyntrace`. `dyntrace run --capture` loads the extension at the start. Otherwise the import of
dyntrace.capture loads it, for example when the program uses dyntrace.compile. Other parts of
dyntrace do not need it.
"""

from __future__ import annotations

import sys

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import _dyntrace_capture

    native = _dyntrace_capture


def _load():
    # raises in a sub-interpreter, because the shim exists only in the main interpreter
    shim = _native.native._shim
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
