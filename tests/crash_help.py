"""What test_crash, test_recover and test_disk share: programs/crash_work.py from outside.

w = Work(dyntrace, python, tmp_path, threads=2)     starts `dyntrace run` on it, waits until it
                                                    works
os.kill(w.pid, signal.SIGKILL)
w.wait()
w.check()                                           the trace holds exactly what the program did
"""

import contextlib
import mmap
import os
import signal
import sqlite3
import struct
import subprocess
import time
from pathlib import Path

import pytest

from shared import ROOT

PROGRAM = ROOT / "tests" / "programs" / "crash_work.py"


def events_of_a_round():
    """What one call of round_ does: "+name" enters, "-" leaves."""
    middle = ["+middle", "+leaf", "-", "+leaf", "-", "-"]
    return ["+round_", *middle, *middle, "-"]


def states_of_a_round():
    """After each number of events of a round: how many frames of each name have ended, and the
    names that are open.
    """
    ended, stack = {"round_": 0, "middle": 0, "leaf": 0}, []
    states = [(dict(ended), tuple(stack))]
    for event in events_of_a_round():
        if event == "-":
            ended[stack.pop()] += 1
        else:
            stack.append(event[1:])
        states.append((dict(ended), tuple(stack)))
    return states


STATES = states_of_a_round()
WHOLE = STATES[-1][0]


def rows(path, sql, *values):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute(sql, values).fetchall()


def until(condition, what, seconds=60):
    """Wait until CONDITION() is true, return its value. The limit is for what hangs."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"{what}: not after {seconds} s"
        time.sleep(0.002)
    return value


def run_as_known(words, trace, **more):
    """Run WORDS, a `dyntrace run` into TRACE. Where the program prints a pid it reads a line, and
    gets it once the collector knows that process: it then learns how the process ends."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        list(map(str, words)), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, **more
    ) as run:
        for line in filter(str.isdigit, map(str.strip, run.stdout)):
            until(
                lambda: rows(trace, "SELECT 1 FROM process WHERE pid = ?", int(line)),
                f"the collector knows process {line}",
            )
            run.stdin.write("\n")
            run.stdin.flush()
    assert run.returncode == 0


def state_of(pid):
    """Its letter in /proc, such as S: it sleeps."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def rests(pid, seconds=0.3):
    """Did it sleep for SECONDS? A collector that does has read all that there was."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if state_of(pid) != "S":
            return False
        time.sleep(0.005)
    return True


def catches(pid, number):
    """Has it a handler for signal NUMBER?"""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (number - 1) & 1)


def gone(pid):
    try:
        return state_of(pid) == "Z"
    except OSError:
        return True


def collector_of(run):
    """Pid of the collector: the child of `dyntrace run` that leads a session of its own."""
    try:
        with open(f"/proc/{run}/task/{run}/children") as file:
            children = [int(pid) for pid in file.read().split()]
        for pid in children:
            if os.getsid(pid) == pid:
                return pid
    except OSError:
        pass
    return None


def collect_of(pid):
    """Pid of the `dyntrace collect` that dyntrace.record() of process PID has started. It is no child of PID. Its own child, the
    collector, has the same command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_text().split("\0")
            if words[1:3] == ["collect", "-o"] and words[4:6] == ["--pid", str(pid)]:
                found.append(int(path.parent.name))
    return min(found)


def holders(session):
    """Processes that have the session's lock open."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if any(
                os.readlink(f"/proc/{pid}/fd/{fd}") == f"{session}/collector.lock"
                for fd in os.listdir(f"/proc/{pid}/fd")
            ):
                found.append(int(pid))
    return found


