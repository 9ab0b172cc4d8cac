"""The TUI on a fresh recording of a torch program with one planted recompile: a new user's way to its cause in at most
five keys, and each view's screen as it stands in golden/tui-torch/.

For the screens, the recording's clock is set to count events: the order of all that happened stays, each step takes 10 ms,
and the same run gives the same times. What torch names by chance, addresses and the folder are then told by signs that take
the same room. The texts are those of one pair of torch and CPython; with another, screens are not compared. After a wanted
change: DYNTRACE_RENEW=1, then read the difference."""
import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import pytest

from shared import golden
from terminal import answered

ROOT = Path(__file__).resolve().parents[2]
PAIR = "2.13 3.11"  # of torch and CPython
SIZES = ("80x24", "40x12", "200x60")

# Name of the golden file: keys that lead there from the first screen.
VIEWS = {
    "overview": "",
    "functions": "2",
    "function": "2 Enter",
    "entries": ":entries Enter",
    "entry": ":entries Enter Enter",
    "entry-bytecode": ":entries Enter Enter G",
    "recompiles": "3",
    "causes": "3 Enter",
    "compile": "3 Enter Enter",
    "compiles": ":compiles Enter",
    "breaks": "4",
    "break": "4 Enter",
    "ledger": "5",
    "call": "5 j Enter",
    "guards": "6",
    "checks": ":checks Enter",
    "timeline": "7",
    "timeline-zoomed": "7 + +",
    "flame": "8",
    "flame-graph": "8 Tab",
    "replay": "9",
    "replay-break": "9 ] ] ]",
    "what-if": "3 Enter Enter w",
    "processes": "0",
    "losses": ":losses Enter",
    "help": "?",
    "sql": ":sql Space recompile-causes Enter",
}


@pytest.fixture(scope="module")
def recorded(dyntrace, python):
    """recorded(mode) -> the folder of a recording, t.db. Its name has the same length each time, for the screens that it is on."""
    folders = {}

    def recorded(mode):
        if mode in folders:
            return folders[mode]
        place = folders[mode] = Path(tempfile.mkdtemp(prefix="tui-", dir="/tmp"))
        shutil.copy(ROOT / "examples/recompiles.py", place)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "PYTHON"))}
        environment.update(PYTHONHASHSEED="0", OMP_NUM_THREADS="1", TORCHINDUCTOR_CACHE_DIR=str(place / "cache"))
        done = subprocess.run([dyntrace, "run", "--torch", mode, "--include", "*recompiles.py", "-o", "t.db", "--python", python, "recompiles.py"],
                              cwd=place, capture_output=True, text=True, timeout=280, env=environment)
        assert done.returncode == 0, done.stderr
        return place

    yield recorded
    for place in folders.values():
        shutil.rmtree(place)


