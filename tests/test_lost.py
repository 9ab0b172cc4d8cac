"""A process loses a right or a resource that recording needs, or the collector stops reading: the calls are recorded or
counted as lost, and the last line of `run` reports it."""
import concurrent.futures
import contextlib
import http.client
import os
import resource
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from crash_help import collector_of, fsck, gone, mounted, needs_root, rests, ring_offsets, rows, until
from shared import PYTHONS

pytestmark = pytest.mark.one_python

LEAVE = """
import ctypes, os, resource, sys, threading, warnings
warnings.simplefilter("ignore")  # of forks beside threads

def leaf(n):
    return n

def calls(count=100):
    for i in range(count):
        leaf(i)

def thread():
    t = threading.Thread(target=calls)
    t.start()
    t.join()

def fork(body):
    pid = os.fork()
    if pid == 0:
        try:
            body()
        finally:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0

def grandchildren():
    calls()
    thread()
    fork(calls)

def everything():
    thread()
    fork(calls)
    fork(grandchildren)

how, empty = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
calls()
if how == "setuid":
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
elif how == "chroot":
    os.chroot(empty)
    os.chdir("/")
elif how == "namespace":
    assert libc.unshare(0x20000) == 0
    assert libc.mount(b"none", b"/", None, 0x44000, None) == 0
    for place in b"/dev/shm", b"/tmp":
        assert libc.mount(b"none", place, b"tmpfs", 0, None) == 0
elif how == "no descriptors":
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
elif how == "all closed":
    os.closerange(3, 4096)
elif how == "file size":
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
everything()
"""

ROOTS_ONLY = {"setuid", "chroot", "namespace"}


def leaves(trace):
    """Return the calls of leaf() by process, in order of birth, and the number of processes that name a parent."""
    found = rows(trace, "SELECT p.start_ns, count(*) FROM frame f JOIN code c USING (code_id)"
                        " JOIN thread t USING (thread_id) JOIN process p ON p.process_id = t.process_id"
                        " WHERE c.qualname = 'leaf' GROUP BY p.process_id ORDER BY 1")
    known = rows(trace, "SELECT count(*) FROM process WHERE parent_process_id IS NOT NULL")[0][0]
    return [count for _, count in found], known


def parents(trace, name):
    """Return the callers of NAME."""
    return rows(trace, """SELECT DISTINCT (SELECT qualname FROM code WHERE code_id = p.code_id) AS name FROM frame f
                          LEFT JOIN frame p ON p.frame_id = f.parent_id
                          WHERE f.code_id IN (SELECT code_id FROM code WHERE qualname = ?) ORDER BY name""", name)


unshares = pytest.mark.skipif(os.getuid() == 0 and subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode != 0,
                              reason="needs a mount namespace of its own, which a chroot cannot have")


@pytest.mark.parametrize("how", ["nothing", "setuid", "chroot", pytest.param("namespace", marks=unshares), "no descriptors", "all closed", "file size"])
def test_threads_and_forks_after_a_change_of_user_or_root_are_recorded(record, dyntrace, python, tmp_path, how):
    """A thread, a fork, a fork of the fork, and a thread in that: every call is recorded, and each process has its row."""
    if how in ROOTS_ONLY and os.geteuid():
        pytest.skip("needs root")
    (tmp_path / "empty").mkdir()
    (tmp_path / "p.py").write_text(LEAVE)
    trace = record(["p.py", how, tmp_path / "empty"], python=python)
    assert (trace.out, trace.err) == ("", "")
    fsck(dyntrace, trace.path)
    assert rows(trace.path, "SELECT cause FROM losses WHERE NOT is_stall") == []
    assert leaves(trace.path) == ([200, 100, 200, 100], 3)
    assert rows(trace.path, "SELECT count(DISTINCT pid), count(*) FROM process") == [(4, 4)]
    assert parents(trace.path, "leaf") == [("calls",)]


