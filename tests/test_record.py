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
def test_record_writes_a_trace_of_what_runs_in_its_block(here, dyntrace, python, tmp_path):
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


def test_import_star_gives_the_same_names_alone_and_under_run(record, here, python):
    """`import *` gives the same list, whether the program imported the package or `dyntrace run` made it."""
    alone = here(python, "-c", STAR)
    assert alone.returncode == 0 and alone.stdout.startswith("3 True ['compile', 'config', 'disable', "), alone.stderr
    assert alone.stdout.endswith("[True, False, False, False, False]\n")
    assert record(["-c", STAR], python=python).out == alone.stdout


def test_reading_attributes_of_modules_does_not_load_the_package(record, python):
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


def rest(path):
    """{qualname: calls} of the functions of the program itself."""
    return dict(query(path, "SELECT qualname, count(*) FROM frames WHERE filename = '<string>' AND qualname != '<module>' GROUP BY 1"))


SUB = """
import dyntrace
try: import _interpreters as interpreters
except ImportError: import _xxsubinterpreters as interpreters
def f(): pass
with dyntrace.record("sub.db"): f()
tried = '''
import dyntrace
try:
    with dyntrace.record("%s.db", force=%s): print("never")
except RuntimeError as error: print(error, flush=True)
'''
for name, force in ("sub", True), ("none", False):
    interpreters.run_string(interpreters.create(), tried % (name, force))
"""


