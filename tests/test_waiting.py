"""Waiting or computing: processor time is sampled from outside, and the reported times of a function or a call are
certain."""
import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from shared import query

MS = 1_000_000
PROGRAM = """
import threading, time
facts = {}
def measured(function):
    def measure(*arguments):
        began, cpu = time.perf_counter_ns(), time.thread_time_ns()
        function(*arguments)
        facts[function.__name__] = (time.perf_counter_ns() - began, time.thread_time_ns() - cpu)
    return measure
@measured
def sleeps(): time.sleep(0.4)
@measured
def computes(): sum(range(12_000_000))
@measured
def polls():
    for i in range(60): time.sleep(0.004)
@measured
def mixes():
    for i in range(12):
        time.sleep(0.015)
        sum(range(500_000))
lock = threading.Lock()
@measured
def waits_for_lock():
    with lock: pass
sleeps(); computes(); polls(); mixes()
lock.acquire()
thread = threading.Thread(target=waits_for_lock)
thread.start()
time.sleep(0.3)
lock.release()
thread.join()
print(facts)
"""
SUMS = """SELECT c.qualname, SUM(s.end_ns - s.start_ns), SUM(s.ran_ns), SUM(s.waited_ns) FROM stretch s JOIN code c USING (code_id) GROUP BY 1"""


def test_reported_waiting_times_are_never_more_than_the_real_ones(record, python):
    """The program's own clocks say how long it ran and waited. Most of the long waits are reported."""
    trace = record(["-c", PROGRAM], python=python)
    facts = eval(trace.out)
    sums = {name: row for name, *row in query(trace.path, SUMS)}
    for name, (wall, cpu) in facts.items():
        stretch, ran, waited = sums[name]
        assert 0 <= ran <= cpu + MS and 0 <= waited <= wall - cpu + MS and ran + waited <= stretch <= wall, (name, sums[name], wall, cpu)
    for name in "sleeps", "waits_for_lock":
        assert sums[name][2] >= 0.7 * facts[name][0]
    assert sums["computes"][1] >= 0.5 * facts["computes"][1]
    assert sums["polls"][2] >= 0.4 * facts["polls"][0]


QUEUED_BEFORE = """
import os, subprocess, sys, time
import dyntrace
def sleeps(): time.sleep(0.4)
def queued(): return int(open("/proc/thread-self/schedstat").read().split()[1])
everywhere = os.sched_getaffinity(0)
os.sched_setaffinity(0, {min(everywhere)})
rival = subprocess.Popen([sys.executable, "-c", "while True: pass"])
while queued() < 600_000_000: pass
rival.kill()
rival.wait()
os.sched_setaffinity(0, everywhere)
before = queued()
with dyntrace.record("queued.db"):
    sleeps()
print(queued() - before)
"""