@needs_root
def test_processes_that_change_user_back_and_forth_are_recorded(record, dyntrace, python, tmp_path):
    """The program forks as root, as nobody and as root again, and the forks fork. All calls are recorded."""
    (tmp_path / "p.py").write_text(LEAVE.split("how, empty")[0] + """
calls()
def to(uid):
    os.seteuid(0)
    os.seteuid(uid)
    calls()
to(65534)
fork(lambda: (to(65534), fork(lambda: (to(0), fork(lambda: (to(65534), fork(thread)))))))
to(0)
fork(everything)
to(65534)
everything()
""")
    trace = record(["p.py"], python=python)
    assert (trace.out, trace.err) == ("", "")
    fsck(dyntrace, trace.path)
    assert rows(trace.path, "SELECT cause FROM losses WHERE NOT is_stall") == []
    assert leaves(trace.path) == ([500, 100, 100, 100, 100, 100, 100, 200, 100, 100, 200, 100], 11)
    assert parents(trace.path, "leaf") == [("calls",)]


@needs_root
def test_frames_lost_on_a_full_filesystem_name_the_error(dyntrace, python, tmp_path):
    """A child that runs as nobody finds the filesystem full. Its frames are counted, with the error."""
    trace = tmp_path / "t.db"
    (tmp_path / "p.py").write_text(LEAVE.split("how, empty")[0] + """
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
try:
    with open("/dev/shm/other", "ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))
except OSError:
    pass
fork(lambda: (calls(), fork(calls)))
""")
    done = mounted("96m", "/dev/shm", [dyntrace, "run", "-o", trace, "--python", python, tmp_path / "p.py"],
                   env={**os.environ, "TMPDIR": "/dev/shm"})
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    fsck(dyntrace, trace)
    (cause, events), = rows(trace, "SELECT cause, events FROM losses WHERE NOT is_stall")
    assert cause.startswith("children: no ring could be made for 2 forked processes (No space left on device)")
    assert 202 <= events < 250
    assert done.stderr == f"dyntrace: {trace} is not complete: {cause} ({events}); `dyntrace report` lists it\n"


FILLED = """
import os, types
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode
try:
    with open("/dev/shm/other", "ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))
except OSError:
    pass
def decided(x): return x + 1
def callback(frame, entry, frame_state):
    return GuardedCode(frame.f_code, lambda f_locals: True) if frame.f_code.co_filename == "decided" else None
for i in range(1000):
    function = types.FunctionType(decided.__code__.replace(co_name=f"decided_{i}", co_filename="decided"), {})
    set_eval_frame(callback)
    function(1), function(2)
    set_eval_frame(None)
"""


@needs_root
def test_facts_that_find_no_room_are_a_loss(dyntrace, python, tmp_path):
    """Compiles, entries and guards are facts in the process's file, which cannot grow any more."""
    trace = tmp_path / "t.db"
    done = mounted("96m", "/dev/shm", [dyntrace, "run", "-o", trace, "--python", python, "-c", FILLED],
                   env={**os.environ, "TMPDIR": "/dev/shm"})
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    fsck(dyntrace, trace)
    (lost,), = rows(trace, "SELECT events FROM losses WHERE cause LIKE 'facts: no room %'")
    (compiles,), = rows(trace, "SELECT count(*) FROM compile")
    (entries,), = rows(trace, "SELECT count(*) FROM cache_entry")
    assert compiles < 1000 and lost >= 2000 - compiles - entries
    assert rows(trace, "SELECT count(*) FROM lookup") == [(2000,)]
    assert "is not complete" in done.stderr


