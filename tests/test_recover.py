"""The recorder dies, the program does not notice, and the words that reached the rings become a whole trace.
DYNTRACE_KILLS=200 kills that often for each interpreter and each way."""
import contextlib
import fcntl
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from crash_help import Work, collect_of, collector_of, fsck, gone, holders, rows, until

pytestmark = pytest.mark.one_python

KILLS = int(os.environ.get("DYNTRACE_KILLS", "12")) // 3
KILLED = "collector: it was killed; this trace was finished from what it and the programs left"
REPLACED = "collector: it was killed, and another took its place"


def some_way(work, rounds):
    """Wait until the program has run for a random time."""
    at = random.choice([0.05, 0.5, 0.9]) * random.random() * rounds
    until(lambda: work.begun_and_done(0)[0] > at, "the program goes on")


def was_complete(work, threads, rounds):
    """Had the program done all its rounds, and the collector all its work, when the collector was killed?"""
    done = all(work.begun_and_done(thread)[1] == rounds for thread in range(threads))
    return done and rows(work.trace, "SELECT value FROM meta WHERE key = 'state'") == [("complete",)]


def kill(pid):
    os.kill(pid, signal.SIGKILL)
    until(lambda: gone(pid), f"process {pid} dies")


def test_a_collector_killed_while_it_records_is_replaced(dyntrace, python, tmp_path):
    """`run` starts another collector. Nothing is missing."""
    random.seed(1)
    kills = 0
    for n in range(KILLS):
        threads, rounds = 1 + n % 3, 12000
        work = Work(dyntrace, python, tmp_path, threads, rounds=rounds, name=f"work{n}")
        try:
            session = work.session()
            some_way(work, rounds)
            if not (collector := collector_of(work.run.pid)):
                continue  # a busy machine held this test up for longer than the program takes
            kill(collector)
            assert work.wait() == 5, work.err
            assert work.out == f"finished {[rounds] * threads}\n"
            work.check([rounds] * threads, [rounds] * threads)
            if was_complete(work, threads, rounds):
                continue
            kills += 1
            assert "the collector was killed" in work.err
            assert set(work.losses()) <= {KILLED, REPLACED} and work.losses()
            assert rows(work.trace, "SELECT exit_code FROM process") == [(5,)]
            assert rows(work.trace, "SELECT value FROM meta WHERE key = 'state'") == [("recovered",)]
            assert not os.path.exists(session)
        finally:
            work.end()
        work.trace.unlink()
    assert kills


def test_a_collector_killed_before_python_starts_is_replaced(dyntrace, python, tmp_path):
    """`run` is alive and starts another collector. It must not report that the trace is finished."""
    ready, go = tmp_path / "ready", tmp_path / "go"
    script = f"touch {ready}; until [ -e {go} ]; do sleep 0.02; done; exec {python} -c 'def f(): pass\nf()'"
    run = subprocess.Popen([dyntrace, "run", "-o", tmp_path / "t.db", "sh", "-c", script], stderr=subprocess.PIPE, text=True)
    until(ready.exists, "the shell runs")
    for _ in range(2):
        killed = collector_of(run.pid)
        kill(killed)
        until(lambda: collector_of(run.pid) not in (None, killed), "another collector")
    go.touch()
    assert run.wait(60) == 0, run.stderr.read()
    assert set(rows(tmp_path / "t.db", "SELECT events, cause FROM loss")) == {(0, REPLACED)}
    assert rows(tmp_path / "t.db", "SELECT count(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'f'") == [(1,)]


