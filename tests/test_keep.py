"""`run --keep`: the trace holds the frames and lookups of the last seconds or bytes, and never outgrows its bound."""
import contextlib
import os
import signal
import sqlite3
import subprocess
import textwrap
import threading
import time
from pathlib import Path

import pytest

from crash_help import collector_of, fsck, mounted, needs_root, rows, until

pytestmark = pytest.mark.one_python

# Each `mid` calls `leaf` 200 times. A thread makes a few frames a second beside it, and every frame of `outer` is open to the end.
CALLS = textwrap.dedent("""
    import sys, threading, time
    def leaf(i):
        return i + 1
    def mid():
        for i in range(200):
            leaf(i)
    def slow():
        time.sleep(0.02)
    def ticker(stop):
        while not stop.is_set():
            slow()
    def outer(rounds, pause):
        for i in range(rounds):
            mid()
            if pause:
                time.sleep(pause)
    stop = threading.Event()
    thread = threading.Thread(target=ticker, args=(stop,))
    thread.start()
    outer(int(sys.argv[1]), float(sys.argv[2]))
    stop.set()
    thread.join()
    """)

DECIDED = textwrap.dedent("""
    import sys, time
    from dyntrace.eval_frame import set_eval_frame
    from dyntrace.types import GuardedCode
    def leaf(n):
        return n
    def other(n):
        return n
    made = {leaf.__code__, other.__code__}
    set_eval_frame(lambda frame, *rest: GuardedCode(frame.f_code.replace(), lambda f_locals: f_locals["n"] >= 0) if frame.f_code in made else None)
    leaf(1), other(1)
    rounds = int(sys.argv[1])
    for i in range(rounds):
        leaf(i)
    other(-1)
    leaf(-1)
    set_eval_frame(None)
    """)


def files_of(trace):
    """Bytes of the trace and of all files beside it that belong to it. A file that gets another name meanwhile counts once."""
    sizes = {}
    for path in Path(trace).parent.glob(Path(trace).name + "*"):
        with contextlib.suppress(OSError):
            status = path.stat()
            sizes[status.st_ino] = status.st_size
    return sum(sizes.values())


class Sizes:
    """The most that the files of a trace had, looked at all the time."""

    def __init__(self, trace):
        self.trace, self.most, self.stop = trace, 0, threading.Event()
        self.thread = threading.Thread(target=self.look)

    def look(self):
        while not self.stop.wait(0.005):
            self.most = max(self.most, files_of(self.trace))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.stop.set()
        self.thread.join()


def meta(trace, key):
    return rows(trace, "SELECT value FROM meta WHERE key = ?", key)[0][0]


def calls(trace, name):
    return rows(trace, "SELECT SUM(calls) FROM code_total JOIN code USING (code_id) WHERE qualname = ?", name)[0][0]


def check_window(dyntrace, trace, killed=False):
    """Every frame of which a part lies in the window is there, with its callers. A collector that took over from a KILLED one
    may say that the window begins later than it does."""
    fsck(dyntrace, trace)
    start = meta(trace, "kept_from_ns")
    whole = rows(trace, """SELECT parent_id, COUNT(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'leaf'
                           AND parent_id IN (SELECT frame_id FROM frame JOIN code USING (code_id)
                                             WHERE qualname = 'mid' AND start_ns >= ? AND end_ns IS NOT NULL) GROUP BY 1""", start)
    assert len(whole) > 10 and {count for _, count in whole} == {200}
    assert rows(trace, "SELECT COUNT(*) FROM frame WHERE parent_id NOT IN (SELECT frame_id FROM frame)") == [(0,)]
    assert rows(trace, "SELECT COUNT(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'outer'") == [(1,)]
    assert rows(trace, "SELECT COUNT(*) FROM frame f JOIN code c ON c.code_id = f.code_id LEFT JOIN frame p ON p.frame_id = f.parent_id"
                       " LEFT JOIN code q ON q.code_id = p.code_id WHERE c.qualname = 'mid' AND q.qualname IS NOT 'outer'") == [(0,)]
    (first, last, stored, inside), = rows(trace, """SELECT MIN(start_ns), MAX(start_ns), COUNT(*), SUM(start_ns >= ?)
                                                    FROM frame JOIN code USING (code_id) WHERE qualname = 'leaf'""", start)
    # By their time or by their number: the program may have waited among them, when the recorder got no processor. Or they are
    # few: pages are written, and dropped, a megabyte at a time, 256 of at most 192 rows.
    most = start <= first + (last - first) / 4 or inside >= stored * 3 / 4 or stored - inside <= 257 * 192
    assert killed or most, "most of what is stored is in the window"


