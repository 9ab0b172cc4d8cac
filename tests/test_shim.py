"""The stand-alone evaluator: tests/programs/shim_*.py, each with every Python, alone and under `dyntrace run`.

The programs are unittest scripts that need nothing but the package; run one by hand with

    PYTHONPATH=build/lib/python python3 tests/programs/shim_rules.py -v
"""
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parent / "programs"
BUILD = Path(os.environ.get("DYNTRACE", Path(__file__).resolve().parent.parent / "build" / "dyntrace")).parent


@pytest.fixture(params=["alone", "recorded"])
def run(request, python, record):
    """run(program, *arguments) -> (out, err, trace or None)"""
    def alone(program, *arguments, status=0, timeout=300):
        environment = dict(os.environ, PYTHONPATH=str(BUILD / "lib" / "python"))
        done = subprocess.run([python, str(PROGRAMS / program), *arguments], capture_output=True, text=True,
                              env=environment, timeout=timeout)
        assert done.returncode == status, done.stdout[-4000:] + done.stderr[-8000:]
        return done.stdout, done.stderr, None

    def recorded(program, *arguments, status=0, timeout=300):
        trace = record([PROGRAMS / program, *arguments], python=python, status=None, timeout=timeout)
        assert trace.status == status, trace.out[-4000:] + trace.err[-8000:]
        return trace.out, trace.err, trace
    return alone if request.param == "alone" else recorded


def test_rules(run):
    assert "\nOK" in run("shim_rules.py")[1]


def test_every_shape_of_function(run):
    assert "\nOK" in run("shim_shapes.py")[1]