def test_record_in_a_sub_interpreter_raises_and_writes_no_file(here, python, tmp_path):
    """Not even over a trace that is there."""
    done = here(python, "-c", SUB)
    assert (done.stdout, done.stderr) == ("record() is for the main interpreter\n" * 2, ""), done
    assert rest(tmp_path / "sub.db") == {"f": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["sub.db"]


FORKED = """
import os, sys, time, dyntrace
def mine(): pass
def childs(): pass
outside = len(os.listdir("/proc/self/fd"))
with dyntrace.record("forked.db"):
    pid = os.fork()
    if not pid:
        childs()
        sys.exit(3)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    mine()
    pid = os.fork()
    if not pid:
        time.sleep(30)
        os._exit(0)
os.kill(pid, 0)
os.kill(pid, 9)
os.waitpid(pid, 0)
print(len(os.listdir("/proc/self/fd")) - outside)
"""


def test_a_forked_child_can_leave_the_block(here, python, tmp_path):
    """The child leaves it without waiting for the trace, which the parent finishes. The parent's block ends although a child, forked
    in it, lives on."""
    done = here(python, "-W", "ignore", "-c", FORKED)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n0\n", ""), done
    assert rest(tmp_path / "forked.db") == {"childs": 1, "mine": 1}
    assert query(tmp_path / "forked.db", "SELECT cause FROM loss") == []


INTERRUPTED = """
import collections, signal, time, dyntrace
from dyntrace._native import native
class Interrupted(BaseException): pass
def interrupt(*_): raise Interrupted
signal.signal(signal.SIGALRM, interrupt)
counts = collections.Counter()
with dyntrace.record("warm.db"): pass
for i in range(100):
    began = False
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005 + i * 0.0004)
        with dyntrace.record("interrupted.db", force=True):
            began = True
            time.sleep(5)
    except (Interrupted, RuntimeError) as error:
        kind = type(error)
    signal.setitimer(signal.ITIMER_REAL, 0)
    counts["began" if began else "not"] += 1
    if native._active():
        print("still recording", i)
        native._stop()
print(min(counts["began"], counts["not"]) > 0)
"""


def test_a_signal_while_the_recording_begins_leaves_nothing_on(here, python):
    """A handler that raises, as that of Ctrl-C does, at any moment of the beginning."""
    done = here(python, "-c", INTERRUPTED)
    assert (done.stdout, done.stderr) == ("True\n", ""), done


CLOSES = """
import os, sys, time, dyntrace
def early(): pass
def late(): pass
with dyntrace.record("closed.db"):
    early()
    os.closerange(3, 256)
    time.sleep(0.3)
    mine = []
    for _ in range(8): mine.append(os.open("/dev/null", os.O_RDWR))
    late()
print([os.fstat(fd).st_rdev == os.stat("/dev/null").st_rdev for fd in mine] == [True] * 8)
with dyntrace.record("again.db"): late()
with dyntrace.record("exec.db"):
    early()
    os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(20)"])
"""


def test_a_program_may_close_all_descriptors_in_the_block(here, dyntrace, python, tmp_path):
    """The recording goes on to the end of the block, and closes none that the program opened since."""
    environment = dict(os.environ, PYTHONPATH=str(Path(dyntrace).parent / "lib" / "python"))
    program = subprocess.Popen([python, "-c", CLOSES], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert program.stdout.readline() == "True\n"
    assert rest(tmp_path / "closed.db") == {"early": 1, "late": 1}
    assert query(tmp_path / "closed.db", "SELECT cause FROM loss") == []

    def finished():  # when the program has replaced itself, which ends what it records
        with contextlib.suppress(sqlite3.OperationalError):
            return (tmp_path / "exec.db").exists() and query(tmp_path / "exec.db", "SELECT value FROM meta WHERE key = 'state'") == [("complete",)]
    until(finished, "the trace is finished")
    assert program.poll() is None
    program.kill()
    assert program.communicate()[0] == ""
    assert rest(tmp_path / "again.db") == {"late": 1} and rest(tmp_path / "exec.db") == {"early": 1}


CHILDREN = """
import os, signal, dyntrace
def reap():
    if not os.fork(): os._exit(4)
    ended = []
    try:
        while True: ended.append(os.waitstatus_to_exitcode(os.wait()[1]))
    except ChildProcessError:
        return ended
signals = []
with dyntrace.record("children.db"): print(reap())
signal.signal(signal.SIGCHLD, lambda *_: signals.append(1))
with dyntrace.record("signals.db"): pass
print(signals, open("/proc/thread-self/children").read())
"""


def test_the_collector_is_no_child_of_the_program(here, python, tmp_path):
    """A program that waits for all its children waits for its own only, and gets no SIGCHLD for ours."""
    done = here("timeout", "20", python, "-c", CHILDREN)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[4]\n[] \n", ""), done


TOGETHER = """
import threading, time, dyntrace
def first(): time.sleep(0.05)
def second(): time.sleep(0.2)
barrier = threading.Barrier(2)
entered, refused = [], []
def go(function, strict):
    barrier.wait()
    try:
        with dyntrace.record("%s-%s.db" % (function.__name__, strict), strict=strict) as trace:
            entered.append(str(trace))
            function()
    except RuntimeError as error:
        refused.append("already" in str(error))
for strict in (False, True):
    entered.clear()
    threads = [threading.Thread(target=go, args=(function, strict)) for function in (first, second)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(len(entered), len({trace.rpartition("/")[2] for trace in entered}), refused)
"""


def test_a_second_thread_that_records_joins_the_recording_of_the_first(here, python, tmp_path):
    """As a recording within another does: with strict=True it raises."""
    done = here(python, "-W", "ignore", "-c", TOGETHER)
    assert (done.stdout, done.stderr) == ("2 1 []\n1 1 [True]\n", ""), done
    assert len(list(tmp_path.iterdir())) == 2
    assert all(rest(path) for path in tmp_path.iterdir())


def test_record_yields_the_file_that_it_writes(here, python, tmp_path):
    """If PATH is a directory or has a placeholder, the name has the process in it."""
    code = """
import os, dyntrace
def f(): pass
for path in ("ranks/%p.db", "here/"):
    with dyntrace.record(path) as trace: f()
    print(trace.startswith(os.path.abspath(path.partition("/")[0])), [row.qualname for row in trace.functions() if row.qualname == "f"])
"""
    done = here(python, "-c", code)
    assert (done.stdout, done.stderr) == ("True ['f']\n" * 2, ""), done
