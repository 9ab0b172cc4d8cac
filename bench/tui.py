"""The figure `tui`: how soon `dyntrace tui` answers, on a trace of 10 M frames and 1 M lookups.

The program runs in a pseudo terminal. The time of the first screen begins at the program's start. The time of a key lasts
from writing the key until the last byte of the screen that is drawn for it. If the result of a slow query is drawn later,
that is another screen, which is not counted. The time of a call's page lasts until the part "Inside" is on the screen.
"""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import statistics
import struct
import tempfile
import termios
import time

from figures import figure
from interpreters import Failed
from made import made_trace
from replay import ROOT, big_trace
from tables import at_most

SIZE = (30, 100)
GAP = 0.012        # a screen is complete when nothing was drawn for so many seconds
CALLEES, FRAMES_OF_CALLEE = 10_000, 1000
FIRST_S, KEY_MS, MEMORY_MB, IDLE_SHARE, PICTURE_S = 0.3, 50, 150, 0.02, 1
# TOUR has the keys to type. A word is a name of NAMES, or characters; ~ waits until all queries have ended.
NAMES = {"Enter": b"\r", "Esc": b"\x1b", "Down": b"\x1b[B", "Up": b"\x1b[A", "PgDn": b"\x1b[6~", "Right": b"\x1b[C", "Tab": b"\t"}
TOUR = """j j j k Enter Esc ~ 2 ~ j j j G g Right Right s s Enter ~ j j G g Esc 5 ~ j j PgDn PgDn PgDn G k k g Enter ~ j Esc
          3 ~ j Enter ~ j j Enter ~ j Esc Esc 4 ~ Enter ~ Esc 6 ~ j Enter ~ PgDn PgDn Esc 0 ~ 7 ~ + + + + Right Right j k n n 8 ~ j j
          Tab j Tab 9 ~ j j j ] ] ] [ [ G g ? PgDn PgDn Esc ! Esc Esc
          : frames Enter ~ G g j Esc 1 ~ G g""".split()