@pytest.mark.parametrize("uid", [0, pytest.param(65534, marks=needs_root)])
def test_nested_processes_are_recovered(dyntrace, python, tmp_path, uid):
    """The collector is killed while a process and its nested children live. Their calls before and after the kill are
    recorded."""
    trace, out = tmp_path / "t.db", tmp_path / "out"
    (tmp_path / "p.py").write_text(LEAVE.split("how, empty")[0] + f"""
import time
go = os.pipe()
if {uid}:
    os.setgroups([])
    os.setgid({uid})
    os.setuid({uid})
def child():
    calls()
    os.write(1, b"%d\\n" % os.getpid())
    os.read(go[0], 1)
    calls()
def family():
    calls()
    fork(child)
    calls()
def waits():
    sys.stdin.readline()
    os.write(go[1], b"12")
threading.Thread(target=waits).start()
pids = []
for _ in range(2):
    pid = os.fork()
    if not pid:
        family()
        os._exit(0)
    pids.append(pid)
for pid in pids:
    os.waitpid(pid, 0)
calls()
print("done", flush=True)
""")
    run = subprocess.Popen([dyntrace, "run", "-o", trace, "--python", python, tmp_path / "p.py"], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        children = [int(run.stdout.readline()) for _ in range(2)]
        collector = collector_of(run.pid)
        os.kill(collector, signal.SIGKILL)
        until(lambda: gone(collector), "the collector dies")
        out, err = run.communicate("\n", timeout=60)
    finally:
        run.poll() is None and run.kill()
    assert (run.returncode, out) == (0, "done\n"), err
    fsck(dyntrace, trace)
    assert sorted(leaves(trace)[0]) == [100, 200, 200, 200, 200], err
    assert {pid for pid, in rows(trace, "SELECT pid FROM process")} > set(children)


# ---- a collector that takes nothing ----

STALL = """
import sys, threading, time, warnings
warnings.simplefilter("ignore")

def leaf(n):
    return n

def outer(n):
    leaf(n)
    leaf(n)

def before(n):
    for i in range(n):
        outer(i)

def within(n):
    before(n)
    print("within", flush=True)
    sys.stdin.readline()
    after(1000)

def after(n):
    for i in range(n):
        leaf(i)

"""


@contextlib.contextmanager
def running(dyntrace, python, tmp_path, code, *options):
    """Run CODE under `dyntrace run`; gives its process and its collector, which runs again at the end in any case."""
    (tmp_path / "p.py").write_text(STALL + code)
    run = subprocess.Popen([dyntrace, "run", "-o", tmp_path / "t.db", "--python", python, *options, tmp_path / "p.py"],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert run.stdout.readline() == "begin\n"
        yield run, collector_of(run.pid)
    finally:
        collector = collector_of(run.pid)
        collector and os.kill(collector, signal.SIGCONT)
        run.poll() is None and run.kill()
        run.communicate()


def is_drained(trace):
    """Has the collector read all words of the first thread's ring? (src/ring.h)"""
    session, = rows(trace, "SELECT value FROM meta WHERE key = 'session'")[0]
    ring, = Path(session).glob("*.ring")
    with open(ring, "rb") as file:
        file.seek(ring_offsets(ring)[0])
        head, *_, tail = struct.unpack("<Q248xQ", file.read(264))
    return head == tail


def lost_frames(trace):
    return rows(trace, "SELECT coalesce(sum(events), 0) FROM losses WHERE NOT is_stall")[0][0]


def recorded(trace, *names):
    return rows(trace, f"SELECT count(*) FROM frame WHERE code_id IN (SELECT code_id FROM code WHERE qualname IN"
                       f" ({','.join('?' * len(names))}))", *names)[0][0]


def check_parents(trace):
    assert parents(trace, "outer") == [("before",)]
    assert set(parents(trace, "leaf")) <= {("outer",), ("after",)}


def test_stopped_collector_does_not_stop_the_program(dyntrace, python, tmp_path):
    """The collector is stopped until the program has ended. One row counts every frame that did not fit into the ring."""
    trace = tmp_path / "t.db"
    with running(dyntrace, python, tmp_path, """
print("begin", flush=True)
sys.stdin.readline()
before(700_000)
print("done", flush=True)
""") as (run, collector):
        os.kill(collector, signal.SIGSTOP)
        run.stdin.write("\n")
        run.stdin.flush()
        assert run.stdout.readline() == "done\n"
        os.kill(collector, signal.SIGCONT)
        _, err = run.communicate(timeout=120)
    assert run.returncode == 0, err
    fsck(dyntrace, trace)
    lost, there = lost_frames(trace), recorded(trace, "outer", "leaf")
    (cause, events), = rows(trace, "SELECT cause, events FROM losses WHERE NOT is_stall")
    assert cause.startswith("collector: it took nothing"), cause
    assert 800_000 < there < 2_000_000 and 0 <= there + lost - 2_100_000 < 100, (there, lost)
    assert err == f"dyntrace: {trace} is not complete: {cause} ({events}); `dyntrace report` lists it\n"
    check_parents(trace)


def test_recording_continues_with_right_parents_after_lost_frames(dyntrace, python, tmp_path):
    """within() begins in the gap and calls after() when the gap is over: within() is recorded as after()'s parent. A
    frame that ended in the gap is the parent of none."""
    trace = tmp_path / "t.db"
    with running(dyntrace, python, tmp_path, """
def all():
    before(1000)
    print("begin", flush=True)
    sys.stdin.readline()
    before(600_000)
    within(1000)
    after(1000)
all()
""", "--max-stall", "50ms") as (run, collector):
        os.kill(collector, signal.SIGSTOP)
        run.stdin.write("\n")
        run.stdin.flush()
        assert run.stdout.readline() == "within\n"
        os.kill(collector, signal.SIGCONT)
        until(lambda: is_drained(trace), "the ring is empty")
        _, err = run.communicate("\n", timeout=120)
    assert run.returncode == 0, err
    fsck(dyntrace, trace)
    lost, there = lost_frames(trace), recorded(trace, "outer", "leaf")
    assert lost > 100_000 and 0 <= there + lost - (3 * 602_000 + 2000) < 100, (there, lost)
    check_parents(trace)
    assert parents(trace, "after") == [("all",), ("within",)]
    assert rows(trace, "SELECT kind, exit FROM frames WHERE qualname = 'within'") == [("inherited", "return")]
    assert rows(trace, "SELECT count(*) FROM frames WHERE qualname = 'leaf' AND frame_id > (SELECT max(frame_id) FROM frames"
                       " WHERE qualname = 'within')") == [(2000,)]


@pytest.mark.slow
def test_other_threads_run_while_one_waits_for_a_full_ring(dyntrace, python, tmp_path):
    """One thread's ring is full, and the thread may wait for long. The others get the GIL, also for forks and ends of
    threads."""
    trace = tmp_path / "t.db"
    with running(dyntrace, python, tmp_path, """
import os
done = [0]
def fills():
    for _ in range(700):
        before(1000)
        done[0] += 1
print("begin", flush=True)
sys.stdin.readline()
t = threading.Thread(target=fills)
t.start()
last = -1
while done[0] < 100 or done[0] != last:
    last = done[0]
    time.sleep(0.5)
assert done[0] < 700
pid = os.fork()
if not pid:
    after(10)
    os._exit(7)
other = threading.Thread(target=after, args=(10,))
other.start()
other.join()
print("runs", os.waitpid(pid, 0)[1] >> 8, flush=True)
t.join()
""", "--max-stall", "60s") as (run, collector):
        os.kill(collector, signal.SIGSTOP)
        run.stdin.write("\n")
        run.stdin.flush()
        assert run.stdout.readline() == "runs 7\n"
        os.kill(collector, signal.SIGCONT)
        _, err = run.communicate(timeout=120)
    assert (run.returncode, err) == (0, "")
    fsck(dyntrace, trace)
    assert lost_frames(trace) == 0 and recorded(trace, "outer", "leaf") == 2_100_020
    check_parents(trace)


@pytest.mark.slow
def test_max_stall_limits_the_waits_of_all_threads_together(dyntrace, python, tmp_path):
    """A hundred threads, one after the other, each write more than fits. The first waits; the others continue at once."""
    trace = tmp_path / "t.db"
    with running(dyntrace, python, tmp_path, """
print("begin", flush=True)
sys.stdin.readline()
for _ in range(100):
    t = threading.Thread(target=before, args=(20_000,))
    t.start()
    t.join()
print("done", flush=True)
""", "--max-stall", "2s") as (run, collector):
        os.kill(collector, signal.SIGSTOP)
        run.stdin.write("\n")
        run.stdin.flush()
        began = time.monotonic()
        assert run.stdout.readline() == "done\n"
        assert time.monotonic() - began < 100, "not 2 s for each"
        os.kill(collector, signal.SIGCONT)
        _, err = run.communicate(timeout=120)
    assert run.returncode == 0, err
    fsck(dyntrace, trace)
    lost, there = lost_frames(trace), recorded(trace, "outer", "leaf")
    assert 0 <= there + lost - 6_000_000 < 3000, (there, lost)
    check_parents(trace)


@pytest.mark.parametrize("value", ["", "x", "-1s", "61s", "5"])
def test_the_option_max_stall_refuses_values_that_are_no_time(dyntrace, python, value):
    done = subprocess.run([dyntrace, "run", "--max-stall", value, "-c", "1"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"dyntrace: run: --max-stall {value}: not a time from 0s to 60s such as 100ms\n"


# ---- programs of other users ----

NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


@pytest.fixture(scope="module")
def everybodys(dyntrace, tmp_path_factory):
    """An interpreter with an extension that nobody (65534) can run, too."""
    if os.geteuid():
        pytest.skip("needs root")
    for python in [*PYTHONS, "/usr/bin/python3"]:
        trace = tmp_path_factory.mktemp("everybody") / "t.db"
        with contextlib.suppress(OSError):
            if subprocess.run([python, "-c", "import socket"], capture_output=True, **NOBODY).returncode == 0 and subprocess.run(
                    [dyntrace, "run", "-o", trace, "--", python, "-c", "pass"], capture_output=True).returncode == 0 and \
                    rows(trace, "SELECT python_version FROM process") != [(None,)]:
                return python
    pytest.skip("no interpreter here has an extension and may be run by everybody")


def test_pythons_of_another_user_are_recorded_as_a_loss(record, everybodys, tmp_path):
    """These processes cannot open the session. Each gets a row with pid and user, and `run` prints a line at the end."""
    trace = record(["-c", f"""
import os, subprocess
run = lambda: print(subprocess.Popen([{everybodys!r}, "-c", "print(1)"], **how).wait(), flush=True)
os.chdir("/")
os.setgroups([])
how = dict(user=65534)
run()
how = dict()
run()
os.setuid(65534)
run()
"""], python=everybodys)
    assert trace.out == "1\n0\n" * 3
    causes = [cause for cause, in trace.rows("SELECT cause FROM losses WHERE NOT is_stall")]
    assert len(causes) == 2 and len(set(causes)) == 2
    assert all(cause.startswith("process: Python process ") and " of user 65534 " in cause for cause in causes)
    assert trace.err == (f"dyntrace: {trace.path} is not complete: {causes[0]}, and more;"
                         " `dyntrace report` lists all losses\n")


def test_messages_of_unrelated_processes_are_ignored(dyntrace, everybodys, tmp_path):
    """A process outside the command's family may send any messages, and any number."""
    with running(dyntrace, everybodys, tmp_path, """
print("begin", flush=True)
sys.stdin.readline()
before(1000)
""") as (run, _):
        session, = rows(tmp_path / "t.db", "SELECT value FROM meta WHERE key = 'session'")[0]
        sender = f"""
import os, socket
name = "\\0" + {os.path.basename(session)!r}
for i in range(5000):
    one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.setblocking(False)
    try:
        one.sendto(os.urandom(i % 300), name)
    except BlockingIOError:
        pass
    one.close()
"""
        for who in {}, NOBODY:
            subprocess.run([everybodys, "-c", sender], check=True, cwd="/", **who)
        _, err = run.communicate("\n", timeout=60)
    assert (run.returncode, err) == (0, "")
    assert rows(tmp_path / "t.db", "SELECT cause FROM losses WHERE NOT is_stall") == []
    assert recorded(tmp_path / "t.db", "outer") == 1000


@pytest.fixture(scope="module")
def gunicorn(everybodys, tmp_path_factory):
    """A directory with gunicorn, and an application, that everybody may read."""
    import tempfile
    with tempfile.TemporaryDirectory(dir="/tmp") as where:
        try:
            done = subprocess.run([PYTHONS[0], "-m", "pip", "install", "--quiet", "--retries", "0", "--timeout", "10",
                                   "--target", where, "gunicorn"], capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            pytest.skip("gunicorn cannot be installed here: pip took too long")
        if done.returncode:
            pytest.skip("gunicorn cannot be installed here: " + (done.stderr.strip().splitlines() or ["?"])[-1])
        Path(where, "web.py").write_text("""
def inner(n):
    return b"%d" % n
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [inner(int(environ["QUERY_STRING"]))]
""")
        subprocess.run(["chmod", "-R", "a+rX", where], check=True)
        yield where


def test_gunicorn_workers_that_change_user_are_recorded(dyntrace, everybodys, gunicorn, tmp_path):
    """Workers change their user and then start threads. Every handler of 200 requests is recorded."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run = subprocess.Popen([dyntrace, "run", "-o", tmp_path / "t.db", "--python", everybodys, "-m", "gunicorn", "--user", "nobody",
                            "--worker-class", "gthread", "--workers", "2", "--threads", "4", "--bind", f"127.0.0.1:{port}",
                            "web:app"], cwd="/", env={**os.environ, "PYTHONPATH": gunicorn}, stderr=subprocess.PIPE, text=True)

    def answer(n):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", f"/?{n}")
        return connection.getresponse().read()

    def listens():
        with contextlib.suppress(OSError):
            return answer(0)

    try:
        until(listens, "gunicorn answers")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert list(pool.map(answer, range(1, 200))) == [b"%d" % n for n in range(1, 200)]
        run.terminate()
        _, err = run.communicate(timeout=60)
    finally:
        run.poll() is None and run.kill()
    assert run.returncode == 0 and "not complete" not in err, err
    fsck(dyntrace, tmp_path / "t.db")
    assert rows(tmp_path / "t.db", "SELECT cause FROM losses WHERE NOT is_stall") == []
    assert recorded(tmp_path / "t.db", "app") == recorded(tmp_path / "t.db", "inner") == 200
    assert parents(tmp_path / "t.db", "inner") == [("app",)]


def test_a_recording_ends_while_a_thread_waits(dyntrace, python, tmp_path):
    """dyntrace.record() releases the ring on which another thread waits."""
    (tmp_path / "p.py").write_text(STALL + """
import os, signal, dyntrace
done = [0]
def fills():
    for _ in range(700):
        before(1000)
        done[0] += 1
def collector():  # `dyntrace collect --pid PID` and its child, the collector, have the same command line
    end = f"--pid\\0{os.getpid()}\\0"
    return max(int(p) for p in filter(str.isdigit, os.listdir("/proc")) if end in command_line(p))
def command_line(pid):
    try:
        return open(f"/proc/{pid}/cmdline", errors="replace").read()
    except OSError:
        return ""  # it has just ended
for name in "1.db", "2.db":
    done[0], last = 0, -1
    with dyntrace.record(name):
        pid = collector()
        os.kill(pid, signal.SIGSTOP)
        thread = threading.Thread(target=fills)
        thread.start()
        while done[0] < 100 or done[0] != last:
            last = done[0]
            time.sleep(0.1)
        threading.Timer(0.5, os.kill, (pid, signal.SIGCONT)).start()
    thread.join()
    print(done[0])
""")
    library = Path(dyntrace).parent / "lib" / "python"
    done = subprocess.run([python, "p.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(library)},
                          capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "700\n700\n", "")
    for name in "1.db", "2.db":
        assert recorded(tmp_path / name, "outer") > 100_000
        check_parents(tmp_path / name)


COARSE = """
import subprocess
def work(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        before(10)
        time.sleep(0.0005)
work(0.3)
print("begin", flush=True)
if sys.stdin.readline() == "wait\\n":  # its collector is stopped, or killed
    work(0.5)
    print("now", flush=True)
    sys.stdin.readline()
t = threading.Thread(target=work, args=(0.2,))
t.start()
t.join()
pid = os.fork()
if not pid:
    work(0.2)
    os._exit(0)
os.waitpid(pid, 0)
subprocess.run([sys.executable, "-c", "import time; f = lambda: time.sleep(0.2); f()"])
""".replace("import subprocess", "import os, subprocess", 1)


@pytest.mark.parametrize("what", ["", "stop", "kill"])
def test_times_of_the_coarse_clock_are_in_order_and_within_their_error(dyntrace, python, tmp_path, what):
    """The collector makes the times: they are in order and within the error that the trace states, in threads, children
    and started programs. The trace says where the collector did not make them."""
    trace = tmp_path / "t.db"
    with running(dyntrace, python, tmp_path, COARSE, "--clock", "coarse") as (run, collector):
        if what:
            os.kill(collector, signal.SIGSTOP if what == "stop" else signal.SIGKILL)
            run.stdin.write("wait\n")
            run.stdin.flush()
            assert run.stdout.readline() == "now\n"
            if what == "stop":
                os.kill(collector, signal.SIGCONT)
            time.sleep(0.1)
        _, err = run.communicate("\n", timeout=120)
    assert run.returncode == 0, err
    fsck(dyntrace, trace)
    if not what:
        assert not rows(trace, "SELECT * FROM losses WHERE NOT is_stall")
    check_parents(trace)
    meta = dict(rows(trace, "SELECT key, value FROM meta WHERE key LIKE 'clock%'"))
    assert meta["clock"] == "coarse" and 100_000 <= meta["clock_resolution_ns"] < 20_000_000
    still, = rows(trace, "SELECT max(CAST(substr(cause, 18) AS REAL)) FROM losses WHERE cause LIKE 'stall: for up to %clock coarse%'")[0]
    if what == "stop":
        assert 400 < still < 5000
    assert rows(trace, "SELECT count(*) FROM frame f LEFT JOIN frame p ON p.frame_id = f.parent_id"
                       " WHERE f.end_ns < f.start_ns OR f.start_ns < p.start_ns OR f.end_ns > p.end_ns") == [(0,)]
    took = [ns / 1e9 for ns, in rows(trace, "SELECT end_ns - start_ns FROM frames WHERE qualname = 'work' ORDER BY start_ns")]
    slack = 0.05 + (still or 0) / 1000
    wanted = [0.3, *([0.5] if what else []), 0.2, 0.2]
    assert len(took) == len(wanted) and all(a - slack < b < a + slack + 2 for a, b in zip(wanted, took)), (took, still)
    (slept,), = rows(trace, "SELECT end_ns - start_ns FROM frames WHERE qualname = '<lambda>' AND"
                            " filename = '<string>'")
    assert slept >= 190e6 - (still or 0) * 1e6
    assert rows(trace, "SELECT count(*) FROM process WHERE end_ns < start_ns OR start_ns IS NULL") == [(0,)]
    report = subprocess.run([dyntrace, "report", trace], capture_output=True, text=True, check=True).stdout
    assert "times are right within" in report


# ---- processes that the collector comes to late ----

FAMILY = """
import os
def calls(n):
    for _ in range(n):
        after(1)
def child():
    calls(10)
    os.read(ends[0], 1)
    calls(20)
ends = os.pipe()
print("begin", flush=True)
sys.stdin.readline()
pids = []
for _ in range(3):
    pids.append(os.fork())
    if not pids[-1]:
        child()
        os._exit(0)
print("forked", flush=True)
sys.stdin.readline()
os.write(ends[1], b"123")
for pid in pids:
    os.waitpid(pid, 0)
"""


def leaves_of_children(trace):
    return rows(trace, "SELECT count(*) FROM frame f JOIN code c USING (code_id) JOIN thread t USING (thread_id)"
                       " WHERE c.qualname = 'leaf' AND t.process_id > 1 GROUP BY t.process_id ORDER BY 1")


@pytest.mark.no_sanitizer
@pytest.mark.parametrize("more", range(4))
def test_processes_are_recorded_when_the_collector_lacks_descriptors(dyntrace, python, tmp_path, more):
    """The collector lacks descriptors for the files of children, or for their ends. They are recorded once there are
    descriptors, or in another way."""
    trace = tmp_path / "t.db"
    with running(dyntrace, python, tmp_path, FAMILY) as (run, collector):
        until(lambda: rests(collector), "the collector has opened what it needs")
        used = len(os.listdir(f"/proc/{collector}/fd"))
        before = resource.prlimit(collector, resource.RLIMIT_NOFILE)
        resource.prlimit(collector, resource.RLIMIT_NOFILE, (used + more, before[1]))
        run.stdin.write("\n")
        run.stdin.flush()
        assert run.stdout.readline() == "forked\n"
        time.sleep(0.2)
        resource.prlimit(collector, resource.RLIMIT_NOFILE, before)
        _, err = run.communicate("\n", timeout=60)
    assert (run.returncode, err) == (0, "")
    fsck(dyntrace, trace)
    assert leaves_of_children(trace) == [(30,)] * 3
    assert rows(trace, "SELECT cause FROM losses WHERE NOT is_stall") == []
    assert rows(trace, "SELECT count(*) FROM process WHERE end_ns IS NULL") == [(0,)]


def test_processes_are_found_after_an_inotify_overflow(dyntrace, python, tmp_path):
    """While the collector is stopped, so many events occur in the session's directory that the kernel drops the last
    ones, about three processes."""
    trace = tmp_path / "t.db"
    with open("/proc/sys/fs/inotify/max_queued_events") as file:
        most = int(file.read())
    if most > 100_000:
        pytest.skip("the kernel keeps too many")
    with running(dyntrace, python, tmp_path, FAMILY) as (run, collector):
        until(lambda: rests(collector), "the collector watches the session")
        session = Path(rows(trace, "SELECT value FROM meta WHERE key = 'session'")[0][0])
        os.kill(collector, signal.SIGSTOP)
        for n in range(most // 2 + 10):
            (session / f"news{n}").touch()
            (session / f"news{n}").unlink()
        run.stdin.write("\n")
        run.stdin.flush()
        assert run.stdout.readline() == "forked\n"
        os.kill(collector, signal.SIGCONT)
        _, err = run.communicate("\n", timeout=60)
    assert (run.returncode, err) == (0, "")
    fsck(dyntrace, trace)
    assert leaves_of_children(trace) == [(30,)] * 3
