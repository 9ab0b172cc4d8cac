"""Capture is a separate extension: tests of an installation without its file, and of when it is loaded."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from shared import one_line

COMPILE = """
import dyntrace
def f(x): return x + 1
try:
    dyntrace.compile(f)
except ImportError as error:
    print(type(error).__name__, error)
"""
REST = """
import sys, dyntrace
from dyntrace import eval_frame, resume
from dyntrace.types import GuardedCode
def f(x): return x + 1
eval_frame.set_eval_frame(lambda frame, entry, state: GuardedCode(frame.f_code, lambda values: True))
print(f(1), f(2))
eval_frame.set_eval_frame(None)
print(len(resume.points(f.__code__)) > 0, len(eval_frame._debug_get_cache_entry_list(f.__code__)))
dyntrace.reset()
print([name for name in sys.modules if "capture" in name])
"""


pytestmark = pytest.mark.every_python


@pytest.fixture
def without(dyntrace, tmp_path):
    """An installation that lacks capture's extension: the path of its program."""
    here = Path(dyntrace).parent
    place = tmp_path / "without"
    shutil.copytree(here / "lib", place / "lib", ignore=shutil.ignore_patterns("_dyntrace_capture*"))
    shutil.copy2(dyntrace, place / "dyntrace")
    return place / "dyntrace"


def alone(program, python, text):
    return subprocess.run([python, "-c", text], capture_output=True, text=True, timeout=100,
                          env=dict(os.environ, PYTHONPATH=str(Path(program).parent / "lib" / "python")))


def recorded(program, python, text, *options):
    return subprocess.run([program, "run", *options, "--force", "-o", Path(program).parent / "t.db", "--python", python, "-c", text],
                          capture_output=True, text=True, timeout=100)


def test_compile_raises_import_error_without_the_capture_extension(without, python):
    for done in alone(without, python, COMPILE), recorded(without, python, COMPILE):
        assert done.stdout.startswith("ImportError dyntrace.compile needs capture, which is not in this installation (")
        assert "make PYTHONS=" in done.stdout and done.stdout.count("\n") == 1 and done.stderr == "" and done.returncode == 0


def test_run_capture_is_refused_before_the_program_starts(without, python, tmp_path):
    done = recorded(without, python, f"open({str(tmp_path / 'ran')!r}, 'w')", "--capture")
    assert done.returncode == 2 and done.stdout == "" and not (tmp_path / "ran").exists()
    assert one_line(done.stderr).startswith("dyntrace: run: --capture needs capture, which is not in this installation (")
    assert not (without.parent / "t.db").exists()


def test_a_program_without_the_extension_runs_and_the_loss_is_recorded(without, python, tmp_path):
    """The program is a script, so `run` cannot find out before the start which Python will run it."""
    script = tmp_path / "script"
    script.write_text(f"#!{python}\nprint('ran')\n")
    script.chmod(0o755)
    trace = tmp_path / "t.db"
    done = subprocess.run([without, "run", "--capture", "-o", trace, script], capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.returncode) == ("ran\n", 0)
    told = subprocess.run([without, "sql", trace, "SELECT cause FROM loss"], capture_output=True, text=True).stdout
    assert "capture: its extension could not be loaded" in told


def test_other_parts_of_dyntrace_work_without_the_extension(without, python):
    for done in alone(without, python, REST), recorded(without, python, REST):
        assert done.stdout == "2 3\nTrue 1\n[]\n" and done.returncode == 0, done.stderr


def test_the_extension_is_loaded_only_when_it_is_used(dyntrace, python):
    for done in alone(dyntrace, python, REST), recorded(dyntrace, python, REST):
        assert done.stdout == "2 3\nTrue 1\n[]\n" and done.returncode == 0, done.stderr
    used = "import sys, dyntrace; dyntrace.disable(print); print('_dyntrace_capture' in sys.modules)"
    assert alone(dyntrace, python, used).stdout == "True\n"


def test_a_builtin_that_the_program_replaced_is_called(dyntrace, python):
    """The program may replace a builtin before _dyntrace_capture is loaded."""
    text = """
import builtins
original = builtins.abs
def abs(value):
    if value == -2.5:  # dyntrace's own Python calls it as well
        print("called")
    return original(value)
builtins.abs = abs
from dyntrace.capture import Compiled, finish
from dyntrace._capture_native import native as captures
from dyntrace._native import native
import functools
from builtins import abs as replaced
def f(x): return replaced(x) + 1
every = captures.Capture((functools.partial(finish, "eager", None, False), "eager", None, False, None))
for _ in range(3):
    print(native._call_under(f, every, -2.5))
"""
    done = alone(dyntrace, python, text)
    assert done.stdout == "called\n3.5\n" * 3, done.stderr
