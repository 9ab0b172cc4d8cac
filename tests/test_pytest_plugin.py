"""dyntrace.pytest_plugin: a user's tests are recorded and checked against limits."""
import contextlib
import os
import re
import sqlite3
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_python

# A compiler that compiles nothing, but guards on the size of its argument.
COMPILER = """
import array, pytest
from dyntrace.eval_frame import set_eval_frame
from dyntrace.guards import GuardTree, L, TENSOR_MATCH
from dyntrace.types import GuardedCode

def total(values):
    return sum(values)

def run(*sizes):
    def compiler(frame, entry, state):
        if frame.f_code is not total.__code__:
            return None
        return GuardedCode(frame.f_code.replace(), GuardTree([TENSOR_MATCH(L["values"])], example=frame.f_locals))
    set_eval_frame(compiler)
    try:
        for size in sizes:
            total(array.array("d", bytes(8 * size)))
    finally:
        set_eval_frame(None)
"""


@pytest.fixture
def suite(dyntrace, python, tmp_path):
    """suite(tests, *options) -> the output of pytest. The outer pytest's options do not reach it."""
    if subprocess.run([python, "-c", "import pytest"], capture_output=True).returncode:
        pytest.skip("this Python has no pytest")
    library = Path(dyntrace).parent / "lib" / "python"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST") and name != "CI"}
    environment.update(PYTHONPATH=str(library), PYTHONDONTWRITEBYTECODE="1", COLUMNS="200", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    folder = tmp_path / "suite"
    folder.mkdir()

    def suite(tests, *options, plugin=("-p", "dyntrace.pytest_plugin"), start=()):
        (folder / "test_it.py").write_text(COMPILER + tests)
        return subprocess.run([*start, python, "-m", "pytest", "-p", "no:cacheprovider", "-q", *plugin, f"--basetemp={tmp_path}/base", *options],
                              cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    return suite


def test_limits_on_tests_are_checked(suite):
    done = suite("""
@pytest.mark.dyntrace(max_recompiles=0, reset=True)
def test_one_size(): run(16, 16)

@pytest.mark.dyntrace(max_recompiles=0, reset=True)
def test_two_sizes(): run(16, 18)

@pytest.mark.dyntrace(max_recompiles=1, max_compiles=2, require_compiled="total", reset=True)
def test_allowed(): run(16, 18)

@pytest.mark.dyntrace(max_recompiles=0, after_warmup=2, reset=True)
def test_warm(): run(16, 18, 16, 18)

@pytest.mark.dyntrace(require_compiled=["total", "other"], reset=True)
def test_nothing_ran(): pass

def test_unmarked(): run(1, 2, 3)
""")
    assert "2 failed, 4 passed" in done.stdout, done.stdout + done.stderr
    assert re.search(r"^  max-recompiles \(1, allowed 0\): total \S+/suite/test_it.py:7 \[\d+/1\]: values size\[0\]: expected 16, actual 18$", done.stdout, re.M), done.stdout
    assert "  require-compiled: other: is not in the trace" in done.stdout and "(dyntrace why 'total' " in done.stdout
    assert "FAILED test_it.py::test_two_sizes - Failed: dyntrace: not within the limits" in done.stdout
    assert "pytest_plugin.py" not in done.stdout  # no traceback through us


def test_the_trace_of_a_failure_is_kept(suite, tmp_path):
    done = suite("""
@pytest.mark.dyntrace(max_compiles=0, reset=True)
def test_bad(): run(16)

@pytest.mark.dyntrace(max_compiles=1, reset=True)
def test_good(): run(16)
""")
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    kept = list((tmp_path / "base").rglob("*.db"))
    assert [path.name for path in kept] == ["test_it.py-test_bad.db"] and str(kept[0]) in done.stdout
    assert sqlite3.connect(kept[0]).execute("SELECT COUNT(*) FROM compile WHERE outcome = 'compiled'").fetchone() == (1,)


def test_options_switch_recording_off_and_set_its_directory_and_arguments(suite, tmp_path):
    tests = """
@pytest.mark.dyntrace(max_compiles=0, reset=True)
@pytest.mark.parametrize("name", ["a/b", "../../x"])
def test_bad(name): run(16)
"""
    done = suite(tests, "--no-dyntrace")
    assert "2 passed" in done.stdout and not list((tmp_path / "base").rglob("*.db"))
    suite(tests.replace("max_compiles=0", "max_compiles=1"), "--dyntrace-dir", tmp_path / "kept", "--dyntrace-args", "run")
    with contextlib.closing(sqlite3.connect(next((tmp_path / "kept").iterdir()))) as db:
        assert db.execute("SELECT arguments, result FROM call_args").fetchall() == [('{"sizes": [16]}', "null")]
    assert sorted(p.name for p in (tmp_path / "kept").iterdir()) == ["test_it.py-test_bad-..-..-x.db", "test_it.py-test_bad-a-b.db"]


def test_several_marks_of_one_test_are_combined(suite):
    done = suite("""
pytestmark = pytest.mark.dyntrace(max_compiles=1, reset=True)

def test_module(): run(16, 18)

@pytest.mark.dyntrace(max_compiles=2)
def test_nearer(): run(16, 18)

class TestIt:
    pytestmark = pytest.mark.dyntrace(max_recompiles=0)
    def test_both(self): run(16, 18)

    @pytest.mark.dyntrace(max_recompiles=None, max_compiles=None)
    def test_taken_back(self): run(16, 18)
""")
    assert "2 failed, 2 passed" in done.stdout, done.stdout
    both = done.stdout.split("test_both", 1)[1]
    assert "max-recompiles (1, allowed 0)" in both and "max-compiles (2, allowed 1)" in both


def test_the_fixture_checks_a_part_of_a_test(suite):
    done = suite("""
def test_part(dyntrace_record):
    run(2)
    with dyntrace_record(max_recompiles=0) as path:
        run(2, 2)
    with pytest.raises(AssertionError, match="max-compiles"):
        with dyntrace_record(max_compiles=0, reset=True):
            run(4)

def test_bad(dyntrace_record):
    with dyntrace_record(max_compiles=0, reset=True):
        run(16)

def test_raises(dyntrace_record):
    with dyntrace_record(max_compiles=0, reset=True):
        run(16)
        raise KeyError("mine")
""")
    assert "2 failed, 1 passed" in done.stdout, done.stdout
    assert "LimitsExceeded" in done.stdout and "KeyError: 'mine'" in done.stdout


def test_the_tests_own_failure_is_shown_besides_the_limit(suite):
    done = suite("""
@pytest.mark.dyntrace(max_compiles=0, reset=True)
def test_fails():
    run(16)
    assert 1 == 2
""")
    assert "assert 1 == 2" in done.stdout and "dyntrace call" in done.stdout
    assert "max-compiles (1, allowed 0)" in done.stdout.split("dyntrace call")[1] and "1 failed" in done.stdout


def test_exceeded_limits_keep_skips_and_count_as_expected_failures(suite):
    done = suite("""
@pytest.mark.dyntrace(max_compiles=0, reset=True)
def test_skips():
    run(2)
    pytest.skip("not here")

@pytest.mark.xfail(strict=True)
@pytest.mark.dyntrace(max_compiles=0, reset=True)
def test_expected(): run(16)
""")
    assert "1 skipped, 1 xfailed" in done.stdout, done.stdout


@pytest.mark.sweep(2)
@pytest.mark.parametrize("mark, why", [
    ("max_recompile=0", "no such limit: max_recompile"), ("3", "keywords only"), ("max_recompiles=-1", "dyntrace check: dyntrace: check: --max-recompiles"),
    ("max_compiles=0, function='nosuch*'", "no function matches"),
])
def test_bad_marks_are_errors(suite, mark, why):
    done = suite(f"\n@pytest.mark.dyntrace({mark})\ndef test_it(): run(2)\n")
    assert done.returncode == 1 and why in done.stdout and "INTERNALERROR" not in done.stdout + done.stderr, done.stdout


TOGETHER = """
import os, threading

def compiler(frame, entry, state):
    if frame.f_code is total.__code__:
        return GuardedCode(frame.f_code.replace(), GuardTree([TENSOR_MATCH(L["values"])], example=frame.f_locals))

def run(*sizes):  # with the same compiler each time
    set_eval_frame(compiler)
    try:
        for size in sizes:
            total(array.array("d", bytes(8 * size)))
    finally:
        set_eval_frame(None)

@pytest.mark.dyntrace(max_compiles=1, require_compiled="total")
def test_one(): run(16, 16)

@pytest.mark.dyntrace(max_recompiles=0, reset=True)
def test_two_sizes(): run(16, 18)

@pytest.mark.dyntrace(max_compiles=0)
def test_compiled_before(): run(18, 16)

@pytest.mark.dyntrace(require_compiled="total")
def test_not_called(): pass

@pytest.mark.dyntrace(max_eager_share=0, function="total", reset=True)
def test_share(): run(2, 2)

@pytest.mark.dyntrace(max_compiles=1, reset=True)
def test_thread_and_fork():
    thread = threading.Thread(target=run, args=(3, 3))
    thread.start()
    thread.join()
    pid = os.fork()
    if not pid:
        run(3, 3)
        os._exit(0)
    os.waitpid(pid, 0)

@pytest.mark.dyntrace(max_compiles=0, reset=True)
def test_in_a_forked_process():
    pid = os.fork()
    if not pid:
        run(4)
        os._exit(0)
    os.waitpid(pid, 0)

def test_unmarked(): run(1, 2, 3)

def test_part(dyntrace_record):
    run(7)
    with dyntrace_record(max_compiles=0) as path:
        run(7, 7)
    assert path.endswith("outer.db")
    with pytest.raises(AssertionError, match=r"max-compiles \\(1, allowed 0\\): total"):
        with dyntrace_record(max_compiles=0):
            run(9)
"""


@pytest.mark.slow
@pytest.mark.parametrize("frames", ["all", "decided"])
def test_tests_are_checked_under_a_recording(suite, dyntrace, python, tmp_path, frames):
    """The running recording is queried about each test: its own calls and compiles, in every thread and process."""
    done = suite(TOGETHER, start=(dyntrace, "run", "--frames", frames, "-o", tmp_path / "outer.db", "--"))
    assert " warning" not in done.stdout and "3 failed, 6 passed" in done.stdout, done.stdout + done.stderr
    said = re.findall(r"^  (max.*|req.*)$", done.stdout, re.M)
    assert len(said) == 3 and "max-recompiles (1, allowed 0): total " in said[0], said
    assert "require-compiled: total" in said[1] and "max-compiles (1, allowed 0): total " in said[2], said
    assert f"trace: {tmp_path}/outer.db   (dyntrace why 'total' " in done.stdout
    assert not list((tmp_path / "base").rglob("*.db")), "nothing is recorded twice"
    assert subprocess.run([dyntrace, "fsck", tmp_path / "outer.db"], capture_output=True).returncode == 0


def test_tests_have_the_same_results_under_a_recording(suite, dyntrace, python, tmp_path):
    """A test that fails alone fails under a recording, and a test that passes alone passes."""
    alone = suite(TOGETHER.split("def test_part")[0], "--dyntrace-dir", tmp_path / "kept")
    assert "3 failed, 5 passed" in alone.stdout, alone.stdout


def test_shares_of_given_up_functions_are_not_checked_under_a_recording(suite, dyntrace, python, tmp_path):
    """Calls of given-up functions are only known at the end of a recording. The share is not checked, and one line says
    so."""
    tests = """
from dyntrace.eval_frame import skip_code
from dyntrace.types import FrameAction, FrameExecStrategy, ConvertFrameReturn

def give_up(frame, entry, state):
    if frame.f_code is total.__code__:
        return ConvertFrameReturn(frame_exec_strategy=FrameExecStrategy(FrameAction.SKIP, FrameAction.DEFAULT))

@pytest.mark.dyntrace(max_eager_share=0.1, function="total")
def test_given_up():
    set_eval_frame(give_up)
    for _ in range(5):
        total([1])
    set_eval_frame(None)
"""
    alone = suite(tests)
    assert "max-eager-share (1, allowed 0.1)" in alone.stdout, alone.stdout
    done = suite(tests, start=(dyntrace, "run", "-o", tmp_path / "outer.db", "--"))
    assert "1 passed, 1 warning" in done.stdout and "limits of this test are not checked: " in done.stdout, done.stdout
    assert "known at the end; --no-dyntrace runs marked tests without any of this" in done.stdout, done.stdout
    assert "1 passed" in suite(tests, "--no-dyntrace", start=(dyntrace, "run", "-o", tmp_path / "other.db", "--")).stdout


def test_the_plugin_works_with_strict_markers_and_conftest(suite, tmp_path):
    (tmp_path / "suite/conftest.py").write_text('pytest_plugins = ["dyntrace.pytest_plugin"]\n')
    done = suite("\n@pytest.mark.dyntrace(max_compiles=1, reset=True)\ndef test_it(): run(2)\n", "--strict-markers", plugin=())
    assert "1 passed" in done.stdout, done.stdout + done.stderr


NOTHING = """
import dyntrace, pytest

@pytest.mark.dyntrace(max_recompiles=0, max_eager_share=0)
def test_nothing(): pass

@pytest.mark.dyntrace(max_recompiles=0, require_compiled="total")
def test_required(): pass

@pytest.mark.dyntrace(max_recompiles=0)
def test_something(): run(16, 16)

def test_part(dyntrace_record):
    with dyntrace_record(max_recompiles=0):
        pass
"""


@pytest.mark.parametrize("recorded", [False, True])
def test_a_test_that_compiles_nothing_is_not_checked(suite, dyntrace, tmp_path, recorded):
    """A warning says so. A test fails if a function that must be compiled is not."""
    start = (dyntrace, "run", "--force", "-o", tmp_path / "outer.db", "--frames", "decided", "--") if recorded else ()
    done = suite(NOTHING, start=start)
    assert "1 failed, 3 passed, 2 warnings" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("nothing can be checked: no compiler ") == 2 and "limits of this test are not checked: " in done.stdout
    assert "require-compiled: total" in done.stdout and "FAILED test_it.py::test_required" in done.stdout
    done = suite(NOTHING, "-W", "error", start=start)
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr


def test_the_plugin_raises_no_warnings(suite, dyntrace, python, tmp_path):
    """Also within a recording, the plugin causes no warning in the program."""
    done = suite("""
@pytest.mark.dyntrace(max_compiles=1, reset=True)
def test_it(): run(2, 2)
""", "-W", "error", start=[dyntrace, "run", "-o", tmp_path / "t.db", "--python", python, "--"])
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
