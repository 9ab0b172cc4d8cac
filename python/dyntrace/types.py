"""What a callback gets and returns, named as in torch._dynamo.types.

Runs in: the traced process.
"""

import enum
from typing import Any, Callable, Dict, Optional, Protocol, Union

from ._native import native as _native

CacheEntry = _native.CacheEntry
DynamoFrameType = _native.DynamoFrameType

FrameState = Dict[Any, Any]
"""Notes of the callback on one code object; the same dict at every call."""


class FrameAction(enum.IntEnum):
    """What to do with a call."""

    DEFAULT = 0
    SKIP = 1
    RUN_ONLY = 2


class FrameExecStrategy:
    """What to do with a call (cur_action), and with the calls that it makes (recursive_action)."""

    __slots__ = ("cur_action", "recursive_action")

    def __init__(self, cur_action=FrameAction.DEFAULT, recursive_action=FrameAction.DEFAULT):
        self.cur_action = cur_action
        self.recursive_action = recursive_action

    def __repr__(self):
        return "FrameExecStrategy(%r, %r)" % (self.cur_action, self.recursive_action)


class GuardFn(Protocol):
    """Decides from the values of a call's variables, by name, whether an entry fits."""

    def __call__(self, f_locals: Dict[str, Any]) -> bool: ...


class GuardedCode:
    """Compiled code and the guard under which it may run.

    CODE takes the same arguments and free variables as the original. CHECK_FN(f_locals) returns a
    bool; an object with a method check(f_locals) is as good. GUARD_MANAGER is another name for
    CHECK_FN.
    """

    def __init__(
        self,
        code,
        check_fn: Optional[Callable[[Dict[str, Any]], bool]] = None,
        compile_id=None,
        trace_annotation="Unknown",
        *,
        guard_manager=None,
    ):
        self.code = code
        self.check_fn = guard_manager if check_fn is None else check_fn
        self.guard_manager = self.check_fn
        self.compile_id = compile_id
        self.trace_annotation = trace_annotation


class ConvertFrameReturn:
    """A callback's whole answer: code or None, what to do with callees, and whether that stays."""

    def __init__(
        self,
        frame_exec_strategy=None,
        apply_to_code=True,
        guarded_code: Optional[GuardedCode] = None,
        skip_reason=None,
    ):
        self.frame_exec_strategy = (
            FrameExecStrategy() if frame_exec_strategy is None else frame_exec_strategy
        )
        self.apply_to_code = apply_to_code
        self.guarded_code = guarded_code
        self.skip_reason = skip_reason


DynamoCallbackFn = Callable[
    [DynamoFrameType, Optional[CacheEntry], FrameState],
    Union[None, GuardedCode, ConvertFrameReturn],
]