def fsck(dyntrace, path):
    done = subprocess.run([dyntrace, "fsck", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


class Work:
    def __init__(
        self, dyntrace, python, tmp_path, threads=1, rounds=None, how=None, name="work", options=()
    ):
        self.dyntrace, self.threads = dyntrace, threads
        self.rounds = rounds
        self.trace = tmp_path / f"{name}.db"
        self.counters_path = tmp_path / f"{name}.counters"
        self.counters_path.write_bytes(bytes(4096))
        with open(self.counters_path, "r+b") as file:
            self.counters = memoryview(mmap.mmap(file.fileno(), 4096)).cast("Q")
        argv = [
            dyntrace,
            "run",
            "-o",
            self.trace,
            "--python",
            python,
            *options,
            "--",
            PROGRAM,
            self.counters_path,
            threads,
        ]
        argv += [] if rounds is None else [rounds]
        argv += [how] if how else []
        self.run = subprocess.Popen(
            list(map(str, argv)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        until(lambda: self.working or self.run.poll() is not None, "the program begins to work")

    pid = property(lambda self: self.counters[0])
    working = property(lambda self: self.counters[1])
    finished = property(lambda self: self.counters[2])

    def begun_and_done(self, thread):
        return self.counters[4 + 2 * thread], self.counters[5 + 2 * thread]

    def session(self):
        """Directory of the live session; None: it has ended already."""
        found = rows(self.trace, "SELECT value FROM meta WHERE key = 'session'")
        return found[0][0] if found else None

    def wait(self, timeout=120):
        self.out, self.err = self.run.communicate(timeout=timeout)
        self.status = self.run.returncode
        return self.status

    def end(self):
        """Whatever the test did: leave no process behind."""
        for pid in (self.pid, collector_of(self.run.pid), self.run.pid):
            if pid and not (pid == self.run.pid and self.run.returncode is not None):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        if self.run.returncode is None:
            self.run.communicate()

    def state(self, thread):
        """Of a thread in the trace: {name: ended}, names of open frames in order, and frames with
        another parent than round_'s life says."""
        name = "MainThread" if thread == 0 else f"worker {thread}"
        frames = "FROM frame f JOIN code c USING (code_id) JOIN thread t USING (thread_id)"
        of_thread = "WHERE t.name = ?"
        ended = dict.fromkeys(WHOLE, 0)
        sql = f"""SELECT c.qualname, count(*) {frames} {of_thread}
                  AND c.qualname IN ('round_', 'middle', 'leaf') AND f.end_ns IS NOT NULL
                  GROUP BY 1"""
        ended.update(rows(self.trace, sql, name))
        sql = f"""SELECT c.qualname {frames} {of_thread}
                  AND f.end_ns IS NULL ORDER BY f.frame_id"""
        opened = rows(self.trace, sql, name)
        sql = f"""SELECT f.frame_id, c.qualname, pc.qualname {frames}
                  LEFT JOIN frame p ON p.frame_id = f.parent_id
                  LEFT JOIN code pc ON pc.code_id = p.code_id
                  {of_thread} AND (c.qualname = 'round_' AND pc.qualname IS NOT 'work'
                                   OR c.qualname = 'middle' AND pc.qualname IS NOT 'round_'
                                   OR c.qualname = 'leaf' AND pc.qualname IS NOT 'middle')
                  LIMIT 5"""
        wrong = rows(self.trace, sql, name)
        assert wrong == [], "(frame, function, of its parent)"
        return ended, [name for name, in opened]

    def check_thread(self, thread, least, most):
        """The trace holds a beginning of this thread's life: LEAST whole rounds at least, MOST at
        most, and in between any moment of a round. Nothing is missing in the middle, nothing is
        there twice."""
        ended, opened = self.state(thread)
        base = [name for name in opened if name not in WHOLE]
        inside = tuple(name for name in opened if name in WHOLE)
        assert base in (
            (["<module>", "main", "work"], [])
            if thread == 0
            else (["Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run", "work"], [])
        ) or (
            not inside and least in (0, self.rounds)
        ), opened  # it begins, or ends
        for partial, stack in STATES:
            whole, rest = divmod(ended["round_"] - partial["round_"], WHOLE["round_"])
            if (
                rest == 0
                and stack == inside
                and all(ended[n] == partial[n] + whole * WHOLE[n] for n in WHOLE)
            ):
                if least <= whole and whole + (partial != STATES[0][0] or bool(stack)) <= most:
                    return whole
        raise AssertionError(
            f"thread {thread}: {ended}, open {opened}; {least} to {most} rounds expected"
        )

    def check(self, least=None, most=None):
        """As check_thread for all threads; without limits as the counters say, the program having
        died.
        """
        fsck(self.dyntrace, self.trace)
        for thread in range(self.threads):
            begun, done = self.begun_and_done(thread)
            self.check_thread(
                thread,
                done if least is None else least[thread],
                begun if most is None else most[thread],
            )
        for suffix in ("-frames", "-wal", "-shm", "-journal", "-frames-journal"):
            assert not os.path.exists(f"{self.trace}{suffix}")

    def losses(self):
        return [cause for cause, in rows(self.trace, "SELECT cause FROM loss")]


needs_root = pytest.mark.skipif(
    os.geteuid() != 0
    or subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True
    ).returncode
    != 0,
    reason="mounts a filesystem",
)


def mounted(size, at, argv, setup="", **rest):
    """Run ARGV where AT is an empty filesystem of SIZE, seen by nobody else."""
    script = (
        f'mount -t tmpfs -o size={size},mode=1777 none "$1" && shift && {setup or ":"} && exec "$@"'
    )
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", str(at), *map(str, argv)],
        capture_output=True,
        text=True,
        timeout=300,
        **rest,
    )


def ring_offsets(path):
    """Where the rings lie in a process file (src/ring.h)."""
    with open(path, "rb") as file:
        head = file.read(20000)
    at = struct.calcsize("8s 4I Q Q 64s 5I Q 5Q 2I Q 4I 10Q 2I 2Q 2I")
    assert head.startswith(b"DYNPROC")
    return [off for off in struct.unpack_from("16Q", head, at) if off]
