"""usage: shim_answer_refills.py N: an answer's compile_id makes N more entries while the answer is read."""
import sys

from dyntrace.eval_frame import _debug_get_cache_entry_list, set_eval_frame
from dyntrace.types import GuardedCode


def f(a):
    return a


def one_value(frame, entry, state):
    if frame.f_code is f.__code__:
        value = frame.f_locals["a"]
        return GuardedCode(f.__code__.replace(), lambda f_locals: f_locals["a"] == value)


class Answer:
    code = f.__code__.replace()
    check_fn = staticmethod(lambda f_locals: True)
    trace_annotation = "x"

    @property
    def compile_id(self):
        set_eval_frame(one_value)
        for i in range(int(sys.argv[1])):
            f(i)
        set_eval_frame(None)
        return "0/0"


set_eval_frame(lambda frame, entry, state: Answer() if frame.f_code is f.__code__ else None)
print(f(99))
set_eval_frame(None)
print(len(_debug_get_cache_entry_list(f.__code__)))
