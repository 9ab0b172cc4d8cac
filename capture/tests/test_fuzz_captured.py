"""The fuzzer of captured and split functions (fuzz_captured.py), on seeds that CPython survives without dyntrace."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz_captured import Captured

pytestmark = pytest.mark.slow
FUZZER = Path(__file__).resolve().parent / "fuzz_captured.py"
# A batch for each of the fuzzer's APART: trace functions, threads, greenlets.
# The program of 30028 ends CPython 3.13.0 without dyntrace, too: it reads the locals of a frame in a trace function.
SEEDS = [*range(30000, 30028), *range(30029, 30061)]


# Seeds that once crashed. Each has the acts to leave out, so that the program runs to the place of the crash.
CRASHED = {445372350: "settrace,setprofile,frame_trace,jump,monitor,frame_write,tracemalloc,greenlet,switch,callback,inspect"}


@pytest.mark.parametrize("seed, without", CRASHED.items())
def test_fuzzer_seeds_that_once_crashed_do_not_crash(dyntrace, python, seed, without):
    done = subprocess.run([sys.executable, str(FUZZER), "--python", python, "--build", os.path.dirname(dyntrace), "--without", without, str(seed)],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]


def test_jumps_made_by_the_fuzzer_do_not_crash_cpython_without_dyntrace(dyntrace, python, tmp_path):
    """Functions whose stack is deeper than what CPython can judge: an act must not jump in them."""
    runner = Captured(python, os.path.dirname(dyntrace), "alone", str(tmp_path))
    assert runner.run([334] * 3, control=True, only=["jump", "plain"]) is None


def test_captured_hostile_functions_do_not_crash(dyntrace, python):
    """No process ends by a signal, hangs or stops early."""
    done = subprocess.run([sys.executable, str(FUZZER), "--python", python, "--build", os.path.dirname(dyntrace), "--without", "-", *map(str, SEEDS)],
                          capture_output=True, text=True, timeout=1200)
    # threads may make one batch in three fail by CPython's own fault
    expected = ["capture-fuzz: 60 programs, 0 failures, %d batches that fail without dyntrace" % own for own in (0, 1)]
    assert done.returncode == 0 and done.stdout.splitlines()[-1] in expected, done.stdout[-8000:] + done.stderr[-4000:]
