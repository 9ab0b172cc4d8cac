"""What the tests share: the program under test, the interpreters, and one way to record.

DYNTRACE          the program, default build/dyntrace
DYNTRACE_PYTHONS  interpreters, colon separated, default the one that runs pytest;
                  a test that asks for `python` runs once with each

    def test_one_call_is_one_frame(record, python):
        trace = record(["-c", "def f(): pass\\nf()"], python=python)
        assert trace.rows("SELECT count(*) FROM frames WHERE qualname = 'f'") == [(1,)]
"""

import collections
import contextlib
import os
import signal
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from planted import Plant, make_trace
from shared import PROGRAMS, PYTHONS, ROOT, version_of
from tui_trace import SOURCE
from tui_trace import make_trace as make_decided


def connect_unsynced(*arguments, connect=sqlite3.connect, **more):
    """sqlite3.connect() for tests, which plant thousands of traces: no write waits for the disk, as
    no test cuts the power.
    """
    db = connect(*arguments, **more)
    with contextlib.suppress(sqlite3.Error):  # what is no database fails where it is read
        db.execute("PRAGMA synchronous = OFF")
    return db


sqlite3.connect = connect_unsynced

# A shell starts a background job with Ctrl-C ignored, and the job's programs inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Programs to be recorded, and whole runs with a make target of their own.
collect_ignore = ["programs", "seeds", "cpython", "fuzz", "unit"]


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "slow: takes more than some ten seconds: `./dev slow` runs these"
    )
    config.addinivalue_line(
        "markers",
        "no_sanitizer: sets a limit of memory, or an environment without LD_PRELOAD, under which "
        "the sanitizers' runtime does not start, or counts memory",
    )
    config.addinivalue_line(
        "markers", "one_python: with the first interpreter only; what is tested is the same for all"
    )
    config.addinivalue_line(
        "markers",
        "newest_too: what is tested has code of its own for some CPython, so `./dev test` runs it "
        "with the newest interpreter, too; `./dev slow` runs all with each",
    )
    config.addinivalue_line(
        "markers", "sweep(n): `./dev test` runs every n-th of its cases, `./dev slow` the others"
    )


def pytest_sessionfinish():
    """Tests that damage or forge a session leave its second directory: nobody knows any more whose
    it was.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"dyntrace-{os.getuid()}-*"):
        with contextlib.suppress(OSError):  # it is not empty
            if (
                not os.path.exists(f"/dev/shm/{folder.name}")
                and time.time() - folder.stat().st_mtime > 60
            ):
                folder.rmdir()


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(config, items):
    """Whole files about the collector or a viewer need not run with every interpreter, and a few
    tests not under sanitizers. `./dev test` has the first interpreter, and where `newest_too`
    says so the last; `./dev slow` has the others."""
    again = []
    for item in items:
        python = hasattr(item, "callspec") and item.callspec.params.get("python") or PYTHONS[0]
        if python != PYTHONS[0] and item.get_closest_marker("one_python"):
            again.append(item)
        elif python in PYTHONS[1:]:
            quick = python == PYTHONS[-1] and item.get_closest_marker("newest_too")
            if not quick:
                item.add_marker(pytest.mark.slow)
    if os.environ.get("DYNTRACE_SANITIZED"):  # run_san.sh
        again += [item for item in items if item.get_closest_marker("no_sanitizer")]
    config.hook.pytest_deselected(items=again)
    left_out = set(again)
    items[:] = [item for item in items if item not in left_out]
    cases = collections.Counter()
    for item in items:
        sweep = item.get_closest_marker("sweep")
        if sweep and not item.get_closest_marker("slow"):
            case = cases[item.path, item.originalname]
            cases[item.path, item.originalname] += 1
            if case % sweep.args[0]:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def dyntrace():
    """Path of the program under test."""
    path = os.environ.get("DYNTRACE") or str(ROOT / "build" / "dyntrace")
    if not os.access(path, os.X_OK):
        pytest.exit(f"{path}: not built; run make first", 2)
    return path


@pytest.fixture(scope="session")
def base_python(python):
    """PYTHON itself, or the interpreter from which its virtual environment was made: a virtual
    environment has no user site-packages.
    """
    words = [python, "-c", "import sys; print(sys._base_executable)"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


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

    COMMAND is what stands after `dyntrace run OPTIONS --`: a script with its arguments, "-m", "-c".
    """
    count = 0

    def run(command, *options, python=None, status=0, timeout=300, **rest):
        nonlocal count
        count += 1
        path = tmp_path / f"trace{count}.db"
        argv = [dyntrace, "run", "-o", path, *options]
        argv += ["--python", python or PYTHONS[0], "--", *command]
        rest.setdefault("cwd", tmp_path)
        done = subprocess.run(
            list(map(str, argv)), capture_output=True, text=True, timeout=timeout, **rest
        )
        if status is not None:
            assert done.returncode == status, done.stderr
        return Trace(path, done)

    return run


@pytest.fixture
def run(dyntrace, tmp_path):
    """run("sql", FILE, ...) -> what subprocess.run returns; stdin is empty unless given, output is
    bytes without TEXT.
    """

    def run(*argv, text=True, **rest):
        if "input" not in rest:
            rest.setdefault("stdin", subprocess.DEVNULL)
        rest.setdefault("cwd", tmp_path)
        rest.setdefault("encoding", "utf-8" if text else None)
        return subprocess.run(
            [dyntrace, *map(str, argv)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=120,
            **rest,
        )

    return run


@pytest.fixture
def trace(tmp_path):
    """A small trace: two processes, a call that raised, one that was left open."""
    return make_trace(tmp_path / "t.db")


@pytest.fixture
def plant(tmp_path):
    """plant(...) -> planted.Plant, a trace of its own each time."""
    count = 0

    def plant(*argv, **rest):
        nonlocal count
        count += 1
        return Plant(tmp_path / f"p{count}.db", *argv, **rest)

    return plant


@pytest.fixture
def logs(tmp_path):
    """Where planted.Log writes."""
    return tmp_path / "logs"


@pytest.fixture(params=["alone", "recorded"])
def evaluate(request, dyntrace, python, record):
    """evaluate(program of tests/programs, *arguments) -> (out, err, trace or None): alone, and
    under `dyntrace run`.
    """

    def alone(program, *arguments, status=0, timeout=300):
        environment = dict(
            os.environ, PYTHONPATH=os.path.join(os.path.dirname(dyntrace), "lib", "python")
        )
        done = subprocess.run(
            [python, str(PROGRAMS / program), *arguments],
            capture_output=True,
            text=True,
            env=environment,
            timeout=timeout,
        )
        assert done.returncode == status, done.stdout[-4000:] + done.stderr[-8000:]
        return done.stdout, done.stderr, None

    def recorded(program, *arguments, status=0, timeout=300):
        trace = record(
            [PROGRAMS / program, *arguments], python=python, status=None, timeout=timeout
        )
        assert trace.status == status, trace.out[-4000:] + trace.err[-8000:]
        return trace.out, trace.err, trace

    return alone if request.param == "alone" else recorded


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a trace for the TUI and the source that it names."""
    folder = tmp_path_factory.mktemp("tui")
    make_decided(folder / "t.db")
    make_decided(folder / "plain.db", hostile=False)
    (folder / "model.py").write_text(SOURCE)
    os.utime(folder / "model.py", (1600000000, 1600000000))
    return folder
