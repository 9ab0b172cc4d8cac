"""What the tests share: the program under test, the interpreters, and one way to record.

DYNTRACE          the program, default build/dyntrace
DYNTRACE_PYTHONS  interpreters, colon separated, default the one that runs pytest;
                  a test that asks for `python` runs once with each

    def test_one_call_is_one_frame(record, python):
        trace = record(["-c", "def f(): pass\\nf()"], python=python)
        assert trace.rows("SELECT count(*) FROM frames WHERE qualname = 'f'") == [(1,)]
"""
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = [p for p in os.environ.get("DYNTRACE_PYTHONS", "").split(":") if p] or [sys.executable]

# Programs to be recorded, and whole runs with a make target of their own.
collect_ignore = ["programs", "seeds", "cpython", "fuzz", "unit"]


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes more than some ten seconds")
    config.addinivalue_line("markers", "no_sanitizer: sets a limit of memory, or an environment without LD_PRELOAD, under which "
                                       "the sanitizers' runtime does not start")
    config.addinivalue_line("markers", "one_python: with the first interpreter only; what is tested is the same for all")


def pytest_collection_modifyitems(config, items):
    """Whole files about the collector or a viewer need not run with every interpreter, and a few tests not under sanitizers."""
    again = [item for item in items if item.get_closest_marker("one_python") and hasattr(item, "callspec") and
             item.callspec.params.get("python", PYTHONS[0]) != PYTHONS[0]]
    if os.environ.get("DYNTRACE_SANITIZED"):  # run_san.sh
        again += [item for item in items if item.get_closest_marker("no_sanitizer")]
    config.hook.pytest_deselected(items=again)
    items[:] = [item for item in items if item not in set(again)]


def version_of(python):
    return subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                          capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="session")
def dyntrace():
    """Path of the program under test."""
    path = os.environ.get("DYNTRACE") or str(ROOT / "build" / "dyntrace")
    if not os.access(path, os.X_OK):
        pytest.exit(f"{path}: not built; run make first", 2)
    return path


@pytest.fixture(scope="session", params=PYTHONS, ids=version_of)
def python(request):
    """Path of an interpreter that an extension was built for."""
    return request.param


class Trace:
    """A finished recording: what the command printed, its status, and the file."""

    def __init__(self, path, done):
        self.path = path
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    def rows(self, sql, *values):
        with sqlite3.connect(f"file:{self.path}?mode=ro", uri=True) as db:
            return db.execute(sql, values).fetchall()


@pytest.fixture
def record(dyntrace, tmp_path):
    """record(command, *options, python=..., status=0, **subprocess.run's) -> Trace

    COMMAND is what stands after `dyntrace run OPTIONS --`: a script with its arguments, "-m", "-c"."""
    count = 0

    def run(command, *options, python=None, status=0, timeout=300, **rest):
        nonlocal count
        count += 1
        path = tmp_path / f"trace{count}.db"
        argv = [dyntrace, "run", "-o", path, *options]
        argv += ["--python", python or PYTHONS[0], "--", *command]
        rest.setdefault("cwd", tmp_path)
        done = subprocess.run(list(map(str, argv)), capture_output=True, text=True,
                              timeout=timeout, **rest)
        if status is not None:
            assert done.returncode == status, done.stderr
        return Trace(path, done)

    return run
