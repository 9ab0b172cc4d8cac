"""When something went wrong, the messages of `run`, `doctor` and `fsck` name the cause and a remedy that helps."""
import os
import resource
import signal
import stat
import subprocess
import time

import pytest

from crash_help import collector_of, gone, mounted, needs_root, rows, until
from shared import PYTHONS, Screen, one_line, query, script

pytestmark = pytest.mark.one_python
PY = PYTHONS[0]

SLOW = """
    import sys
    def leaf(): pass
    for i in range(100): leaf()
    print("up", flush=True)
    sys.stdin.readline()
    for i in range(100): leaf()
    """


@pytest.fixture
def slow(dyntrace, tmp_path):
    """slow(output) -> `dyntrace run` of a program that has said "up", and ends when it reads a line."""
    script(tmp_path / "slow.py", SLOW)
    started = []

    def start(output, **more):
        child = subprocess.Popen([dyntrace, "run", "-o", output, "--python", PY, tmp_path / "slow.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, cwd=tmp_path, **more)
        started.append(child)
        assert child.stdout.readline() == "up\n"
        return child
    yield start
    for child in started:
        if child.poll() is None:
            child.kill()
        child.communicate()


def command_of(run):
    """The child of `run` that is the program."""
    with open(f"/proc/{run.pid}/task/{run.pid}/children") as file:
        for pid in file.read().split():
            with open(f"/proc/{pid}/cmdline", "rb") as words:
                if b"slow.py" in words.read().split(b"\0")[1]:
                    return int(pid)
    raise AssertionError


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


# ---- nothing was recorded ----

@pytest.mark.parametrize("words, status, said", [
    (["sh", "-c", "kill -9 $$"], 137, "signal 9 (Killed) ended the program before a Python had loaded the recorder"),
    ([PY, "--version"], 0, f"{PY} ended with status 0 and had not loaded the recorder"),
    (["env", "-i", PY, "-c", "1"], 0, "env did not hand on the environment"),
    (["nice", "env", "-u", "PYTHONPATH", PY, "-c", "1"], 0, "env took from PYTHONPATH"),
    (["timeout", "60", PY, "-I", "-c", "1"], 0, f"{PY} was started with -I"),
    (["./isolated"], 0, f"{PY} was started with -E"),
    (["true"], 0, "the program is not Python, or starts it with -I, -E or -S, or without the environment (env -i, sudo, su -, systemd-run)"),
])
def test_run_says_why_nothing_was_recorded(run, tmp_path, words, status, said):
    script(tmp_path / "isolated", f"#!{PY} -E\npass\n", 0o755)
    done = run("run", "-o", "t.db", "--", *words)
    assert done.returncode == status
    assert one_line(done.stderr).startswith("dyntrace: nothing was recorded: ") and said in done.stderr, done.stderr


def test_run_explains_a_python_option_that_prevents_recording(run, tmp_path):
    done = run("run", "-o", "t.db", "--", PY, "-I", "-c", "print(1)")
    assert (done.returncode, done.stdout) == (2, "")
    assert "not started: its option -I makes it ignore the environment" in one_line(done.stderr) and "--frames none" in done.stderr


# ---- what cannot be run ----

@pytest.fixture
def wrong(tmp_path):
    """Files that are no interpreter, by the message about each."""
    (tmp_path / "plain").write_text("x")
    (tmp_path / "folder").mkdir()
    script(tmp_path / "lost", "#!/nowhere/python\n", 0o755)
    (tmp_path / "damaged").write_bytes(b"\x7fELF" + bytes(60))
    (tmp_path / "damaged").chmod(0o755)
    os.mkfifo(tmp_path / "pipe")
    return {"plain": "it is not executable", "folder": "it is a directory", "lost": "the interpreter that its first line names is not there",
            "damaged": "it is a program for another machine, or damaged", "nowhere": "No such file or directory", "pipe": "it is no regular file"}


def test_doctor_says_why_an_interpreter_does_not_run(run, tmp_path, wrong):
    done = run("doctor", "nosuchpython", *(tmp_path / name for name in wrong), "/bin/true")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[1] == "  nosuchpython: cannot be run: there is none on PATH"
    for line, (name, why) in zip(lines[2:], wrong.items()):
        assert line.startswith(f"  {tmp_path / name}: cannot be run: {why}"), line
    assert lines[2 + len(wrong)] == "  /bin/true: not a Python 3 that answers; not supported"


def test_run_says_why_a_program_does_not_start(run, tmp_path, wrong):
    del wrong["damaged"]  # this, /bin/sh tries as a script, as it does for a shell
    for name, why in wrong.items():
        done = run("run", "-o", "t.db", "--python", tmp_path / name, "-c", "1")
        assert done.returncode in (2, 126) and not (tmp_path / "t.db").exists()
        assert why in one_line(done.stderr)
    assert "cannot be the interpreter: there is none on PATH" in one_line(run("run", "--python", "nosuchpython", "-c", "1").stderr)
    assert "cannot be started: the interpreter that its first line names is not there" in one_line(run("run", "./lost").stderr)


# ---- stopped and continued ----

def test_run_stops_and_continues_together_with_its_program(slow, tmp_path):
    """`run` stops with its program. When the program continues, in whatever way, `run` continues, too. Also when the
    program is killed."""
    child = slow("t.db")
    program = command_of(child)
    for _ in range(3):
        os.kill(program, signal.SIGSTOP)
        until(lambda: state_of(child.pid) == "T", "run stops as well")
        os.kill(program, signal.SIGCONT)
        until(lambda: state_of(child.pid) != "T", "run goes on as well")
        assert state_of(program) != "T"
    os.kill(program, signal.SIGSTOP)
    until(lambda: state_of(child.pid) == "T", "run stops as well")
    os.kill(child.pid, signal.SIGCONT)  # for it alone
    until(lambda: state_of(program) != "T" and state_of(child.pid) != "T", "both go on")
    out, err = child.communicate("go\n", timeout=60)
    assert (child.returncode, err) == (0, "")
    assert rows(tmp_path / "t.db", "SELECT calls FROM code_total JOIN code USING (code_id) WHERE qualname = 'leaf'") == [(200,)]


def test_run_ends_when_its_stopped_program_is_killed(slow):
    child = slow("t.db")
    program = command_of(child)
    os.kill(program, signal.SIGSTOP)
    until(lambda: state_of(child.pid) == "T", "run stops as well")
    os.kill(program, signal.SIGKILL)
    assert child.wait(timeout=60) == 137


# ---- files ----

def test_run_reports_that_the_traces_directory_was_renamed(run, slow, tmp_path):
    (tmp_path / "a").mkdir()
    child = slow("a/t.db")
    (tmp_path / "a").rename(tmp_path / "b")
    _, err = child.communicate("go\n", timeout=60)
    assert child.returncode == 0
    assert "deleted or renamed while it was recorded" in one_line(err) and "room" not in err
    (tmp_path / "b").rename(tmp_path / "a")  # which is the remedy
    done = run("fsck", "--recover", "a/t.db")
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "a/t.db", "SELECT calls FROM code_total JOIN code USING (code_id) WHERE qualname = 'leaf'") == [(200,)]


def test_fsck_explains_a_file_that_was_renamed_while_it_was_recorded(run, slow, tmp_path):
    """The finished trace has the name that was given to `run`. The renamed file is empty, and fsck says why."""
    child = slow("t.db")
    (tmp_path / "t.db").rename(tmp_path / "other.db")
    _, err = child.communicate("go\n", timeout=60)
    assert (child.returncode, err) == (0, "")
    assert run("fsck", "t.db").returncode == 0
    done = run("fsck", "other.db")
    assert done.returncode == 1 and "broken: something was recorded in it" in done.stdout and "renamed while it was recorded" in done.stdout


@needs_root
def test_run_says_that_there_is_no_room_to_record(dyntrace, tmp_path):
    script(tmp_path / "p.py", "print('done')")
    done = mounted("64k", "/dev/shm", [dyntrace, "run", "-o", tmp_path / "t.db", "--python", PY, tmp_path / "p.py"],
                   env={**os.environ, "TMPDIR": "/dev/shm"})
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "not recorded: no room in /dev/shm/dyntrace-" in one_line(done.stderr) and "No space left on device" in done.stderr
    assert "killed" not in done.stderr


@needs_root
def test_run_says_that_the_destination_is_full(dyntrace, tmp_path):
    (tmp_path / "full").mkdir()
    script(tmp_path / "p.py", "print('done')")
    done = mounted("16k", tmp_path / "full", [dyntrace, "run", "-o", f"{tmp_path}/full/", "--python", PY, tmp_path / "p.py"])
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr.endswith("is whole, but cannot be moved to its place: No space left on device\n") and one_line(done.stderr)
    os.unlink(done.stderr.split()[1].rstrip(":"))


# ---- limits ----

@pytest.mark.no_sanitizer
@pytest.mark.parametrize("descriptors", range(8, 20, 2))
def test_run_reports_that_file_descriptors_ran_out(dyntrace, tmp_path, descriptors):
    """`run` may refuse, or may not be able to finish. The message names the missing resource."""
    script(tmp_path / "p.py", "print('done')")
    done = subprocess.run([dyntrace, "run", "-o", tmp_path / "t.db", "--python", PY, tmp_path / "p.py"], capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors)))
    assert (done.returncode, done.stdout) in ((0, "done\n"), (2, ""))
    if done.stderr:
        assert "Too many open files" in one_line(done.stderr) and "make room" not in done.stderr
    if not done.stderr:
        assert query(tmp_path / "t.db", "SELECT value FROM meta WHERE key = 'state'") == [("complete",)]