def test_a_collector_killed_while_it_finishes_is_replaced(dyntrace, python, tmp_path):
    """The collector writes the pages, the tree above them, and joins the two files. The kill may come at any point."""
    random.seed(2)
    for n in range(2 * KILLS):
        work = Work(dyntrace, python, tmp_path, 1, rounds=4000, name=f"work{n}")
        try:
            session = work.session()
            collector = collector_of(work.run.pid)
            until(lambda: work.finished or work.run.poll() is not None, "the program ends", 120)
            time.sleep(random.choice([0.01, 0.04]) * random.random())
            if collector:  # None: it was faster than this test
                with contextlib.suppress(ProcessLookupError):
                    os.kill(collector, signal.SIGKILL)
            assert work.wait() == 5, work.err
            work.check([4000], [4000])
            assert rows(work.trace, "SELECT value FROM meta WHERE key = 'frame_count'") == \
                rows(work.trace, "SELECT count(*) FROM frame")
            assert not session or not os.path.exists(session)
        finally:
            work.end()
        work.trace.unlink()


@pytest.mark.parametrize("held", [0.05, 1.5])
def test_a_trace_is_finished_although_another_run_holds_the_lock(dyntrace, python, tmp_path, held):
    """Each `dyntrace run` examines old sessions, and holds a dead collector's lock meanwhile. The program ends in that
    time, and the trace is finished nevertheless."""
    program = """
import os, time
def f(): pass
for _ in range(100): f()
open("ready", "w").close()
while not os.path.exists("go"): time.sleep(.01)
"""
    run = subprocess.Popen(
        [dyntrace, "run", "-o", "t.db", "--python", python, "-c", program],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: (tmp_path / "ready").exists(), "the program is ready")
    collector = collector_of(run.pid)
    files = [os.readlink(f) for f in Path(f"/proc/{collector}/fd").iterdir()]
    lock = os.open(next(f for f in files if f.endswith("/collector.lock")), os.O_RDWR)
    try:
        os.kill(run.pid, signal.SIGSTOP)
        os.kill(collector, signal.SIGKILL)
        fcntl.flock(lock, fcntl.LOCK_EX)  # once it is dead
        (tmp_path / "go").touch()
        os.kill(run.pid, signal.SIGCONT)
        time.sleep(held)
    finally:
        os.close(lock)
    assert run.wait(60) == 0, run.stderr.read()
    assert run.stderr.read() == "dyntrace: the collector was killed; another took its place\n"
    found = "SELECT count(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'f'"
    assert rows(tmp_path / "t.db", found) == [(100,)]
    losses = rows(tmp_path / "t.db", "SELECT cause FROM losses WHERE NOT is_stall")
    assert losses in ([(REPLACED,)], [(KILLED,)])


