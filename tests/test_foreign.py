"""Another frame evaluator, set before or after ours, works as it does without us: perf's trampolines (-X perf), and one
like a debugger's."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from shared import ROOT, holds, query, version_of

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


@pytest.mark.newest_too
@pytest.mark.parametrize("options", [[], ["-X", "perf"], ["-X", "perf_jit"]])
def test_perf_trampolines_work_as_without_us(record, python, tmp_path, options):
    """With trampolines active or not, and in perf's map or not, process and forks behave as without us, and are recorded."""
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
    assert trace.rows("SELECT cause FROM loss WHERE cause LIKE 'hook:%'") == []
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


def test_an_evaluator_set_before_ours_sees_the_same_calls_as_without_us(record, base_python, foreign):
    """A .pth file sets the other evaluator. site reads such files before it loads us."""
    base, where = foreign
    (where / "first.pth").write_text("import foreign; foreign.install()\n")
    env = dict(os.environ, PYTHONUSERBASE=str(base))
    code = WORK + "before = foreign.counted()\nwork()\nprint(foreign.counted() - before)"
    try:
        alone = subprocess.run([base_python, "-c", code], capture_output=True, text=True, env=env)
        trace = record([base_python, "-c", code], python=base_python, env=env)
    finally:
        (where / "first.pth").unlink()
    assert trace.out == alone.stdout == "1001\n", alone.stderr
    assert holds(trace).rows("SELECT count(*) FROM frames WHERE qualname = 'leaf'") == [(1000,)]


@pytest.mark.newest_too
def test_an_evaluator_set_after_ours_and_the_recording_both_have_every_call(record, base_python, foreign):
    """The other evaluator sees every call while it is set. We see the calls before, meanwhile and after."""
    base, _ = foreign
    env = dict(os.environ, PYTHONUSERBASE=str(base))
    code = WORK + ("work()\nforeign.install()\nbefore = foreign.counted()\nwork()\nprint(foreign.counted() - before)\n"
                   "foreign.restore()\nbefore = foreign.counted()\nwork()\nprint(foreign.counted() - before)")
    trace = record([base_python, "-c", code], python=base_python, env=env)
    assert trace.out == "1001\n0\n"
    assert holds(trace).rows("SELECT count(*) FROM frames WHERE qualname = 'leaf'") == [(3000,)]


# ---- one that takes the place of ours, and does not call it ----

TAKEN = """
import foreign, gc, os, sys, threading, time
def leaf(): pass
def calls(n):
    for _ in range(n): leaf()
def thread():
    one = threading.Thread(target=leaf)
    one.start()
    one.join()
calls(100)
"""
# What happens, the calls of leaf that are recorded, and the rows of loss: who, and when frames are recorded again.
TAKERS = {
    "until the end": ("foreign.take(); calls(50)", 100, ["foreign"]),
    "thrown out": ("foreign.clear(); calls(50)", 100, ["CPython"]),
    "by os._exit": ("foreign.take(); calls(50); os._exit(0)", 100, ["foreign"]),
    "by exec": ("foreign.take(); calls(50); os.execv('/bin/true', ['true'])", 100, ["foreign"]),
    "noticed by a collection": ("foreign.take(); gc.collect(); calls(50)", 100, ["foreign"]),
    "gone when a thread starts": ("foreign.take(); thread(); thread(); calls(50); foreign.restore(); calls(10)", 110, ["foreign", "back"]),
    "gone, but who knows when": ("foreign.take(); gc.collect(); calls(50); foreign.restore(); calls(10)", 110, ["was"]),
    "twice": ("foreign.take(); thread(); thread(); foreign.restore(); calls(5); foreign.take(); thread(); thread(); foreign.restore(); calls(5)",
              110, ["foreign", "back", "foreign", "back"]),
    "in a forked child": ("""
foreign.take()
pid = os.fork()
calls(10)
if not pid: os._exit(0)
os.waitpid(pid, 0)
""", 100, ["foreign", "foreign"]),
    "in the child alone": ("""
pid = os.fork()
if not pid:
    foreign.take()
    calls(10)
    os._exit(0)
os.waitpid(pid, 0)
calls(10)
""", 110, ["foreign"]),
    "under one that calls it": ("foreign.install(); calls(10); thread(); foreign.clear(); calls(10)", 111, ["CPython"]),
    # between two looks: CPython counts the changes since 3.13
    "between two looks": (
        "foreign.take(); calls(50); foreign.restore(); calls(10)",
        110,
        ["visited"],
    ),
    "between two looks, noticed by a collection": (
        "foreign.take(); calls(50); foreign.restore(); gc.collect(); calls(10)",
        110,
        ["visited"],
    ),
    "between two looks, one that calls ours": (
        "foreign.install(); calls(50); foreign.restore(); calls(10)",
        160,
        ["visited"],
    ),
    "between two looks, often": (
        "for _ in range(3):\n foreign.take(); calls(5); foreign.restore(); thread(); calls(1)",
        106,
        ["visited"] * 3,
    ),
    "a visit before it stays": (
        "foreign.take(); foreign.restore()\n"
        "foreign.install(); calls(5); thread(); foreign.restore(); calls(5)",
        111,
        ["visited"],
    ),
    "in a forked child, a visit": (
        "pid = os.fork()\n"
        "if not pid:\n foreign.take(); calls(5); foreign.restore(); os._exit(0)\n"
        "os.waitpid(pid, 0)",
        100,
        ["visited"],
    ),
    # these call ours, so nothing is missing
    "none: calls ours": ("foreign.install(); calls(10); thread(); gc.collect(); thread(); calls(10)", 122, []),
    "none: calls ours, and goes": ("foreign.install(); thread(); foreign.restore(); gc.collect(); thread(); calls(10)", 112, []),
    "none: calls ours at the end": ("foreign.install()", 100, []),
    "none: calls ours in a child": ("foreign.install()\npid = os.fork()\ncalls(10)\nif not pid: os._exit(0)\nos.waitpid(pid, 0)", 120, []),
    "none: nobody": ("thread(); gc.collect(); calls(10)", 111, []),
}
WORDS = {"foreign": "/foreign.so) has been in the place of ours since", "CPython": "hook: CPython's own frame evaluator",
         "visited": "took the place of ours and gave it back, some time between",
         "back": "hook: ours is in its place again", "was": "/foreign.so) was in the place of ours, from"}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("case", TAKERS)
