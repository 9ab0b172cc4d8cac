"""What the tests share, but for fixtures (conftest.py) and planted traces (planted.py)."""
import base64
import collections
import contextlib
import difflib
import fcntl
import functools
import importlib
import importlib.util
import io
import json
import os
import pty
import random
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import textwrap
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = [p for p in os.environ.get("DYNTRACE_PYTHONS", "").split(":") if p] or [sys.executable]


@functools.cache  # asked for each test
def version_of(python):
    return subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                          capture_output=True, text=True, check=True).stdout.strip()


PROGRAMS = ROOT / "tests" / "programs"


CONTRACT = ROOT.parent / "shared" / "contract" / "check_trace.py"


def run_whole(words, timeout, **more):
    """subprocess.run() with its output as text, which at its time limit ends not only what it started but what that started."""
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **more) as child:
        try:
            out, err = child.communicate(timeout=timeout)
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(words, child.returncode, out, err)


def command_path():
    return os.environ.get("DYNTRACE") or str(ROOT / "build" / "dyntrace")


def extension():
    """The extension that was built for the Python of this very process."""
    sys.path.insert(0, str(Path(command_path()).parent / "lib"))
    try:
        return importlib.import_module("_dyntrace")
    finally:
        del sys.path[0]


def holds(trace):
    """The trace itself, once it has kept every promise."""
    path = getattr(trace, "path", trace)
    done = subprocess.run([command_path(), "fsck", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    if CONTRACT.exists():
        spec = importlib.util.spec_from_file_location("check_trace", CONTRACT)
        contract = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(contract)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            assert contract.main([str(path)]) == 0, said.getvalue()
    for suffix in ("-frames", "-wal", "-shm", "-journal"):
        assert not os.path.exists(f"{path}{suffix}")
    return trace


def query(path, sql, *values):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute(sql, values).fetchall()


def outcomes(path, like="%"):
    """What became of the calls of each function in files like LIKE, in order."""
    found = collections.defaultdict(list)
    for name, outcome in query(path, "SELECT qualname, outcome FROM call_ledger WHERE filename LIKE ? AND lookup_id IS NOT NULL ORDER BY start_ns, lookup_id", like):
        found[name].append(outcome)
    return found


def calls(trace, name):
    return query(getattr(trace, "path", trace), "SELECT count(*) FROM frames WHERE qualname = ? AND kind = 'call'", name)[0][0]


def script(path, text, mode=0o644):
    path.write_text(textwrap.dedent(text).lstrip("\n"))
    path.chmod(mode)
    return path


def schema_sql(*names):
    """The text of files below schemas/, such as "views", with the values of their names ($HIT)."""
    command = ["awk", "-f", ROOT / "schemas/names.awk", ROOT / "src/vocabulary.h", *(ROOT / f"schemas/{name}.sql" for name in names)]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


SCHEMA = schema_sql("trace", "views")


def one_line(text):
    """An error is one line that begins with the program's name."""
    assert text.startswith("dyntrace: ") and text.endswith("\n") and text.count("\n") == 1, text
    return text


class Screen:
    """A command on a terminal: keys in, text out."""

    def __init__(self, argv, size=(24, 100), **environment):
        self.text = ""
        pid, self.fd = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
            os.environ.update(TERM="xterm", LC_ALL="C.UTF-8", **environment)
            os.environ.pop("NO_COLOR", None) if "NO_COLOR" not in environment else None
            os.execv(argv[0], list(map(str, argv)))
        self.pid = pid

    def wait(self, text, seconds=120):
        """Read until TEXT has come; returns what came with it and is gone from self.text."""
        end = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < end and self.read(), f"no {text!r} in {self.text!r}"
        before, _, self.text = self.text.partition(text)
        return before + text

    def read(self):
        try:
            if select.select([self.fd], [], [], 1)[0]:
                data = os.read(self.fd, 65536)
                self.text += data.decode("utf-8", "replace")
                return bool(data)
        except OSError:
            return False
        return True

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def interrupt(self, prompt):
        """Ctrl-C, and the PROMPT after it. Once the signal is sent the system throws away what is on its way to the terminal: the
        prompt, too, if that was faster."""
        self.type("\x03")
        try:
            self.wait(prompt, 3)
        except AssertionError:
            self.type("\n")
            self.wait(prompt)

    def finish(self):
        """Everything up to the end, and the exit status."""
        while self.read():
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return self.text, os.waitstatus_to_exitcode(status)


def environment(**changes):
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "_")}
    for name, value in changes.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = str(value)
    return env


COMMANDS = {
    "replay": ["replay", "FILE", "--to", "first lookup"], "verify": ["replay", "FILE", "--verify"],
    "what-if": ["replay", "FILE", "--what-if", "dynamic=all"], "best": ["replay", "FILE", "--what-if", "best"],
    "why": ["why", "total", "FILE"], "show": ["show", "total", "FILE"], "check": ["check", "FILE", "--max-recompiles", "9"],
    "guards": ["check", "FILE", "--max-guard-us", "1000"], "diff": ["diff", "FILE", "OTHER", "--lookups"],
    "report": ["report", "FILE"], "json": ["report", "FILE", "--json"], "html": ["report", "FILE", "--html", "out"],
    "perfetto": ["export", "FILE", "--format", "perfetto", "-o", "out"], "csv": ["export", "FILE", "--format", "csv", "-o", "out"],
    "merge": ["merge", "FILE", "OTHER", "-o", "out"], "sql": ["sql", "FILE", "SELECT COUNT(*) FROM frames"],
}


def table(text):
    head, *rows = [line.split("\t") for line in text.splitlines()]
    return [dict(zip(head, row)) for row in rows]


GOLDEN = ROOT / "tests/golden"


def golden(name, text):
    """TEXT is the page golden/NAME.txt."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("DYNTRACE_RENEW"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    wanted = path.read_text() if path.exists() else ""
    changes = difflib.unified_diff(wanted.splitlines(), text.splitlines(), str(path), "now", n=1, lineterm="")
    assert text == wanted, "\n".join(["DYNTRACE_RENEW=1 writes the page anew", *changes])


def secrets():
    """Two words and two numbers that nothing else has."""
    word = lambda: "".join(random.choice("ghjkmnpqrstvwxyz") for _ in range(14))
    number = lambda: str(random.randrange(3 * 10 ** 8, 9 * 10 ** 8))
    return [word(), word(), number(), number()]


def forms(secret):
    """The bytes by which a secret would be known: as it is, in UTF-16, and in base64 wherever it stands in a text."""
    found = {secret.encode(), secret.encode("utf-16-le"), secret.encode().hex().encode()}
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + secret.encode())
        found.add(coded[4 if before else 0:-4])
    if secret.isdigit():
        number = int(secret)
        found |= {b"%x" % number, number.to_bytes(8, "big"), number.to_bytes(8, "little"), repr(number / 1e4).encode()}
    return found


def content(path):
    """A file's bytes; holes, of which rings have gigabytes, left out."""
    parts, at = [], 0
    with open(path, "rb") as file, contextlib.suppress(OSError):  # ENXIO: no more data
        while True:
            at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            file.seek(at)
            parts.append(file.read(end - at))
            at = end
    return b"".join(parts)


def leaks(paths, words):
    """(file, form) of each secret that is in one of PATHS."""
    found = []
    for path in paths:
        with contextlib.suppress(OSError):
            held = content(path)
            found += [(str(path), form) for word in words for form in forms(word) if form in held]
    return found


def predict(dyntrace, path, settings, *more):
    done = subprocess.run([dyntrace, "replay", str(path), "--what-if", settings, "--json", *more], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads(done.stdout)
