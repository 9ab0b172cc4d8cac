"""The frame evaluator's switches, named and ordered as in torch._C._dynamo.eval_frame.

Runs in: the traced process. docs/shim.md tells the rules.
"""

from ._native import native as _native
from .types import FrameAction as _FrameAction
from .types import FrameExecStrategy as _FrameExecStrategy

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
