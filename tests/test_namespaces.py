"""Processes in their own namespaces: pid, user, mount, network, time. Each call is recorded. Each process has both its
pids: its own and the one that the recorder sees. Each failure is a row of loss."""
import json
import os
import signal
import subprocess
import time

import pytest

from crash_help import collector_of, fsck, rows, until
from shared import PYTHONS, script

pytestmark = pytest.mark.one_python


def can(*options):
    """Can namespaces be made by unshare(1) with these OPTIONS here?"""
    return subprocess.run(["unshare", *options, "true"], capture_output=True).returncode == 0


needs_pid = pytest.mark.skipif(not can("-pf", "--mount-proc"), reason="needs a pid namespace of its own")
needs_time = pytest.mark.skipif(not can("-T", "-f", "--boottime", "1000"), reason="needs a time namespace of its own")
needs_user = pytest.mark.skipif(not can("-U"), reason="needs a user namespace of its own")
needs_mount = pytest.mark.skipif(not can("-m"), reason="needs a mount namespace of its own")

HEAD = """
    import ctypes, os, subprocess, sys, time
    import warnings
    warnings.simplefilter("ignore")
    PID, USER, MOUNT, TIME = 0x20000000, 0x10000000, 0x20000, 0x80

    def leaf(): pass

    def calls(n):
        for _ in range(n):
            leaf()

    def unshare(flags):
        assert ctypes.CDLL(None).unshare(flags) == 0

    def fork(body):
        pid = os.fork()
        if pid == 0:
            try:
                body()
            except BaseException as error:
                print(repr(error), flush=True)
            finally:
                os._exit(0)
        return pid

    def wait(*pids):
        for pid in pids:
            assert os.waitpid(pid, 0)[1] == 0

    def start(*words):
        return subprocess.Popen([*words, sys.executable, __file__, "child"])
    """


def program(tmp_path, body):
    return script(tmp_path / "p.py", HEAD + body)


def leaves(trace):
    """Return the calls of leaf() by process, in order of birth."""
    return [count for _, count in trace.rows("""SELECT p.start_ns, count(*) FROM frame f JOIN code c USING (code_id) JOIN thread t USING (thread_id)
                                                JOIN process p ON p.process_id = t.process_id
                                                WHERE c.qualname = 'leaf' GROUP BY p.process_id ORDER BY 1""")]


def losses(trace):
    return trace.rows("SELECT cause FROM losses WHERE NOT is_stall")


def whole(dyntrace, trace, counts):
    """Check that nothing is lost, nothing is printed, and leaves() returns COUNTS."""
    fsck(dyntrace, trace.path)
    assert (leaves(trace), losses(trace), trace.err) == (counts, [], "")


@needs_pid
def test_a_fork_into_a_pid_namespace_is_recorded(record, dyntrace, python, tmp_path):
    program(tmp_path, """
    calls(10)
    unshare(PID)
    pid = fork(lambda: calls(100))
    wait(pid)
    print(os.getpid(), pid)
    """)
    trace = record(["p.py"], python=python)
    whole(dyntrace, trace, [10, 100])
    parent, child = map(int, trace.out.split())
    assert trace.rows("SELECT pid, own_pid, parent_process_id FROM process ORDER BY start_ns") == [(parent, parent, None), (child, 1, 1)]


