"""The frame evaluator's switches, named and ordered as in torch._C._dynamo.eval_frame.

docs/shim.md has the rules.

Runs in: the traced process.
"""

from __future__ import annotations

from ._native import native as _native
from .types import FrameAction as _FrameAction
from .types import FrameExecStrategy as _FrameExecStrategy

# The names that are public in torch's module are public here, too, even those that begin with an
# underscore.
__all__ = [
    "_CacheEntry",
    "_FrameAction",
    "_FrameExecStrategy",
    "_PyInterpreterFrame",
    "_debug_get_cache_entry_list",
    "get_eval_frame_callback",
    "reset_code",
    "set_code_exec_strategy",
    "set_eval_frame",
    "set_guard_error_hook",
    "set_guard_fail_hook",
    "skip_code",
    "unsupported",
]

_CacheEntry = _native.CacheEntry
_PyInterpreterFrame = _native.DynamoFrameType

set_eval_frame = _native.set_eval_frame
get_eval_frame_callback = _native.get_eval_frame_callback
reset_code = _native.reset_code
skip_code = _native.skip_code
set_code_exec_strategy = _native.set_code_exec_strategy
unsupported = _native.unsupported
set_guard_error_hook = _native.set_guard_error_hook
set_guard_fail_hook = _native.set_guard_fail_hook
_debug_get_cache_entry_list = _native._debug_get_cache_entry_list
