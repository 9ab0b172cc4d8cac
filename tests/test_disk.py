"""Memory, disk or descriptors run out, or other processes write to our files: the program continues, the trace is a valid
database, and it says what is missing."""
import contextlib
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import textwrap
import time
from pathlib import Path

import pytest

from crash_help import Work, collector_of, fsck, gone, mounted, needs_root, rests, ring_offsets, rows, until
from shared import ROOT

pytestmark = pytest.mark.one_python

RING_FORMAT = int(re.search(r"RING_FORMAT = (\d+)", (ROOT / "src" / "ring.h").read_text())[1])

CALLS = """
import sys
def leaf(n):
    return n
def work(n):
    return sum(leaf(i) for i in range(n))
print(work({calls}))
sys.exit(3)
"""


DECIDED = """
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode
import sys
def leaf(n):
    return n
set_eval_frame(lambda frame, *rest: GuardedCode(frame.f_code.replace(), lambda f_locals: True) if frame.f_code is leaf.__code__ else None)
total = 0
for i in range({calls}):
    total += leaf(i)
set_eval_frame(None)
print(total)
sys.exit(3)
"""


def integrity(path):
    return rows(path, "PRAGMA integrity_check")


@pytest.mark.sweep(3)
@needs_root
@pytest.mark.parametrize("program", [CALLS, DECIDED], ids=["frames", "lookups"])
@pytest.mark.parametrize("size", ["520k", "1500k", "4m", "9m"])
def test_a_full_disk_stops_the_trace_and_not_the_program(dyntrace, python, tmp_path, size, program):
    small, after = tmp_path / "small", tmp_path / "after.db"
    small.mkdir()
    # The filesystem goes with its namespace: a shell keeps it until the trace is copied out.
    run = f'"{dyntrace}" run -o "{small}/t.db" --python "{python}" -c "$CODE"; s=$?; ls "{small}" >&2; cp "{small}/t.db" "{after}"; cp "{small}/t.db-wal" "{after}-wal" 2>/dev/null; exit $s'
    done = mounted(size, small, ["sh", "-c", run], env={**os.environ, "CODE": program.format(calls=500000)})
    assert done.returncode == 3, done.stderr
    assert done.stdout == "124999750000\n"
    assert "No space left on device" in done.stderr or "disk is full" in done.stderr, done.stderr
    assert integrity(after) == [("ok",)]
    if rows(after, "SELECT value FROM meta WHERE key = 'state'") == [("complete",)]:
        fsck(dyntrace, after)
        assert any("disk: " in cause for cause, in rows(after, "SELECT cause FROM loss")), done.stderr
        assert done.stderr.split("\n")[-2] == "t.db", "one file is left"