@needs_pid
def test_pythons_in_pid_namespaces_are_recorded(record, run, dyntrace, python, tmp_path):
    """Both children are pid 1 of their own namespace, with their own /proc, and live at the same time."""
    program(tmp_path, """
    if sys.argv[1:]:
        calls(100)
        if os.getpid() == 1:
            wait(fork(lambda: calls(7)))
        time.sleep(0.3)
        calls(20)
        sys.exit(3)
    calls(10)
    children = [start("unshare", "-pf", "--mount-proc") for _ in range(2)]
    print([child.wait() for child in children])
    """)
    trace = record(["p.py"], python=python)
    assert trace.out == "[3, 3]\n"
    fsck(dyntrace, trace.path)
    assert (losses(trace), trace.err) == ([], "")
    assert sorted(leaves(trace)) == [7, 7, 10, 120, 120] and leaves(trace)[0] == 10
    found = trace.rows("SELECT pid, own_pid, parent_process_id, end_ns - start_ns > 200000000 FROM process ORDER BY start_ns")
    assert len({pid for pid, *_ in found}) == 5 and all(pid for pid, *_ in found)
    assert [own for _, own, *_ in found].count(1) == 2 and sum(long for *_, long in found) == 3
    said = json.loads(run("report", "--json", trace.path).stdout)["processes"]
    assert [(p["pid"], p["own_pid"]) for p in said] and {(p["pid"], p["own_pid"]) for p in said} == {(pid, own) for pid, own, *_ in found}
    assert run("report", trace.path).stdout.count("\tto itself\t") == 1
    assert sorted(parent for *_, parent, _ in found if parent) == sorted([1, 1] + [i for (i,) in trace.rows("SELECT process_id FROM process WHERE own_pid = 1")])


@needs_pid
def test_processes_in_nested_namespaces_are_recorded(record, dyntrace, python, tmp_path):
    """Each generation is the first process of a namespace inside the previous one. The recorder sees all of them."""
    program(tmp_path, """
    def generation(depth):
        calls(10 + depth)
        if depth < 3:
            unshare(PID)
            wait(fork(lambda: generation(depth + 1)))
        calls(1)
    generation(0)
    """)
    trace = record(["p.py"], python=python)
    whole(dyntrace, trace, [11, 12, 13, 14])
    found = trace.rows("SELECT process_id, pid, own_pid, parent_process_id FROM process ORDER BY start_ns")
    assert [own for _, _, own, _ in found][1:] == [1, 1, 1] and len({pid for _, pid, *_ in found}) == 4
    assert [parent for *_, parent in found] == [None, *(process for process, *_ in found[:-1])]


