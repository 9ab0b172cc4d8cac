import array
from dyntrace.eval_frame import set_eval_frame
from dyntrace.guards import GuardTree, L, TENSOR_MATCH
from dyntrace.types import GuardedCode


def total(values):
    return sum(values)


def compiler(frame, entry, state):
    if frame.f_code is not total.__code__:
        return None
    tree = GuardTree([TENSOR_MATCH(L["values"])], example=frame.f_locals)
    return GuardedCode(frame.f_code.replace(), tree)


set_eval_frame(compiler)
for size in (16, 18, 20, 20, 16):
    total(array.array("d", bytes(8 * size)))
set_eval_frame(None)
