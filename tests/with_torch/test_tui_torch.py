"""The TUI on a fresh recording of a torch program with one planted recompile: a new user's way to its cause in at most
five keys, and the rows that each view has of it."""
import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import pytest

from crash_help import run_as_known
from terminal import answered

ROOT = Path(__file__).resolve().parents[2]
# The keys that lead to a view, and what stands there: regular expressions.
VIEWS = {
    "overview": ("", r"Calls that wanted compiled code: 9 +44\.4 % hit, 55\.6 % compiled", r"scale: factor: "),
    "functions": ("2", r"scale +3 +1 +2 +1 +0 +2", r"report +2 +1 +1 +0 +1 +1"),
    "function": ("2 Enter", r"^ scale +\S+recompiles\.py:13 +function", r"3 calls, .* in it", r"compiled +2 ", r"hit +1 "),
    "entries": (":entries Enter", r"scale +0/0 +0 +1 +\d+ ", r"scale +0/1 +1 +1 +\d+ ", r"report +1/0 +1 +1 "),
    "entry": (":entries Enter Enter", r"entry 0/0 of scale", r"1 +1 +L\['factor'\] EQUALS_MATCH +L\['factor'\] == 0\.5"),
    "entry-bytecode": (":entries Enter Enter G", r"\d+ LOAD_FAST", r"\d+ CALL "),
    "recompiles": ("3", r"scale +1 +factor +0\.5 +0\.25 +return x \* factor"),
    "causes": ("3 Enter", r"scale +0/1 +0/0 +factor +0\.5 +0\.25"),
    "compile": ("3 Enter Enter", r"compile +0/1 at ", r"outcome +compiled", r"inputs +x: Tensor float32\[4\] cpu, factor: float 0\.25"),
    "compiles": (":compiles Enter", r"compiled +scale +0/0 .* 0 +0 +first call", r"compiled +scale +0/1 .* 0 +1 +no entry", r"compiled +report +1/0 .* 1 +0 "),
    "breaks": ("4", r"Tensor\.item\(\) call .* 1 +report +21", r"Failed to trace builtin operator +1 +torch_dynamo_resume_"),
    "break": ("4 Enter", r"in +report +\S+recompiles\.py:21", r"resume_in_report_at_21, called 2\s+times"),
    "ledger": ("5", r"compiled +scale +0/0 +0 ", r"compiled +scale +0/1 +1 ", r"hit +scale +0/1 +1 "),
    "call": ("5 j Enter", r"scale +\S+recompiles\.py:13", r"decided +compiled +no entry fitted", r"ran +compiled code of 0/1"),
    "guards": ("6", r"TENSOR_MATCH +x +3 +3 +0", r"GLOBAL_STATE +global state +5 +5 +0"),
    "checks": (":checks Enter", r"fail +scale +0/0 +0 ", r"pass +scale +0/1 +0 ", r"pass +report +1/0 +0 "),
    "timeline": ("7", r"MainThread \[\d+\] +9 calls looked up", r"│<module>"),
    "timeline-zoomed": ("7 + +", r"MainThread \[\d+\] +9 calls looked up", r"│<module>"),
    "flame": ("8", r"100\.0 % .* 1 +▾ <module>", r" 2 +▸ report", r" 3 +▸ scale"),
    "flame-graph": ("8 Tab", r"│MainThread \[\d+\]", r"│<module>"),
    "replay": ("9", r"lookup 1 +event 1 of 16", r"scale .*: compiled 0/0, 0 entries checked", r"\(empty\)"),
    "replay-break": ("9 ] ] ]", r"lookup 5 +event 9 of 16", r"compiled 2/0, 0 entries checked"),
    "what-if": ("3 Enter Enter w", r"dynamic=L\['factor'\]", r"recorded .*\n.*predicted"),
    "processes": ("0", r"exit 0 .* 3\.\d+\.\d+ +2\.\d+\.\d+\S* +all +"),
    "losses": (":losses Enter", r"at \(s\) +events +pid +thread +cause"),
    "help": ("?", r"In this view, overview", r"Enter +opens"),
    "sql": (":sql Space recompile-causes Enter", r"scale +.* 13 +EQUALS_MATCH +L\['factor'\]"),
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


@pytest.mark.parametrize("mode", ["shim", pytest.param("observe", marks=pytest.mark.slow)])
def test_the_first_key_leads_to_the_recompile_cause(dyntrace, recorded, mode):
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
    time.sleep(0.01 * n)
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
    os.write(1, b"%d\\n" % os.getpid())
    os.read(0, 1)  # run_as_known
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
    words = [dyntrace, "run", "--torch", "shim", "--include", "*p.py", "-o", "t.db", "--python", python, "p.py"]
    run_as_known(words, folder / "t.db", cwd=folder)
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
def test_each_question_about_a_torch_program_is_answered_by_a_few_keys(dyntrace, planted, question, keys, pattern):
    with contextlib.closing(sqlite3.connect(planted / "t.db")) as db:
        start, end = db.execute("SELECT start_ns, end_ns FROM frames WHERE qualname = 'slow' ORDER BY duration_ns DESC LIMIT 1").fetchone()
    answered(dyntrace, planted, "t.db", keys.replace("MOMENT", f"{(start + end) // 2}ns"), pattern)


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_shows_the_rows_of_the_trace(dyntrace, recorded, view):
    """The expected texts are those of torch 2.13 on CPython 3.11. Other versions have other texts of guards and breaks."""
    folder = recorded("shim")
    with contextlib.closing(sqlite3.connect(folder / "t.db")) as db:
        versions = db.execute("SELECT torch_version, python_version FROM process").fetchone()
    if [".".join(version.split(".")[:2]) for version in versions] != ["2.13", "3.11"]:
        pytest.skip(f"the rows are those of torch 2.13 and CPython 3.11, not {versions}")
    keys, *rows = VIEWS[view]
    screen = dump(dyntrace, folder, keys, "160x60")
    for row in rows:
        assert re.search(row, screen, re.M), (row, screen)
    for size in ("80x24", "40x12"):
        lines = dump(dyntrace, folder, keys, size).splitlines()
        assert len(lines) == int(size.split("x")[1]) and all(len(line) <= int(size.split("x")[0]) for line in lines)
