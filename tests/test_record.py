"""dyntrace.record(): a program records itself."""
import contextlib
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from crash_help import until

PROGRAM = """
import os, sys, threading, dyntrace
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def outside(): return 1
stop = threading.Event()
def spin():
    while not stop.is_set():
        fib(2)
        stop.wait(0.001)
thread = threading.Thread(target=spin, name="spinner"); thread.start()
outside()
for k in range(3):
    with dyntrace.record("%d.db" % k) as path:
        fib(10)
        if k == 1:
            pid = os.fork()
            if not pid:
                fib(5)
                os._exit(7)
            os.waitpid(pid, 0)
        if k == 2:
            stop.wait(0.1)
outside()
try:
    with dyntrace.record("4.db"):
        raise KeyError("mine")
except KeyError as error:
    print("still", error)
stop.set(); thread.join()
try:
    with dyntrace.record("0.db", strict=True): print("never")
except RuntimeError as error:
    print(error)
"""


@pytest.fixture
def here(dyntrace, python, tmp_path):
    library = Path(dyntrace).parent / "lib" / "python"
    environment = dict(os.environ, PYTHONPATH=str(library))

    def run(*command):
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    return run


def query(path, sql):
    return sqlite3.connect(path).execute(sql).fetchall()


@pytest.mark.newest_too
def test_record_writes_a_trace_of_its_block(here, dyntrace, python, tmp_path):
    done = here(python, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("still 'mine'\n")
    assert "0.db: the file is there already" in done.stdout and "force=True replaces it" in done.stdout and "--force" not in done.stdout
    for name in ("0.db", "1.db", "2.db", "4.db"):
        assert here(dyntrace, "fsck", name).returncode == 0
        assert query(tmp_path / name, "SELECT * FROM loss") == []
        assert query(tmp_path / name, "SELECT count(*) FROM frames WHERE qualname = 'outside'") == [(0,)]
    fib = "SELECT count(*) FROM frames JOIN thread USING (thread_id) WHERE qualname = 'fib' AND name = 'MainThread'"
    assert query(tmp_path / "0.db", fib) == [(177,)]
    assert query(tmp_path / "1.db", fib) == [(177 + 15,)]  # and fib(5) of the forked child
    assert query(tmp_path / "1.db", "SELECT exit_code FROM process WHERE parent_process_id IS NOT NULL") in ([(7,)], [(None,)])
    assert query(tmp_path / "2.db", "SELECT count(*) > 0 FROM frames JOIN thread USING (thread_id)"
                 " WHERE qualname = 'fib' AND name IS NOT 'MainThread'") == [(1,)]


TWICE = """
import os, sys, threading, warnings, dyntrace
def leaf(): pass
def joined(path, **more):
    with dyntrace.record(path, **more) as found:
        leaf()
        return found
def strict():
    try: joined("never.db", strict=True)
    except RuntimeError as error: return "already" in str(error)
paths = [joined("a.db"), joined("b.db", force=True, values="off")]
thread = threading.Thread(target=lambda: paths.append(joined("c.db")))
thread.start(), thread.join()
try:
    with dyntrace.record("d.db"): raise KeyError("mine")
except KeyError as error:
    print(error)
pid = os.fork()
if not pid: os._exit(strict() and 7)
print(set(paths), strict(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_record_in_a_recorded_program_makes_no_trace_of_its_own(record, python, tmp_path):
    """The block is part of the running recording. A message says so once; it is an error if the caller wants one."""
    trace = record([python, "-c", TWICE], python=python)
    assert trace.out == f"'mine'\n{{'{trace.path}'}} True 7\n"
    assert trace.rows("SELECT count(*) FROM frames WHERE qualname = 'leaf'") == [(3,)]
    assert [f"UserWarning: dyntrace.record('a.db') joins the recording that goes on: what it would record is in {trace.path}" in line
            for line in trace.err.splitlines() if "Warning" in line and "fork" not in line] == [True], trace.err
    assert [path.name for path in tmp_path.glob("*.db")] == [trace.path.name]
    quiet = record([python, "-W", "error::UserWarning", "-c", TWICE], python=python)  # it is no error then
    assert quiet.out == f"'mine'\n{{'{quiet.path}'}} True 7\n" and "dyntrace.record" not in quiet.err


def test_a_recording_within_another_makes_no_trace(here, python, tmp_path):
    """The inner recording neither ends the outer one nor makes a trace."""
    code = """
import dyntrace
def leaf(): pass
with dyntrace.record("outer.db") as outer:
    leaf()
    with dyntrace.record("inner.db") as inner: leaf()
    leaf()
    try:
        with dyntrace.record("inner.db", strict=True): pass
    except RuntimeError as error: print("already" in str(error), inner)
with dyntrace.record("inner.db") as inner: leaf()
print(outer, inner)
"""
    done = here(python, "-c", code)
    assert done.stdout == f"True {tmp_path}/outer.db\nouter.db inner.db\n", done.stderr
    assert done.stderr.count("Warning") == 1 and "<string>:6: UserWarning" in done.stderr
    leaves = "SELECT count(*) FROM frames WHERE qualname = 'leaf'"
    assert query(tmp_path / "outer.db", leaves) == [(3,)] and query(tmp_path / "inner.db", leaves) == [(1,)]


STAR = """
from dyntrace import *
import dyntrace
names = sorted(name for name in globals() if getattr(dyntrace, name, None) is globals()[name] and not name.startswith("_"))
@compile
def f(a): return a
print(f(3), names == sorted(dyntrace.__all__), names)
print([hasattr(dyntrace, name) for name in ("resume", "nothing", "__nothing__", "ALL", "read")])
"""


def test_the_public_names_are_one_list(record, here, python):
    """They are one list, whether the package is imported or `dyntrace run` has made it."""
    alone = here(python, "-c", STAR)
    assert alone.returncode == 0 and alone.stdout.startswith("3 True ['compile', 'config', 'disable', "), alone.stderr
    assert alone.stdout.endswith("[True, False, False, False, False]\n")
    assert record(["-c", STAR], python=python).out == alone.stdout


def test_public_names_are_not_read_before_they_are_wanted(record, python):
    code = """
import sys
before = len(sys.modules)
for module in list(sys.modules.values()):
    getattr(module, "__wrapped__", None), getattr(module, "whatever", None)
print(len(sys.modules) - before, [name for name in sys.modules if name.startswith("dyntrace")])
"""
    assert record(["-c", code], python=python).out == "0 []\n"


def test_a_trace_that_cannot_be_written_is_an_error(here, python):
    code = "import dyntrace\ntry:\n  with dyntrace.record('/no/such/place/x.db'): print('never')\nexcept RuntimeError as error: print(error)"
    done = here(python, "-c", code)
    assert done.returncode == 0 and done.stdout.startswith("dyntrace: /no/such/place/x.db: ") and " -o" not in done.stdout


HANDLERS = """
import ctypes, os, sys, threading, time, dyntrace
sys.setswitchinterval(1000)  # CPython: a child waits for ever for the thread that had asked for the GIL before the fork
def before(): leaf("before")
def in_parent(): leaf("in_parent"); time.sleep(0.02); leaf("in_parent")
def in_child(): leaf("in_child"); time.sleep(0.02); leaf("in_child")
def leaf(name): return name
def other():
    while not stop: time.sleep(0.001); exec("def new(): pass\\nnew()", {})
stop = []
handlers = [ctypes.CFUNCTYPE(None)(f) for f in (before, in_parent, in_child)]
assert ctypes.CDLL(None)["__register_atfork"](*handlers, None) == 0
threading.Thread(target=other).start()
with dyntrace.record("handlers.db"):
    for k in range(5):
        pid = os.fork()
        if not pid:
            leaf("child")
            os._exit(0)
        assert os.waitpid(pid, 0) == (pid, 0)
    stop.append(1)
"""


def test_fork_handlers_that_run_before_ours_are_recorded(here, dyntrace, python, tmp_path):
    """The handlers run Python code before the recorder knows of the fork, and let other threads run. Nothing waits for ever, and
    each call is recorded in the right process."""
    done = here(python, "-Wignore", "-c", HANDLERS)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    path = tmp_path / "handlers.db"
    calls = dict(query(path, """SELECT coalesce(parent.qualname, '-') || ' ' || (t.process_id = (SELECT min(process_id) FROM process)), count(*)
        FROM frame f JOIN code leaf USING (code_id) JOIN thread t USING (thread_id)
        LEFT JOIN frame p ON p.frame_id = f.parent_id LEFT JOIN code parent ON parent.code_id = p.code_id
        WHERE leaf.qualname = 'leaf' GROUP BY 1"""))
    assert calls == {"before 1": 5, "in_parent 1": 10, "in_child 0": 10, "- 0": 5}
    assert query(path, "SELECT cause FROM loss WHERE cause NOT LIKE 'stall:%'") == []
    subprocess.run([dyntrace, "fsck", path], check=True, capture_output=True)


KILLED = """
import contextlib, glob, os, signal, time, dyntrace
def late(): pass
with dyntrace.record("killed.db"):
    if os.fork():
        os.kill(os.getpid(), signal.SIGKILL)
    for _ in range(20): time.sleep(0.05); late()
    ticks = 0
    for process in glob.glob("/proc/[0-9]*"):
        with contextlib.suppress(OSError):
            if b"killed.db" in open(process + "/cmdline", "rb").read().split(b"\\0"):
                ticks += sum(map(int, open(process + "/stat").read().rpartition(")")[2].split()[11:13]))
    os.write(1, b"%d ms" % (1000 * ticks / os.sysconf("SC_CLK_TCK")))
    os._exit(0)
"""


def test_the_recorder_sleeps_while_a_forked_child_runs_on(here, dyntrace, tmp_path, python):
    """The program kills itself. Its forked child is recorded to its end, and the recorder sleeps while the child does."""
    done = here(python, "-c", KILLED)
    assert done.returncode == -9 and int(done.stdout.split()[0]) < 500, done

    def finished():
        with contextlib.suppress(sqlite3.OperationalError): # at the very moment when the whole file takes the live one's place
            return query(tmp_path / "killed.db", "SELECT value FROM meta WHERE key = 'state'") != [("recording",)]
    until(finished, "the trace is finished")
    assert query(tmp_path / "killed.db", "SELECT count(*) FROM frames WHERE qualname = 'late'") == [(20,)]


JITTED = """
import sys, dyntrace
def leaf(a): return a + 1
class Made:
    def __init__(self, a): self.a = leaf(a)
def numbers(n): yield from range(n)
recording = dyntrace.record("jit.db")
def work(n):
    for i in numbers(n + 1000):
        if i == n: recording.__enter__()
        leaf(i)
        Made(i)
work(20000)
recording.__exit__(None, None, None)
print(sys._jit.is_enabled())
"""


@pytest.mark.newest_too
def test_a_loop_compiled_by_cpythons_jit_is_recorded(here, python, tmp_path):
    """After CPython's JIT has compiled a loop, recording makes it run single calls again, which are recorded."""
    if here(python, "-c", "import sys; print(sys._jit.is_available())").stdout != "True\n":
        pytest.skip("this Python has no JIT")
    done = here("env", "PYTHON_JIT=1", python, "-c", JITTED)
    assert (done.stdout, done.stderr) == ("True\n", "")
    assert query(tmp_path / "jit.db", "SELECT qualname, count(*) FROM frames WHERE qualname IN ('leaf', 'Made.__init__', 'numbers')"
                 " GROUP BY 1 ORDER BY 1") == [("Made.__init__", 1000), ("leaf", 2000), ("numbers", 1000)]