@needs_root
def test_a_full_disk_from_the_start_is_reported(dyntrace, python, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    done = mounted("16k", small, [dyntrace, "run", "-o", small / "t.db", "--python", python, "-c", "print(1)"])
    assert done.returncode == 2 and done.stdout == "", done.stderr
    assert str(small / "t.db") in done.stderr


THREADS = """
import threading
def leaf(n):
    return n
def work():
    for i in range(2000):
        leaf(i)
threads = [threading.Thread(target=work) for _ in range(40)]
for t in threads: t.start()
for t in threads: t.join()
print("done")
"""


@needs_root
@pytest.mark.parametrize("size", ["100k", "30m", "50m", "64m"])
def test_with_little_shared_memory_rings_are_smaller_or_in_tmpdir(dyntrace, python, tmp_path, size):
    """If a session does not fit into shared memory, it is made in TMPDIR. If not all rings fit, they are smaller, or in
    TMPDIR, or reported as missing."""
    trace = tmp_path / "t.db"
    done = mounted(size, "/dev/shm", [dyntrace, "run", "-o", trace, "--python", python, "-c", THREADS],
                   env={**os.environ, "TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    fsck(dyntrace, trace)
    leaves = rows(trace, "SELECT count(*) FROM frames WHERE qualname = 'leaf'")[0][0]
    losses = rows(trace, "SELECT cause, events FROM loss")
    assert leaves == 80000 or any("memory: " in cause for cause, _ in losses), (leaves, losses)
    if size in ("100k", "30m"):
        assert leaves == 80000 and all(cause.startswith("stall") for cause, _ in losses), (leaves, losses)
    assert list(tmp_path.glob("dyntrace-*")) == [], "nothing is left"


@needs_root
def test_shared_memory_that_fills_up_is_recorded_as_a_loss(dyntrace, python, tmp_path):
    """Another process takes all shared memory before the program starts its threads."""
    trace = tmp_path / "t.db"
    code = """
open("/dev/shm/other", "wb").write(bytes(1 << 16))
try:
    with open("/dev/shm/other", "ab") as file:
        while True:
            file.write(bytes(1 << 16)), file.flush()
except OSError:
    pass
""" + THREADS
    done = mounted("96m", "/dev/shm", [dyntrace, "run", "-o", trace, "--python", python, "-c", code],
                   env={**os.environ, "TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    fsck(dyntrace, trace)
    leaves = rows(trace, "SELECT count(*) FROM frames WHERE qualname = 'leaf'")[0][0]
    assert leaves == 80000 or rows(trace, "SELECT count(*) FROM loss") != [(0,)]


@pytest.mark.parametrize("limit, code", [
    (resource.RLIMIT_NOFILE, """
        import os, sys, threading
        files = []
        try:
            while True:
                files.append(os.open("/dev/null", os.O_RDONLY))
        except OSError as error:
            number = error.errno
        def f(): pass
        t = threading.Thread(target=f)
        t.start(); t.join()
        print(number, len(files))
     """),
    (resource.RLIMIT_AS, """
        import resource
        def f(n):
            return [0] * n
        n = 1
        try:
            while True:
                f(n)
                n *= 2
        except MemoryError:
            print("MemoryError", n)
     """),
], ids=["descriptors", "memory"])
@pytest.mark.no_sanitizer
def test_a_program_under_a_tight_limit_runs_as_alone(dyntrace, python, tmp_path, limit, code):
    """The program sets a limit for itself. The limit has the same effect as without dyntrace."""
    value = 32 if limit == resource.RLIMIT_NOFILE else 400 << 20
    program = tmp_path / "p.py"
    program.write_text(f"import resource\nresource.setrlimit({int(limit)}, ({value}, {value}))\n" + textwrap.dedent(code))
    plain = subprocess.run([python, program], capture_output=True, text=True)
    trace = tmp_path / "t.db"
    done = subprocess.run([dyntrace, "run", "-o", trace, "--python", python, program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), done.stderr
    fsck(dyntrace, trace)
    assert rows(trace, "SELECT count(*) > 0 FROM frames WHERE qualname = 'f'") == [(1,)] or rows(trace, "SELECT * FROM loss")


@pytest.mark.parametrize("megabytes", [2000, 300, 150, 80, 40])
def test_a_memory_limit_on_the_recorder_does_not_harm_the_program(dyntrace, python, tmp_path, megabytes):
    """The limit also holds for the recorder. The recorder may refuse to record, but the program must not suffer."""
    trace = tmp_path / "t.db"
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    argv = [python, "-c", CALLS.format(calls=1000)]
    plain = subprocess.run(argv, capture_output=True, text=True, preexec_fn=limit)
    done = subprocess.run([dyntrace, "run", "-o", trace, "--", *argv], capture_output=True, text=True, preexec_fn=limit)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout) or done.returncode == 2, done.stderr
    if done.returncode == 2:
        assert done.stderr and not done.stdout
    elif trace.exists() and plain.returncode == 3:
        assert integrity(trace) == [("ok",)]
        assert rows(trace, "SELECT count(*) FROM frame")[0][0] > 1000 or rows(trace, "SELECT * FROM loss"), done.stderr


def test_two_recorders_do_not_write_one_file(dyntrace, python, tmp_path):
    work = Work(dyntrace, python, tmp_path, 1, rounds=-1)
    try:
        for force in [], ["--force"]:
            done = subprocess.run([dyntrace, "run", "-o", work.trace, *force, "--python", python, "-c", "print(1)"],
                                  capture_output=True, text=True)
            assert done.returncode == 2 and done.stdout == ""
            assert str(work.trace) in done.stderr
        os.kill(work.pid, signal.SIGKILL)
        assert work.wait() == 137
        work.check()
    finally:
        work.end()


SLEEPERS = """
import os, sys, threading, time
def leaf():
    pass
def sleeper():
    for i in range(1000):
        leaf()
    time.sleep(1000)
for _ in range(2):
    threading.Thread(target=sleeper).start()
for i in range(1000):
    leaf()
print(os.getpid(), flush=True)
time.sleep(1000)
"""


@pytest.mark.sweep(2)
@pytest.mark.parametrize("left", [0, 100, 4096, 200000, "half"])
def test_a_truncated_ring_is_recorded_as_a_loss(dyntrace, python, tmp_path, left):
    """The ring is truncated while the collector reads it and all threads sleep. (A thread that writes would get SIGBUS.)"""
    trace = tmp_path / "t.db"
    run = subprocess.Popen([dyntrace, "run", "-o", trace, "--python", python, "-c", SLEEPERS], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    pid = int(run.stdout.readline())
    try:
        session = Path(rows(trace, "SELECT value FROM meta WHERE key = 'session'")[0][0])
        until(lambda: rests(collector_of(run.pid)), "the collector has read all")
        ring, = session.glob("*.ring")
        os.truncate(ring, ring.stat().st_blocks * 256 if left == "half" else left)
        time.sleep(0.2)
        assert not gone(collector_of(run.pid)), "the collector survives"
        os.kill(pid, signal.SIGKILL)
        out, err = run.communicate(timeout=60)
    finally:
        for one in (pid, run.pid):
            with contextlib.suppress(OSError):
                run.returncode is None and os.kill(one, signal.SIGKILL)
    assert run.returncode == 137, err
    assert "killed" not in err
    fsck(dyntrace, trace)
    losses = [cause for cause, in rows(trace, "SELECT cause FROM loss")]
    assert any(cause.startswith("ring: ") for cause in losses), losses
    assert rows(trace, "SELECT count(*) FROM frames WHERE qualname = 'leaf' AND end_ns IS NOT NULL") == [(3000,)]
    assert not session.exists()


NAMES = """
import os, sys, time
print(os.getpid(), flush=True)
sys.stdin.readline()
for i in range(300):
    exec(f"def name_{i}_{'x' * 20000}(): pass\\nname_{i}_{'x' * 20000}()")
print("idle", flush=True)
time.sleep(1000)
"""


def test_a_file_truncated_during_a_read_leaves_a_whole_trace(dyntrace, python, tmp_path):
    """No SQL statement is left half done. The trace is whole, and says what is missing."""
    trace = tmp_path / "t.db"
    run = subprocess.Popen([dyntrace, "run", "-o", trace, "--python", python, "-c", NAMES], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pid = int(run.stdout.readline())
    try:
        session, collector = Path(rows(trace, "SELECT value FROM meta WHERE key = 'session'")[0][0]), collector_of(run.pid)
        until(lambda: rests(collector), "the collector has read all")
        os.kill(collector, signal.SIGSTOP)
        run.stdin.write("go\n")
        run.stdin.flush()
        assert run.stdout.readline() == "idle\n"
        ring, = session.glob("*.ring")
        os.truncate(ring, ring_offsets(ring)[0] + 4096 + (3 << 20))  # behind the first ring's words lie more names
        os.kill(collector, signal.SIGCONT)
        until(lambda: rests(collector), "the collector has read what is left")
        os.kill(pid, signal.SIGKILL)
        out, err = run.communicate(timeout=60)
    finally:
        for one in (pid, run.pid):
            with contextlib.suppress(OSError):
                run.returncode is None and os.kill(one, signal.SIGKILL)
    assert run.returncode == 137, err
    assert "cannot" not in err and "killed" not in err
    fsck(dyntrace, trace)
    assert any(cause.startswith("ring: ") for cause, in rows(trace, "SELECT cause FROM loss"))
    assert rows(trace, "SELECT value FROM meta WHERE key = 'state'") == [("complete",)]
    assert not session.exists()


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", ["state", "session"])
@pytest.mark.parametrize("dead", ["nobody", "all"])
def test_a_truncated_session_file_does_not_disturb_the_program(dyntrace, python, tmp_path, name, dead):
    """A file of the recorder is truncated. The program does not notice; the trace is finished and says what it lacks."""
    work = Work(dyntrace, python, tmp_path, 1, rounds=500000 if dead == "nobody" else -1)  # many: it is to be at work meanwhile
    try:
        session = Path(work.session())
        until(lambda: work.begun_and_done(0)[0] > 5000, "the program goes on")
        if dead == "all":
            for pid in (work.run.pid, collector_of(work.run.pid), work.pid):
                os.kill(pid, signal.SIGKILL)
            work.run.wait()
            until(lambda: gone(work.pid), "the program dies")
        os.truncate(session / name, 16)
        if dead == "nobody":
            assert work.wait() == 5, work.err
            assert work.out == "finished [500000]\n"
        else:
            done = subprocess.run([dyntrace, "fsck", "--recover", work.trace], capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
        if name == "session" and dead == "nobody":  # it may have been read for the last time already
            subprocess.run([dyntrace, "fsck", "--recover", work.trace], capture_output=True)
        fsck(dyntrace, work.trace)
        assert rows(work.trace, "SELECT value FROM meta WHERE key = 'state'") in ([("recovered",)], [("complete",)])
        if name == "state" or dead == "all":
            assert any(cause.startswith("collector: it was killed") for cause in work.losses()), work.losses()
            assert rows(work.trace, "SELECT value FROM meta WHERE key = 'state'") == [("recovered",)]
        assert rows(work.trace, "SELECT count(*) > 10000 FROM frame") == [(1,)] or name == "state"
        assert not session.exists()
    finally:
        work.end()


CUT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Who maps the file CUT finds it cut short, to AT bytes, a moment later. */
void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *(*real)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
    void *mapped = real(address, bytes, protection, flags, fd, offset);
    struct stat cut, this;

    if (flags & MAP_SHARED && !stat(getenv("CUT"), &cut) && !fstat(fd, &this) && cut.st_ino == this.st_ino && cut.st_dev == this.st_dev)
        (void)!ftruncate(fd, atoi(getenv("AT")));
    return mapped;
}
"""


@pytest.mark.no_sanitizer
@pytest.mark.parametrize("name, at", [("state", 4096), ("session", 0)])
def test_truncating_an_old_session_does_not_disturb_a_new_recording(dyntrace, python, tmp_path, name, at):
    """A new recording examines old sessions, and one of them is truncated meanwhile."""
    (tmp_path / "cut.c").write_text(CUT)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "cut.so", tmp_path / "cut.c"], check=True)
    base = tmp_path / "tmp"
    base.mkdir(mode=0o700)
    work = Work(dyntrace, python, tmp_path, 1, rounds=-1)
    try:
        left = base / Path(work.session()).name  # as if its recorder were dead; the `run` that starts another lives
        left.mkdir(mode=0o700)
        for file in ("session", "state", "collector.lock"):
            shutil.copy(Path(work.session()) / file, left)
        done = subprocess.run([dyntrace, "run", "-o", tmp_path / "t.db", "--python", python, "-c", "print(1)"], capture_output=True, text=True,
                              env={**os.environ, "TMPDIR": str(base), "LD_PRELOAD": str(tmp_path / "cut.so"), "CUT": str(left / name), "AT": str(at)})
        assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
        assert left.exists(), "whose `run` lives is not touched"
    finally:
        work.end()


def test_a_trace_is_recovered_after_a_reboot(dyntrace, python, tmp_path):
    """The session directory is gone, as after a reboot. Recovery makes a trace of the rows that had been written."""
    work = Work(dyntrace, python, tmp_path, 2)
    try:
        session = Path(work.session())
        frames = Path(f"{work.trace}-frames")
        until(lambda: frames.stat().st_blocks * 512 > 16 << 20 and rows(work.trace, "SELECT 1 FROM code WHERE qualname = 'leaf'"),
              "frames are written, and what their code is")
        for pid in (work.run.pid, collector_of(work.run.pid), work.pid):
            os.kill(pid, signal.SIGKILL)
        work.run.wait()
        until(lambda: gone(work.pid), "the program dies")
        for file in session.iterdir():
            file.unlink()
        session.rmdir()
        done = subprocess.run([dyntrace, "fsck", "--recover", work.trace], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        fsck(dyntrace, work.trace)
        assert rows(work.trace, "SELECT value FROM meta WHERE key = 'state'") == [("recovered",)]
        assert rows(work.trace, "SELECT events, cause LIKE 'collector: it was killed, and the state%' FROM loss") == [(None, 1)]
        assert rows(work.trace, "SELECT count(*) > 100000 FROM frame JOIN code USING (code_id) WHERE qualname = 'leaf'") == [(1,)]
    finally:
        work.end()


@pytest.mark.parametrize("what", ["words", "head", "words and head"])
def test_hostile_bytes_in_a_live_ring_are_recorded_as_a_loss(dyntrace, python, tmp_path, what):
    random.seed(what)
    rounds = 30000
    work, heads = Work(dyntrace, python, tmp_path, 2, rounds=rounds, name="t"), 0
    try:
        ring, = Path(work.session()).glob("*.ring")
        offsets = ring_offsets(ring)
        with open(ring, "r+b", buffering=0) as file:
            for _ in range(2000):
                if work.run.poll() is not None or work.finished:
                    break
                at = random.choice(offsets)
                if "words" in what:
                    file.seek(at + 4096 + 8 * random.randrange(1 << 18))
                    file.write(random.randbytes(8 * random.randrange(1, 200)))
                if "head" in what and random.random() < 0.03:
                    heads += 1
                    file.seek(at)
                    file.write(struct.pack("<Q", random.choice([0, 1, 2**63, 2**64 - 1, random.randrange(2**22)])))
        assert work.wait() == 5, work.err
        assert work.out == f"finished {[rounds] * 2}\n"
        assert "the collector was killed" not in work.err
        assert integrity(work.trace) == [("ok",)]
        if heads > 20:  # its owner writes the next one over a few of them before anybody reads
            assert work.losses()
    finally:
        work.end()


def test_hostile_files_in_the_session_are_recorded_as_a_loss(dyntrace, python, tmp_path):
    """Files with other names and contents appear beside the rings. Their only effect is a loss row."""
    work = Work(dyntrace, python, tmp_path, 1)
    try:
        session = Path(work.session())
        random.seed(4)
        (session / "1-2-3.ring").write_bytes(b"")
        (session / "2-2-3.ring").write_bytes(random.randbytes(100000))
        (session / "3-2-3.ring").symlink_to("/etc/passwd")
        (session / "4-2-3.ring").mkdir()
        os.mkfifo(session / "5-2-3.ring")
        (session / ("x" * 200 + ".ring")).write_bytes(b"x")
        (session / "6-2-3.ring").write_bytes(struct.pack("<8s4I", b"DYNPROC", RING_FORMAT, 8, 1, 1) + b"\xff" * 60000)
        (session / "strange").write_bytes(b"x")
        time.sleep(0.1)
        os.kill(work.pid, signal.SIGKILL)
        assert work.wait() == 137, work.err
        work.check()
        assert "killed" not in work.err
        assert [cause.split(";")[0] for cause in work.losses()] == [
            "ring: a file in the session is not a process's ring, or of another dyntrace", "ring: its names lie outside the file"]
        until(lambda: not session.exists(), "the session goes away")
    finally:
        work.end()


def test_a_reader_of_a_live_trace_always_sees_a_valid_database(dyntrace, python, tmp_path):
    """A reader that keeps the live file open sees a valid database at all times, and does not disturb the end."""
    work = Work(dyntrace, python, tmp_path, 1, rounds=60000)
    try:
        with contextlib.closing(sqlite3.connect(f"file:{work.trace}?mode=ro", uri=True)) as db:
            seen = 0
            while work.run.poll() is None:
                before, seen = seen, db.execute("SELECT count(*) FROM process").fetchone()[0]
                assert before <= seen <= 1
                assert db.execute("PRAGMA quick_check").fetchall() == [("ok",)]
                time.sleep(0.02)
        assert seen and work.wait() == 5, work.err
        work.check([60000], [60000])
    finally:
        work.end()