def start_run(dyntrace, python, trace, code, *options, arguments=()):
    return subprocess.Popen([dyntrace, "run", "-o", str(trace), *options, "--python", python, "-c", code, *arguments],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("bound", ["16M", "30M"])
def test_files_stay_within_the_size_that_keep_allows(dyntrace, python, tmp_path, bound):
    trace = tmp_path / "t.db"
    with Sizes(trace) as sizes:
        run = start_run(dyntrace, python, trace, CALLS, "--keep", bound, arguments=["20000", "0"])
        _, err = run.communicate(timeout=300)
    assert run.returncode == 0 and err == "", err
    most = int(bound[:-1]) * 1_000_000
    assert most * 0.8 < sizes.most <= most * 1.05
    assert files_of(trace) <= most * 1.05
    assert calls(trace, "leaf") == 4_000_000 and calls(trace, "mid") == 20000
    assert rows(trace, "SELECT COUNT(*) FROM loss") == [(0,)]
    assert meta(trace, "kept_from_ns") > 0 and meta(trace, "keep_bytes") == most
    check_window(dyntrace, trace)


def test_the_last_seconds_are_kept(dyntrace, python, tmp_path):
    trace = tmp_path / "t.db"
    run = start_run(dyntrace, python, trace, CALLS, "--keep", "1s", arguments=["3000", "0.001"])
    assert run.communicate(timeout=300)[1] == "" and run.returncode == 0
    start, end = meta(trace, "kept_from_ns"), meta(trace, "span_ns")
    assert 0.9e9 < end - start < 1.6e9
    assert calls(trace, "mid") == 3000
    (oldest,), = rows(trace, "SELECT MIN(start_ns) FROM frame JOIN code USING (code_id) WHERE qualname = 'leaf'")
    assert 0 < start - oldest < 1e9
    assert rows(trace, "SELECT COUNT(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'slow' AND start_ns >= ?", start)[0][0] > 20
    check_window(dyntrace, trace)


def test_a_recording_shorter_than_the_bound_keeps_all_frames(dyntrace, python, tmp_path):
    trace = tmp_path / "t.db"
    run = start_run(dyntrace, python, trace, CALLS, "--keep", "60s", "--keep", "100M", arguments=["100", "0"])
    assert run.communicate(timeout=300)[1] == "" and run.returncode == 0
    assert meta(trace, "kept_from_ns") == 0
    assert rows(trace, "SELECT COUNT(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'leaf'") == [(20000,)]
    check_window(dyntrace, trace)


def test_decisions_are_kept_and_dropped_lookups_are_counted(dyntrace, python, tmp_path):
    trace = tmp_path / "t.db"
    with Sizes(trace) as sizes:
        run = start_run(dyntrace, python, trace, DECIDED, "--keep", "16M", "--frames", "decided", arguments=["300000"])
        _, err = run.communicate(timeout=300)
    assert run.returncode == 0 and err == "", err
    assert sizes.most <= 16e6 * 1.05
    compiles = rows(trace, "SELECT qualname, outcome, frame_id FROM compile JOIN code USING (code_id) ORDER BY compile_id")
    assert [name for name, *_ in compiles] == ["leaf", "other", "other", "leaf"]
    # the lookups that compiled, with their checks, from long before the window
    assert rows(trace, "SELECT qualname FROM lookup JOIN code USING (code_id) WHERE outcome = 2 ORDER BY lookup_id") == [(name,) for name, *_ in compiles]
    assert rows(trace, "SELECT result, COUNT(*) FROM guard_check JOIN lookup USING (lookup_id) WHERE outcome = 2 GROUP BY 1") == [("fail", 2)]
    (stored,), = rows(trace, "SELECT COUNT(*) FROM lookup WHERE outcome = 1")
    (dropped, entries), = rows(trace, "SELECT SUM(lookups), COUNT(*) FROM lookup_count WHERE outcome = 1")
    assert stored + dropped == 300000 and 10000 < stored < 200000 and entries == 1
    assert rows(trace, "SELECT MIN(start_ns) >= (SELECT value FROM meta WHERE key = 'kept_from_ns') FROM lookup WHERE outcome = 1") == [(1,)]
    fsck(dyntrace, trace)


def test_a_reader_always_sees_lookups_without_holes_and_right_totals(dyntrace, python, tmp_path):
    """While the program runs, a reader sees consecutive lookups with their checks, and totals of all lookups."""
    trace = tmp_path / "t.db"
    run = start_run(dyntrace, python, trace, DECIDED, "--keep", "16M", "--frames", "decided", arguments=["600000"])
    seen = set()
    until(lambda: trace.exists() and trace.stat().st_size, "the trace begins")
    while run.poll() is None:
        with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(f"file:{trace}?mode=ro", uri=True)) as db:
            db.execute("BEGIN")
            hits = "lookup WHERE outcome = 1"
            first, last, count = db.execute(f"SELECT MIN(lookup_id), MAX(lookup_id), COUNT(*) FROM {hits}").fetchone()
            (dropped,) = db.execute("SELECT COALESCE(SUM(lookups), 0) FROM lookup_count").fetchone()
            (bare,) = db.execute(f"SELECT COUNT(*) FROM {hits} AND lookup_id NOT IN (SELECT lookup_id FROM guard_check)").fetchone()
            (early,) = db.execute(f"SELECT COUNT(*) FROM {hits} AND start_ns < (SELECT value FROM meta WHERE key = 'kept_from_ns')").fetchone()
            if count:
                assert last - first + 1 == count and bare == 0 and early == 0
                assert dropped + count == last - 2, "two lookups compiled before"
                seen.add(dropped > 0)
        time.sleep(0.05)
    assert run.wait() == 0 and seen == {False, True}


