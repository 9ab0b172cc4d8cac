"""Native guards: tests/programs/guard_rules.py with every Python, alone and recorded, and what a check costs.

    PYTHONPATH=build/lib/python python3 tests/programs/guard_rules.py -v
"""
import os
import subprocess
from pathlib import Path

import pytest

from shared import PROGRAMS, ROOT

pytestmark = pytest.mark.newest_too

BUILD = Path(os.environ.get("DYNTRACE", Path(__file__).resolve().parent.parent / "build" / "dyntrace")).parent

def run(python, *arguments):
    done = subprocess.run([python, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env=dict(os.environ, PYTHONPATH=str(BUILD / "lib" / "python")))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return done


def test_native_guards_pass_their_unit_tests(python):
    assert "\nOK" in run(python, PROGRAMS / "guard_rules.py").stderr


def test_native_guards_pass_their_unit_tests_while_recorded(record, python):
    assert "\nOK" in record([PROGRAMS / "guard_rules.py"], python=python).err


# ---- docs/guards.md ----


def test_every_documented_guard_passes_and_fails_as_documented(python):
    assert run(python, PROGRAMS / "guards_page.py", ROOT / "docs/guards.md").stdout == "as the page says\n"
