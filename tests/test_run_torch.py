"""--torch, with a torch that is missing, broken, too old, too new or unknown. No real torch is needed: a package `torch`
made here has the few parts that the bridge uses. Whatever it lacks, the program behaves as without us, and the trace says
how torch was watched, or that it was not."""
import runpy
import subprocess
import textwrap
from pathlib import Path

import pytest

from shared import holds

pytestmark = pytest.mark.one_python


# What torch/_dynamo/__init__.py finds when it begins. Its functions are written in C, as a real torch's.
EVALUATOR = """
    import collections, sys, types
    _C = types.ModuleType("torch._C")
    _C._dynamo = types.ModuleType("torch._C._dynamo")
    evaluator = _C._dynamo.eval_frame = types.ModuleType("torch._C._dynamo.eval_frame")
    for module in _C, _C._dynamo, evaluator:
        sys.modules[module.__name__] = module
    class Tensor:
        pass
    def evaluators(): # sent a new one, it gives the old one
        old = new = None
        while True:
            old, new = new, (yield old)
    evaluator.set_eval_frame = evaluators().send
    evaluator.set_eval_frame(None)
    evaluator.reset_code = evaluator.skip_code = [].append
    evaluator.set_code_exec_strategy = {}.setdefault
    evaluator._debug_get_cache_entry_list = collections.defaultdict(list).__getitem__
    evaluator._PyInterpreterFrame = type("_PyInterpreterFrame", (), {})
"""
PROGRAM = """
    import sys
    try:
        import torch, torch._dynamo
    except BaseException as error:
        print(type(error).__name__, error)
    else:
        evaluator = sys.modules.get("torch._C._dynamo.eval_frame")
        print(torch._dynamo.done, sorted(name for name in dir(evaluator) if name[0] != "_"))
        if hasattr(evaluator, "set_eval_frame"):
            def callback(*ignored):
                return None
            print(evaluator.set_eval_frame(None), evaluator.set_eval_frame(callback) is callback)
            print(evaluator.set_eval_frame(None) is callback)
    def f():
        return 5
    print(f())
    sys.exit(f())
"""


@pytest.fixture
def watched(record, python, tmp_path):
    """watched(torch's __init__, options, program, dynamo) -> the trace of a program that behaved as without us"""
    def watched(torch, *options, program=PROGRAM, dynamo="done = 1", before=""):
        folder = tmp_path / "torch" / "_dynamo"
        folder.mkdir(parents=True, exist_ok=True)
        if torch is not None:
            (tmp_path / "torch" / "__init__.py").write_text(textwrap.dedent(torch))
            (folder / "__init__.py").write_text(dynamo)
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(before) + textwrap.dedent(program))
        alone = subprocess.run([python, "-B", path], capture_output=True, text=True, cwd=tmp_path, timeout=60)
        trace = record([path], *options, python=python, status=None, env=None)
        trace.ours = [line for line in trace.err.splitlines() if line.startswith("dyntrace: ")]
        theirs = "".join(line for line in trace.err.splitlines(True) if not line.startswith("dyntrace: "))
        assert (trace.status, trace.out, theirs) == (alone.returncode, alone.stdout, alone.stderr)
        trace.torch, = trace.rows("SELECT torch_version, torch_mode, torch_note FROM process")
        trace.lost = [cause for cause, in trace.rows("SELECT cause FROM loss")]
        return holds(trace)
    return watched


def torch(version, more=""):
    return f"__version__ = {version!r}\n" + textwrap.dedent(EVALUATOR) + textwrap.dedent(more)


# ---- the option ----

