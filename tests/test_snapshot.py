"""`dyntrace ls`, and `dyntrace snapshot`: a whole trace of a program that runs on."""
import contextlib
import json
import os
import signal
import subprocess
import textwrap
import time

import pytest

from crash_help import collector_of, fsck, gone, rows, until
from test_keep import DECIDED, start_run

pytestmark = pytest.mark.one_python

STEADY = textwrap.dedent("""
    import os, sys, time
    def leaf(i):
        return i
    def work():
        for i in range(100):
            leaf(i)
    def outer():
        while os.path.exists(sys.argv[1]):
            work()
            time.sleep(0.001)
    print(os.getpid(), flush=True)
    outer()
    """)


@contextlib.contextmanager
def recorded(dyntrace, python, tmp_path, *options, code=STEADY):
    """(pid of the program, its `dyntrace run`, the trace), while it runs."""
    flag, trace = tmp_path / "goes on", tmp_path / "t.db"
    flag.touch()
    run = start_run(dyntrace, python, trace, code, *options, arguments=[str(flag)])
    try:
        yield int(run.stdout.readline()), run, trace
    finally:
        flag.unlink()
        run.communicate(timeout=60)


def lists(run):
    return json.loads(run("ls", "--json").stdout)


def test_ls_lists_a_recording_while_it_runs(run, dyntrace, python, tmp_path):
    with recorded(dyntrace, python, tmp_path) as (pid, _, trace):
        until(lambda: any(row["pid"] == pid for row in lists(run)), "the recording is listed")
        row, = [row for row in lists(run) if row["trace"] == str(trace)]
        assert row["pid"] == pid and row["program"].startswith(python) and row["bytes"] > 0 and time.strptime(row["since"], "%Y-%m-%d %H:%M:%S")
        line, = [line for line in run("ls").stdout.splitlines() if str(trace) in line]
        assert line.split("\t")[0] == str(pid) and "MB" in line
    assert not [row for row in lists(run) if row["trace"] == str(trace)]


@pytest.mark.parametrize("options", [[], ["--keep", "1s"]], ids=["all", "window"])
def test_a_snapshot_is_a_whole_trace(run, dyntrace, python, tmp_path, options):
    with recorded(dyntrace, python, tmp_path, *options) as (pid, _, trace):
        time.sleep(2.5 if options else 0.5)
        by_pid, by_trace = tmp_path / "pid.db", tmp_path / "trace.db"
        assert run("snapshot", pid, "-o", by_pid).stderr == ""
        assert run("snapshot", trace, "-o", by_trace).stderr == ""
        for snapshot in (by_pid, by_trace):
            fsck(dyntrace, snapshot)
            (calls,), = rows(snapshot, "SELECT calls FROM code_total JOIN code USING (code_id) WHERE qualname = 'leaf'")
            (stored,), = rows(snapshot, "SELECT COUNT(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'leaf'")
            assert stored > 1000 and (stored < calls if options else stored == calls)
            assert rows(snapshot, "SELECT COUNT(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'outer' AND end_ns IS NULL") == [(1,)]
            assert rows(snapshot, "SELECT COUNT(*) FROM frame WHERE end_ns > (SELECT value FROM meta WHERE key = 'snapshot_ns')") == [(0,)]
            report = run("report", snapshot)
            assert report.returncode == 0 and "leaf" in report.stdout
        assert rows(by_trace, "SELECT COUNT(*) FROM frame")[0][0] > 0
        assert sorted(path.name for path in tmp_path.glob("*.db")) == ["pid.db", "t.db", "trace.db"]
    fsck(dyntrace, trace)
    assert rows(trace, "SELECT COUNT(*) FROM loss WHERE events > 0") == [(0,)]


def test_snapshots_under_load_are_whole(run, dyntrace, python, tmp_path):
    """Pages are dropped and used again while they are copied."""
    with recorded(dyntrace, python, tmp_path, "--keep", "16M", code=STEADY.replace("time.sleep(0.001)", "pass")) as (pid, _, trace):
        until(lambda: rows(trace, "SELECT 1 FROM meta WHERE key = 'kept_from_ns' AND value > 0"), "pages are dropped")
        for i in range(3):
            assert run("snapshot", pid, "-o", tmp_path / f"s{i}.db").stderr == ""
    for i in range(3):
        fsck(dyntrace, tmp_path / f"s{i}.db")
        assert rows(tmp_path / f"s{i}.db", "SELECT COUNT(*) FROM frame")[0][0] > 100000
    fsck(dyntrace, trace)


