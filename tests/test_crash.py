"""The trace of a program that dies has every frame that had ended, and the open frames. programs/crash_work.py counts its
calls in memory of its own; crash_help.py compares these counts with the trace. DYNTRACE_KILLS=200 kills that often for
each interpreter."""
import os
import random
import signal
import time

import pytest

from crash_help import Work, rows

pytestmark = pytest.mark.one_python

KILLS = int(os.environ.get("DYNTRACE_KILLS", "12"))


@pytest.mark.sweep(3)
@pytest.mark.parametrize("threads", [3, 2, 1])
def test_frames_survive_sigkill_at_random_moments(dyntrace, python, tmp_path, threads):
    random.seed(threads)
    for n in range((KILLS + 3 - threads) // 3):
        work = Work(dyntrace, python, tmp_path, threads, name=f"kill{n}")
        try:
            time.sleep(random.choice([0, 0.01, 0.1]) * random.random())
            os.kill(work.pid, signal.SIGKILL)
            assert work.wait() == 128 + signal.SIGKILL, work.err
            work.check()
            assert work.losses() == []
            assert rows(work.trace, "SELECT exit_signal, exit_code FROM process") == [(signal.SIGKILL, None)]
        finally:
            work.end()
        work.trace.unlink()


@pytest.mark.sweep(2)
@pytest.mark.parametrize("how, status, process", [
    ("exit", 7, (7, None)), ("abort", 134, (None, signal.SIGABRT)), ("segfault", 139, (None, signal.SIGSEGV))])
@pytest.mark.parametrize("threads", [1, 3])
def test_frames_survive_a_program_that_kills_itself(dyntrace, python, tmp_path, how, status, process, threads):
    work = Work(dyntrace, python, tmp_path, threads, rounds=10000, how=how)
    try:
        assert work.wait() == status, work.err
        work.check()
        ended, opened = work.state(0)
        assert ended == {"round_": 9999, "middle": 2 * 9999 + 1, "leaf": 4 * 9999 + 3}
        assert opened == ["<module>", "main", "work", "round_", "middle", "leaf"]
        assert rows(work.trace, "SELECT exit_code, exit_signal FROM process") == [process]
        assert work.losses() == []
        assert rows(work.trace, "SELECT DISTINCT exit FROM frame WHERE end_ns IS NULL") == [(None,)]
    finally:
        work.end()


def test_frames_are_complete_after_a_normal_end(dyntrace, python, tmp_path):
    work = Work(dyntrace, python, tmp_path, 3, rounds=20000)
    try:
        assert work.wait() == 5, work.err
        assert work.out == "finished [20000, 20000, 20000]\n"
        work.check(least=[20000] * 3, most=[20000] * 3)
        assert work.state(1) == ({"round_": 20000, "middle": 40000, "leaf": 80000}, [])
        assert work.losses() == []
    finally:
        work.end()
