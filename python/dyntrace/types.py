"""Arguments and results of callbacks, named as in torch._dynamo.types.

Runs in: the traced process.
"""

from __future__ import annotations

import enum as _enum
import typing as _t

from ._native import native as _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType as _CodeType

__all__ = [
    "CacheEntry",
    "ConvertFrameReturn",
    "DynamoCallbackFn",
    "DynamoFrameType",
    "FrameAction",
    "FrameExecStrategy",
    "FrameState",
    "GuardFn",
    "GuardedCode",
]

CacheEntry = _native.CacheEntry
DynamoFrameType = _native.DynamoFrameType

FrameState = _t.Dict[_t.Any, _t.Any]
"""A dict for the callback's own notes about one code object. It is the same at every call."""


class FrameAction(_enum.IntEnum):
    """What the evaluator does with a call."""

    DEFAULT = 0
    SKIP = 1
    RUN_ONLY = 2


class FrameExecStrategy:
    """What the evaluator does with a call, and with the calls that it makes.

    Parameters
    ----------
    cur_action
        For the call itself.
    recursive_action
        For the calls that it makes.
    """

    __slots__ = ("cur_action", "recursive_action")

    def __init__(
        self,
        cur_action: FrameAction = FrameAction.DEFAULT,
        recursive_action: FrameAction = FrameAction.DEFAULT,
    ) -> None:
        self.cur_action = cur_action
        self.recursive_action = recursive_action

    def __repr__(self) -> str:
        return "FrameExecStrategy(%r, %r)" % (self.cur_action, self.recursive_action)


class GuardFn(_t.Protocol):
    """A function that returns True if a cache entry fits a call. f_locals has the call's variables
    by name."""

    def __call__(self, f_locals: _t.Dict[str, _t.Any], /) -> bool: ...


class _Checker(_t.Protocol):
    """An object with a method check(), which may take the place of a GuardFn. An example is a
    GuardTree."""

    def check(self, f_locals: _t.Dict[str, _t.Any], /) -> bool: ...


class GuardedCode:
    """Compiled code and the guard under which it may run.

    Parameters
    ----------
    code
        Takes the same arguments and free variables as the original.
    check_fn
        check_fn(f_locals) returns a bool. It may also be an object with a method check(f_locals).
        None: the code fits every call.
    compile_id
        Which compilation made the code. Default: "code/attempt" with the trace's numbers.
    trace_annotation
        Words for profilers.
    guard_manager
        torch's name for check_fn.
    """

    def __init__(
        self,
        code: _CodeType,
        check_fn: _t.Optional[GuardFn | _Checker] = None,
        compile_id: object = None,
        trace_annotation: str = "Unknown",
        *,
        guard_manager: _t.Optional[GuardFn | _Checker] = None,
    ) -> None:
        self.code = code
        self.check_fn = guard_manager if check_fn is None else check_fn
        self.guard_manager = self.check_fn
        self.compile_id = compile_id
        self.trace_annotation = trace_annotation


class ConvertFrameReturn:
    """A callback's answer, if it is more than a GuardedCode or None.

    Parameters
    ----------
    frame_exec_strategy
        What to do with the call and its callees. Default: FrameAction.DEFAULT for both.
    apply_to_code
        Whether the strategy also applies to later calls of this code.
    guarded_code
        The compiled code; None: run the original.
    skip_reason
        Why nothing was compiled, for the trace.
    """

    def __init__(
        self,
        frame_exec_strategy: _t.Optional[FrameExecStrategy] = None,
        apply_to_code: bool = True,
        guarded_code: _t.Optional[GuardedCode] = None,
        skip_reason: _t.Optional[str] = None,
    ) -> None:
        if frame_exec_strategy is None:
            frame_exec_strategy = FrameExecStrategy()
        self.frame_exec_strategy = frame_exec_strategy
        self.apply_to_code = apply_to_code
        self.guarded_code = guarded_code
        self.skip_reason = skip_reason


DynamoCallbackFn = _t.Callable[
    [DynamoFrameType, _t.Optional[CacheEntry], FrameState],
    _t.Union[None, GuardedCode, ConvertFrameReturn],
]
"""A callback for set_eval_frame: (frame, first cache entry, frame_state) -> its answer."""
