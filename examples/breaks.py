"""A compiler that breaks the graph at every call of print and goes on behind it in a resume function.

    dyntrace run -o breaks.db examples/breaks.py && dyntrace why steps breaks.db

It compiles nothing: what it would hand to a backend, the instructions up to the break, is a list of their names.
"""
import dis

from dyntrace import note, resume
from dyntrace.eval_frame import set_eval_frame
from dyntrace.guards import L, TYPE_MATCH, GuardTree
from dyntrace.types import GuardedCode


def steps(x):
    y = x + 1
    print("y is", y)
    z = y * 2
    print("z is", z)
    return y + z


def break_in(code):
    """The instruction that calls print, and the offset behind it where CODE can be split; None: it calls none, or cannot be."""
    points, call, loaded = resume.points(code), None, False
    for instruction in dis.get_instructions(code):
        if call and instruction.offset > call.offset and instruction.offset in points:
            return call, instruction.offset
        if instruction.opname.startswith("LOAD") and instruction.argval == "print":
            loaded = instruction.offset in points  # else it lies before the resume function's begin
        elif loaded and instruction.opname == "CALL":
            call, loaded = instruction, False
    return None


def compiler(frame, entry, frame_state):
    code = frame.f_code
    if code.co_filename != __file__ or not code.co_name.startswith(("steps", "__resume_at")):
        return None
    with note.phase("capture"):
        found = break_in(code)
        end = found[0].offset if found else len(code.co_code)
        note.graph("graph of " + code.co_name, [("call_function", "step%d" % n, one.opname, (one.argrepr,), {})
                                                for n, one in enumerate(dis.get_instructions(code)) if one.offset < end])
    guards = GuardTree([TYPE_MATCH(L[name], type(value)) for name, value in frame.f_locals.items()], example=frame.f_locals)
    for name, value in frame.f_locals.items():
        note.input(name, repr(value))
    if not found:
        return GuardedCode(code, guards)
    call, behind = found
    split = resume.split(code, behind)
    note.graph_break("a call of print", offset=call.offset, hint="return the values and print them outside", resume=split)
    return GuardedCode(split.prefix, guards)


set_eval_frame(compiler)
print(steps(1), steps(2), steps(2.5))
set_eval_frame(None)
