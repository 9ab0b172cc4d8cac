"""The evaluator does not crash, whatever the program does from a guard, a callback, an attribute or a finaliser.
tests/programs/shim_hostile.py has the places and the acts. Its children run alone and under `dyntrace run`, with every
Python, and under ASan and UBSan in `make check-san`."""
import pytest

pytestmark = pytest.mark.newest_too


@pytest.mark.slow
def test_the_evaluator_survives_hostile_code_at_every_point_of_a_lookup(evaluate):
    """Resets, invalidations, refills, other code, death, a fork and more in the middle of a decision: the call returns
    the function's result, entries can be inspected, and later calls are decided as usual."""
    out, _, _ = evaluate("shim_hostile.py")
    assert int(out.splitlines()[-1].split(" combinations")[0]) > 4000


def test_a_reset_while_other_threads_check_guards_does_not_crash(evaluate):
    assert evaluate("shim_hostile_threads.py")[0] == "OK\n"


@pytest.mark.parametrize("program, output", [
    (("shim_reset_in_guard.py",), "1 1 1\n"),
    (("shim_backend_invalidates.py",), "1\n"),
    (("shim_answer_refills.py", "4"), "99\n5\n"),  # there was room for four
    (("shim_answer_refills.py", "9"), "99\n9\n"),  # more than the limit, which counts what there is
], ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_programs_that_once_crashed_do_not_crash(evaluate, program, output):
    assert evaluate(*program)[0] == output


BUFFER = """
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode

class Hidden:
    def __buffer__(self, flags):
        print("asked for its buffer")
        return memoryview(b"12")

def f(a):
    return a

def callback(frame, entry, state):
    if frame.f_code is f.__code__:
        return GuardedCode(f.__code__.replace(), lambda f_locals: False)

set_eval_frame(callback)
f(Hidden()), f(Hidden())
set_eval_frame(None)
"""


def test_a_miss_calls_no_buffer_method_of_the_program(record, python, tmp_path):
    """A call's values are described without running the program's code. Since 3.12 a buffer may come from a method."""
    (tmp_path / "buffer.py").write_text(BUFFER)
    trace = record([tmp_path / "buffer.py"], python=python)
    assert trace.out == ""
    assert [row[0].split(": ")[0] for row in trace.rows("SELECT text FROM signature")] == ["a"]


INTERRUPTED = """
import signal
import dyntrace
from dyntrace.eval_frame import set_eval_frame
from dyntrace.guards import EQUALS_MATCH, L, GuardTree
from dyntrace.types import GuardedCode

class Loud:
    def __repr__(self):
        global armed
        if armed:
            armed = False
            signal.raise_signal(signal.SIGINT)
        return "Loud()"

def f(a):
    return a

def compiler(frame, entry, state):
    if frame.f_code is f.__code__:
        return GuardedCode(frame.f_code.replace(), GuardTree([EQUALS_MATCH(L["a"])], example=frame.f_locals))

armed = False
set_eval_frame(compiler)
f(1)
armed = True
try:
    f(Loud())
except KeyboardInterrupt:
    print("interrupted")
print(f(2), f(1))
set_eval_frame(None)
"""


def test_a_signal_handler_during_an_explanation_raises_in_the_call(record, python, tmp_path):
    """Python code explains why entries missed, so a signal handler may run there. The call raises the handler's
    exception."""
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED)
    trace = record([program], python=python)
    assert (trace.out, trace.err) == ("interrupted\n2 1\n", "")
    assert trace.rows("SELECT outcome FROM call_ledger WHERE qualname = 'f'") == [("compiled",), ("callback_error",), ("compiled",), ("hit",)]


def test_checking_guards_against_a_mapping_runs_only_the_needed_code(evaluate):
    """A callback's f_locals may be any mapping. Using more than its items would run the program's code, or fail, because
    it need not have keys()."""
    assert evaluate("shim_mapping.py")[0] == "asked for len\nasked for str\nasked for n\n2\n"


def test_recording_a_miss_runs_no_code_of_the_program(evaluate):
    """The other failed guards are found without running the program's code: an attribute from a hook or a property, a
    length, or a guard of the program is not evaluated again. The guard that ended the check is explained with the value
    that the check saw."""
    out, _, trace = evaluate("shim_asked.py")
    assert out.splitlines() == [
        "-- type",
        "-- attributes", "asked for n", *2 * ["asked for a property"],
        "-- hasattr", *2 * ["asked for n"], *4 * ["asked for a property"],
        "-- lambda"]
    if trace:
        causes = trace.rows("SELECT kind, source, actual, how FROM recompile_cause")
        assert causes[:3] == [("TYPE_MATCH", "L['a']", "__main__.Hooked", "observed"), ("TYPE_MATCH", "L['a']", "__main__.Own", "observed"),
                              ("EQUALS_MATCH", "L['a'].k", "5", "re-checked")]
        assert ("EQUALS_MATCH", "L['a'].n", "3", "observed") in causes  # that the hook gave
        assert {how for kind, source, _, how in causes if source == "L['a'].n"} == {"observed"}
