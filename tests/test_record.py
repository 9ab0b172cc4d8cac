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
    with dyntrace.record("0.db"): print("never")
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


def test_record(here, dyntrace, python, tmp_path):
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


def test_not_twice(here, dyntrace, python, tmp_path):
    code = "import dyntrace\ntry:\n  with dyntrace.record('x.db'): pass\nexcept RuntimeError as error: print(error)"
    done = here(dyntrace, "run", "-o", "t.db", "--python", python, "-c", code)
    assert "already" in done.stdout and not (tmp_path / "x.db").exists()


def test_unwritable(here, python):
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


def test_handlers_of_fork_that_come_before_ours(here, dyntrace, python, tmp_path):
    """They run Python code before the recorder knows of the fork, and let other threads run: nothing waits for ever, and
    what ran in which process is told."""
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


def test_a_killed_process_is_not_waited_for_in_a_hurry(here, dyntrace, tmp_path, python):
    """Its forked child is recorded to its end, and the recorder sleeps while that does."""
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


def test_in_a_loop_that_is_machine_code_by_then(here, python, tmp_path):
    """A Python with CPython's JIT: what it runs in one piece becomes calls again, which are recorded."""
    if here(python, "-c", "import sys; print(sys._jit.is_available())").stdout != "True\n":
        pytest.skip("this Python has no JIT")
    done = here("env", "PYTHON_JIT=1", python, "-c", JITTED)
    assert (done.stdout, done.stderr) == ("True\n", "")
    assert query(tmp_path / "jit.db", "SELECT qualname, count(*) FROM frames WHERE qualname IN ('leaf', 'Made.__init__', 'numbers')"
                 " GROUP BY 1 ORDER BY 1") == [("Made.__init__", 1000), ("leaf", 2000), ("numbers", 1000)]