THREADS = """
    import threading, time
    def leaf(): pass
    def work():
        for i in range(50): leaf()
        time.sleep(0.1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    print("done")
    """


@pytest.mark.no_sanitizer
def test_under_a_limit_on_address_space_run_records_or_names_the_limit(dyntrace, tmp_path):
    """With the least limit (in steps of 5 MB) under which the program runs alone it can be recorded, too. A missing
    resource is reported correctly."""
    script(tmp_path / "p.py", THREADS)
    for megabytes in range(20, 400, 5):
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        if subprocess.run([PY, tmp_path / "p.py"], capture_output=True, preexec_fn=limit).returncode:
            continue
        megabytes += 5
        done = subprocess.run([dyntrace, "run", "-o", tmp_path / "t.db", "--force", "--python", PY, tmp_path / "p.py"], capture_output=True, text=True,
                              preexec_fn=limit)
        assert (done.returncode, done.stdout) == (0, "done\n"), (megabytes, done.stderr)
        assert "outside" not in done.stderr
        assert done.stderr == "" and rows(tmp_path / "t.db", "SELECT sum(calls) FROM code_total JOIN code USING (code_id) WHERE qualname = 'leaf'") == [(200,)] \
            or "address space" in one_line(done.stderr)
        return
    pytest.fail("the program never ran")


