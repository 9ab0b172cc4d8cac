"""A frame evaluator that was there before us, or that comes after us, works as it does without us: perf's trampolines
(-X perf), and one of a debugger's kind."""
import os
import shutil
import subprocess

import pytest

from shared import ROOT, holds, version_of

PERF = """
import os, sys
def mapped(name):
    path = "/tmp/perf-%d.map" % os.getpid()
    # one with this number that ended before us may have left it
    return os.path.exists(path) and "py::" + name + ":" + __file__ in open(path).read()
def clean():
    if mapped("clean"):
        os.unlink("/tmp/perf-%d.map" % os.getpid())
def plain(): pass
def forked(): pass
def off(): pass
def on(): pass
active = sys.is_stack_trampoline_active
plain()
print(active(), mapped("plain"))
if not os.fork():
    forked()
    print("child", active(), mapped("forked"), flush=True)
    clean()
    os._exit(0)
print(os.wait()[1])
sys.deactivate_stack_trampoline()
off()
print(active(), mapped("off"))
sys.activate_stack_trampoline("perf")
on()
print(active(), mapped("on"))
try:
    sys.activate_stack_trampoline("invalid")
except ValueError as error:
    print(error)
if not os.fork():
    forked()
    print("child", active(), mapped("forked"), flush=True)
    clean()
    os._exit(0)
print(os.wait()[1])
clean()
"""


@pytest.mark.parametrize("options", [[], ["-X", "perf"], ["-X", "perf_jit"]])
def test_trampolines(record, python, tmp_path, options):
    """Active or not, in the map of perf or not, in the process and in its forks, as without us; and recorded."""
    if version_of(python) == "3.11":
        pytest.skip("perf's trampolines came with 3.12")
    path = tmp_path / "perf.py"
    text = PERF
    if options[1:] == ["perf_jit"]: # 3.13 crashes when it changes from there
        text = PERF[:PERF.index("sys.deactivate")]
    path.write_text(text)
    alone = subprocess.run([python, *options, path], capture_output=True, text=True)
    # 3.14.10 crashes at the end of this with -X perf
    status = alone.returncode if alone.returncode >= 0 else 128 - alone.returncode
    trace = record([python, *options, path], python=python, status=status)
    assert trace.out == alone.stdout and "child" in alone.stdout
    assert trace.err == alone.stderr
    holds(trace)
    found = trace.rows("SELECT qualname, count(*) FROM frames WHERE qualname IN ('plain', 'forked', 'off', 'on') GROUP BY 1")
    assert found == [(name, text.count(f"\n{name}()") + text.count(f" {name}()\n")) for name in ("forked", "off", "on", "plain")
                     if f"\n{name}()" in text or f" {name}()\n" in text]


@pytest.fixture(scope="module")
def foreign(python, tmp_path_factory):
    """A user base whose site-packages have tests/programs/foreign.c, built for PYTHON."""
    includes = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('include'))"], capture_output=True,
                              text=True).stdout.strip()
    if not shutil.which("gcc") or not os.path.exists(os.path.join(includes, "internal", "pycore_frame.h")):
        pytest.skip("no compiler, or no headers of this Python")
    base = tmp_path_factory.mktemp("foreign")
    where = base / "lib" / f"python{version_of(python)}" / "site-packages"
    where.mkdir(parents=True)
    subprocess.run(["gcc", "-shared", "-fPIC", "-I", includes, "-I", ROOT / "src", "-o", where / "foreign.so", ROOT / "tests/programs/foreign.c"],
                   check=True)
    return base, where


WORK = """
import foreign
def leaf(): pass
def work():
    for _ in range(1000): leaf()
"""


def test_one_that_was_there_first(record, python, foreign):
    """site reads .pth files before it loads us."""
    base, where = foreign
    (where / "first.pth").write_text("import foreign; foreign.install()\n")
    env = dict(os.environ, PYTHONUSERBASE=str(base))
    code = WORK + "before = foreign.counted()\nwork()\nprint(foreign.counted() - before)"
    try:
        alone = subprocess.run([python, "-c", code], capture_output=True, text=True, env=env)
        trace = record([python, "-c", code], python=python, env=env)
    finally:
        (where / "first.pth").unlink()
    assert trace.out == alone.stdout == "1001\n", alone.stderr
    assert holds(trace).rows("SELECT count(*) FROM frames WHERE qualname = 'leaf'") == [(1000,)]


def test_one_that_comes_after(record, python, foreign):
    """It sees every call while it is there, and we before, meanwhile and after."""
    base, _ = foreign
    env = dict(os.environ, PYTHONUSERBASE=str(base))
    code = WORK + ("work()\nforeign.install()\nbefore = foreign.counted()\nwork()\nprint(foreign.counted() - before)\n"
                   "foreign.restore()\nbefore = foreign.counted()\nwork()\nprint(foreign.counted() - before)")
    trace = record([python, "-c", code], python=python, env=env)
    assert trace.out == "1001\n0\n"
    assert holds(trace).rows("SELECT count(*) FROM frames WHERE qualname = 'leaf'") == [(3000,)]
