"""--frames user, --include, --exclude and --max-depth: left-out frames are counted, and decisions on library code that
the program compiles are kept."""
import json
import re
import subprocess

import pytest

import planted
from shared import holds, query, script, version_of

pytestmark = pytest.mark.one_python

CALLS = """
import os, sys, textwrap
def mine(n):
    return textwrap.dedent("  a") if n else None
for n in range(50):
    mine(n % 2)
if "fork" in sys.argv:
    child = os.fork()
    for n in range(10):
        mine(1)
    if child:
        os.waitpid(child, 0)
"""

DECIDED = """
import string
from dyntrace.eval_frame import set_eval_frame
from dyntrace.guards import EQUALS_MATCH, GuardTree, L
from dyntrace.types import GuardedCode

def callback(frame, entry, state):
    if frame.f_code is not string.capwords.__code__:
        return None
    return GuardedCode(frame.f_code.replace(), GuardTree([EQUALS_MATCH(L["s"])], example=frame.f_locals))

def mine(words):
    return string.capwords(words)

set_eval_frame(callback)
for words in "a b", "a b", "c d", "a b":
    mine(words)
set_eval_frame(None)
"""
FACTS = {
    "lookups": "SELECT c.qualname, l.outcome, l.entries_checked FROM lookup l JOIN code c USING (code_id) WHERE c.filename NOT LIKE '%/dyntrace/%' ORDER BY l.start_ns",
    "compiles": "SELECT c.qualname, x.label, x.outcome, x.reason FROM compile x JOIN code c USING (code_id) WHERE c.filename NOT LIKE '%/dyntrace/%' ORDER BY x.start_ns",
    "entries": "SELECT c.qualname, e.label, e.guard_count FROM cache_entry e JOIN code c USING (code_id) ORDER BY e.born_ns",
    "causes": "SELECT kind, source, expected, actual FROM recompile_cause ORDER BY rowid",
    "checks": "SELECT g.position, g.result, g.guards_run FROM guard_check g JOIN lookup l USING (lookup_id) ORDER BY l.start_ns, g.position",
}


