"""The decisions in the trace equal, exactly, the counts of the program's own callback and guards."""
import json
import sqlite3
import subprocess

import pytest

pytestmark = pytest.mark.newest_too

QUERIES = {
    "calls": "SELECT count(*) FROM frames WHERE qualname = 'compiled'",
    "declined calls": "SELECT count(*) FROM frames WHERE qualname = 'declined'",
    "guard pass": "SELECT count(*) FROM guard_check WHERE result = 'pass'",
    "guard fail": "SELECT count(*) FROM guard_check WHERE result = 'fail'",
    "compiles": "SELECT count(*) FROM compile JOIN code USING (code_id) WHERE qualname = 'compiled'",
    "declines": "SELECT count(*) FROM call_ledger WHERE qualname = 'declined' AND outcome = 'declined'",
}


@pytest.fixture
def trace(dyntrace, python, tmp_path, request):
    path = tmp_path / "t.db"
    program = request.path.parent / "programs" / "shim_counts.py"
    done = subprocess.run([dyntrace, "run", "-o", path, "--python", python, program], capture_output=True, text=True, check=True)
    assert subprocess.run([dyntrace, "fsck", path]).returncode == 0
    return sqlite3.connect(path), json.loads(done.stdout)


def test_the_trace_has_as_many_calls_as_the_program_counted(trace):
    db, counted = trace
    found = {what: db.execute(query).fetchone()[0] for what, query in QUERIES.items()}
    assert found == {what: counted[what] for what in QUERIES}


def test_numbers_of_lookup_outcomes_add_up_to_all_lookups(trace):
    db, counted = trace
    one = lambda query: db.execute(query).fetchone()[0]
    assert one("SELECT count(*) FROM frames WHERE qualname = 'compiled' AND outcome = 'hit'") == counted["guard pass"]
    assert one("SELECT count(*) FROM frames WHERE qualname = 'compiled' AND outcome = 'compiled'") == counted["compiles"] == 8
    limited = counted["calls"] - counted["guard pass"] - counted["compiles"]
    assert one("SELECT count(*) FROM frames WHERE qualname = 'compiled' AND outcome = 'limit'") == limited > 0
    assert one("SELECT count(*) FROM frames WHERE qualname = 'declined' AND outcome = 'skip'") == counted["declined calls"] - 1
    assert one("SELECT sum(hit) FROM cache_entries") == counted["guard pass"]
    # every entry that a compilation found wanting is a cause, and the frame names the entry that ran
    assert one("SELECT count(*) FROM recompile_cause") == sum(range(8))
    assert one("SELECT count(*) FROM frame WHERE cache_entry_id IS NOT NULL") == counted["guard pass"] + counted["compiles"]


def test_entries_die_with_the_object_they_guard_or_with_a_reset(dyntrace, python, tmp_path):
    program = tmp_path / "p.py"
    program.write_text("""
import dyntrace
from dyntrace.eval_frame import set_eval_frame
from dyntrace.guards import GuardTree, ID_MATCH, L
from dyntrace.types import GuardedCode

class Thing: pass
def f(x): return 1
thing = Thing()
def callback(frame, entry, state):
    if frame.f_code is f.__code__:
        return GuardedCode(frame.f_code.replace(), GuardTree([ID_MATCH(L["x"], frame.f_locals["x"])]))
set_eval_frame(callback)
f(thing); f(thing)
thing = None          # the entry dies with it
thing = Thing(); f(thing)
set_eval_frame(None)
dyntrace.reset()
""")
    path = tmp_path / "t.db"
    subprocess.run([dyntrace, "run", "-o", path, "--python", python, program], check=True)
    rows = sqlite3.connect(path).execute("SELECT hit, death_cause FROM cache_entries ORDER BY born_ns").fetchall()
    assert [hits for hits, _ in rows] == [1, 0]
    assert "L['x']" in rows[0][1] and rows[1][1] == "reset"


def test_a_call_stored_while_it_compiles_gets_its_outcome_later(dyntrace, python, tmp_path):
    """The call's row is stored while the callback compiles. The outcome is known only later."""
    (tmp_path / "p.py").write_text("""
import os
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode
def noise(): pass
def last(): os.kill(os.getpid(), 9)
def callback(frame, entry, state):
    if frame.f_code is last.__code__:
        for _ in range(100_000):
            noise()
        return GuardedCode(frame.f_code.replace(), lambda f_locals: True)
set_eval_frame(callback)
last()
""")
    subprocess.run([dyntrace, "run", "-o", tmp_path / "t.db", "--python", python, tmp_path / "p.py"])
    rows = sqlite3.connect(tmp_path / "t.db").execute("SELECT outcome, end_ns FROM frames WHERE qualname = 'last'").fetchall()
    assert rows == [("compiled", None)]
    fsck = subprocess.run([dyntrace, "fsck", tmp_path / "t.db"], capture_output=True, text=True)
    assert fsck.returncode == 0, fsck.stdout