@needs_pid
def test_dyntrace_run_works_inside_a_namespace(dyntrace, python, tmp_path):
    """`run` is the first process of a namespace, as in a container, with or without a matching /proc; its program makes
    more namespaces."""
    program(tmp_path, """
    calls(10)
    unshare(PID)
    wait(fork(lambda: calls(100)))
    """)
    for name, options in ("fits", ["--mount-proc"]), ("other", []):
        trace = tmp_path / f"{name}.db"
        done = subprocess.run(["unshare", "-pf", *options, dyntrace, "run", "-o", trace, "--python", python, tmp_path / "p.py"],
                              capture_output=True, text=True, cwd=tmp_path, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        fsck(dyntrace, trace)
        assert rows(trace, "SELECT cause FROM losses WHERE NOT is_stall") == []
        assert rows(trace, "SELECT calls FROM code_total JOIN code USING (code_id) WHERE qualname = 'leaf' ORDER BY calls") in ([(10,), (100,)], [(110,)])
        assert rows(trace, "SELECT own_pid FROM process ORDER BY start_ns")[1:] == [(1,)]


@needs_pid
def test_reused_pids_in_a_namespace_are_separate_processes(dyntrace, python, tmp_path):
    """Each process has its own calls, even if it gets the pid of an earlier one. The test chooses the pids."""
    program(tmp_path, """
    def again(n):
        with open("/proc/sys/kernel/ns_last_pid", "w") as last:
            last.write("100")
        pid = fork(lambda: (calls(n), time.sleep(0.05)))
        wait(pid)
        print(pid)
    for n in range(1, 9):
        again(n)
    """)
    done = subprocess.run(["unshare", "-pf", "--mount-proc", dyntrace, "run", "-o", tmp_path / "t.db", "--python", python, tmp_path / "p.py"],
                          capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.split() == ["101"] * 8
    fsck(dyntrace, tmp_path / "t.db")
    assert rows(tmp_path / "t.db", """SELECT count(*) FROM frame f JOIN code c USING (code_id) JOIN thread t USING (thread_id)
                                      WHERE c.qualname = 'leaf' GROUP BY t.process_id ORDER BY count(*)""") == [(n,) for n in range(1, 9)]


@needs_pid
@needs_time
@pytest.mark.parametrize("options", [["-T", "-f", "--boottime", "1000", "--monotonic", "1000"],
                                     ["-T", "-pf", "--mount-proc", "--boottime", "1000", "--monotonic", "1000"]])
def test_a_python_in_a_time_namespace_is_recorded(record, dyntrace, python, tmp_path, options):
    """/proc shows another start time of the process in a time namespace."""
    program(tmp_path, """
    if sys.argv[1:]:
        calls(100)
        wait(fork(lambda: (calls(7), time.sleep(0.2), calls(7))))
        calls(20)
        sys.exit()
    calls(10)
    unshare(TIME)
    with open("/proc/self/timens_offsets", "w") as offsets:
        offsets.write("boottime 5000 0")
    wait(fork(lambda: (calls(30), time.sleep(0.2), calls(30))))
    calls(1)
    os.execvp("unshare", ["unshare", *OPTIONS, sys.executable, __file__, "child"])
    """.replace("OPTIONS", repr(options)))
    trace = record(["p.py"], python=python)
    whole(dyntrace, trace, [11, 60, 120, 14])
    assert trace.rows("SELECT count(*) FROM process WHERE pid IS NULL OR own_pid IS NULL") == [(0,)]
    assert trace.rows("SELECT count(*) FROM process WHERE start_ns > 60e9 OR end_ns > 60e9") == [(0,)]


@needs_time
@needs_mount
def test_a_time_namespace_works_with_the_kernels_clock(dyntrace, python, tmp_path):
    """If the processor's counter is not trusted, the kernel's clock is read, which differs there."""
    source = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    if not os.path.exists(source):
        pytest.skip("no clock source to cover")
    program(tmp_path, """
    calls(10)
    unshare(TIME)
    with open("/proc/self/timens_offsets", "w") as offsets:
        offsets.write("monotonic 5000 0")
    wait(fork(lambda: (calls(30), wait(fork(lambda: calls(7))))))
    calls(1)
    """)
    (tmp_path / "source").write_text("hpet\n")
    command = f"mount --bind {tmp_path}/source {source} && exec {dyntrace} run -o {tmp_path}/t.db --python {python} {tmp_path}/p.py"
    done = subprocess.run(["unshare", "-mTf", "--monotonic", "700", "sh", "-c", command], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    fsck(dyntrace, tmp_path / "t.db")
    assert rows(tmp_path / "t.db", "SELECT value FROM meta WHERE key = 'clock'") == [("monotonic",)]
    assert rows(tmp_path / "t.db", "SELECT count(*) FROM frame") > [(40,)]
    assert rows(tmp_path / "t.db", "SELECT count(*) FROM frame WHERE start_ns NOT BETWEEN 0 AND 60e9 OR end_ns NOT BETWEEN 0 AND 60e9") == [(0,)]


@needs_user
@pytest.mark.parametrize("flags", ["USER", "USER | PID", "USER | MOUNT"])
def test_a_process_in_a_user_namespace_is_recorded(record, dyntrace, python, tmp_path, flags):
    """Recorded are a process whose own user id is nobody, its fork, and Pythons that `unshare -U` starts."""
    program(tmp_path, f"""
    if sys.argv[1:]:
        calls(100)
        sys.exit()
    calls(10)
    def child():
        unshare({flags})
        calls(20)
        wait(fork(lambda: (calls(30), time.sleep(0.1), calls(30))))
        calls(20)
    wait(fork(child))
    assert start("unshare", "-U").wait() == 0
    assert start("unshare", "-Ur").wait() == 0
    """)
    trace = record(["p.py"], python=python)
    whole(dyntrace, trace, [10, 40, 60, 100, 100])


@needs_pid
@needs_mount
def test_a_process_without_proc_is_recorded(record, dyntrace, python, tmp_path):
    """/proc is not mounted, or the recording's directory is covered. The children of recorded processes are recorded,
    too."""
    program(tmp_path, """
    def mount(where):
        assert ctypes.CDLL(None).mount(b"none", where, b"tmpfs", 0, None) == 0
    def child():
        unshare(MOUNT)
        assert ctypes.CDLL(None).mount(b"none", b"/", None, 0x44000, None) == 0
        mount(b"/proc")
        calls(20)
        wait(fork(lambda: (calls(30), time.sleep(0.2), calls(30))))
        mount(b"/dev/shm")
        unshare(PID)
        wait(fork(lambda: (calls(40), time.sleep(0.2), calls(40), wait(fork(lambda: (calls(50), time.sleep(0.2), calls(50)))))))
        calls(20)
    calls(10)
    wait(fork(child))
    """)
    trace = record(["p.py"], python=python)
    whole(dyntrace, trace, [10, 40, 60, 80, 100])
    assert [own for own, in trace.rows("SELECT own_pid FROM process ORDER BY start_ns")][-2:] == [1, 2]
    assert trace.rows("SELECT count(DISTINCT pid) FROM process") == [(5,)]


@needs_pid
def test_many_children_in_a_pid_namespace_are_recorded(record, dyntrace, python, tmp_path):
    program(tmp_path, """
    def first():
        for n in range(1, 31):
            wait(fork(lambda: calls(n)))
    unshare(PID)
    wait(fork(first))
    """)
    trace = record(["p.py"], python=python)
    whole(dyntrace, trace, list(range(1, 31)))
    assert trace.rows("SELECT count(DISTINCT pid), count(DISTINCT own_pid) FROM process") == [(32, 32)]


@needs_pid
@needs_mount
def test_a_replaced_collector_records_namespaces(dyntrace, python, tmp_path):
    """The next collector also records processes in a namespace."""
    program(tmp_path, """
    def child():
        calls(100)
        print("ready", flush=True)
        sys.stdin.readline()
        calls(100)
    unshare(PID)
    wait(fork(child))
    """)
    trace = tmp_path / "t.db"
    with subprocess.Popen([dyntrace, "run", "-o", trace, "--python", python, tmp_path / "p.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, cwd=tmp_path) as run:
        assert run.stdout.readline() == "ready\n"
        first = collector_of(run.pid)
        os.kill(first, signal.SIGKILL)
        until(lambda: collector_of(run.pid) not in (None, first), "another collector")
        time.sleep(0.1)
        _, err = run.communicate("go\n", timeout=60)
    assert run.returncode == 0 and "another took its place" in err
    fsck(dyntrace, trace)
    assert rows(trace, "SELECT calls FROM code_total JOIN code USING (code_id) WHERE qualname = 'leaf'") == [(200,)]
    assert rows(trace, "SELECT own_pid, end_ns IS NOT NULL FROM process ORDER BY start_ns")[1:] == [(1, 1)]
    assert [cause for cause, in rows(trace, "SELECT cause FROM losses WHERE NOT is_stall") if "killed" not in cause] == []


@needs_pid
def test_a_recorder_in_another_namespace_works(python, dyntrace, tmp_path):
    """A program whose children are in their own namespace records itself. The recorder is such a child, and cannot see
    the program."""
    program(tmp_path, """
    import dyntrace
    unshare(PID)
    with dyntrace.record("t.db"):
        calls(100)
        time.sleep(0.3)
        calls(100)
    """)
    environment = {**os.environ, "PYTHONPATH": os.path.join(os.path.dirname(dyntrace), "lib", "python")}
    done = subprocess.run([python, tmp_path / "p.py"], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    fsck(dyntrace, tmp_path / "t.db")
    assert rows(tmp_path / "t.db", "SELECT calls FROM code_total JOIN code USING (code_id) WHERE qualname = 'leaf'") == [(200,)]
    assert rows(tmp_path / "t.db", "SELECT cause FROM losses WHERE NOT is_stall") == []


@needs_mount
def test_a_python_that_cannot_see_the_session_is_reported(record, dyntrace, python, tmp_path):
    """The interpreter runs as usual, and the missing recording is reported."""
    program(tmp_path, """
    if sys.argv[1:]:
        calls(100)
        sys.exit()
    calls(10)
    print(subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /dev/shm && exec " + sys.executable + " p.py child"]).returncode)
    """)
    trace = record(["p.py"], python=python)
    assert (trace.out, leaves(trace)) == ("0\n", [10])
    (cause,), = losses(trace)
    assert "does not see its directory" in cause and cause in trace.err
