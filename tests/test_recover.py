"""The recorder dies, the program does not notice, and what reached the rings becomes a whole trace.

DYNTRACE_KILLS=200 kills that often for each interpreter and each way.
"""
import contextlib
import os
import random
import signal
import subprocess
import time

import pytest

from crash_help import Work, collector_of, fsck, gone, rows, until

pytestmark = pytest.mark.one_python

KILLS = int(os.environ.get("DYNTRACE_KILLS", "12")) // 3
KILLED = "collector: it was killed; this trace was finished from what it and the programs left"


def some_way(work, rounds):
    """Wait until the program is a random part of its way."""
    at = random.choice([0.05, 0.5, 0.9]) * random.random() * rounds
    until(lambda: work.begun_and_done(0)[0] > at, "the program goes on")


def kill(pid):
    os.kill(pid, signal.SIGKILL)
    until(lambda: gone(pid), f"process {pid} dies")


def test_collector_killed_while_it_records(dyntrace, python, tmp_path):
    """`run` finishes the trace itself."""
    random.seed(1)
    for n in range(KILLS):
        threads, rounds = 1 + n % 3, 12000
        work = Work(dyntrace, python, tmp_path, threads, rounds=rounds, name=f"work{n}")
        try:
            session = work.session()
            some_way(work, rounds)
            kill(collector_of(work.run.pid))
            least = [work.begun_and_done(thread)[1] for thread in range(threads)]
            assert work.wait() == 5, work.err
            assert work.out == f"finished {[rounds] * threads}\n"
            assert "the collector was killed" in work.err
            work.check(least, [rounds] * threads)
            assert KILLED in work.losses()
            assert rows(work.trace, "SELECT exit_code FROM process") == [(5,)]
            assert rows(work.trace, "SELECT value FROM meta WHERE key = 'state'") == [("recovered",)]
            assert not os.path.exists(session)
        finally:
            work.end()
        work.trace.unlink()


def test_collector_killed_while_it_finishes(dyntrace, python, tmp_path):
    """The pages are written, the tree over them, the two files joined: a kill may come anywhere there."""
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


@pytest.mark.parametrize("by", ["fsck", "run", "fsck while it runs"])
def test_both_killed(dyntrace, python, tmp_path, by):
    """`fsck --recover` or the next `run` finishes the trace. (Another user of this machine's dyntrace may be faster.)"""
    random.seed(3)
    for n in range(KILLS if by == "fsck" else (KILLS + 3) // 4):
        threads, rounds = 1 + n % 3, 12000
        work = Work(dyntrace, python, tmp_path, threads, rounds=-1 if "runs" in by else rounds, name=f"work{n}")
        try:
            session = work.session()
            some_way(work, rounds)
            collector = collector_of(work.run.pid)
            os.kill(work.run.pid, signal.SIGSTOP)
            kill(collector)
            least = [work.begun_and_done(thread)[1] for thread in range(threads)]
            os.kill(work.run.pid, signal.SIGKILL)
            work.run.wait()
            if "runs" not in by:
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
            assert KILLED in work.losses()
            if "runs" in by:
                before = work.begun_and_done(0)[1]
                until(lambda: work.begun_and_done(0)[1] > before + 1000, "the program goes on unharmed")
        finally:
            work.end()
        work.trace.unlink()


def test_run_killed(dyntrace, python, tmp_path):
    """Without `run` the collector records on to the program's end."""
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


def test_collector_stopped(dyntrace, python, tmp_path):
    """It stands still: first for 200 ms, then until the program waits for it. Nothing is lost."""
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


def test_nothing_to_recover(dyntrace, python, tmp_path):
    work = Work(dyntrace, python, tmp_path, 1, rounds=10)
    assert work.wait() == 5
    before = work.trace.read_bytes()
    done = subprocess.run([dyntrace, "fsck", work.trace, "--recover"], capture_output=True, text=True)
    assert done.returncode == 0 and "nothing to recover" in done.stderr
    assert work.trace.read_bytes() == before
    fsck(dyntrace, work.trace)