TWO_THREADS = """
import sys, threading
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode

ROUNDS = 1500
sys.setswitchinterval(1e-6)

class Compiler:
    def __call__(self, frame, entry, state):
        if frame.f_code.co_name == "f":
            return GuardedCode(frame.f_code.replace(), lambda f_locals: True)

made, seen = threading.Semaphore(0), threading.Semaphore(0)
functions = []
for _ in range(ROUNDS):
    exec("def f(x): return x")
    functions.append(f)

def other():
    compiler = Compiler()
    for f in functions:
        seen.acquire()
        set_eval_frame(compiler)
        f(2)
        set_eval_frame(None)
        made.release()

thread = threading.Thread(target=other)
thread.start()
compiler = Compiler()
for f in functions:
    set_eval_frame(compiler)
    f(1)
    set_eval_frame(None)
    seen.release()
    made.acquire()
    set_eval_frame(compiler)
    f(3)  # the other thread's entry, made just now, is passed over
    set_eval_frame(None)
thread.join()
"""


def test_a_lookup_can_try_an_entry_of_another_thread(dyntrace, python, tmp_path):
    """The collector reads the lookup of one thread before the other thread's compile that made the entry."""
    (tmp_path / "p.py").write_text(TWO_THREADS)
    subprocess.run([dyntrace, "run", "-o", tmp_path / "t.db", "--python", python, tmp_path / "p.py"], check=True)
    rows = sqlite3.connect(tmp_path / "t.db").execute(
        "SELECT tried, count(*) FROM (SELECT lookup_id, group_concat(result) AS tried FROM lookup JOIN guard_check USING (lookup_id)"
        " JOIN code USING (code_id) WHERE qualname = 'f' GROUP BY lookup_id) GROUP BY tried").fetchall()
    assert dict(rows) == {"backend_mismatch": 1500, "backend_mismatch,pass": 1500}


DECISIONS = ["SELECT qualname, outcome, entries_checked, count(*) FROM lookup JOIN code USING (code_id) GROUP BY 1, 2, 3",
             "SELECT qualname, position, result, guards_run, count(*) FROM guard_check JOIN lookup USING (lookup_id) JOIN code USING (code_id)"
             " GROUP BY 1, 2, 3, 4",
             "SELECT qualname, outcome, count(*) FROM compile JOIN code USING (code_id) GROUP BY 1, 2",
             "SELECT kind, source, expected, count(*) FROM recompile_cause GROUP BY 1, 2, 3",
             "SELECT qualname, action, recursive_action, reason FROM code_mark JOIN code USING (code_id) ORDER BY 1, 2, 3, 4"]


def test_frames_decided_has_every_decision_and_no_other_frame(dyntrace, record, python, request):
    programs = request.path.parent / "programs"
    for program in ("shim_counts.py", "shim_rules.py"):
        every, decided = (record([programs / program], "--frames", frames, python=python, cwd=programs) for frames in ("all", "decided"))
        assert every.out == decided.out
        for query in DECISIONS:
            assert every.rows(query) == decided.rows(query)
        by_outcome = "SELECT qualname, outcome, count(*) FROM frames {} GROUP BY 1, 2"
        assert decided.rows(by_outcome.format("")) == every.rows(by_outcome.format("WHERE frame_id IN (SELECT frame_id FROM lookup)")) != []
        assert decided.rows("SELECT * FROM loss") == []
        assert decided.rows("SELECT DISTINCT mode FROM process") == [("decided",)]
        report = subprocess.run([dyntrace, "report", decided.path], capture_output=True, text=True, check=True).stdout
        assert "only calls that a compiler decided" in report


FORKED_IN_A_COMPILE = """
import os
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode

def inner(x): return x
def outer(x): return x
def compiler(frame, entry, state):
    if frame.f_code is outer.__code__ and not os.fork():  # the child's first compile has the number that the parent's first had
        set_eval_frame(compiler)
        inner(1)
        set_eval_frame(None)
    if frame.f_code in (inner.__code__, outer.__code__):
        return GuardedCode(frame.f_code.replace(), lambda f_locals: True)
pid = os.getpid()
set_eval_frame(compiler)
outer(1)
set_eval_frame(None)
if os.getpid() == pid:
    os.wait()
"""


