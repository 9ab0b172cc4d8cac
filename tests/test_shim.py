"""The stand-alone evaluator: tests/programs/shim_*.py, each with every Python, alone and under `dyntrace run`.

The programs are unittest scripts that need nothing but the package; run one by hand with

    PYTHONPATH=build/lib/python python3 tests/programs/shim_rules.py -v
"""
import os
import subprocess
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


def test_bad_input(run):
    assert "\nOK" in run("shim_bad.py")[1]


def test_random_programs(run):
    """2000 each in test_shim_torture.py."""
    out, err, _ = run("shim_random.py", "0", "150")
    assert out.startswith("150 programs, ")


def test_threads(run):
    out, err, _ = run("shim_threads.py", "2")
    assert out.startswith("4 threads, ")
    assert err == ""


def test_leaks(run):
    out, err, _ = run("shim_leaks.py", "20000")
    assert "LEAKS" not in out and out.count(" ok") >= 18
