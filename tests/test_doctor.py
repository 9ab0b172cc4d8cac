"""`dyntrace doctor`: its statements about an interpreter come true when that interpreter is recorded."""
import os
import re
import shutil
import subprocess

import pytest

from shared import PYTHONS, ROOT, script, version_of

CALL = r"    a call takes [\d.]+ ns, under a bare hook [\d.]+ ns, recorded [\d.]+ ns"


def said(done):
    """Return the lines about the first interpreter: its own line and the lines below it."""
    lines = done.stdout.split("\nClock\n")[0].splitlines()
    assert lines[0] == "Interpreters"
    return lines[1:]


def test_doctor_prints_the_cost_of_a_call(run, python):
    done = run("doctor", python)
    head, call = said(done)
    assert (done.returncode, done.stderr, head) == (0, "", f"  {python}: CPython {version_of(python)}")
    assert re.fullmatch(CALL, call)
    assert re.search(r"^  a read takes [\d.]+ ns; ", done.stdout, re.M) and re.search(r"^  /dev/shm: ", done.stdout, re.M)


def test_doctor_lists_the_interpreters_on_path(run, tmp_path):
    os.symlink(PYTHONS[0], tmp_path / "python3")
    os.symlink(PYTHONS[0], tmp_path / "python3.99")  # the same one
    done = run("doctor", env={**os.environ, "PATH": str(tmp_path)})
    assert done.returncode == 0 and [line for line in said(done) if line.startswith("  /")] == [f"  {tmp_path}/python3: CPython {version_of(PYTHONS[0])}"]


def test_an_interpreter_started_by_several_scripts_is_listed_once(run, tmp_path):
    """pyenv puts a script for each version on PATH. Some scripts start the same interpreter, others start none."""
    for name in ("python3", "python3.1"):
        script(tmp_path / name, f'#!/bin/sh\nexec {PYTHONS[0]} "$@"\n', 0o755)
    script(tmp_path / "python3.2", "#!/bin/sh\necho 'pyenv: python3.2: command not found' >&2\nexit 127\n", 0o755)
    done = run("doctor", env={**os.environ, "PATH": f"{tmp_path}:/bin"})
    lines = [line for line in said(done) if line.startswith(f"  {tmp_path}/")]
    assert lines == [f"  {tmp_path}/python3: CPython {version_of(PYTHONS[0])}",
                     f"  {tmp_path}/python3.2: not a Python 3 that answers; not supported (it says: pyenv: python3.2: command not found)"]


@pytest.mark.parametrize("file, says", [("#!/bin/sh\necho hi\n", ": not a Python 3 that answers; not supported"), ("none", ": cannot be run"),
                                        ("#!/bin/sh\necho pypy 3 11 .pypy311.so\n", ": pypy 3.11 is not supported: use CPython 3."),
                                        ("#!/bin/sh\necho cpython 3 11 .other.so\n", ": CPython 3.11, no extension: build it with `make PYTHONS=")])
def test_doctor_says_why_an_interpreter_cannot_be_recorded(run, tmp_path, file, says):
    odd = tmp_path / "a\x1b[31m\r"
    odd.write_text(file)
    odd.chmod(0o755)
    done = run("doctor", odd if file != "none" else tmp_path / "none")
    assert done.returncode == 1 and says in said(done)[0] and len(said(done)) == 1 and not {"\x1b", "\r"} & set(done.stdout)


def test_doctor_reports_too_little_memory_for_a_recording(run):
    done = run("doctor", PYTHONS[0], env={**os.environ, "TMPDIR": "/nowhere"})
    assert done.returncode == 1 and said(done)[1].startswith("    cannot be recorded: /nowhere/") and "TMPDIR" in said(done)[1]


def test_doctor_reports_a_torch_that_does_not_load(run, tmp_path):
    (tmp_path / "torch.py").write_text("raise RuntimeError('no libraries\\nof its own')\n")
    done = run("doctor", PYTHONS[0], env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert said(done)[2:] == ["    torch cannot be imported: RuntimeError: no libraries"]


def test_doctor_stops_importing_torch_once_it_is_attached_to_it(run, tmp_path):
    """The rest of torch's compiler takes as long to import as torch itself."""
    (tmp_path / "torch/_dynamo").mkdir(parents=True)
    (tmp_path / "torch/__init__.py").write_text("__version__ = '9.9.9'\n")
    (tmp_path / "torch/_dynamo/__init__.py").write_text(f"open({str(tmp_path / 'begun')!r}, 'w')\nfrom . import rest\n")
    (tmp_path / "torch/_dynamo/rest.py").write_text(f"open({str(tmp_path / 'rest')!r}, 'w')\n")
    done = run("doctor", PYTHONS[0], env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0 and (tmp_path / "begun").exists() and not (tmp_path / "rest").exists()
    assert "cannot be imported" not in done.stdout


@pytest.mark.parametrize("passes_on", [True, False])
def test_doctor_names_another_frame_evaluator(run, python, tmp_path, passes_on):
    """CinderX sets the evaluator when it is imported. The module of this test has its name; it passes calls on, or does
    not."""
    includes = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('include'))"], capture_output=True,
                              text=True).stdout.strip()
    if not shutil.which("gcc") or not os.path.exists(os.path.join(includes, "internal", "pycore_frame.h")):
        pytest.skip("no compiler, or no headers of this Python")
    source = (ROOT / "tests/programs/foreign.c").read_text()
    if not passes_on:
        source = source.replace("return found(", "return _PyEval_EvalFrameDefault(")
    (tmp_path / "foreign.c").write_text(source)
    subprocess.run(["gcc", "-shared", "-fPIC", "-I", includes, "-I", ROOT / "src", "-o", tmp_path / "foreign.so", tmp_path / "foreign.c"], check=True)
    (tmp_path / "cinderx.py").write_text("import foreign; foreign.install()\n")
    *_, last = said(run("doctor", python, env={**os.environ, "PYTHONPATH": str(tmp_path)}))
    assert last == f"    {tmp_path}/foreign.so takes the PEP 523 slot" + (
        " and passes calls on: they are recorded" if passes_on else ", and nothing is recorded from then on: leave out what loads it")


def test_another_package_called_dyntrace_is_named(run, tmp_path):
    """The package is one that pip installed from PyPI, or a file of the program."""
    (tmp_path / "dyntrace.py").write_text("")
    done = run("doctor", PYTHONS[0])
    assert f"`import dyntrace` is another package here ({tmp_path}/dyntrace.py)" in done.stdout and "pip install dyntrace-recorder" in done.stdout
    assert done.returncode == 0 and "another package" not in run("doctor", PYTHONS[0], cwd="/").stdout
