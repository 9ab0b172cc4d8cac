"""A LAMBDA guard resets, after the guards of its entry have changed their order."""
import dyntrace
from dyntrace.eval_frame import set_eval_frame
from dyntrace.guards import EQUALS_MATCH, L, LAMBDA, GuardTree
from dyntrace.types import GuardedCode

armed = False


def f(a, b):
    return a


def check(a):
    if armed:
        dyntrace.reset()
    return True


def callback(frame, entry, state):
    if frame.f_code is f.__code__:
        tree = GuardTree([LAMBDA(check, "check", L["a"]), EQUALS_MATCH(L["b"])], example=frame.f_locals)
        return GuardedCode(f.__code__.replace(), tree)


set_eval_frame(callback)
f(1, 1)
for i in range(5):
    f(1, 2)  # the second guard of the first entry fails: it moves forward
armed = True
print(f(1, 1), f(1, 2), f(1, 1))
set_eval_frame(None)