@pytest.mark.parametrize("by", ["fsck", "run"])
def test_recorder_and_collector_killed_leave_a_recoverable_trace(dyntrace, python, tmp_path, by):
    """`fsck --recover` or the next `run` finishes the trace. (Another user of this machine's dyntrace may be faster.)"""
    random.seed(3)
    kills = 0
    for n in range(KILLS if by == "fsck" else (KILLS + 3) // 4):
        threads, rounds = 1 + n % 3, 12000
        work = Work(dyntrace, python, tmp_path, threads, rounds=rounds, name=f"work{n}")
        try:
            session = work.session()
            some_way(work, rounds)
            if not (collector := collector_of(work.run.pid)):
                continue
            os.kill(work.run.pid, signal.SIGSTOP)
            kill(collector)
            kills += 1
            least = [work.begun_and_done(thread)[1] for thread in range(threads)]
            os.kill(work.run.pid, signal.SIGKILL)
            work.run.wait()
            until(lambda: work.finished and gone(work.pid), "the program goes on to its end", 120)
            assert work.run.stdout.read() == f"finished {[rounds] * threads}\n"
            if by == "run":
                done = subprocess.run([dyntrace, "run", "-o", tmp_path / "next.db", "--force", "--python", python, "-c", "1"],
                                      capture_output=True, text=True)
            else:
                done = subprocess.run([dyntrace, "fsck", work.trace, "--recover"], capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
            until(lambda: not os.path.exists(session), "the session is gone")
            most = [work.begun_and_done(thread)[0] for thread in range(threads)]
            work.check(least, most)
            assert {KILLED, REPLACED} & set(work.losses()) or was_complete(work, threads, rounds)
        finally:
            work.end()
        work.trace.unlink()
    assert kills


def test_the_recorder_killed_alone_loses_nothing(dyntrace, python, tmp_path):
    """Without `run` the collector records until the program ends."""
    work = Work(dyntrace, python, tmp_path, 2, rounds=60000)
    try:
        session = work.session()
        os.kill(work.run.pid, signal.SIGKILL)
        work.run.wait()
        until(lambda: work.finished and gone(work.pid), "the program goes on to its end", 120)
        until(lambda: not os.path.exists(f"{work.trace}-frames"), "the collector finishes the trace")
        work.check([60000] * 2, [60000] * 2)
        subprocess.run([dyntrace, "fsck", work.trace, "--recover"], capture_output=True)
        until(lambda: not os.path.exists(session), "the session goes away")
    finally:
        work.end()


@pytest.mark.slow
def test_a_stopped_collector_loses_nothing(dyntrace, python, tmp_path):
    """The collector is stopped first for 200 ms, then until the program waits for it. Nothing is lost."""
    rounds = 400000
    work = Work(dyntrace, python, tmp_path, 1, rounds=rounds)
    try:
        collector = collector_of(work.run.pid)
        os.kill(collector, signal.SIGSTOP)
        time.sleep(0.2)
        os.kill(collector, signal.SIGCONT)
        time.sleep(0.05)
        os.kill(collector, signal.SIGSTOP)
        seen = [0]

        def stands():
            before, seen[0] = seen[0], work.begun_and_done(0)[0]
            time.sleep(0.1)
            return before == seen[0]
        until(stands, "the ring is full, or the program at its end")
        waited = not work.finished
        os.kill(collector, signal.SIGCONT)
        assert work.wait() == 5, work.err
        work.check([rounds], [rounds])
        losses = work.losses()
        assert bool(losses) >= waited and all(cause.startswith("stall: the program waited") for cause in losses)
        assert rows(work.trace, "SELECT count(*) FROM loss WHERE events") == [(0,)]
    finally:
        work.end()


def test_a_whole_trace_has_nothing_to_recover(dyntrace, python, tmp_path):
    work = Work(dyntrace, python, tmp_path, 1, rounds=10)
    assert work.wait() == 5
    before = work.trace.read_bytes()
    done = subprocess.run([dyntrace, "fsck", work.trace, "--recover"], capture_output=True, text=True)
    assert done.returncode == 0 and "nothing to recover" in done.stderr
    assert work.trace.read_bytes() == before
    fsck(dyntrace, work.trace)


def leavings(made, name, *files, seconds=300):
    """A directory as a `run` leaves it that is killed while it makes or removes a session, that long ago."""
    directory = made(name)
    for file in files:
        (directory / file).write_bytes(b"")
    os.utime(directory, (time.time() - seconds,) * 2)
    return directory


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Makes a directory with a session's name, for the base "shm" or "tmp"."""
    bases = {"shm": Path("/dev/shm"), "tmp": tmp_path / "tmp"}
    bases["tmp"].mkdir(mode=0o700)
    monkeypatch.setenv("TMPDIR", str(bases["tmp"]))
    directories = []

    def make(base, like=None):
        name = like.name if like else f"dyntrace-{os.geteuid()}-" + "".join(random.choices("abcdefgh", k=6))
        directories.append(bases[base] / name)
        directories[-1].mkdir(mode=0o700)
        return directories[-1]

    yield make
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.mark.parametrize("files", [(), ("collector.lock",), ("collector.lock", "session")])
def test_the_next_run_removes_a_session_that_was_never_whole(dyntrace, python, tmp_path, made, files):
    left = leavings(made, "shm", *files)
    spill = leavings(lambda base: made(base, like=left), "tmp")
    assert subprocess.run([dyntrace, "run", "-o", tmp_path / "t.db", "--python", python, "-c", "pass"]).returncode == 0
    assert not left.exists() and not spill.exists()


def test_the_next_run_keeps_a_session_that_may_still_be_in_use(dyntrace, python, tmp_path, made):
    """A session that is being made, one whose lock is held, one with a ring, and the second directory of another session."""
    kept = [leavings(made, "shm", "collector.lock", seconds=0), leavings(made, "shm", "collector.lock"),
            leavings(made, "shm", "collector.lock", "1-2-0.ring"), leavings(made, "tmp")]
    with open(kept[1] / "collector.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.utime(kept[1], (1e9, 1e9))
        assert subprocess.run([dyntrace, "run", "-o", tmp_path / "t.db", "--python", python, "-c", "pass"]).returncode == 0
    assert all(directory.exists() for directory in kept)


# ---- a collector that dies while its program lives ----

SLOW = """
import os, sys, time
def leaf(): pass
def main():
    for n in range(30000):
        leaf()
        if n % 300 == 0:
            time.sleep(0.01)
            if n == 3000:
                open(sys.argv[1], "w").close()
    os.read(0, 1)  # until its standard input is closed
main()
"""


def leaves(trace):
    return rows(trace, "SELECT count(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'leaf'")[0][0]


def started(dyntrace, python, tmp_path, name, program, *options):
    """Start PROGRAM under `run` and wait until it sets its mark. Returns the Popen and the trace."""
    script, mark, trace = tmp_path / f"{name}.py", tmp_path / f"{name}.mark", tmp_path / f"{name}.db"
    script.write_text(program)
    words = [dyntrace, "run", "-o", trace, "--python", python, *options, "--", script, mark]
    run = subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    until(lambda: mark.exists() or run.poll() is not None, "the program makes its mark")
    return run, trace


def finish(run):
    """Let the program end; its status."""
    run.stdin.close()
    return run.wait(60)


def whole(dyntrace, trace, session=None):
    """Wait until the trace is whole, although no `run` waits for it."""
    until(lambda: not os.path.exists(f"{trace}-frames"), "the trace is finished", 120)
    if session:
        until(lambda: not os.path.exists(session), "the session goes away")
    fsck(dyntrace, trace)


def session_of(trace):
    return rows(trace, "SELECT value FROM meta WHERE key = 'session'")[0][0]


def test_a_second_run_leaves_a_live_recording_alone(dyntrace, python, tmp_path):
    """A's collector is killed, then another `run` starts. Both traces are whole."""
    run, trace = started(dyntrace, python, tmp_path, "a", SLOW)
    os.kill(collector_of(run.pid), signal.SIGKILL)
    other = subprocess.run([dyntrace, "run", "-o", tmp_path / "b.db", "--python", python, "-c", "def f(): pass\nf()"],
                           capture_output=True, text=True)
    assert (other.returncode, other.stdout) == (0, ""), other.stderr
    assert finish(run) == 0
    assert leaves(trace) == 30000
    assert rows(tmp_path / "b.db", "SELECT count(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'f'") == [(1,)]
    for path in (trace, tmp_path / "b.db"):
        fsck(dyntrace, path)
    assert rows(trace, "SELECT cause, events FROM loss") == [(REPLACED, 0)]
    assert rows(tmp_path / "b.db", "SELECT count(*) FROM loss") == [(0,)]


def test_totals_are_right_after_a_kill(dyntrace, python, tmp_path):
    """The totals of a function equal the sums over its frames. Recursion through another function counts once."""
    program = SLOW.replace("def leaf(): pass", "def leaf():\n    other(3)\ndef other(n):\n    if n: inner(n)\n"
                                               "def inner(n): other(n - 1)").replace("30000", "9000")
    run, trace = started(dyntrace, python, tmp_path, "a", program)
    os.kill(collector_of(run.pid), signal.SIGKILL)
    assert finish(run) == 0
    fsck(dyntrace, trace)
    assert leaves(trace) == 9000
    totals = {name: values for name, *values in rows(trace, """
        SELECT qualname, calls, total_ns, self_ns FROM code_total JOIN code USING (code_id)""")}
    for name, per_leaf in (("leaf", 1), ("other", 4), ("inner", 3), ("main", 1 / 9000)):
        assert totals[name][0] == round(per_leaf * 9000)
    outermost = rows(trace, """SELECT SUM(f.end_ns - f.start_ns) FROM frame f JOIN code c USING (code_id)
                               JOIN frame p ON p.frame_id = f.parent_id JOIN code pc ON pc.code_id = p.code_id
                               WHERE c.qualname = 'other' AND pc.qualname = 'leaf'""")[0][0]
    assert totals["other"][1] == outermost
    for name in totals:
        own = rows(trace, """SELECT SUM(f.end_ns - f.start_ns - IFNULL(
                                 (SELECT SUM(i.end_ns - i.start_ns) FROM frame i WHERE i.parent_id = f.frame_id), 0))
                             FROM frame f JOIN code c USING (code_id) WHERE c.qualname = ?""", name)[0][0] if name == "main" else None
        assert own is None or own == totals[name][2]


@pytest.mark.parametrize("by", ["run", "fsck"])
def test_recording_goes_on_after_run_and_collector_were_killed(dyntrace, python, tmp_path, by):
    """The next `run` or `fsck --recover` starts a collector that records until the program ends, and removes the session."""
    run, trace = started(dyntrace, python, tmp_path, "a", SLOW)
    session, collector = session_of(trace), collector_of(run.pid)
    os.kill(run.pid, signal.SIGSTOP)
    kill(collector)
    kill_and_wait(run)
    argv = ["fsck", trace, "--recover"] if by == "fsck" else ["run", "-o", tmp_path / "b.db", "--python", python, "-c", "1"]
    done = subprocess.run(list(map(str, [dyntrace, *argv])), capture_output=True, text=True)
    if by == "run":
        assert done.returncode == 0, done.stderr
    else:  # or another `run` on this machine was faster
        assert "is still being recorded" in done.stderr or "nothing to recover" in done.stderr
    run.stdin.close()
    whole(dyntrace, trace, session)
    assert leaves(trace) == 30000
    assert rows(trace, "SELECT cause FROM loss") == [(REPLACED,)]
    assert rows(trace, "SELECT value FROM meta WHERE key = 'state'") == [("recovered",)]


def kill_and_wait(run):
    os.kill(run.pid, signal.SIGKILL)
    run.wait()


def test_recovery_works_after_being_killed_repeatedly(dyntrace, python, tmp_path):
    """Each recovery is killed, and the next one continues."""
    run, trace = started(dyntrace, python, tmp_path, "a", SLOW)
    session = session_of(trace)
    os.kill(run.pid, signal.SIGSTOP)
    kill(collector_of(run.pid))
    kill_and_wait(run)
    for _ in range(3):
        subprocess.run([dyntrace, "fsck", trace, "--recover"], capture_output=True)
        for pid in holders(session):
            kill(pid)
    subprocess.run([dyntrace, "fsck", trace, "--recover"], capture_output=True)
    run.stdin.close()
    whole(dyntrace, trace, session)
    assert leaves(trace) == 30000


@pytest.mark.slow
def test_collectors_killed_again_and_again_lose_nothing(dyntrace, python, tmp_path):
    """Each collector may be killed at any moment. Nothing is missing, and nothing is there twice."""
    random.seed(5)
    for n in range(KILLS):
        threads, rounds = 1 + n % 3, 60000
        work = Work(dyntrace, python, tmp_path, threads, rounds=rounds, name=f"work{n}")
        try:
            kills = 0
            while not work.finished and kills < 10:
                time.sleep(0.05 * random.random())
                collector = collector_of(work.run.pid)
                if collector and not work.finished:
                    kill(collector)
                    kills += 1
            assert work.wait() == 5, work.err
            lost = rows(work.trace, "SELECT TOTAL(events) FROM loss")[0][0]
            if lost:  # it was away for longer than the rings and --max-stall last
                fsck(dyntrace, work.trace)
                there = rows(work.trace, "SELECT count(*) FROM frame JOIN code USING (code_id)"
                                         " WHERE qualname IN ('round_', 'middle', 'leaf')")[0][0]
                called = 7 * rounds * threads
                assert there < called and called <= there + lost <= called + 100  # of threading, at the end
            else:
                work.check([rounds] * threads, [rounds] * threads)
        finally:
            work.end()
        work.trace.unlink()


DECIDED = """
import sys, time, threading
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode

def f(x): return x
calls, passed, failed = [0] * 8, [0] * 8, [0] * 8

class Is:
    def __init__(self, kind): self.kind = kind
    def __call__(self, f_locals):
        n = f_locals["x"][1]
        ok = type(f_locals["x"][0]) is self.kind
        (passed if ok else failed)[n] += 1
        return ok

def callback(frame, entry, state):
    if frame.f_code is f.__code__:
        return GuardedCode(frame.f_code.replace(), Is(type(frame.f_locals["x"][0])))

values = [1, 2.0, "three", None, b"five"]
def work(n):
    set_eval_frame(callback)
    for k in range(20000):
        f((values[(k * k + k // 5) % 5], n))
        calls[n] += 1
        if k % 200 == 0:
            time.sleep(0.003)
    set_eval_frame(None)
thread = threading.Thread(target=work, args=(1,))
thread.start()
open(sys.argv[1], "w").close()
work(0)
thread.join()
print(sum(calls), sum(passed), sum(failed))
"""


def test_decisions_survive_a_killed_collector(dyntrace, python, tmp_path):
    """The collector is killed at random moments while lookups and guard checks arrive. Each is in the trace once."""
    random.seed(6)
    for n in range(KILLS):
        run, trace = started(dyntrace, python, tmp_path, f"d{n}", DECIDED)
        kills = 0
        while run.poll() is None and kills < 8:
            time.sleep(0.06 * random.random())
            collector = collector_of(run.pid)
            if collector and run.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(collector, signal.SIGKILL)
                    kills += 1
        out, err = run.communicate(timeout=120)
        assert run.returncode == 0, err
        fsck(dyntrace, trace)
        assert rows(trace, "SELECT DISTINCT cause FROM loss WHERE cause NOT LIKE 'stall:%'") in ([(REPLACED,)], [(KILLED,), (REPLACED,)],
                                                                                                [(REPLACED,), (KILLED,)], [(KILLED,)])
        calls, passed, failed = map(int, out.split())
        one = "FROM lookup JOIN code USING (code_id) WHERE qualname = 'f'"
        assert rows(trace, f"SELECT count(*), count(DISTINCT frame_id) {one}") == [(calls, calls)]
        checks = dict(rows(trace, "SELECT result, count(*) FROM guard_check GROUP BY 1"))
        assert (checks["pass"], checks["fail"]) == (passed, failed)
        assert rows(trace, "SELECT count(*) FROM lookup WHERE entries_checked <> (SELECT count(*) FROM guard_check"
                           " WHERE guard_check.lookup_id = lookup.lookup_id)") == [(0,)]
        assert rows(trace, "SELECT count(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'f' AND outcome IS NOT NULL") == [(calls,)]
        assert rows(trace, "SELECT count(*) FROM frame f JOIN lookup l USING (frame_id) WHERE f.outcome <> l.outcome"
                           " OR f.cache_entry_id IS NOT l.cache_entry_id") == [(0,)]
        assert rows(trace, "SELECT count(*), count(DISTINCT frame_id) FROM compile WHERE frame_id IS NOT NULL") == [(5, 5)]
        assert rows(trace, "SELECT count(*), count(DISTINCT cache_entry_id) FROM guard") == [(0, 0)] or \
            rows(trace, "SELECT count(*) FROM (SELECT 1 FROM guard GROUP BY cache_entry_id, ordinal HAVING count(*) > 1)") == [(0,)]
        trace.unlink()


FINISHED = """
import os, sys, time
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode
def f(x): return x
set_eval_frame(lambda frame, *rest: GuardedCode(frame.f_code.replace(), lambda f_locals: True) if frame.f_code is f.__code__ else None)
open(sys.argv[1], "w").close()
os.read(0, 1)
for n in range({calls}):
    f(n)
set_eval_frame(None)
"""


@pytest.mark.parametrize("left", ["all", "no state", "no session"])
@pytest.mark.parametrize("calls", [5, 20000])
def test_recovery_finishes_a_trace_whose_files_could_not_be_joined(dyntrace, python, tmp_path, calls, left):
    """The pages are whole, but the two files could not be joined. A later recovery keeps all of them."""
    run, trace = started(dyntrace, python, tmp_path, "t", FINISHED.format(calls=calls), "--frames", "decided")
    session = session_of(trace)
    with contextlib.closing(sqlite3.connect(f"{trace}-frames", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM frame").fetchall()
        err = run.communicate(timeout=60)[1]
    assert "cannot be finished: database is locked" in err
    for name in os.listdir(session):
        if left == "no session" or (left == "no state" and name == "state"):
            os.unlink(f"{session}/{name}")
    if left == "no session":
        os.rmdir(session)
    done = subprocess.run([dyntrace, "fsck", trace, "--recover"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    fsck(dyntrace, trace)
    for table in "lookup", "frame":
        assert rows(trace, f"SELECT count(*) FROM {table} JOIN code USING (code_id) WHERE qualname = 'f'") == [(calls,)], table
    assert rows(trace, "SELECT count(*) FROM guard_check") == [(calls - 1,)]
    assert rows(trace, "SELECT value FROM meta WHERE key = 'frame_count'") == rows(trace, "SELECT count(*) FROM frame")


def test_lookups_that_a_reader_saw_survive_a_reboot(dyntrace, python, tmp_path):
    """The machine was rebooted while lookups were only in the session's memory. Those that a reader has seen are kept."""
    program = FINISHED.format(calls=500).replace("set_eval_frame(None)", "time.sleep(100)")
    run, trace = started(dyntrace, python, tmp_path, "t", program, "--frames", "decided")
    session = session_of(trace)
    run.stdin.close()
    until(lambda: rows(trace, "SELECT count(*) FROM lookup JOIN code USING (code_id) WHERE"
                              " qualname = 'f'") == [(500,)], "a reader sees all")
    os.kill(run.pid, signal.SIGSTOP)  # or it starts another collector, which nobody kills
    pids = [collector_of(run.pid), *map(int, open(f"/proc/{run.pid}/task/{run.pid}/children").read().split()), run.pid]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    run.wait()
    until(lambda: all(map(gone, pids)), "all are dead")
    for name in os.listdir(session):
        os.unlink(f"{session}/{name}")
    os.rmdir(session)
    done = subprocess.run([dyntrace, "fsck", trace, "--recover"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    fsck(dyntrace, trace)
    assert rows(trace, "SELECT count(*) FROM lookup JOIN code USING (code_id) WHERE qualname = 'f'") == [(500,)]
    assert rows(trace, "SELECT count(*), count(DISTINCT lookup_id) FROM guard_check") == [(499, 499)]


RECORDS_ITSELF = """
import os, sys, time, dyntrace
def leaf(): pass
def main():
    for n in range(20000):
        leaf()
        if n % 300 == 0:
            time.sleep(0.01)
            if n == 3000:
                open(sys.argv[1], "w").close()
    os.read(0, 1)  # until its standard input is closed
with dyntrace.record(sys.argv[2]):
    main()
def after(): pass
after()
print("after", flush=True)
if len(sys.argv) > 3:
    time.sleep(1000)
"""


@pytest.mark.parametrize("whom", ["collector", "collect", "both"])
def test_a_program_that_records_itself_is_recovered(dyntrace, python, tmp_path, whom):
    """The test kills the collector, or `dyntrace collect` (which waits for the collector), or both."""
    mark, trace = tmp_path / "mark", tmp_path / "t.db"
    library = os.path.join(os.path.dirname(dyntrace), "lib", "python")
    words = [python, "-c", RECORDS_ITSELF, mark, trace]
    words += ["stay"] if whom != "collector" else []
    program = subprocess.Popen(list(map(str, words)), env=dict(os.environ, PYTHONPATH=library),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: mark.exists() or program.poll() is not None, "the program makes its mark")
        session = session_of(trace)
        collect = collect_of(program.pid)
        collector = collector_of(collect)
        if whom != "collector":
            os.kill(collect, signal.SIGSTOP)
        if whom != "collect":
            kill(collector)
        if whom != "collector":
            kill(collect)
        if whom == "both":
            subprocess.run([dyntrace, "fsck", trace, "--recover"], capture_output=True)
        if whom != "collector":
            program.stdin.close()
        else:
            out, err = program.communicate(timeout=60)
            assert (program.returncode, out) == (0, "after\n"), err
        whole(dyntrace, trace, session)
        assert leaves(trace) == 20000
        assert rows(trace, "SELECT count(*) FROM code WHERE qualname = 'after'") == [(0,)]
        assert [cause for cause, in rows(trace, "SELECT cause FROM loss")] == ([REPLACED] if whom != "collect" else [])
    finally:
        program.kill()
        program.wait()


FORKS = """
import os, sys

def leaf(n):
    return n

def grandchild(n, told):
    os.read(told, 1)  # its parent has ended long before
    leaf(n)
    os._exit(0)

def child(n, told):
    leaf(n)
    if n % 10 == 0 and not os.fork():
        grandchild(1000 + n, told)
    os._exit(0)

told, tell = os.pipe()
for n in range(60):
    pid = os.fork()
    if not pid:
        child(n, told)
    os.waitpid(pid, 0)
    if n % 20 == 15:
        print(n, flush=True)
        sys.stdin.readline()
os.write(tell, b"." * 6)
print("told", flush=True)
sys.stdin.readline()
"""


def test_files_of_ended_children_are_removed_and_their_frames_are_kept(dyntrace, python, tmp_path):
    """Grandchildren whose parent has ended are not lost either. Their files have the parent's name."""
    trace = tmp_path / "t.db"
    (tmp_path / "forks.py").write_text(FORKS)
    words = [dyntrace, "run", "-o", trace, "--python", python, tmp_path / "forks.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as run:

        def files():
            (session,) = rows(trace, "SELECT value FROM meta WHERE key = 'session'")[0]
            return len(list(Path(session).glob("*.ring")))

        for line in run.stdout:
            if line == "told\n":
                until(lambda: files() == 1, "only the parent's file is left")
            else:
                grandchildren = int(line) // 10 + 1
                # of these the file is there, and that of the child that forked it
                until(lambda: files() == 1 + 2 * grandchildren, "no other child's file is left")
                os.kill(collector_of(run.pid), signal.SIGKILL)
            run.stdin.write("\n")
            run.stdin.flush()
        assert run.wait() == 0
    calls = rows(
        trace,
        """SELECT count(*), count(DISTINCT thread.process_id), sum(frame.end_ns IS NULL)
             FROM frame JOIN code USING (code_id) JOIN thread USING (thread_id)
            WHERE qualname = 'leaf'""",
    )
    assert calls == [(66, 66, 0)]
    assert rows(trace, "SELECT count(*) FROM process") == [(67,)]
    assert rows(trace, "SELECT cause FROM loss") == [(REPLACED,)] * 3
    fsck(dyntrace, trace)