def test_an_evaluator_that_does_not_call_ours_is_recorded_as_a_loss(record, python, foreign, case):
    text, leaves, rows = TAKERS[case]
    if version_of(python) in ("3.11", "3.12"):  # which do not count the changes
        rows = [row for row in rows if row != "visited"]
    trace = record([python, "-W", "ignore", "-c", TAKEN + text], python=python, env=dict(os.environ, PYTHONPATH=str(foreign[1])))
    holds(trace)
    assert trace.rows("SELECT count(*) FROM frames WHERE qualname = 'leaf'") == [(leaves,)]
    found = trace.rows("SELECT cause, events, at_ns FROM loss WHERE cause NOT LIKE 'stall:%' ORDER BY at_ns, rowid")
    assert len(found) == len(rows) and all(WORDS[row] in cause for row, (cause, _, _) in zip(rows, found)), found
    assert all(events == (0 if "again" in cause else None) for cause, events, _ in found), found
    last = trace.rows("SELECT max(start_ns) FROM frames WHERE qualname = 'leaf' AND kind = 'call'")[0][0]
    if "restore" not in text and "child" not in case:
        assert all(at > last for _, _, at in found), (found, last)
    assert ("is not complete: hook: " in trace.err) == bool(rows), trace.err


def test_an_evaluator_that_replaces_ours_in_a_killed_program_is_recorded_as_a_loss(record, python, foreign):
    code = TAKEN + "foreign.take()\nfor _ in range(3): thread()\nos.kill(os.getpid(), 9)"
    trace = record(["-c", code], python=python, env=dict(os.environ, PYTHONPATH=str(foreign[1])), status=137)
    assert [WORDS["foreign"] in cause for cause, in trace.rows("SELECT cause FROM loss")] == [True]


def test_an_evaluator_that_replaces_ours_within_record_is_recorded_as_a_loss(dyntrace, python, foreign, tmp_path):
    """Our evaluator is not set above the other one, which may call ours. After it is gone, the next recording has all
    calls."""
    code = TAKEN + """
import dyntrace
with dyntrace.record("1.db"):
    calls(10)
    foreign.take()
    calls(10)
with dyntrace.record("2.db"): calls(10)
foreign.restore()
with dyntrace.record("3.db"): calls(10)
foreign.take()
with dyntrace.record("4.db"): calls(10)
"""
    environment = dict(os.environ, PYTHONPATH=f"{Path(dyntrace).parent / 'lib' / 'python'}:{foreign[1]}")
    done = subprocess.run([python, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    leaves = "SELECT count(*) FROM frames WHERE qualname = 'leaf'"
    assert [query(tmp_path / f"{n}.db", leaves) for n in (1, 2, 3, 4)] == [[(10,)], [(0,)], [(10,)], [(10,)]]
    assert [len(query(tmp_path / f"{n}.db", "SELECT * FROM loss WHERE cause LIKE 'hook: %'")) for n in (1, 2, 3, 4)] == [1, 1, 0, 0]