class Terminal:
    def __init__(self, argv):
        self.begun = time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8")
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
            os.execv(argv[0], argv)

    def read(self, timeout, gap=GAP):
        """Read what is drawn until nothing more comes for GAP seconds. Returns (bytes, time of the last byte); the time is None if
        nothing came within TIMEOUT."""
        text, last = b"", None
        while select.select([self.fd], [], [], gap if last else timeout)[0]:
            try:
                text += os.read(self.fd, 65536)
            except OSError:
                break
            last = time.monotonic()
        return text, last

    def type(self, word):
        begun = time.monotonic()
        os.write(self.fd, NAMES.get(word, word.encode()))
        _, last = self.read(0.25)
        return (last - begun) * 1000 if last else None

    def memory(self):
        with open(f"/proc/{self.pid}/status") as file:
            return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) / 1024

    def processor(self):
        with open(f"/proc/{self.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def first_screen(program, trace):
    terminal = Terminal([program, "tui", trace])
    try:
        text, last = b"", None
        while b"Most own time" not in text and b"frames" not in text:
            more, last = terminal.read(20)
            if not more:
                raise Failed("tui: no first screen")
            text += more
        return last - terminal.begun
    finally:
        terminal.end()


def tour(program, trace):
    """Type the keys of TOUR. Returns ([(milliseconds, key), ...], the most memory in MB)."""
    terminal = Terminal([program, "tui", trace])
    times = []
    try:
        terminal.read(20, 1.5)
        for word in TOUR:
            if word == "~":
                while terminal.read(2, 0.2)[0]:
                    pass
                continue
            ms = terminal.type(word)
            if ms is not None:  # None: the key changed nothing on the screen
                times.append((ms, word))
        return times, terminal.memory()
    finally:
        terminal.end()


def wide_trace(callees):
    """Return the path of a trace whose first frame has CALLEES callees, each with FRAMES_OF_CALLEE frames."""
    def fill(db):
        frames = callees * FRAMES_OF_CALLEE
        db.executemany("INSERT INTO meta VALUES (?, ?)", [
            ("dyntrace_version", "bench"), ("state", "complete"), ("started_unix_ns", 1700000000000000000), ("host", "bench"),
            ("command", '["python", "bench.py"]'), ("span_ns", frames * 100), ("frame_count", frames + 1), ("open_frame_count", 0)])
        db.execute("INSERT INTO process(process_id, pid, start_ns, end_ns, exit_code) VALUES (1, 1000, 0, ?, 0)", [frames * 100])
        db.execute("INSERT INTO thread VALUES (1, 1, 1000, 'worker')")
        db.executemany("INSERT INTO code VALUES (?, 1, '/srv/app/wide.py', ?, ?, 'function', NULL, ?)", [(c, f"f{c}", c, c) for c in (1, 2, 3)])
        db.execute("""WITH RECURSIVE frames(i, within) AS (SELECT 0, NULL UNION ALL SELECT i + 1, i % :size FROM frames WHERE i < :frames)
            INSERT INTO frame(frame_id, thread_id, parent_distance, code_id, start_ns, took_ns)
            SELECT i + 1, 1, CASE WHEN within THEN within WHEN i THEN i END, CASE WHEN within THEN 3 WHEN i THEN 2 ELSE 1 END,
                i * 100, CASE WHEN within THEN 60 WHEN i THEN :size * 100 - 50 ELSE :frames * 100 END
            FROM frames""", {"size": FRAMES_OF_CALLEE, "frames": frames})
    return made_trace(f"bench-wide-2-{callees}", fill)


def call_page(program, trace):
    """Open the page of the first call 20 times. Returns the milliseconds of each."""
    terminal = Terminal([program, "tui", trace])
    times = []
    try:
        for _ in range(20):
            while terminal.read(1, 0.5)[0]:
                pass
            begun, text = time.monotonic(), b""
            os.write(terminal.fd, b":call 1\r")
            while b"Inside" not in text:
                more, last = terminal.read(20, 0)
                if not more:
                    raise Failed("tui: no page of the call")
                text += more
            times.append((last - begun) * 1000)
            os.write(terminal.fd, NAMES["Esc"])
        return times
    finally:
        terminal.end()


def picture(program, trace, key, sign):
    """Return the processor seconds from KEY until SIGN is drawn for the first look, and until all frames have been read."""
    terminal = Terminal([program, "tui", trace])
    try:
        while terminal.read(3, 1)[0]:
            pass
        before, first = terminal.processor(), None
        os.write(terminal.fd, key)
        while text := terminal.read(3)[0]:
            if not first and sign.encode() in text:
                first = terminal.processor() - before
        return first, terminal.processor() - before
    finally:
        terminal.end()


def idle(program, trace):
    """Return the share of a processor that a live view uses while nothing changes."""
    terminal = Terminal([program, "tui", "--live", trace])
    try:
        while terminal.read(3, 1)[0]:
            pass
        before, begun = terminal.processor(), time.monotonic()
        time.sleep(10)
        return (terminal.processor() - before) / (time.monotonic() - begun)
    finally:
        terminal.end()


@figure("tui", "dyntrace tui on a large trace", ["python", "figure", "", "measured", "target", "verdict"], [
    "first screen: from the start of the program to its last byte, best of some; the file is in the page cache",
    "keys: a tour through all views; what a slow query answers later is drawn then, and not counted",
    "call tree and timeline: processor time to a first look, and until they show all frames"])
def tui(table, python, options):
    trace = big_trace(1_000_000 // options.divisor)
    program = os.path.join(ROOT, "build", "dyntrace")
    first = min(first_screen(program, trace) for _ in range(5))
    times, memory = tour(program, trace)
    times.sort()
    ms = [each for each, _ in times]
    p95 = ms[int(len(ms) * 0.95)]
    table.raw.append({"first_s": first, "keys_ms": times, "memory_mb": memory})
    table.add(python.version, "first screen", "s", *at_most(first, FIRST_S))
    table.add(python.version, f"key to screen, 95th percentile of {len(ms)}", "ms", *at_most(p95, KEY_MS, "{:.0f}"))
    table.add(python.version, "key to screen, median", "ms", f"{statistics.median(ms):.0f}", "", "")
    table.add(python.version, f"key to screen, slowest ({times[-1][1]})", "ms", f"{ms[-1]:.0f}", "", "")
    table.add(python.version, "resident memory after the tour", "MB", *at_most(memory, MEMORY_MB, "{:.0f}"))
    for name, key, sign in ("call tree", b"8", "▾"), ("timeline", b"7", "calls looked up"):
        look, whole = picture(program, trace, key, sign)
        table.add(python.version, f"{name}, first look", "s", f"{look:.2f}", "", "")
        table.add(python.version, f"{name}, all frames", "s", *at_most(whole, PICTURE_S))
    pages = call_page(program, wide_trace(CALLEES // options.divisor))
    table.raw.append({"call_page_ms": pages})
    table.add(python.version, "the page of a call of 10,000 among 10 M frames, slowest of 20", "ms", *at_most(max(pages), KEY_MS, "{:.0f}"))
    with tempfile.TemporaryDirectory(prefix="dyntrace-bench-") as folder:
        small = os.path.join(folder, "live.db")
        shutil.copy(big_trace(1000), small)
        table.add(python.version, "live view while nothing changes", "of a core", *at_most(idle(program, small), IDLE_SHARE, "{:.3f}"))
