"""dyntrace.resume: tests/programs/resume_cases.py and resume_frames.py by hand and under the evaluator, a part of `make resume-torture`, the
example of docs/resume.md, and what a trace says of a resume function.
"""
import os
import re
import subprocess
import sys

import pytest

from shared import ROOT

pytestmark = pytest.mark.newest_too

EXAMPLE = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "resume.md").read_text(), re.S)[1]


@pytest.mark.sweep(3)  # alone with the first interpreter, recorded with the newest
def test_functions_split_by_resume_do_what_whole_ones_do(evaluate):
    assert "\nOK" in evaluate("resume_cases.py")[1]


@pytest.mark.sweep(3)  # alone with the first interpreter, recorded with the newest
def test_introspection_of_a_split_frame_is_as_of_a_whole_one(evaluate):
    """f_locals, trace and profile functions, debuggers, tracemalloc and gc see the same as in a function that is not split."""
    assert "\nOK" in evaluate("resume_frames.py")[1]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("mode", ["split", "every"])
def test_random_programs_do_the_same_when_split(evaluate, mode):
    out, _, _ = evaluate("shim_random.py", "5000", "25", mode)
    assert out.startswith("25 programs, ")


@pytest.mark.parametrize("module", [pytest.param("test_contextlib", marks=pytest.mark.slow), "test_super"])
def test_cpythons_test_modules_pass_when_their_functions_are_split(dyntrace, python, module):
    """This runs `make resume-torture` for one module."""
    if subprocess.run([python, "-c", f"import test.{module}"], capture_output=True).returncode:
        pytest.skip(f"no test.{module} here")
    done = subprocess.run([sys.executable, ROOT / "tests" / "cpython" / "resume.py", "--python", python, "--build", os.path.dirname(dyntrace),
                           "--modules", module], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "resume-torture: 0 differences"), done.stdout + done.stderr


def test_the_documented_callback_breaks_and_continues(evaluate, tmp_path):
    """The callback of docs/resume.md splits f() at its call of print, and continues after that call."""
    (tmp_path / "example.py").write_text(EXAMPLE)
    out, err, trace = evaluate(tmp_path / "example.py")
    lines = out.splitlines()
    assert lines[0] == "3" and lines[1:] == ["f", "__resume_at_%s" % lines[2].removeprefix("__resume_at_")] and err == ""
    if trace:
        assert trace.rows("""SELECT r.qualname GLOB '__resume_at_[0-9]*_[0-9]*', r.kind, o.qualname, r.filename = o.filename
                             FROM code r JOIN code o ON o.code_id = r.origin_code_id""") == [(1, "resume", "f", 1)]