def dump(dyntrace, folder, keys, size="100x40", trace="t.db"):
    run = subprocess.run([dyntrace, "tui", trace, "--dump", "--screen", size, "--keys", keys], cwd=folder, capture_output=True, text=True,
                         timeout=120, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert run.returncode == 0 and not run.stderr
    return run.stdout


@pytest.mark.parametrize("mode", ["shim", "observe"])
def test_the_planted_cause_is_found_by_its_first_key(dyntrace, recorded, mode):
    folder = recorded(mode)
    first = dump(dyntrace, folder, "")
    assert re.search(r"^> .*scale: factor: ", first, re.M) and "graph break" in first
    cause = dump(dyntrace, folder, "Enter")
    assert "> compile scale" in cause and re.search(r"factor: .*0\.5", cause) and "as a tensor" in cause
    source = dump(dyntrace, folder, "4 /item Enter Enter") # the print after it is a break, too; what took longer comes first
    assert ".item()" in source and "capture_scalar_outputs" in source and re.search(r"--> +21 +print", source)
    assert re.search(r"hit +\d+ +[·▁-█]+", dump(dyntrace, folder, "2 Enter")) or mode == "observe"
    assert "LOAD_FAST" in dump(dyntrace, folder, "5 /scale Enter Right Right Right Right Enter G", "160x60")
    with contextlib.closing(sqlite3.connect(folder / "t.db")) as db:
        assert db.execute("SELECT COUNT(*) FROM cache_entries WHERE last_use_ns < born_ns").fetchone() == (0,)
    assert "recorded" in dump(dyntrace, folder, "Enter w") and "predicted" in dump(dyntrace, folder, "Enter w")


PLANTED = '''
import os
import signal
import time

import torch
def helper(n):
    return n
def slow(n):
    time.sleep(0.001 * n)
    for i in range(n):
        helper(i)
@torch.compile(backend="eager")
def scale(x, unit):
    return x * len(unit)
@torch.compile(backend="eager")
def broken(x):
    x = x + 1
    print("a break")
    return x * 2
@torch.compile(backend="eager")
def limited(x, unit):
    return x + len(unit)
def train():
    for unit in ("m", "cm", "inch"):
        scale(torch.ones(4), unit)
    for _ in range(3):
        broken(torch.ones(4))
    torch._dynamo.config.recompile_limit = 2
    for i in range(5):
        limited(torch.ones(4), "m" * i)
    for n in (1, 30, 2):
        slow(n)
def die():
    time.sleep(0.5)  # the collector has to know it while it lives, or cannot say how it ended
    os.kill(os.getpid(), signal.SIGKILL)
train()
pid = os.fork()
if not pid:
    die()
os.waitpid(pid, 0)
'''


@pytest.fixture(scope="module")
def planted(dyntrace, python, tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    (folder / "p.py").write_text(PLANTED)
    subprocess.run([dyntrace, "run", "--torch", "shim", "--include", "*p.py", "-o", "t.db", "--python", python, "p.py"],
                   cwd=folder, capture_output=True, timeout=280, check=True)
    return folder


@pytest.mark.parametrize("question, keys, pattern", [
    ("what recompiles most, and why", "", r"2 x scale: unit: expected 'm', actual '(cm|inch)', '(cm|inch)'"),
    ("which guard, which value", "3 Enter Enter", r"unit: expected 'm' \(entry 0/0\), actual 'cm'\n +needed by .*\n +EQUALS_MATCH"),
    ("where it breaks, and what runs after", "4 Enter", r"in +broken .*the rest runs as torch_dynamo_resume_in_broken_at_\d+, called 3 times"),
    ("eager since when", "", r"3 x limited  limit since [\d.]+ s"),
    ("what ran at a moment", ":MOMENT Enter", r"slow < train < <module>"),
    ("who called scale", ":functions Space scale Enter Enter", r"Called from +Calls\n. +3 x train"),
    ("the slowest call of slow, and what it did inside", ":functions Space slow Enter Enter p", r"by time +1 of 3.*Inside: 30 calls.* 30 x helper"),
    ("which process died", "", r"1 of 2 processes died by a signal.*signal 9 \(SIGKILL\).* in die "),
    ("the stack it died in", "Enter", r"Open when it ended.*die .*<module>"),
    ("what a change would have made of it", "w", r"recorded .*\n.*predicted"),
])
def test_the_questions(dyntrace, planted, question, keys, pattern):
    with contextlib.closing(sqlite3.connect(planted / "t.db")) as db:
        start, end = db.execute("SELECT start_ns, end_ns FROM frames WHERE qualname = 'slow' ORDER BY duration_ns DESC LIMIT 1").fetchone()
    answered(dyntrace, planted, "t.db", keys.replace("MOMENT", f"{(start + end) // 2}ns"), pattern)


TIMES = {"frame": "start_ns end_ns", "cache_entry": "born_ns died_ns", "compile": "start_ns end_ns", "guard_order": "from_ns",
         "code_mark": "at_ns", "loss": "at_ns"}
THE_REST = """
    UPDATE guard_check SET duration_ns = 1000 * (1 + guards_run);
    UPDATE code_total SET total_ns = (SELECT SUM(end_ns - start_ns) FROM frame f WHERE f.code_id = code_total.code_id);
    UPDATE code_total SET self_ns = total_ns - COALESCE((SELECT SUM(f.end_ns - f.start_ns) FROM frame f JOIN frame p ON p.frame_id = f.parent_id
        WHERE p.code_id = code_total.code_id), 0);
    UPDATE process SET pid = 4711, start_ns = 0, end_ns = (SELECT MAX(new) FROM tick), torch_version = '2.13.0', executable = 'python',
        argv = '["python", "recompiles.py"]';
    UPDATE thread SET os_tid = 4711;
    -- torch leaves out of a file's name what it has in common with its own place, and two letters more when that is "/"
    UPDATE guard SET expression = replace(expression, ' # tui-', ' # mp/tui-');
    UPDATE recompile_cause SET text = replace(text, ' # tui-', ' # mp/tui-');
    UPDATE meta SET value = (SELECT MAX(new) FROM tick) WHERE key = 'span_ns';
"""


def clock_set(path):
    """Let the n-th of all that has a time happen at n * 10 ms."""
    times = [(table, column) for table, columns in TIMES.items() for column in columns.split()]
    every = " UNION ".join(f"SELECT {column} FROM {table}" for table, column in [*times, ("lookup", "start_ns"), ("lookup", "start_ns + duration_ns")])
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(f"""
            CREATE TEMP TABLE tick AS WITH every(old) AS ({every}) SELECT old, row_number() OVER (ORDER BY old) * 10000000 AS new
                FROM every WHERE old IS NOT NULL;
            CREATE TEMP TABLE phase AS SELECT compile_id AS id, start_ns AS at FROM compile_phase UNION SELECT compile_id, end_ns FROM compile_phase""")
        new = "(SELECT new FROM tick WHERE old = {})".format
        db.execute(f"UPDATE lookup SET start_ns = {new('start_ns')}, duration_ns = {new('start_ns + duration_ns')} - {new('start_ns')}")
        for table, column in times:
            db.execute(f"UPDATE {table} SET {column} = {new(column)}")
        # Phases are by torch's own clock: the order is theirs, too, a millisecond each from where their compile begins.
        step = "(SELECT start_ns FROM compile c WHERE c.compile_id = p.compile_id) + 1000000 * (SELECT COUNT(*) FROM phase WHERE id = p.compile_id AND at < {})".format
        db.execute(f"UPDATE compile_phase AS p SET start_ns = {step('p.start_ns')}, end_ns = {step('p.end_ns')}")
        db.executescript(THE_REST)


def steady(screen):
    """The screen without what differs from run to run."""
    for chance in (r"(?<=tui-)[a-z0-9_]{1,8}", r"(?<=__compiled_fn_\d_)[0-9a-f_]+", r"\d{9,}"):
        screen = re.sub(chance, lambda m: "#" * len(m[0]), screen)
    return screen


@pytest.fixture(scope="module")
def counted(recorded):
    """The recording with a clock that counts."""
    folder = recorded("shim")
    with contextlib.closing(sqlite3.connect(folder / "t.db")) as db:
        versions = db.execute("SELECT torch_version, python_version FROM process").fetchone()
    pair = " ".join(".".join(version.split(".")[:2]) for version in versions)
    if pair != PAIR:
        pytest.skip(f"the screens are those of torch and CPython {PAIR}, not {pair}")
    shutil.copy(folder / "t.db", folder / "counted.db")
    clock_set(folder / "counted.db")
    return folder


@pytest.mark.parametrize("view", VIEWS)
def test_the_screen_of_each_view(dyntrace, counted, view):
    screens = "".join(f"==== {size}: {VIEWS[view]}\n{steady(dump(dyntrace, counted, VIEWS[view], size, 'counted.db'))}" for size in SIZES)
    golden(f"tui-torch/{view}", screens)