def test_a_wait_for_a_processor_before_the_recording_is_not_counted_in_it(dyntrace, python, tmp_path):
    """The kernel's counter is the thread's whole life, and the first sample comes after the first call began. So the wait
    is at most what the program itself sees, and the times before the first and after the last sample."""
    library = Path(dyntrace).parent / "lib" / "python"
    done = subprocess.run([python, "-c", QUEUED_BEFORE], cwd=tmp_path, env=dict(os.environ, PYTHONPATH=str(library)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (queued, unseen), = query(tmp_path / "queued.db", """
        SELECT s.queued_ns, MAX(0, MIN(u.at_ns) - s.start_ns) + MAX(0, s.end_ns - MAX(u.at_ns))
        FROM stretch s JOIN code c USING (code_id) JOIN thread_cpu u USING (thread_id) WHERE c.qualname = 'sleeps'""")
    assert 0 <= queued <= int(done.stdout) + unseen


def test_pages_print_waiting_times(run, record):
    trace = record(["-c", PROGRAM]).path
    assert "waited at least" in run("why", "sleeps", trace).stdout and "waited at least" in run("tree", "sleeps", trace, "--slowest").stdout
    functions = run("tui", trace, "--dump", "--screen", "120x40", "--keys", ":functions Enter").stdout.splitlines()
    head = next(line for line in functions if " function " in line)
    line = next(line for line in functions if line[1:].startswith("sleeps "))
    end = head.index(" waiting ") + len(" waiting")
    assert line[:end].endswith("s") and line[:end].split()[-2][0] in "123456789"
    report = run("report", trace).stdout
    assert "s waiting" in report.splitlines()[0] and "sleeps" in report.split("\nWaiting")[1].split("\n\n")[0]
    rows = run("sql", trace, "waiting").stdout.splitlines()
    assert rows[0].split("\t")[5:8] == ["waited_ms", "queued_ms", "ran_ms"] and "sleeps" in "".join(rows)
    assert "waiting at least" in run("tui", trace, "--dump", "--screen", "120x30", "--keys", "2 / sleeps Enter Enter").stdout
    assert query(trace, "SELECT w.waited_ns = s.waited_ns FROM call_waits w JOIN frames f USING (frame_id) JOIN stretch s USING (frame_id) WHERE f.qualname = 'sleeps'") == [(1,)]
    assert run("fsck", trace).returncode == 0


def test_waiting_for_a_busy_processor_is_not_waiting_for_something_else(run, record, tmp_path):
    """Two processes share a processor. The time that one of them waits for the processor is reported apart."""
    code = """
import os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
until = time.monotonic() + 3
pid = os.fork()
def spin():
    n = 0
    for i in range(2_000_000): n += i
    return n
if not pid:
    while time.monotonic() < until: pass
    os._exit(0)
def compute():
    while time.monotonic() < until: spin()
compute()
"""
    trace = record(["-c", code]).path
    (waited, queued), = query(trace, "SELECT SUM(waited_ns), SUM(queued_ns) FROM stretch s JOIN code USING (code_id) JOIN thread t USING (thread_id)"
                                     " JOIN process p USING (process_id) WHERE qualname = 'spin' AND p.parent_process_id IS NULL")
    assert queued > 0.9 * waited > 100 * MS
    first = run("report", trace).stdout
    assert "waiting for a processor" in first.splitlines()[0] and "spin waited" not in first


def test_a_sleeping_thread_has_few_samples(record):
    trace = record(["-c", "import time; time.sleep(2)"]).path
    (count,), = query(trace, "SELECT COUNT(*) FROM thread_cpu")
    (flat,), = query(trace, "SELECT COUNT(*) FROM (SELECT cpu_ns, LAG(cpu_ns) OVER w AS a, LEAD(cpu_ns) OVER w AS b FROM thread_cpu WINDOW w AS (PARTITION BY thread_id ORDER BY at_ns)) WHERE cpu_ns = a AND cpu_ns = b")
    assert 2 <= count < 60 and flat == 0


def test_samples_are_at_most_a_hundred_a_second(record):
    trace = record(["-c", "import time\nend = time.time() + 1\nwhile time.time() < end: pass"]).path
    (least,), = query(trace, "SELECT MIN(at_ns - before) FROM (SELECT at_ns, LAG(at_ns) OVER (PARTITION BY thread_id ORDER BY at_ns) AS before FROM thread_cpu)")
    assert least >= 10 * MS


def test_a_program_killed_in_its_sleep_has_waiting_times(record):
    trace = record(["-c", "import os, threading, time, signal\nthreading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()\ndef hangs(): time.sleep(60)\nhangs()"], status=137).path
    (ns, waited), = query(trace, "SELECT end_ns - start_ns, waited_ns FROM stretch JOIN code USING (code_id) WHERE qualname = 'hangs'")
    assert 400 * MS < waited <= ns < 5000 * MS


def test_children_have_their_own_samples(record, python):
    trace = record(["-c", "import os, time\ndef child(): time.sleep(0.6)\nif os.fork() == 0:\n    child()\n    os._exit(0)\nos.wait()"], python=python).path
    rows = query(trace, "SELECT p.parent_process_id IS NOT NULL, SUM(waited_ns) FROM stretch s JOIN thread t USING (thread_id) JOIN process p USING (process_id) GROUP BY 1")
    assert [forked for forked, _ in rows] == [0, 1] and all(waited > 300 * MS for _, waited in rows), rows


def test_a_greenlets_call_has_the_waiting_time_of_its_thread(record, python):
    if subprocess.run([python, "-c", "import greenlet"], capture_output=True).returncode:
        pytest.skip("no greenlet")
    trace = record(["-c", "import greenlet, time\ndef inner(): time.sleep(0.3)\ngreenlet.greenlet(inner).switch()"], python=python).path
    (waited,), = query(trace, "SELECT waited_ns FROM stretch JOIN code USING (code_id) WHERE qualname = 'inner'")
    assert waited > 200 * MS


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare")
def test_waiting_times_that_cannot_be_measured_are_null(run, record, python):
    """The recorder does not see the thread ids of a program in another pid namespace."""
    trace = record([shutil.which("unshare"), "-pf", python, "-c", "import time\ndef sleeps(): time.sleep(0.1)\nsleeps()"], python=None).path
    assert query(trace, "SELECT ran_ns, waited_ns FROM stretch JOIN code USING (code_id) WHERE qualname = 'sleeps'") == [(None, None)]
    assert "waited" not in run("why", "sleeps", trace).stdout


def test_an_older_trace_has_no_waiting_times(run, record):
    trace = record(["-c", PROGRAM]).path
    with sqlite3.connect(trace) as db:
        db.executescript("DROP TABLE thread_cpu; DROP TABLE stretch")
    db.close()
    assert run("sql", trace, "waiting").returncode == 0
    for command in ("report", trace), ("why", "sleeps", trace), ("why", trace), ("tree", "sleeps", trace):
        done = run(*command)
        assert done.returncode == 0 and "wait" not in done.stdout.replace("waits_for_lock", ""), done


def test_merged_traces_keep_waiting_times(run, record, tmp_path):
    traces = [record(["-c", PROGRAM]).path for _ in range(2)]
    assert run("merge", *traces, "-o", tmp_path / "both.db").returncode == 0
    for sql in "SELECT COUNT(*), SUM(cpu_ns) FROM thread_cpu", "SELECT COUNT(*), SUM(waited_ns) FROM stretch":
        each = [query(trace, sql)[0] for trace in traces]
        assert query(tmp_path / "both.db", sql) == [tuple(map(sum, zip(*each)))]
    assert query(tmp_path / "both.db", "SELECT COUNT(*) FROM stretch s LEFT JOIN frame f USING (frame_id) WHERE f.code_id IS NOT s.code_id") == [(0,)]