@pytest.mark.parametrize("value", ["", "wrong", "SHIM", "shim ", "auto,off", "0"])
def test_a_wrong_value_of_the_option_torch_is_an_error(dyntrace, tmp_path, value):
    done = subprocess.run([dyntrace, "run", "--torch", value, "-o", tmp_path / "t.db", "-c", "print(1)"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"dyntrace: run: --torch {value}: not one of auto, shim, observe, off\n"
    assert not (tmp_path / "t.db").exists()


def test_a_missing_value_of_the_option_torch_is_an_error(dyntrace):
    done = subprocess.run([dyntrace, "run", "--torch"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "--torch needs a value" in done.stderr


@pytest.mark.sweep(2)
@pytest.mark.one_python
@pytest.mark.parametrize("mode", ["auto", "shim", "observe", "off"])
def test_a_program_without_torch_gets_no_message_about_torch(record, python, mode):
    trace = record(["-S", "-c", "def f(): pass\nf()"] if 0 else ["-c", "def f(): pass\nf()"], "--torch", mode, python=python)
    assert trace.err == "" and trace.rows("SELECT torch_version, torch_mode, torch_note FROM process") == [(None, None, None)]


def test_the_last_of_several_torch_options_wins(watched):
    assert watched(torch("2.13.0"), "--torch", "off", "--torch", "observe").torch == ("2.13.0", "observe", None)


# ---- torches ----

@pytest.mark.sweep(2)
@pytest.mark.one_python
@pytest.mark.parametrize("mode", ["auto", "shim", "observe", "off"])
def test_torch_options_without_torch_change_nothing(watched, python, mode):
    missing = subprocess.run([python, "-c", "import torch"], capture_output=True).returncode
    if not missing:
        pytest.skip("this Python has torch")
    trace = watched(None, "--torch", mode, before="import sys, shutil, os\nshutil.rmtree('torch', ignore_errors=True)\n")
    assert trace.out.startswith("ModuleNotFoundError") and trace.torch == (None, None, None) and not trace.ours


@pytest.mark.sweep(3)
@pytest.mark.one_python
@pytest.mark.parametrize("mode", ["shim", "observe"])
@pytest.mark.parametrize("what", ["raise ValueError('no compiler here')", "import nonesuch", "raise SystemExit(9)", "done = ("])
def test_a_torch_whose_compiler_cannot_be_imported_is_reported(watched, mode, what):
    trace = watched(torch("2.13.0"), "--torch", mode, dynamo=what)
    assert not trace.ours and not trace.lost


TESTED = runpy.run_path(str(Path(__file__).resolve().parents[1] / "python" / "dyntrace" / "_torch_versions.py"))["TESTED"]
NEXT = "%d.%d.0" % max((major, minor + 1) for tested in TESTED.values() for major, minor in tested)


@pytest.mark.one_python
@pytest.mark.parametrize("version", ["2.5.0", NEXT, "3.1.0", "dev", "", "2", "99999999999999999999.1"])
def test_an_untested_version_of_torch_is_observed(watched, version):
    trace = watched(torch(version))
    line, = trace.ours
    assert trace.torch == (version, "observe", line.removeprefix("dyntrace: "))
    assert f"torch {version} is observed" in line and "not tested with Python" in line and "--torch shim" in line
    assert not trace.lost


def test_a_tested_version_of_torch_runs_on_the_shim(watched, python):
    """A version that was tested only with another Python does not run on the shim."""
    minor = tuple(int(n) for n in subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"],
                                                 capture_output=True, text=True).stdout.split())
    for version in sorted(set().union(*TESTED.values())):
        mode, note = watched(torch("%d.%d.0+cpu" % version)).torch[1:]
        assert (mode, bool(note)) == (("shim", False) if version in TESTED.get(minor, ()) else ("observe", True)), version


def test_torch_shim_runs_an_untested_version_on_the_shim(watched):
    trace = watched(torch("3.1.0"), "--torch", "shim")
    assert trace.torch == ("3.1.0", "shim", None) and not trace.ours and not trace.lost


@pytest.mark.parametrize("mode", ["auto", "shim"])
def test_an_evaluator_with_an_unknown_function_is_observed(watched, mode):
    trace = watched(torch("2.13.0", "evaluator.set_something_new = len"), "--torch", mode)
    assert trace.torch[:2] == ("2.13.0", "observe") and "(set_something_new)" in trace.torch[2]
    assert trace.ours == ["dyntrace: " + trace.torch[2]]


NOTHING = {
    "no _C": "__version__ = '2.13.0'",
    "_C is None": "__version__ = '2.13.0'\n_C = None",
    "no eval_frame": torch("2.13.0", "del _C._dynamo.eval_frame"),
    "no _PyInterpreterFrame": torch("2.5.0", "del evaluator._PyInterpreterFrame"),
    "no version": torch("2.5.0", "del __version__"),
}


@pytest.mark.sweep(3)
@pytest.mark.one_python
@pytest.mark.parametrize("lacks", NOTHING)
@pytest.mark.parametrize("mode", ["observe", "auto"])
def test_a_torch_that_cannot_be_watched_is_recorded_as_a_loss(watched, lacks, mode):
    trace = watched(NOTHING[lacks], "--torch", mode)
    cause, = trace.lost
    assert cause.startswith("torch bridge: ") and "AttributeError" in cause


def test_the_trace_says_that_recording_of_torch_was_off(watched):
    assert watched(torch("2.13.0"), "--torch", "off").torch == ("2.13.0", "off", None)


@pytest.mark.parametrize("mode", ["shim", "observe"])
def test_a_torch_without_set_eval_frame_is_unwatched_or_a_recorded_loss(watched, mode):
    trace = watched(torch("2.13.0", "del evaluator.set_eval_frame"), "--torch", mode)
    assert trace.torch[1] not in ("shim", "observe") or trace.lost


def test_a_missing_function_of_torch_causes_no_system_error(watched):
    trace = watched(torch("2.5.0", "del evaluator._debug_get_cache_entry_list"), "--torch", "observe")
    assert "SystemError" not in "".join(trace.lost)


# ---- the canary, and who might see it ----

ODD = """
    import sys
    real, calls = sys._getframe, 0
    def odd(depth=0):
        global calls
        frame = real(depth + 1)
        if frame.f_code.co_filename == "<dyntrace>":
            calls += 1
            DO
        return frame
    sys._getframe = odd
"""


def test_a_failed_self_test_switches_to_observe(watched):
    trace = watched(torch("2.13.0"), "--torch", "shim", before=ODD.replace("DO", "if calls == 1: return None"))
    assert trace.torch[1] == "observe" and "the stack is 0 deep" in trace.torch[2]
    assert trace.ours == ["dyntrace: " + trace.torch[2]] and not trace.lost


@pytest.mark.parametrize("what", ["RuntimeError('not today')", "SystemExit(3)", "KeyboardInterrupt"])
def test_a_self_test_that_raises_switches_to_observe(watched, what):
    trace = watched(torch("2.13.0"), "--torch", "shim", before=ODD.replace("DO", f"raise {what}"))
    assert trace.torch[1] == "observe" and what.partition("(")[0] in trace.torch[2]


WATCHERS = {
    "settrace": "sys.settrace(lambda frame, event, arg: see(frame.f_code))",
    "setprofile": "sys.setprofile(lambda frame, event, arg: see(frame.f_code))",
    "gc": "import gc; gc.disable(); gc.callbacks.append(lambda phase, info: print(phase))",
    "threads": "sys.setswitchinterval(1e-6)",
    "recursion": "sys.setrecursionlimit(120)",
}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("watcher", WATCHERS)
@pytest.mark.parametrize("mode", ["shim", "observe"])
def test_the_programs_hooks_do_not_see_how_we_attach(watched, watcher, mode):
    before = """
        import sys
        def see(code):
            if "dyntrace" in code.co_filename:
                print("saw", code.co_name)
    """
    trace = watched(torch("2.13.0"), "--torch", mode, before=textwrap.dedent(before) + WATCHERS[watcher] + "\n")
    # What watches is decided by torch, too, and this one has nothing to compile with.
    assert trace.torch[1] == mode and all("KeyError: 'torch._dynamo.utils'" in row for row in trace.lost)


def test_sys_monitoring_does_not_see_how_we_attach(watched, python):
    before = """
        import sys
        if not hasattr(sys, "monitoring"):
            sys.monitoring = None
            sys.exit(99)
        m = sys.monitoring
        m.use_tool_id(3, "hostile")
        m.set_events(3, m.events.PY_START)
        m.register_callback(3, m.events.PY_START, lambda code, at: print(code.co_name) if "dyntrace" in code.co_filename else None)
    """
    if watched(torch("2.13.0"), "--torch", "shim", before=before).status == 99:
        pytest.skip("CPython 3.12 has it first")
