"""A rank of a job, on dyntrace's own evaluator: FAULT is what it does otherwise than the other ranks."""
import array
import os
import signal
import sys

from dyntrace.eval_frame import set_eval_frame
from dyntrace.guards import EQUALS_MATCH, G, GuardTree, L, TENSOR_MATCH
from dyntrace.types import GuardedCode

fault = sys.argv[1] if len(sys.argv) > 1 else "none"
FLAG = 1


class Model:
    scale = 2

    def forward(self, values):
        return sum(values) * self.scale + FLAG


def compiler(frame, entry, state):
    if frame.f_code is not Model.forward.__code__:
        return None
    guards = [TENSOR_MATCH(L["values"]), EQUALS_MATCH(L["self"].scale), EQUALS_MATCH(G["FLAG"])]
    return GuardedCode(frame.f_code.replace(), GuardTree(guards, example=frame.f_locals, globals=frame.f_globals))


model = Model()
set_eval_frame(compiler)
for step, size in enumerate([16, 8, 16, 8] if fault == "order" else [8, 16, 8, 16]):
    if step == 2:
        size = 12 if fault == "shape" else size
        FLAG = 7 if fault == "flag" else FLAG
        model.scale = 5 if fault == "attribute" else 2
    if step == 3 and fault == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    model.forward(array.array("f" if fault == "dtype" and step == 2 else "d", [0] * size))
set_eval_frame(None)
