"""dyntrace attach, detach, run --standby: programs that run already."""
import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

import attach_cycles
from attach_cycles import check, cycle, is_recorded, maps, state, until


needs_gdb = pytest.mark.skipif(not shutil.which("gdb"), reason="needs gdb")

WORK = """
    import os, subprocess, sys, threading, time
    def leaf(i): return i * i
    def step(n): return sum([leaf(i) for i in range(n % 50)])
    def idle(): threading.Event().wait()
    def work():
        n = wrong = 0
        while not os.path.exists("stop"):
            m = n % 50
            wrong += step(n) != (m - 1) * m * (2 * m - 1) // 6
            n += 1
        print(n > 0, wrong)
    threading.Thread(target=idle, name="idler", daemon=True).start()
    def main(): work()
    main()
    """
BLOCKED = """
    import socket
    def wait():
        server = socket.create_server(("127.0.0.1", 0))
        server.accept()
    wait()
    """


@contextlib.contextmanager
def running(folder, python, body, *before, seconds=0.5):
    """A program that runs BODY; the words BEFORE start it."""
    script = folder / "program.py"
    script.write_text(attach_cycles.textwrap.dedent(body))
    words = [*map(str, before), python, script.name]
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        time.sleep(seconds)
        assert process.poll() is None, process.communicate()
        yield process
    finally:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def rows(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


@pytest.mark.newest_too
def test_a_later_attach_that_chooses_other_functions_says_that_the_first_choice_holds(dyntrace, python, tmp_path):
    body = """
        import time
        def hidden(): return 1
        def shown(): return hidden()
        while True:
            shown()
            time.sleep(0.01)
        """
    with running(tmp_path, python, body, dyntrace, "run", "--standby", "--python", python, "--") as process:
        for name, options, lost in [("a", ["--exclude", "hidden"], 0), ("b", [], 1), ("c", ["--exclude", "hidden"], 0)]:
            subprocess.run([dyntrace, "attach", str(process.pid), "-o", f"{name}.db", "--for", "0.5s", *options], cwd=tmp_path, check=True,
                           capture_output=True)
            trace = tmp_path / f"{name}.db"
            assert rows(trace, "SELECT DISTINCT qualname FROM frame JOIN code USING (code_id) WHERE qualname IN ('hidden', 'shown')") == [("shown",)]
            assert rows(trace, "SELECT COUNT(*) FROM loss WHERE cause LIKE 'selection: %'") == [(lost,)]


@needs_gdb
@pytest.mark.newest_too
def test_attach_and_detach_under_load_lose_no_frames_and_leave_no_files(dyntrace, python, tmp_path):
    """Traces have no losses, the process has no new files and mappings, and the program computes the same."""
    with running(tmp_path, python, WORK) as process:
        before, first = state(process.pid), None
        for _ in range(3):
            cycle(process.pid, tmp_path / "t.db")
            assert check(tmp_path / "t.db") > 1000
            first = first or maps(process.pid)
        assert (state(process.pid), maps(process.pid)) == (before, first)
        (tmp_path / "stop").touch()
        assert process.communicate(timeout=30) == ("True 0\n", "")


@needs_gdb
def test_frames_that_run_at_the_attach_are_inherited(dyntrace, python, tmp_path):
    """So are the frames of sleeping threads. Calls that begin later have the inherited frames as their parents."""
    with running(tmp_path, python, WORK) as process:
        cycle(process.pid, tmp_path / "t.db")
    assert rows(tmp_path / "t.db", "SELECT qualname FROM frames JOIN thread USING (thread_id) WHERE kind = 'inherited' AND name = 'idler'"
                " AND end_ns IS NULL ORDER BY frame_id")[-3:-1] == [("idle",), ("Event.wait",)]
    parents = rows(tmp_path / "t.db", "SELECT DISTINCT p.qualname, p.kind FROM frames f JOIN frames p ON p.frame_id = f.parent_id"
                   " WHERE f.qualname = 'step' AND f.kind = 'call'")
    assert parents == [("work", "inherited")]
    assert rows(tmp_path / "t.db", "SELECT count(*) FROM frames WHERE qualname = '<module>' AND kind != 'inherited'") == [(0,)]
    assert rows(tmp_path / "t.db", "SELECT end_ns FROM frames WHERE qualname = 'work'") == [(None,)]


@needs_gdb
def test_attach_works_while_the_program_sleeps_in_a_system_call(dyntrace, python, tmp_path):
    with running(tmp_path, python, BLOCKED) as process:
        before = state(process.pid)
        for _ in range(2):
            cycle(process.pid, tmp_path / "t.db")
            assert check(tmp_path / "t.db") >= 3
        assert state(process.pid) == before


CHILDREN = """
    import os, subprocess, sys, time
    def leaf(): pass
    def fork():
        pid = os.fork()
        if not pid:
            leaf()
            time.sleep(0.05)
            leaf()
            os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    while not os.path.exists("stop"):
        fork()
        subprocess.run([sys.executable, "-c", "def other(): pass\\nother()"], check=True)
    print("DYNTRACE_SESSION" in os.environ, os.environ.get("PYTHONPATH"))
    sys.stdout.flush()
    os.execvp("env", ["env"])
    """


@needs_gdb
def test_children_are_recorded_and_detach_restores_the_environment(dyntrace, python, tmp_path):
    with running(tmp_path, python, CHILDREN) as process:
        cycle(process.pid, tmp_path / "t.db", hold=1)
        (tmp_path / "stop").touch()
        out, err = process.communicate(timeout=30)
    assert out.startswith("False ") and "DYNTRACE_SESSION" not in out and err == ""
    check(tmp_path / "t.db")
    names = {name for name, in rows(tmp_path / "t.db", "SELECT DISTINCT c.qualname FROM frame f JOIN code c USING (code_id)"
                                    " JOIN thread t USING (thread_id) WHERE t.process_id > 1")}
    assert {"leaf", "other"} <= names


@pytest.mark.newest_too
def test_attach_to_a_program_on_standby_needs_no_gdb(dyntrace, python, tmp_path, monkeypatch):
    """A program on standby has no hook, and can use dyntrace.record()."""
    monkeypatch.setenv("PATH", "/nonexistent")
    with running(tmp_path, python, WORK, dyntrace, "run", "--standby", "--python") as process:
        before = state(process.pid)
        for _ in range(3):
            cycle(process.pid, tmp_path / "t.db")
            assert check(tmp_path / "t.db") > 1000
        assert state(process.pid) == before
        (tmp_path / "stop").touch()
        assert process.communicate(timeout=30) == ("True 0\n", "")
    code = ("import _dyntrace, dyntrace\nprint(_dyntrace._owner(), _dyntrace._active())\ndef f(): pass\n"
            "with dyntrace.record('r.db'): f()\nprint(_dyntrace._owner())")
    done = subprocess.run([dyntrace, "run", "--standby", "--python", python, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("- None\n-\n", "")
    assert rows(tmp_path / "r.db", "SELECT count(*) FROM frames WHERE qualname = 'f'") == [(1,)]
    done = subprocess.run([dyntrace, "run", "--standby", "-o", "x.db", "-c", "1"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "give that to attach" in done.stderr


@pytest.mark.no_sanitizer  # the child has an environment without the runtime of the sanitizer
def test_children_of_a_program_on_standby_are_on_standby(dyntrace, python, tmp_path):
    body = """
        import os, subprocess, sys
        if len(sys.argv) == 1:
            subprocess.run([sys.executable, __file__, "child"], env={"PATH": "/bin"})
        else:
            def leaf(): pass
            print(os.getpid(), flush=True)
            while True: leaf()
        """
    with running(tmp_path, python, body, dyntrace, "run", "--standby", "--python", seconds=0) as process:
        child = int(process.stdout.readline())
        cycle(child, tmp_path / "t.db")
        assert check(tmp_path / "t.db") > 1000


@needs_gdb
@pytest.mark.one_python
def test_the_options_for_and_calls_end_an_attached_recording(dyntrace, python, tmp_path):
    with running(tmp_path, python, WORK) as process:
        for words in (["--for", "300ms"], ["--calls", "leaf:1000"]):
            done = subprocess.run([dyntrace, "attach", str(process.pid), "-o", "t.db", "--force", *words], cwd=tmp_path, capture_output=True,
                                  text=True, timeout=60)
            assert (done.returncode, done.stderr) == (0, "")
            check(tmp_path / "t.db")
            assert rows(tmp_path / "t.db", "SELECT count(*) FROM frames WHERE qualname = 'leaf'")[0][0] > 1000
        with running(tmp_path, python, BLOCKED) as other: # the default name
            done = subprocess.run([dyntrace, "attach", str(other.pid), "--for", "1ms"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0 and check(tmp_path / "program.db")


@needs_gdb
@pytest.mark.one_python
def test_attach_finishes_its_trace_when_the_process_is_killed(dyntrace, python, tmp_path):
    with running(tmp_path, python, WORK) as process:
        attach = subprocess.Popen([dyntrace, "attach", str(process.pid), "-o", "t.db"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        until(lambda: is_recorded(process.pid), "attach")
        until(lambda: "dyntrace" not in process_name_of_tracer(process.pid), "gdb has gone")
        process.kill()
        assert (attach.wait(60), attach.stderr.read()) == (0, "")
    check(tmp_path / "t.db")


def process_name_of_tracer(pid):
    return "dyntrace" if "TracerPid:\t0" not in attach_cycles.read(f"/proc/{pid}/status") else ""


@needs_gdb
@pytest.mark.one_python
def test_detach_works_after_the_attach_command_was_killed(dyntrace, python, tmp_path):
    with running(tmp_path, python, WORK) as process:
        attach = subprocess.Popen([dyntrace, "attach", str(process.pid), "-o", "t.db"], cwd=tmp_path)
        until(lambda: is_recorded(process.pid) and not process_name_of_tracer(process.pid), "attach")
        attach.kill()
        attach.wait()
        done = subprocess.run([dyntrace, "detach", str(process.pid)], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        assert not is_recorded(process.pid)
    subprocess.run([dyntrace, "fsck", tmp_path / "t.db"], check=True, capture_output=True)


@pytest.mark.one_python
def test_bad_input_gives_a_one_line_error(dyntrace, python, tmp_path):
    def attach(*words, command="attach", **more):
        done = subprocess.run([*more.pop("before", ()), dyntrace, command, *map(str, words)], cwd=tmp_path, capture_output=True, text=True,
                              timeout=60, **more)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and not list(tmp_path.glob("*.db")), done
        return done.stderr

    assert "no such process" in attach(2**22 + 1)
    assert "is not a process id" in attach("init")
    assert "no process given" in attach()
    assert "one process at a time" in attach(1, 2)
    sleeper = subprocess.Popen(["sleep", "60"])
    assert "is not Python" in attach(sleeper.pid)
    sleeper.kill()
    sleeper.wait()
    with running(tmp_path, python, WORK) as process:
        assert "is not a function and a number of calls" in attach(process.pid, "--calls", "leaf")
        assert "is not being recorded" in attach(process.pid, command="detach")
        assert "use -o" in attach(process.pid, "-o", "/no/such/place/t.db")
        assert "not installed" in attach(process.pid, env={"PATH": "/nonexistent"})
        process.send_signal(signal.SIGSTOP)
        until(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", "the stop")
        assert "is stopped" in attach(process.pid)
        process.send_signal(signal.SIGCONT)
        if os.getuid() == 0 and shutil.which("setpriv"):
            said = attach(process.pid, before=["setpriv", "--reuid", "65534", "--clear-groups"], env=dict(os.environ, HOME="/"))
            assert "belongs to another user" in said
    with running(tmp_path, python, WORK, dyntrace, "run", "-o", tmp_path / "run.trace", "--python") as parent:
        recorded = until(lambda: [pid for pid in attach_cycles.children(parent.pid) if is_recorded(pid)], "the program")
        assert "is being recorded already" in attach(recorded[0])
        assert "its recording ends with what began it" in attach(recorded[0], command="detach")


NEVER = """
    import ctypes
    ctypes.PyDLL(None).pause()  # holds the GIL
    """


@needs_gdb
@pytest.mark.one_python
@pytest.mark.slow
def test_attach_refuses_a_process_that_never_comes_back_to_python(dyntrace, python, tmp_path):
    with running(tmp_path, python, NEVER) as process:
        done = subprocess.run([dyntrace, "attach", str(process.pid), "-o", "t.db"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and "does not come back to Python" in done.stderr
        assert not list(tmp_path.glob("t.db*")) and not is_recorded(process.pid)


@needs_gdb
@pytest.mark.one_python
@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_root_attaches_to_a_users_process_as_that_user(dyntrace, python, tmp_path):
    os.chmod(tmp_path, 0o777)
    for folder in tmp_path.parents:
        if str(folder).startswith("/tmp/"):
            os.chmod(folder, 0o755)
    with running(tmp_path, python, WORK, "setpriv", "--reuid", "65534", "--clear-groups") as process:
        if process.poll() is not None:
            pytest.skip("the user cannot run this Python")
        cycle(process.pid, tmp_path / "t.db")
        assert check(tmp_path / "t.db") > 1000 and os.stat(tmp_path / "t.db").st_uid == 65534


@needs_gdb
@pytest.mark.one_python
@pytest.mark.skipif(subprocess.run(["unshare", "-mpf", "--mount-proc", "true"], capture_output=True).returncode != 0, reason="needs namespaces")
def test_attach_works_on_a_process_in_other_namespaces(dyntrace, python, tmp_path):
    """The process has its own /dev/shm and /tmp and another pid; in the second case its /dev/shm is read-only."""
    for place in ("mount -t tmpfs none /dev/shm && exec \"$@\"", "mount -t tmpfs -o ro none /dev/shm && exec \"$@\""):
        with running(tmp_path, python, WORK, "unshare", "-mpf", "--mount-proc", "sh", "-c", place, "sh") as process:
            child = until(lambda: attach_cycles.children(process.pid), "the program")[0]
            time.sleep(0.5)
            cycle(child, tmp_path / "t.db")
            assert check(tmp_path / "t.db") > 1000
            assert rows(tmp_path / "t.db", "SELECT own_pid, pid FROM process") == [(1, child)]
            assert not list(Path(f"/proc/{child}/root/dev/shm").glob("dyntrace-*"))


@needs_gdb
@pytest.mark.slow
@pytest.mark.parametrize("program", ["gunicorn", "celery", "kernel", "embed"])
def test_ten_attach_and_detach_cycles_leave_nothing_in_the_program(dyntrace, python, program):
    """`make attach-cycles` does 200 of them."""
    module = {"gunicorn": "gunicorn", "celery": "celery", "kernel": "ipykernel"}.get(program, "sys")
    if subprocess.run([python, "-c", "import " + module], capture_output=True).returncode:
        pytest.skip("needs " + module)
    found = attach_cycles.measure(program, python, 10)
    assert (found["result"], found["left"]) == ("ok", "nothing"), found
