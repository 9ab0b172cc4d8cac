"""dyntrace tui: questions about a trace are answered in at most three keys (a typed line with its Enter is one), for a
program with a compiler and for a plain one that dies."""
import sqlite3

import pytest

from crash_help import run_as_known
from shared import PYTHONS
from terminal import answered

pytestmark = pytest.mark.one_python

PLAIN = """
import os, signal, time
def leaf(n):
    return n
def work(n):
    time.sleep(0.01 * n)
    for i in range(n):
        leaf(i)
def busy():
    for n in (1, 30, 2):
        work(n)
def die():
    os.write(1, b"%d\\n" % os.getpid())
    os.read(0, 1) # run_as_known
    os.kill(os.getpid(), signal.SIGKILL)
    while True:
        pass
busy()
time.sleep(0.3)
pid = os.fork()
if not pid:
    die()
os.waitpid(pid, 0)
"""


@pytest.fixture(scope="module")
def plain(dyntrace, tmp_path_factory):
    path = tmp_path_factory.mktemp("plain")
    (path / "p.py").write_text(PLAIN)
    words = [dyntrace, "run", "-o", "t.db", "--python", PYTHONS[0], "p.py"]
    run_as_known(words, path / "t.db", cwd=path)
    return path


@pytest.mark.parametrize("question, keys, pattern", [
    ("what recompiles most, and why", "", r"^.  +2 x step: x size\[0\]: expected 16, actual 18, 20\n +needed by model.py:6"),
    ("which guard, which value", "3 Enter Enter", r"x size\[0\]: expected 16 \(entry 0/0\), actual 18"),
    ("where it breaks, and what runs after", "2 Enter", r"line 7  2 x  Failed to trace builtin operator.*the rest runs as torch_dynamo_resume_in_step_at_7"),
    ("eager since when", "", r"50 x helper  limit since 0\.143 s"),
    ("what ran at 0.7 s", ":0.7 Enter", r"^0\.700000 s .* <module>"),
    ("who called step", "2 Enter", r"Called from.*300 x <module>"),
    ("the slowest call of step, and what it did inside", "2 Enter p", r"> call step .*Inside: 1 call, .* 1 x step.<locals>.<listcomp>"),
    ("which process died", "", r"1 of 2 processes died by a signal.*4712 signal 9 \(SIGKILL\).* in work "),
    ("the stack it died in", "Enter", r"Open when it ended: .*\n.*work  worker.py:3"),
    ("what a change would have made of it", "w", r"recorded .*\n.*predicted"),
])
def test_questions_about_a_compiled_program_are_answered_by_three_keys(dyntrace, place, question, keys, pattern):
    answered(dyntrace, place, "plain.db", keys, pattern)


@pytest.mark.parametrize("question, keys, pattern", [
    ("where the time went", "", r"Most own time.*work"),
    ("what ran at a moment", ":MOMENT Enter", r"work < busy < <module>"),
    ("the whole stack of it", ":MOMENT Enter v", r"call work.*Called by.*busy.*<module>"),
    ("who called work", ":functions Space work Enter Enter", r"Called from +Calls\n +3 x busy .*│ +33 x leaf"),
    ("the slowest call of work, and what it did inside", ":functions Space work Enter Enter p", r"> call work .*by time +1 of 3.*Inside: 30 calls.* 30 x leaf"),
    ("which process died, where", "", r"1 of 2 processes died by a signal.*signal 9 \(SIGKILL\).* in die .*p.py:12"),
    ("the stack it died in", "Enter", r"Open when it ended.*\n.die .*\n.<module>".replace(r"\n.", r"\n. +")),
])
def test_questions_about_a_plain_program_are_answered_by_three_keys(dyntrace, plain, question, keys, pattern):
    start, end = sqlite3.connect(plain / "t.db").execute("SELECT start_ns, end_ns FROM frames WHERE qualname = 'work' ORDER BY duration_ns DESC LIMIT 1").fetchone()
    answered(dyntrace, plain, "t.db", keys.replace("MOMENT", f"{(start + end) // 2}ns"), pattern)