def test_a_long_read_transaction_does_not_let_the_files_grow(dyntrace, python, tmp_path):
    trace = tmp_path / "t.db"
    with Sizes(trace) as sizes:
        run = start_run(dyntrace, python, trace, DECIDED, "--keep", "16M", "--frames", "decided", arguments=["600000"])
        until(lambda: trace.exists() and rows(trace, "SELECT 1 FROM lookup LIMIT 1"), "lookups come")
        with contextlib.closing(sqlite3.connect(f"file:{trace}?mode=ro", uri=True)) as db:
            db.execute("BEGIN")
            db.execute("SELECT COUNT(*) FROM lookup").fetchone()
            logs = []
            while run.poll() is None:
                with contextlib.suppress(FileNotFoundError):  # the finished trace has no log
                    logs.append(Path(f"{trace}-wal").stat().st_size)
                time.sleep(0.02)
        run.communicate()
    # The last commit before that is the longer, the less processor time the recorder had.
    assert logs[len(logs) // 2] == logs[len(logs) * 3 // 4] <= 16e6 / 8, "nothing is committed meanwhile"
    assert sizes.most <= 16e6 * 1.05
    (stored,), = rows(trace, "SELECT COUNT(*) FROM lookup WHERE outcome = 1")
    (dropped,), = rows(trace, "SELECT COALESCE(SUM(lookups), 0) FROM lookup_count")
    (lost,), = rows(trace, "SELECT COALESCE(SUM(events), 0) FROM loss WHERE cause LIKE 'reader: %'")
    assert stored + dropped + lost == 600000
    assert rows(trace, "SELECT COUNT(*) FROM lookup WHERE outcome = 2") == [(4,)]


@pytest.mark.parametrize("program, arguments", [(CALLS, ["30000", "0"]), (DECIDED, ["600000"])], ids=["frames", "lookups"])
def test_recording_with_keep_continues_after_its_collector_is_killed(dyntrace, python, tmp_path, program, arguments):
    """Totals may lack a quarter of a second before each kill, as with --min-duration; nothing else is missing."""
    trace = tmp_path / "t.db"
    run = start_run(dyntrace, python, trace, program, "--keep", "16M", arguments=arguments)
    killed = 0
    for _ in range(3):  # fewer on a machine where the program ends before
        pid = until(lambda: run.poll() is not None or collector_of(run.pid), "a collector or the end")
        time.sleep(0.2)
        if run.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
    assert killed
    run.communicate(timeout=300)
    assert run.returncode == 0
    assert rows(trace, "SELECT cause FROM loss WHERE cause NOT LIKE 'recorder: %' AND cause NOT LIKE 'stall: %' AND cause NOT LIKE 'collector: %'") == []
    if program is CALLS:
        check_window(dyntrace, trace, killed=True)
    else:
        fsck(dyntrace, trace)
        (stored,), = rows(trace, "SELECT COUNT(*) FROM lookup WHERE outcome = 1")
        (dropped,), = rows(trace, "SELECT SUM(lookups) FROM lookup_count WHERE outcome = 1")
        (gap,), = rows(trace, "SELECT COALESCE(SUM(events), 0) FROM loss")
        assert stored + dropped + gap == 600000


@needs_root
def test_a_full_disk_makes_keep_store_fewer_frames(dyntrace, python, tmp_path):
    small, after = tmp_path / "small", tmp_path / "after.db"
    small.mkdir()
    run = f'"{dyntrace}" run -o "{small}/t.db" --keep 100M --python "{python}" -c "$CODE" 20000 0; s=$?; cp "{small}/t.db" "{after}"; ls "{small}" >&2; exit $s'
    done = mounted("24m", small, ["sh", "-c", run], env={**os.environ, "CODE": CALLS})
    assert done.returncode == 0
    *said, files = done.stderr.strip().split("\n")
    assert files == "t.db" and len(said) == 1 and "--keep kept fewer frames than it allows" in said[0], done.stderr
    assert calls(after, "leaf") == 4_000_000
    check_window(dyntrace, after)


@pytest.mark.parametrize("bound, why", [("5", "not a time such as 60s or 10min, or a size such as 500M or 2G"), ("1M", "less than 16M"),
                                        ("10ms", "less than a second"), ("-3G", "not a time"), ("G", "not a time"), ("", "not a time")])
def test_an_invalid_value_of_keep_is_refused(run, tmp_path, bound, why):
    done = run("run", "-o", "t.db", "--keep", bound, "-c", "0")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and why in done.stderr, done.stderr
    assert list(tmp_path.glob("t.db*")) == []


def test_functions_are_all_kept_even_if_they_exceed_the_bound(dyntrace, python, tmp_path):
    code = "for i in range(60000): exec(compile(f'def f_{i}_{\"x\" * 150}(): pass\\nf_{i}_{\"x\" * 150}()', f'/{\"y\" * 100}/{i}.py', 'exec'), {})"
    trace = tmp_path / "t.db"
    run = start_run(dyntrace, python, trace, code, "--keep", "16M")
    _, err = run.communicate(timeout=300)
    assert run.returncode == 0
    assert len(err.splitlines()) == 1 and "more than --keep allows; it is all there" in err, err
    assert rows(trace, "SELECT COUNT(*) FROM code WHERE qualname GLOB 'f_*'") == [(60000,)]
    assert meta(trace, "keep_over_bytes") > 1_000_000
    fsck(dyntrace, trace)
