"""The fuzzer of the evaluator (tests/fuzz/evaluator.py), for some seconds: the same seeds each time, then new ones."""
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).resolve().parent / "fuzz" / "evaluator.py"


@pytest.mark.sweep(3)
@pytest.mark.parametrize("mode", ["alone", "recorded"])
@pytest.mark.parametrize("seeds", ["fixed", "new"])
def test_random_hostile_programs_give_what_they_give_without_us(dyntrace, python, mode, seeds):
    """Every call gives what it gives without a callback, every process ends with status 0, and the trace is sound."""
    first = 1 if seeds == "fixed" else random.randrange(10**9)
    count = {"alone": 18, "recorded": 8}[mode] if seeds == "fixed" else 6
    done = subprocess.run([sys.executable, str(FUZZER), "--python", python, "--build", os.path.dirname(dyntrace), "--mode", mode,
                           *map(str, range(first, first + count))], capture_output=True, text=True, timeout=1200)
    assert (done.returncode, done.stdout) == (0, f"evaluator-fuzz: {count} programs, 0 failures\n"), done.stdout[-8000:] + done.stderr[-4000:]
