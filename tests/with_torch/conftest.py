"""A Python with torch, and the programs of ./programs, each run once in each way.

DYNTRACE_TORCH_PYTHON  the Python; else the one that runs pytest, else the one that `./dev test` makes under build/.
                       None has torch: what records is skipped
DYNTRACE_TORCH_JOBS    how many programs at a time, default one for each processor, at most two

    def test_it(program, mode, runs):
        assert runs(program, mode).status == runs(program, "plain").status
"""
import concurrent.futures
import contextlib
import functools
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import pytest

from shared import run_whole
from torch_here import MODES, PROGRAMS, torch_python

# What is recorded of frames. All of them are 1.5 million in each process for the import of torch alone, so a few programs
# do for that; but the compiler looks at frames of torch and the library, too, where user frames are all that is wanted.
ALL_FRAMES = {"tokenizer", "callables"}
LONG_FRAMES = {"ddp"}
collect_ignore = ["programs"]


def pytest_collection_modifyitems(items):
    python, why = torch_python()
    if not python:
        for item in items:
            if item.path.is_relative_to(Path(__file__).parent) and {"python", "runs"} & set(item.fixturenames):
                item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session")
def python():
    """A session has one Python with torch; the tests above this folder go through several without."""
    return torch_python()[0]


class Run:
    """A program that has ended: what it printed, its status, what it knows of itself, and the trace if it left one."""

    def __init__(self, program, mode, done, path, seconds):
        self.program, self.mode, self.path, self.seconds = program, mode, path, seconds
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    @functools.cached_property
    def known(self):
        known = json.loads(self.out.splitlines()[-1]) if self.out else {}
        assert known and self.status == known.get("results", {}).get("status", 0), self.out[-2000:] + self.err[-6000:]
        return known

    def rows(self, sql, *values):
        with contextlib.closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as db:
            return db.execute(sql, values).fetchall()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def words_of(program):
    """The program's command line: a line `run: ...` in its docstring, or just its name."""
    path = str(PROGRAMS / f"{program}.py")
    found = re.search(r"^run: (.*)", Path(path).read_text(), re.M)
    if not found:
        return [path]
    return [{"PORT": free_port(), f"{program}.py": path}.get(word, word) for word in found[1].split()]


def run_program(dyntrace, python, folder, program, mode):
    import time
    work = folder / f"{program}-{mode}"
    work.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "PYTHON"))}
    environment.update(PYTHONDONTWRITEBYTECODE="1", PYTHONHASHSEED="0", OMP_NUM_THREADS="1",
                       TORCHINDUCTOR_CACHE_DIR=str(folder / f"inductor-{program}"), TMPDIR=str(work))
    command, path = [python, *words_of(program)], None
    if mode == "counted":
        path = work / "counts.json"
        command[1:1] = [str(PROGRAMS.parent / "count_calls.py"), str(path)]
    elif mode != "plain":
        path = work / "t.db"
        frames = ["--min-duration", "100us"] if program in LONG_FRAMES else ["--frames", "all" if program in ALL_FRAMES else "user"]
        command = [dyntrace, "run", "--torch", mode, *frames, "-o", str(path), "--python", python, "--", *command[1:]]
    began = time.monotonic()
    done = run_whole(command, 280, cwd=work, env=environment)
    return Run(program, mode, done, path, time.monotonic() - began)


@pytest.fixture(scope="session")
def runs(request, dyntrace, python):
    """runs(program, mode) -> Run. The first call starts all that the selected tests need."""
    jobs = int(os.environ.get("DYNTRACE_TORCH_JOBS") or min(2, os.cpu_count() or 1))
    wanted = {}
    for item in request.session.items:
        asked = getattr(item, "callspec", None) and item.callspec.params
        if asked and "program" in asked:
            counted = ["counted"] if "counted" in item.name else []
            for mode in ("plain", *counted, *([asked["mode"]] if "mode" in asked else MODES)):
                wanted[asked["program"], mode] = None
    folder = Path(tempfile.mkdtemp(prefix="dyntrace-torch-"))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        # Those without us first: what they compile to C++ lies ready for the others.
        keys = sorted(wanted, key=lambda key: key[1] != "plain")
        started = {key: pool.submit(run_program, dyntrace, python, folder, *key) for key in keys}

        def runs(program, mode):
            if (program, mode) not in started:
                started[program, mode] = pool.submit(run_program, dyntrace, python, folder, program, mode)
            run = started[program, mode].result()
            if run.status == 0 and run.known.get("skip"):
                pytest.skip(run.known["skip"])
            return run

        yield runs
        for one in started.values():
            one.cancel()
    shutil.rmtree(folder, ignore_errors=True)
