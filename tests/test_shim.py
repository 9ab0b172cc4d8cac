"""The stand-alone evaluator: tests/programs/shim_*.py, each with every Python, alone and under `dyntrace run`.

The programs are unittest scripts that need nothing but the package; run one by hand with

    PYTHONPATH=build/lib/python python3 tests/programs/shim_rules.py -v
"""
import json

import pytest

pytestmark = pytest.mark.newest_too


def test_the_evaluator_passes_its_unit_tests(evaluate):
    assert "\nOK" in evaluate("shim_rules.py")[1]


@pytest.mark.sweep(3)  # alone with the first interpreter, recorded with the newest
def test_the_evaluator_handles_every_kind_of_function(evaluate):
    assert "\nOK" in evaluate("shim_shapes.py")[1]


@pytest.mark.sweep(3)  # alone with the first interpreter, recorded with the newest
def test_invalid_results_of_callbacks_raise_errors_and_do_not_crash(evaluate):
    assert "\nOK" in evaluate("shim_bad.py")[1]


@pytest.mark.slow
def test_random_programs_do_the_same_when_a_callback_replaces_their_code(evaluate):
    """test_shim_torture.py runs 2000 such programs with each Python."""
    out, err, _ = evaluate("shim_random.py", "0", "150")
    assert out.startswith("150 programs, ")


@pytest.mark.sweep(3)  # alone with the first interpreter, recorded with the newest
def test_threads_do_the_same_with_and_without_a_callback(evaluate):
    out, err, _ = evaluate("shim_threads.py", "2")
    assert out.startswith("4 threads, ")
    assert err == ""


def test_frames_that_run_inside_trace_functions_are_recorded_without_a_decision(evaluate):
    """Audit hooks and the like run inside the evaluator and the recorder. All are recorded, those with tracing set are
    not decided, and nothing hangs."""
    out, err, trace = evaluate("shim_tracing.py")
    said = json.loads(out)
    assert err == "" and set(said["decided"]) <= {"open_hook", "watched", "deeper"}  # it asks to be traced
    assert all(count > 10 for name, count in said["ran"].items() if name != "started")
    if trace:
        parents = dict(trace.rows("""
            SELECT c.qualname, count(*) FROM frame f JOIN code d ON d.code_id = f.code_id JOIN frame w ON w.frame_id = f.parent_id
                JOIN frame h ON h.frame_id = w.parent_id JOIN code c ON c.code_id = h.code_id JOIN thread t ON t.thread_id = f.thread_id
            WHERE d.qualname = 'deeper' AND t.process_id = (SELECT min(process_id) FROM process) GROUP BY 1"""))
        assert parents == {name: count for name, count in said["ran"].items() if count}
        assert not trace.rows("SELECT cause FROM loss WHERE cause NOT LIKE 'stall%'")


@pytest.mark.slow
@pytest.mark.no_sanitizer  # which keeps what is freed
def test_the_evaluator_leaks_nothing(evaluate):
    out, err, _ = evaluate("shim_leaks.py", "20000")
    assert "LEAKS" not in out and out.count(" ok") >= 18
