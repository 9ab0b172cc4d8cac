"""The fuzzer of captured and split functions (tests/fuzz/captured.py), for some seconds: the same seeds each time, then new ones."""
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).resolve().parent / "fuzz" / "captured.py"
# What CPython does not survive by itself on each version, as control runs found; greenlet copies C stacks.
WITHOUT = "greenlet,switch"


@pytest.mark.parametrize("seeds", ["fixed", "new"])
def test_hostile_functions(dyntrace, python, seeds):
    """No process ends by a signal, hangs or stops early."""
    first = 1000 if seeds == "fixed" else random.randrange(10**9)
    done = subprocess.run([sys.executable, str(FUZZER), "--python", python, "--build", os.path.dirname(dyntrace), "--without", WITHOUT,
                           *map(str, range(first, first + 40))], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0 and done.stdout.splitlines()[-1].startswith("capture-fuzz: 40 programs, 0 failures"), done.stdout[-8000:] + done.stderr[-4000:]
