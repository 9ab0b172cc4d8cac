"""A backend's __eq__ invalidates the entry that is about to be checked."""
from dyntrace.eval_frame import _debug_get_cache_entry_list, set_eval_frame
from dyntrace.guards import EQUALS_MATCH, GuardTree, L
from dyntrace.types import GuardedCode


class Backend:
    entries = ()
    __hash__ = None

    def __eq__(self, other):
        for entry in Backend.entries:
            entry.invalidate("x")
        return True


def callback():
    def compiler(frame, entry, state):
        if frame.f_code is f.__code__:
            return GuardedCode(f.__code__.replace(), GuardTree([EQUALS_MATCH(L["a"])], example=frame.f_locals))
    compiler._torchdynamo_orig_backend = Backend()
    return compiler


def f(a):
    return a


set_eval_frame(callback())
f(1)
set_eval_frame(None)
Backend.entries = _debug_get_cache_entry_list(f.__code__)
set_eval_frame(callback())
print(f(1))
set_eval_frame(None)