def test_compiles_in_a_child_are_not_the_compile_it_was_forked_in(dyntrace, record, python):
    trace = record(["-c", FORKED_IN_A_COMPILE], python=python)
    rows = trace.rows("SELECT qualname, c.outcome, e.code_id = c.code_id FROM compile c JOIN code USING (code_id)"
                      " JOIN cache_entry e USING (cache_entry_id) ORDER BY 1")
    assert rows == [("inner", "compiled", 1), ("outer", "compiled", 1)]
    done = subprocess.run([dyntrace, "fsck", trace.path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


ORDERS = """
import json, os, sys
from dyntrace.eval_frame import set_eval_frame
from dyntrace.guards import EQUALS_MATCH, GuardTree, L
from dyntrace.types import GuardedCode

def f(a, b, c, d): return a
tree = GuardTree([EQUALS_MATCH(L[name], 1) for name in "abcd"])
def compiler(frame, entry, state):
    if frame.f_code is f.__code__:
        return GuardedCode(frame.f_code.replace(), tree)
ran = []
def fail(wrong, times):
    set_eval_frame(False)  # entries are tried, nothing new is compiled
    for _ in range(times):
        order = tree.order()
        f(*(2 if i == wrong else 1 for i in range(4)))
        ran.append(sorted(order[:order.index(wrong) + 1]))
    set_eval_frame(None)
def say(who):
    with open(who, "w") as file:
        json.dump([os.getpid(), ran], file)
set_eval_frame(compiler)
f(1, 1, 1, 1)
fail(2, 2)
if pid := os.fork():
    fail(3, 4)  # the parent's order changes, and the child, which has not begun yet, still has that of the fork
    open("go", "w").close()
    os.waitpid(pid, 0)
    fail(1, 1)
    say("parent")
else:
    ran.clear()
    while not os.path.exists("go"): pass
    fail(0, 1)
    fail(1, 4)
    if not (pid := os.fork()):
        ran.clear()
        fail(2, 1)
        fail(0, 6)
        say("grandchild")
    else:
        os.waitpid(pid, 0)
        fail(0, 1)
        say("child")
"""


def test_each_forked_process_has_its_own_orders_of_guards(dyntrace, record, python, tmp_path):
    trace = record(["-c", ORDERS], python=python, cwd=tmp_path)
    told = [json.loads((tmp_path / who).read_text()) for who in ("parent", "child", "grandchild")]
    for pid, ran in told:
        rows = trace.rows("SELECT json_group_array(ordinal) FROM (SELECT v.lookup_id, v.ordinal FROM guard_evaluation v JOIN lookup l USING (lookup_id)"
                          " JOIN thread t USING (thread_id) JOIN process p USING (process_id) WHERE p.pid = ? ORDER BY 1, 2) GROUP BY lookup_id", pid)
        assert [json.loads(row[0]) for row in rows] == ran
    counted = [sum(guard in one for _, ran in told for one in ran) for guard in range(4)]
    assert trace.rows("SELECT evaluations FROM guard_bill ORDER BY source") == [(n,) for n in counted]
    assert trace.rows("SELECT COUNT(DISTINCT process_id) FROM guard_order") == [(3,)]
    done = subprocess.run([dyntrace, "fsck", trace.path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_an_entry_whose_guards_cannot_be_listed_is_recorded(dyntrace, python, tmp_path):
    """Python code lists an entry's guards. A signal handler or a stack overflow may end it."""
    program = tmp_path / "p.py"
    program.write_text("""
from dyntrace.eval_frame import set_eval_frame
from dyntrace.guards import EQUALS_MATCH, GuardTree, L, TYPE_MATCH
from dyntrace.types import GuardedCode

def f(x): return 1
def rows(self, keep): raise KeyboardInterrupt
GuardTree._rows = rows
def callback(frame, entry, state):
    if frame.f_code is f.__code__:
        x = frame.f_locals["x"]
        return GuardedCode(frame.f_code.replace(), GuardTree([TYPE_MATCH(L["x"], type(x)), EQUALS_MATCH(L["x"], x)]))
set_eval_frame(callback)
for x in 1, 1, 2, 1: f(x)
set_eval_frame(None)
""")
    path = tmp_path / "t.db"
    subprocess.run([dyntrace, "run", "-o", path, "--python", python, program], check=True)
    done = subprocess.run([dyntrace, "fsck", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    rows = sqlite3.connect(path).execute
    assert rows("SELECT kind, expression, count(*) FROM guard GROUP BY 1, 2").fetchall() == [("LAMBDA", "GuardTree(f_locals)", 4)]
    assert rows("SELECT group_concat(outcome) FROM (SELECT outcome FROM frames WHERE qualname = 'f' ORDER BY frame_id)").fetchone() == ("compiled,hit,compiled,hit",)