LATE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int sqlite3_exec(void *db, const char *sql, void *each, void *data, char **error)
{
    int (*real)(void *, const char *, void *, void *, char **) = dlsym(RTLD_NEXT, "sqlite3_exec");
    static int times;
    if (!strncmp(sql, "BEGIN; SELECT", 13) && times++ < atoi(getenv("LATE")))
        usleep(1000 * atoi(getenv("LATE_MS")));
    return real(db, sql, each, data, error);
}
"""


@pytest.mark.no_sanitizer
@pytest.mark.parametrize("times", [2, 1000], ids=["twice", "always"])
def test_a_snapshot_that_was_too_slow_starts_over(dyntrace, python, tmp_path, times):
    """The recorder waits 40 ms for it, and then goes on."""
    (tmp_path / "late.c").write_text(LATE)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "late.so", tmp_path / "late.c"], check=True)
    with recorded(dyntrace, python, tmp_path) as (pid, _, _trace):
        done = subprocess.run([dyntrace, "snapshot", str(pid), "-o", tmp_path / "s.db"], capture_output=True, text=True,
                              env={**os.environ, "LD_PRELOAD": str(tmp_path / "late.so"), "LATE": str(times), "LATE_MS": "300"})
    if times == 2:
        assert (done.returncode, done.stderr) == (0, "")
        fsck(dyntrace, tmp_path / "s.db")
    else:
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "too busy to read it in time; try again" in done.stderr
        assert not (tmp_path / "s.db").exists()


@pytest.mark.no_sanitizer
def test_a_snapshot_that_was_too_slow_starts_over_while_another_runs(run, dyntrace, python, tmp_path):
    """Meanwhile the recorder has waited for the other snapshot, too, and gone on."""
    (tmp_path / "late.c").write_text(LATE)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "late.so", tmp_path / "late.c"], check=True)
    with recorded(dyntrace, python, tmp_path) as (pid, _, _trace):
        late = subprocess.Popen([dyntrace, "snapshot", str(pid), "-o", tmp_path / "late.db"], stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "LD_PRELOAD": str(tmp_path / "late.so"), "LATE": "1", "LATE_MS": "900"})
        until(lambda: (tmp_path / "late.db").exists() or list(tmp_path.glob("*late.db*")), "it begins")
        time.sleep(0.05)
        assert run("snapshot", pid, "-o", tmp_path / "other.db").stderr == ""
        assert (late.wait(), late.stderr.read()) == (0, "")
    fsck(dyntrace, tmp_path / "late.db")
    fsck(dyntrace, tmp_path / "other.db")


def test_a_snapshot_has_lookups_and_decisions(run, dyntrace, python, tmp_path):
    code = DECIDED.replace("rounds = int(sys.argv[1])", "rounds = 5000").replace("set_eval_frame(None)", textwrap.dedent("""
        set_eval_frame(None)
        import os
        print(os.getpid(), flush=True)
        while os.path.exists(sys.argv[1]):
            time.sleep(0.01)
        """))
    for options in ([], ["--keep", "60s"]):
        folder = tmp_path / f"of{len(options)}"
        folder.mkdir()
        with recorded(dyntrace, python, folder, *options, code=code) as (pid, _, _trace):
            assert run("snapshot", pid, "-o", folder / "s.db").stderr == ""
            fsck(dyntrace, folder / "s.db")
            assert rows(folder / "s.db", "SELECT outcome, COUNT(*) FROM lookup WHERE outcome IN (1, 2) GROUP BY 1") == [(1, 5000), (2, 4)]
            assert rows(folder / "s.db", "SELECT COUNT(*) FROM lookup JOIN guard_check USING (lookup_id)")[0][0] >= 5000
            assert "2 compiles" in run("why", "leaf", folder / "s.db").stdout


def test_bad_input_gives_a_one_line_error_and_leaves_no_file(run, tmp_path, trace):
    def refused(*words):
        done = run("snapshot", *words)
        assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1
        return done.stderr

    gone = subprocess.Popen(["true"])
    gone.wait()
    assert f"process {gone.pid}: there is no such process" in refused(gone.pid, "-o", "s.db")
    assert "is not being recorded" in refused(os.getpid(), "-o", "s.db")
    assert "is not being recorded; a whole trace can be copied" in refused(trace, "-o", "s.db")
    assert "No such file" in refused("nothing.db", "-o", "s.db")
    assert "-o" in refused(trace)
    assert "needs a process or a trace" in refused("-o", "s.db")
    assert not (tmp_path / "s.db").exists()


def test_a_snapshot_of_a_killed_recording_is_refused(run, dyntrace, python, tmp_path):
    flag, trace = tmp_path / "goes on", tmp_path / "d.db"
    flag.touch()
    recording = start_run(dyntrace, python, trace, STEADY, arguments=[str(flag)])
    program = int(recording.stdout.readline())
    collector = until(lambda: collector_of(recording.pid), "a collector")
    os.kill(recording.pid, signal.SIGKILL)
    os.kill(collector, signal.SIGKILL)
    os.kill(program, signal.SIGKILL)
    recording.wait()
    until(lambda: gone(collector), "the end of the collector")
    done = run("snapshot", trace, "-o", "s.db")
    assert done.returncode == 2 and "its recorder was killed; `dyntrace fsck --recover" in done.stderr
    assert not (tmp_path / "s.db").exists()
    assert run("fsck", "--recover", trace).returncode == 0


def test_a_full_disk_leaves_no_half_snapshot(run, dyntrace, python, tmp_path):
    with recorded(dyntrace, python, tmp_path) as (pid, _, _trace):
        time.sleep(0.5)
        done = subprocess.run(["sh", "-c", f'ulimit -f 200; trap "" XFSZ; exec "{dyntrace}" snapshot {pid} -o "{tmp_path}/s.db"'], capture_output=True, text=True)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "no snapshot was taken" in done.stderr, done.stderr
        assert [path.name for path in tmp_path.iterdir() if "s.db" in path.name] == []


def test_a_program_can_take_a_snapshot_of_itself(record, dyntrace, tmp_path, python):
    code = textwrap.dedent("""
        import dyntrace
        def leaf(i):
            return i
        for i in range(1000):
            leaf(i)
        dyntrace.snapshot("s.db")
        for i in range(500):
            leaf(i)
        try:
            dyntrace.snapshot("s.db")
        except RuntimeError as error:
            print(error)
        dyntrace.snapshot("s.db", force=True)
        """)
    trace = record(["-c", code], python=python)
    assert "s.db" in trace.out and "force" in trace.out and trace.err == ""
    fsck(dyntrace, tmp_path / "s.db")
    assert rows(tmp_path / "s.db", "SELECT calls FROM code_total JOIN code USING (code_id) WHERE qualname = 'leaf'") == [(1500,)]
    done = subprocess.run([python, "-c", "import dyntrace\ntry: dyntrace.snapshot('x.db')\nexcept RuntimeError as e: print(e)"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.path.join(os.path.dirname(dyntrace), "lib", "python")}, cwd=tmp_path)
    assert "it is not being recorded" in done.stdout, done.stderr


SLOW = textwrap.dedent("""
    import os, sys, threading, time
    class Order:
        def handle(self, seconds):
            time.sleep(seconds)
    print(os.getpid(), flush=True)
    order = Order()
    order.handle(0.001)
    {event}
    while os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    """)


@pytest.mark.parametrize("options, event, why", [
    (["--snapshot-on", "*.handle>50ms"], "order.handle(0.1)", "a call took 1"),
    (["--keep", "60s", "--snapshot-on", "exception"], "t = threading.Thread(target=order.handle); t.start(); t.join()", "uncaught exception in a thread"),
    (["--snapshot-on", "exception"], "os.fork() or 1 / 0", "a process ended with an uncaught exception"),
    (["--snapshot-on", "USR2"], "", "signal"),
], ids=["slow", "thread", "process", "signal"])
def test_a_snapshot_is_taken_when_its_condition_holds(dyntrace, python, tmp_path, options, event, why):
    snapshot = tmp_path / "t-snapshot-1.db"
    with recorded(dyntrace, python, tmp_path, *options, code=SLOW.format(event=event)) as (pid, run, trace):
        if why == "signal":
            until(lambda: rows(trace, "SELECT 1 FROM process WHERE pid = ?", pid), "it is recorded")
            os.kill(run.pid, signal.SIGUSR2)
        until(snapshot.exists, "the snapshot", 20)
        fsck(dyntrace, snapshot)
    assert run.returncode == 0
    assert rows(snapshot, "SELECT COUNT(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'Order.handle'")[0][0] >= 1
    (said,), = rows(trace, "SELECT value FROM meta WHERE key = 'snapshots'")
    assert said.startswith(f"{snapshot}: {why}"), said
    fsck(dyntrace, trace)
    assert len(list(tmp_path.glob("*.db"))) == 2


def test_no_snapshot_is_taken_while_no_condition_holds(dyntrace, python, tmp_path):
    with recorded(dyntrace, python, tmp_path, "--snapshot-on", "*.handle>5s", "--snapshot-on", "exception", code=SLOW.format(event="order.handle(0.1)")):
        time.sleep(0.5)
    assert len(list(tmp_path.glob("*.db"))) == 1


@pytest.mark.parametrize("what", ["f", "f>", ">1s", "f>1x", "KILL", ""])
def test_a_snapshot_condition_that_makes_no_sense_is_refused(run, tmp_path, what):
    done = run("run", "-o", "t.db", "--snapshot-on", what, "-c", "0")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "not 'FUNC>TIME'" in done.stderr, done.stderr