# ---- what the recorder costs ----

def test_the_recorders_processor_time_is_reported(dyntrace, run, tmp_path):
    """The trace has this time, `report` prints it, and so does the last line of `run` on a terminal. It is at least a
    hundredth of the least time in which a million frames can be read."""
    script(tmp_path / "p.py", """
        def leaf(): pass
        for i in range(1_000_000): leaf()
        """)
    begun = time.monotonic()
    done = run("run", "-o", "t.db", "--python", PY, "p.py")
    took = time.monotonic() - begun
    assert (done.returncode, done.stderr) == (0, "")
    (ns,), = query(tmp_path / "t.db", "SELECT value FROM meta WHERE key = 'recorder_cpu_ns'")
    assert 1e6 < ns < 2 * took * 1e9
    assert f"recorder\t{ns / 1e9:.2f} s of processor time" in run("report", "t.db").stdout.splitlines()
    assert f'"recorder_cpu_ns": {ns}' in run("report", "--json", "t.db").stdout.replace('":', '": ').replace(":  ", ": ")
    screen = Screen([dyntrace, "run", "-o", str(tmp_path / "u.db"), "--python", PY, "-c", "1"])
    screen.wait("s of processor time")
    screen.finish()


# ---- mistyped names ----

@pytest.mark.parametrize("words, meant", [
    (["reprot"], "report"), (["report", "--htm"], "--html"), (["run", "--fram", "x.py"], "--frames"), (["sql", "--print", "hot-function"], "hot-functions"),
    (["sql", "t.db", "slowest-calls"], "slowest-frames"), (["sql", "t.db", "SELECT qualnam FROM functions"], "qualname"),
    (["sql", "t.db", "SELECT f.Qualnam FROM functions f"], "qualname"), (["sql", "t.db", "SELECT count(*) FROM frmes"], "frames"),
    (["why", "mian", "t.db"], "main"), (["tree", "mian", "t.db"], "main"), (["export", "t.db", "--format", "csv", "--table", "framez"], "frames"),
    (["export", "t.db", "--format", "csv", "--table", "frmae"], "frame"), (["why", "amin", "t.db"], "main"),
])
def test_a_mistyped_name_gets_a_suggestion(run, tmp_path, words, meant):
    script(tmp_path / "a.py", "def main(): pass\nmain()")
    assert run("run", "-o", "t.db", "--python", PY, "a.py", cwd=tmp_path).returncode == 0
    done = run(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert meant in one_line(done.stderr).partition("; did you mean ")[2].partition("?")[0].replace(",", "").split()


@pytest.mark.parametrize("words", [["zzzzzz"], ["report", "--zzzzzz"], ["sql", "--print", "zzzzzz"], ["sql", "SELECT zzzzzz FROM meta"],
                                   ["sql", "SELECT 1 FROM zzzzzz"]])
def test_an_unknown_name_gets_no_suggestion(run, tmp_path, words):
    assert run("run", "-o", "t.db", "--python", PY, "-c", "1", cwd=tmp_path).returncode == 0
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2 and "zzzzzz" in one_line(done.stderr) and "did you mean" not in done.stderr