@pytest.fixture
def recorded(dyntrace, python, tmp_path):
    def recorded(text, *options, words=()):
        trace = tmp_path / "t.db"
        done = subprocess.run([dyntrace, "run", "--force", "-o", trace, "--python", python, *options, "--", script(tmp_path / "p.py", text), *words],
                              capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        return holds(trace)
    return recorded


def frames(trace):
    return query(trace, "SELECT COUNT(*) FROM frame")[0][0]


def left_out(trace):
    return query(trace, "SELECT left_out_functions, left_out_frames, left_out_decisions FROM process ORDER BY process_id")


@pytest.mark.parametrize("options", [("--frames", "user"), ("--exclude", "dedent"), ("--include", "mine"), ("--max-depth", "2"), ("--frames", "user", "--max-depth", "1")], ids=" ".join)
def test_each_frame_that_is_left_out_is_counted(recorded, python, options):
    every = recorded(CALLS)
    whole, inits = frames(every), query(every, "SELECT COUNT(*) FROM frame JOIN code USING (code_id) WHERE qualname LIKE '%.__init__'")[0][0]
    trace = recorded(CALLS, *options)
    (functions, count, decisions), = left_out(trace)
    unseen = inits if version_of(python) == "3.13" else 0  # CPython specialises calls of classes that are left out: docs/limits.md
    assert whole - frames(trace) - unseen <= count <= whole - frames(trace) and count > 0
    assert decisions == 0 and (functions > 0 or options[0] == "--max-depth")


def test_frames_all_leaves_nothing_out(recorded):
    assert left_out(recorded(CALLS)) == [(0, 0, 0)]


def test_frames_decided_does_not_count_left_out_frames(recorded):
    assert left_out(recorded(DECIDED, "--frames", "decided")) == [(None, None, 0)]


def test_left_out_frames_are_counted_for_each_process(recorded):
    before = {pid: n for pid, n in query(recorded(CALLS, words=["fork"]), "SELECT process_id, COUNT(*) FROM frame JOIN thread USING (thread_id) GROUP BY 1")}
    trace = recorded(CALLS, "--exclude", "dedent", words=["fork"])
    kept = {pid: n for pid, n in query(trace, "SELECT process_id, COUNT(*) FROM frame JOIN thread USING (thread_id) GROUP BY 1")}
    counts = left_out(trace)
    assert [frames for _, frames, _ in counts] == [before[pid] - kept[pid] for pid in sorted(before)] and len(counts) == 2
    assert counts[0][1] == 35 and counts[1][1] == 10  # 25 before the fork


def test_decisions_on_library_code_are_kept(recorded):
    whole, trace = recorded(DECIDED), None
    facts = {name: query(whole, sql) for name, sql in FACTS.items()}
    assert [row[1] for row in facts["compiles"] if row[0] == "capwords"] == ["0/0", "0/1"] and facts["causes"]
    trace = recorded(DECIDED, "--frames", "user")
    assert {name: query(trace, sql) for name, sql in FACTS.items()} == facts
    assert left_out(trace)[0][2] == 0
    parents = query(trace, """SELECT DISTINCT a.qualname FROM frame f JOIN code c USING (code_id) JOIN frame p ON p.frame_id = f.parent_id
                              JOIN code a ON a.code_id = p.code_id WHERE c.qualname = 'capwords'""")
    assert parents == [("mine",)]
    assert query(trace, "SELECT COUNT(*) FROM code WHERE filename LIKE '%/textwrap.py'") == [(0,)]


@pytest.mark.parametrize("depth", ["1", "2"])
@pytest.mark.parametrize("frames", ["all", "user", "decided"])
def test_decisions_deeper_than_max_depth_are_counted(recorded, frames, depth):
    """Each lookup of a whole recording is kept, or counted as left out."""
    lookups = "SELECT COUNT(*) FROM lookup"
    whole = recorded(DECIDED, "--frames", frames)
    every = query(whole, lookups)[0][0]
    assert every == 5 and left_out(whole)[0][2] == 0
    trace = recorded(DECIDED, "--frames", frames, "--max-depth", depth)
    kept = query(trace, lookups)[0][0]
    assert kept + left_out(trace)[0][2] == every
    if frames != "decided":
        assert kept < every


def test_excluded_functions_are_counted_and_named(recorded, dyntrace):
    trace = recorded(DECIDED, "--exclude", "capwords")
    (functions, count, decisions), = left_out(trace)
    assert (functions, count, decisions) == (1, 4, 4)
    done = subprocess.run([dyntrace, "why", "capwords", trace], capture_output=True, text=True)
    assert done.returncode == 2 and "no such function" in done.stderr
    assert done.stderr.endswith("; left out: 1 function (4 frames, 4 decisions) by --include, --exclude or --max-depth\n")
    page = subprocess.run([dyntrace, "report", trace], capture_output=True, text=True, check=True).stdout
    assert "left out\t1 function (4 frames, 4 decisions) by --include, --exclude or --max-depth\n" in page
    found = json.loads(subprocess.run([dyntrace, "report", trace, "--json"], capture_output=True, text=True, check=True).stdout)
    assert found["left_out"].startswith("1 function (4 frames, 4 decisions)")


def test_an_older_trace_has_no_counts_of_left_out_frames(dyntrace, tmp_path, monkeypatch):
    older = re.sub(r",( *-- name of its machine.*\n)(?:.*\n)*?\);", r"\1);", planted.SCHEMA, count=1)
    assert "left_out_" not in older
    monkeypatch.setattr(planted, "SCHEMA", older)
    trace = planted.make_trace(tmp_path / "t.db")
    done = subprocess.run([dyntrace, "report", trace], capture_output=True, text=True)
    assert done.returncode == 0 and "left out" not in done.stdout
    done = subprocess.run([dyntrace, "why", "nothing", trace], capture_output=True, text=True)
    assert "no such function" in done.stderr and "left out" not in done.stderr
