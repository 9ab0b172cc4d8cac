"""`dyntrace replay`: recorded decisions verified and stepped through."""
import json
import random
import shutil
import sqlite3
import subprocess

import pytest

from frame_rows import VIEW
from planted import size_changes
from shared import PROGRAMS, SCHEMA, Screen, golden


@pytest.fixture
def replay(dyntrace):
    """replay(FILE, *arguments) -> what subprocess.run returns"""
    def run(path, *argv, **rest):
        rest.setdefault("stdin", subprocess.DEVNULL) if "input" not in rest else None
        return subprocess.run([dyntrace, "replay", str(path), *map(str, argv)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=60, encoding="utf-8", **rest)
    return run


@pytest.fixture(scope="module")
def worked(dyntrace, tmp_path_factory):
    """A recording of replay_work.py, made once. Copy it before you change it."""
    from shared import PYTHONS
    path = tmp_path_factory.mktemp("replay") / "work.db"
    done = subprocess.run([dyntrace, "run", "-o", str(path), "--python", PYTHONS[0], "--", str(PROGRAMS / "replay_work.py")],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return path


def rows(path, sql, *values):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        return db.execute(sql, values).fetchall()


def change(path, *statements):
    db = sqlite3.connect(path)
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


# ---- --verify: our own recordings follow

def test_verify_accepts_a_recorded_trace(replay, worked):
    done = replay(worked, "--verify")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(replay(worked, "--verify", "--json").stdout)
    (lookups,), = rows(worked, "SELECT COUNT(*) FROM lookup")
    assert found["lookups"] == found["whole"] == lookups > 400
    outcomes = {name for name, in rows(worked, "SELECT DISTINCT outcome FROM call_ledger")}
    assert {"hit", "compiled", "limit", "run_only", "declined", "guard_error"} <= outcomes


@pytest.mark.parametrize("program", ["shim_rules.py", "shim_counts.py", pytest.param("guard_rules.py", marks=pytest.mark.slow)])
def test_verify_accepts_recordings_of_other_test_programs(record, replay, program):
    trace = record([PROGRAMS / program], status=None, cwd=PROGRAMS)
    found = json.loads(replay(trace.path, "--verify", "--json").stdout)
    assert found["do_not_follow"] == found["orphan_checks"] == 0 and found["lookups"], found
    assert found["whole"] == found["lookups"], found


def test_verify_accepts_overlapping_threads(record, replay):
    trace = record([PROGRAMS / "shim_threads.py"], cwd=PROGRAMS)
    found = json.loads(replay(trace.path, "--verify", "--json").stdout)
    assert found["do_not_follow"] == found["orphan_checks"] == 0, found["findings"][:3]
    assert found["whole"] > found["lookups"] * 0.9


FORK = """
import os
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode
def f(x): return x
def compiler(frame, entry, state):
    if frame.f_code.co_name != "f":
        return None
    x = frame.f_locals["x"]
    return GuardedCode(frame.f_code.replace(), lambda f_locals: f_locals["x"] == x)
set_eval_frame(compiler)
f(1), f(2), f(3), f(1)
pid = os.fork()
if pid == 0:
    f(2), f(4), f(1), f(3)
    os._exit(0)
os.waitpid(pid, 0)
f(3), f(5), f(1), f(2)
set_eval_frame(None)
"""


def test_replay_verify_follows_a_cache_across_a_fork(record, replay):
    trace = record(["-c", FORK])
    found = json.loads(replay(trace.path, "--verify", "--json").stdout)
    assert found["do_not_follow"] == 0 and found["whole"] == found["lookups"], found


def test_verify_accepts_resets_on_both_sides_of_a_fork(record, replay):
    """The entries die first in the child and later in the parent. The child's lookups after its reset are accepted."""
    reset = "from dyntrace.eval_frame import reset_code; reset_code(f.__code__)"
    trace = record(["-c", FORK.replace("    f(2), f(4)", f"    {reset}; f(2), f(4)").replace("f(3), f(5)", f"f(3); {reset}; f(5)")])
    found = json.loads(replay(trace.path, "--verify", "--json").stdout)
    assert found["do_not_follow"] == 0 and found["lookups"] > 10, found


def test_a_reset_in_a_child_does_not_end_the_parents_entries(record, replay):
    """The parent's entries live on, although the child's died and the child never called the function."""
    trace = record(["-c", FORK.replace("    f(2), f(4), f(1), f(3)", "    from dyntrace.eval_frame import reset_code; reset_code(f.__code__)")])
    found = json.loads(replay(trace.path, "--verify", "--json").stdout)
    assert found["do_not_follow"] == 0 and found["lookups"] > 7, found


# ---- --verify: what was tampered with is found

TAMPER = {
    "a hit that ran another entry": "UPDATE lookup SET cache_entry_id = (SELECT MIN(cache_entry_id) FROM cache_entry e WHERE e.code_id ="
                                    " lookup.code_id AND e.cache_entry_id <> lookup.cache_entry_id) WHERE lookup_id = {hit}",
    "a hit of other code": "UPDATE lookup SET cache_entry_id = (SELECT MIN(cache_entry_id) FROM cache_entry e WHERE e.code_id <>"
                           " lookup.code_id) WHERE lookup_id = {hit}",
    "a hit that names nothing there": "UPDATE lookup SET cache_entry_id = 100000 WHERE lookup_id = {hit}",
    "a hit called a miss": "UPDATE lookup SET outcome = 5 WHERE lookup_id = {hit}",
    "an outcome of no vocabulary": "UPDATE lookup SET outcome = 77 WHERE lookup_id = {hit}",
    "a miss called a hit": "UPDATE lookup SET outcome = 1, cache_entry_id = (SELECT cache_entry_id FROM guard_check k WHERE k.lookup_id ="
                           " lookup.lookup_id LIMIT 1) WHERE lookup_id = {miss}",
    "a pass called a failure": "UPDATE guard_check SET result = 'fail' WHERE lookup_id = {hit} AND result = 'pass'",
    "a failure called a pass": "UPDATE guard_check SET result = 'pass', failed_guard_id = NULL WHERE lookup_id = {miss} AND position = 0",
    "a result of no vocabulary": "UPDATE guard_check SET result = 'maybe' WHERE lookup_id = {hit} AND position = 0",
    "a check that is gone": "DELETE FROM guard_check WHERE lookup_id = {miss} AND position = 1",
    "the last check gone": "DELETE FROM guard_check WHERE lookup_id = {miss} AND position = (SELECT MAX(position) FROM guard_check"
                           " WHERE lookup_id = {miss})",
    "a lookup that is gone": "DELETE FROM lookup WHERE lookup_id = {hit}",
    "a count that is not so": "UPDATE lookup SET entries_checked = entries_checked + 1 WHERE lookup_id = {hit}",
    "another guard that failed": "UPDATE guard_check SET failed_guard_id = (SELECT MAX(guard_id) FROM guard) + 5 WHERE lookup_id = {miss}"
                                 " AND result = 'fail'",
    "two checks changed over": "UPDATE guard_check SET position = 1 - position WHERE lookup_id = {swap} AND position IN (0, 1)",
    "an entry that died before its hit": "UPDATE cache_entry SET died_ns = (SELECT start_ns - 10 FROM lookup WHERE lookup_id = {hit})"
                                         " WHERE cache_entry_id = (SELECT cache_entry_id FROM lookup WHERE lookup_id = {hit})",
    "an entry born after its hit": "UPDATE cache_entry SET born_ns = (SELECT start_ns + duration_ns + 100000000 FROM lookup WHERE lookup_id = {hit})"
                                   " WHERE cache_entry_id = (SELECT cache_entry_id FROM lookup WHERE lookup_id = {hit})",
    "a region of its own": "UPDATE cache_entry SET region_id = 7 WHERE cache_entry_id = (SELECT cache_entry_id FROM guard_check WHERE"
                           " lookup_id = {swap} AND position = 1)",
}


# Found by what it does to other lookups.
LATER = ("a lookup that is gone", "an entry that died before its hit", "an entry born after its hit", "a region of its own")


@pytest.mark.parametrize("what", TAMPER)
def test_replay_verify_reports_each_changed_row(replay, worked, tmp_path, what):
    path = tmp_path / "t.db"
    shutil.copy(worked, path)
    (hit,), = rows(path, "SELECT lookup_id FROM lookup l WHERE outcome = 1 AND entries_checked >= 2 AND (SELECT COUNT(*) FROM lookup b"
                         " WHERE b.code_id = l.code_id AND b.lookup_id < l.lookup_id) > 40 ORDER BY lookup_id LIMIT 1")
    (miss,), = rows(path, "SELECT l.lookup_id FROM lookup l WHERE outcome = 5 AND entries_checked >= 3 ORDER BY lookup_id LIMIT 1")
    (swap,), = rows(path, "SELECT lookup_id FROM guard_check k WHERE position = 2 AND result = 'pass' AND (SELECT COUNT(*) FROM guard_check b"
                          " WHERE b.lookup_id = k.lookup_id AND b.result = 'fail') = 2 ORDER BY lookup_id LIMIT 1")
    change(path, TAMPER[what].format(hit=hit, miss=miss, swap=swap))
    done = replay(path, "--verify")
    assert done.returncode == 1, done.stdout + done.stderr
    told = json.loads(replay(path, "--verify", "--json").stdout)
    assert told["do_not_follow"] == len(told["findings"])
    if what not in LATER:
        assert {f["lookup_id"] for f in told["findings"]} & {hit, miss, swap}, told["findings"]


def test_replay_verify_counts_lookups_that_contradict_the_cache(replay, worked, tmp_path):
    path = tmp_path / "t.db"
    shutil.copy(worked, path)
    chosen = [at for at, in rows(path, "SELECT lookup_id FROM lookup WHERE outcome = 1 ORDER BY lookup_id")][10::60]
    change(path, *(f"UPDATE lookup SET entries_checked = 0 WHERE lookup_id = {at}" for at in chosen))
    found = json.loads(replay(path, "--verify", "--json").stdout)
    assert [f["lookup_id"] for f in found["findings"]] == chosen
    text = replay(path, "--verify").stdout
    assert text.startswith(f"{len(chosen)} of {found['lookups']} lookups do not follow") and f"lookup {chosen[0]} " in text


# ---- bad input

def test_bad_usage_gives_a_one_line_error_and_status_2(replay, worked, dyntrace):
    for argv in (["--nonsense"], ["other.db", "--verify"]):
        done = replay(worked, *argv)
        assert done.returncode == 2 and done.stderr.startswith("dyntrace: ") and done.stderr.count("\n") == 1, done
    done = replay("/nonexistent.db", "--verify")
    assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_an_empty_trace_replays_to_nothing(replay, tmp_path):
    db = sqlite3.connect(tmp_path / "t.db")
    db.executescript(SCHEMA)
    db.close()
    done = replay(tmp_path / "t.db", "--verify")
    assert done.returncode == 0 and done.stdout == "No lookups are recorded: there is nothing to verify.\n"
    change(tmp_path / "t.db", "DROP TABLE lookup")
    done = replay(tmp_path / "t.db", "--verify")
    assert done.returncode == 2 and done.stderr.count("\n") == 1


@pytest.mark.sweep(2)
@pytest.mark.parametrize("seed", range(8))
def test_nonsense_in_a_trace_crashes_no_replay(replay, worked, tmp_path, seed):
    """With any value in any column, replay answers or prints one line, and never crashes."""
    path, choose = tmp_path / "t.db", random.Random(seed)
    shutil.copy(worked, path)
    tables = {"lookup": 10, "guard_check": 8, "cache_entry": 10, "compile": 11, "thread": 4, "process": 16, "guard": 7, "code": 8, "frame": 10}
    db = sqlite3.connect(path)
    for table in tables:
        names = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if not row[5]]
        for _ in range(6):
            value = choose.choice([None, -1, 0, 2**63 - 1, -2**63, "x\x1b[31m", b"\xff", 1.5, 3])
            db.execute(f"UPDATE {table} SET {choose.choice(names)} = ? WHERE rowid % 7 = ?", (value, choose.randrange(7)))
    db.commit()
    db.close()
    done = replay(path, "--verify")
    assert done.returncode in (0, 1, 2) and "\x1b" not in done.stdout + done.stderr, done


# ---- src/trace/replay/cache_order.c against the evaluator

@pytest.mark.parametrize("seed", range(6))
def test_cache_order_is_the_order_in_which_the_evaluator_tried_entries(record, replay, tmp_path, seed):
    """All lookups of a random program tried the entries of cache_order in its order: --verify says so. To show that it
    checks, two tried entries are exchanged; before the fork, because after it an entry may have died in the other
    process."""
    trace = record([PROGRAMS / "cache_order.py", seed], cwd=PROGRAMS)
    found = json.loads(replay(trace.path, "--verify", "--json").stdout)
    assert found["whole"] == found["lookups"] > 300 and not found["findings"], found
    pairs = rows(trace.path, """
        WITH tried AS (SELECT k.*, l.start_ns FROM guard_check k JOIN lookup l USING (lookup_id) JOIN cache_entry e USING (cache_entry_id)
            WHERE k.result = 'fail' AND COALESCE(e.died_ns, 1e18) > (SELECT MIN(n.start_ns) FROM lookup n WHERE n.start_ns > l.start_ns))
        SELECT lookup_id, a.cache_entry_id, b.cache_entry_id FROM tried a JOIN tried b USING (lookup_id)
        WHERE a.position < b.position AND a.start_ns < (SELECT MAX(start_ns) FROM process)""")
    assert len(pairs) > 20
    for lookup, one, other in random.Random(seed).sample(pairs, 5):
        path = tmp_path / "exchanged.db"
        shutil.copy(trace.path, path)
        change(path, f"""UPDATE guard_check SET cache_entry_id = {one} + {other} - cache_entry_id, failed_guard_id = NULL
            WHERE lookup_id = {lookup} AND cache_entry_id IN ({one}, {other})""")
        found = json.loads(replay(path, "--verify", "--json").stdout)
        assert [finding["lookup_id"] for finding in found["findings"]] == [lookup], found


# ---- stepping

MS = 1000000


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """f(x) in two threads: compiled for 1 and 2, hit, one entry dies, a graph break, a limit; in its own region."""
    path = tmp_path_factory.mktemp("planted") / "planted.db"
    db = sqlite3.connect(path)
    db.executescript(SCHEMA + VIEW + """
        INSERT INTO meta VALUES ('span_ns', 100000000), ('state', 'complete'), ('frame_count', 9);
        INSERT INTO process(process_id, pid, start_ns) VALUES (1, 100, 0);
        INSERT INTO thread VALUES (1, 1, 100, 'MainThread'), (2, 1, 101, 'worker');
        INSERT INTO code(code_id, process_id, filename, qualname, first_line, kind) VALUES (1, 1, '/src/app.py', 'f', 10, 'function'),
            (2, 1, '/src/app.py', '<module>', 1, 'module'), (3, 1, '/src/lib.py', 'C.g', 5, 'function');
        INSERT INTO frame_rows VALUES (1, 1, NULL, 2, 0, 0, 1000000, 99000000, NULL, 0);
        INSERT INTO signature VALUES (1, 'x: int 1'), (2, 'x: int 2'), (3, 'x: int 3');
    """)
    # what: (ms, thread, code, outcome, entry, [(entry, result)], signature)
    calls = [(10, 1, 1, 2, 1, [], 1), (20, 1, 1, 1, 1, [(1, "pass")], None), (30, 2, 1, 2, 2, [(1, "fail")], 2),
             (40, 1, 1, 1, 1, [(2, "fail"), (1, "pass")], None), (50, 2, 3, 2, 3, [], 1), (55, 2, 3, 1, 3, [(3, "pass")], None),
             (70, 1, 1, 5, None, [(1, "fail")], 3), (80, 1, 1, 1, 1, [(1, "pass")], None)]
    check = 0
    for at, (ms, thread, code, outcome, entry, checks, signature) in enumerate(calls, 1):
        db.execute("INSERT INTO frame_rows VALUES (?, ?, 1, ?, 0, ?, ?, ?, ?, 0)", (at + 1, thread, code, outcome, ms * MS, ms * MS + 500, entry))
        db.execute("INSERT INTO lookup VALUES (?, ?, ?, ?, ?, 3000, ?, ?, ?, ?)",
                   (at, at + 1, thread, code, ms * MS + 100, outcome, entry, len(checks), signature))
        for position, (tried, result) in enumerate(checks):
            check += 1
            db.execute("INSERT INTO guard_check VALUES (?, ?, ?, ?, ?, ?, 1, 90)",
                       (check, at, position, tried, result, tried if result == "fail" else None))
    for entry, (code, ms, label, died) in enumerate([(1, 10, "0/0", None), (1, 30, "0/1", 60), (3, 50, "1/0", None)], 1):
        db.execute("INSERT INTO cache_entry VALUES (?, ?, ?, ?, 'eager', NULL, 1, ?, ?, ?)",
                   (entry, code, entry, label, ms * MS + 2000, died and died * MS, died and "the model was freed\x1b[31m"))
        db.execute("INSERT INTO guard VALUES (?, ?, 0, 'EQUALS_MATCH', 'L[''x'']', ?, NULL)", (entry, entry, f"L['x'] == {entry}"))
        db.execute("INSERT INTO compile VALUES (?, ?, ?, ?, ?, ?, ?, 'compiled', ?, ?, NULL)",
                   (entry, {1: 2, 2: 4, 3: 6}[entry], code, min(entry, 2), label, ms * MS + 1000, ms * MS + 2500, entry, "no entry fitted" if entry == 2 else "first call"))
    db.execute("INSERT INTO recompile_cause VALUES (2, 1, 0, 1, 'EQUALS_MATCH', 'L[''x'']', 'value', NULL, '1', '2', '', 'observed')")
    db.execute("INSERT INTO graph_break VALUES (1, 3, 3, 7, 4, 'a call of print()', NULL, NULL)")
    db.commit()
    db.close()
    return path


def page(replay, path, place, *more):
    done = replay(path, "--to", place, *more)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


def test_the_page_of_a_lookup_has_its_decision_cache_and_call_stack(replay, planted):
    """The page has the decision, the cache before it with the guard results of each entry, and the call stack."""
    assert page(replay, planted, "lookup 4") == """\
lookup 4  event 6 of 13  0.040000 s  40.0 %  thread 1 (MainThread) of process 100
  f (src/app.py:10): hit 0/0, 2 entries checked, 3 us
  cache as this lookup found it, in the order tried
     # entry      backend      hits born       last hit   guards
     0 0/1        eager           0 30.0 ms    -               1  fail: EQUALS_MATCH x == 2
     1 0/0        eager           1 10.0 ms    20.0 ms         1  pass
  call stack
    f (src/app.py:10)
    <module> (src/app.py:1)
"""


@pytest.mark.parametrize("place, lines", [
    ("1", ["lookup 1  event 1 of 13  0.010000 s  10.0 %  thread 1", "  inputs: x: int 1", "    (empty)"]),
    ("first recompile", ["compile 2  event 5 of 13  0.030001 s", "  0/0 did not fit: EQUALS_MATCH x: expected 1, actual 2", "     0 0/0        eager           1 "]),
    ("last break", ["break 1  event 9 of 13  0.050001 s", "  C.g (src/lib.py:5): line 7: a call of print()"]),
    ("last death", ["death 2  event 11 of 13  0.060000 s", "  f (src/app.py:10): entry 0/1 died", "     - 0/1 "]),
    ("lookup 7", ["lookup 7  event 12 of 13  0.070000 s", "  f (src/app.py:10): limit", "  died 60 ms: the model was freed\\x1b[31m"]),
    ("60%", ["before event 11 of 13  0.060000 s  60.0 %"]), ("2s", ["after the last of 13 events"])])
def test_the_option_to_prints_the_event_at_a_place(replay, planted, place, lines):
    text = page(replay, planted, place)
    assert text.startswith(lines[0]) and all(f"\n{line}" in text or line in text for line in lines[1:]), text


def test_the_option_to_with_json_has_the_event_at_a_place(replay, planted):
    found = json.loads(page(replay, planted, "lookup 7", "--json"))
    assert {key: found[key] for key in ("event", "events", "kind", "id", "function", "outcome")} == {
        "event": 12, "events": 13, "kind": "lookup", "id": 7, "function": "f (src/app.py:10)", "outcome": "limit"}
    assert found["cache"] == [{"entry": "0/0", "dead": False, "hits": 2, "last_hit_ns": 40 * MS + 100}, {"entry": "0/1", "dead": True, "hits": 0, "last_hit_ns": None}]
    assert [json.loads(page(replay, planted, n, "--json"))["event"] for n in (1, 5, 13)] == [1, 5, 13]
    assert [json.loads(page(replay, planted, f"compile {n}", "--json"))["recompile"] for n in (1, 2, 3)] == [False, True, False]


def test_the_printed_prediction_is_the_golden_page(replay, planted):
    text = ""
    for settings in ("recompile_limit=1", "recompile_limit=4", "drop_guard=EQUALS_MATCH", "dynamic=x", "isolate=region", "best"):
        done = replay(planted, "--what-if", settings)
        assert done.returncode == 0, done.stderr
        text += f"$ --what-if {settings}\n{done.stdout}\n"
    text += "$ --what-if recompile_limit=1 --calls\n" + replay(planted, "--what-if", "recompile_limit=1", "--calls").stdout
    golden("replay-whatif", text.replace(str(planted), "t.db"))


def test_the_cache_at_a_lookup_has_the_tried_entries(replay, worked):
    """The list is in the order in which the lookup tried the entries."""
    for lookup, in rows(worked, "SELECT lookup_id FROM lookup WHERE entries_checked >= 2 ORDER BY lookup_id")[::9]:
        tried = [label for label, in rows(worked, "SELECT e.label FROM guard_check k JOIN cache_entry e USING (cache_entry_id)"
                                                  " WHERE lookup_id = ? ORDER BY position", lookup)]
        listed = json.loads(page(replay, worked, f"lookup {lookup}", "--json"))["cache"]
        assert [slot["entry"] for slot in listed][:len(tried)] == tried


def test_an_event_is_shown_with_its_source(replay, worked):
    line = (PROGRAMS / "replay_work.py").read_text().splitlines().index("def f(x):") + 1
    (lookup,), = rows(worked, "SELECT MIN(lookup_id) FROM lookup JOIN code USING (code_id) WHERE qualname = 'f'")
    assert f"\n  > {line:4}  def f(x):\n" in page(replay, worked, f"lookup {lookup}")


def test_a_graph_break_has_the_frame_of_its_compile(run, plant, dyntrace):
    p = plant()
    size_changes(p)
    p.db.executescript("INSERT INTO frame_rows VALUES (1, 1, NULL, 2, 0, 0, 0, 90000000, NULL, 0), (2, 1, 1, 1, 0, 0, 1, 80000000, NULL, 0);"
                       "UPDATE compile SET frame_id = 2 WHERE compile_id = 2;")
    p.insert("graph_break", graph_break_id=7, compile_id=2, code_id=1, line=12, reason="call of print\n  Hint: do not\n")
    path = p.done()
    done = run("replay", path, "--to", "first break")
    assert "): line 12: call of print\n" in done.stdout and "Hint" not in done.stdout and "\\n" not in done.stdout, done.stdout
    assert "  call stack\n" in done.stdout and "main" in done.stdout, done.stdout


def test_the_option_to_refuses_places_that_do_not_exist(replay, planted):
    for bad in ("nowhere", "lookup 99", "lookup x", "99", "0", "first unicorn", "frame 1", "1.5 miles"):
        done = replay(planted, "--to", bad)
        assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("dyntrace: replay: ") and done.stderr.count("\n") == 1, (bad, done)
    assert replay(planted, "--to", "").returncode == 2
    done = replay(planted)
    assert (done.returncode, done.stdout) == (2, "") and "not a terminal: --to N prints an event" in done.stderr


def test_replay_on_a_terminal_opens_the_replay_view(dyntrace, planted):
    screen = Screen([dyntrace, "replay", planted], size=(40, 120))
    screen.wait("event 1 of 13")
    screen.type("]")
    screen.wait("(worker) of process 100")
    screen.type("[Q")
    assert screen.finish()[1] == 0


def stepped(dyntrace, path, keys):
    """The replay view after KEYS."""
    done = subprocess.run([dyntrace, "tui", path, "--dump", "--screen", "150x40", "--keys", f"9 {keys}"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


@pytest.mark.parametrize("by, passing", [("function Space f", "9"), ("file Space lib.py", "4"), ("thread Space worker", "6"), ("process Space 100", "12"),
                                         ("outcome Space hit,limit", "5"), ("where Space signature Space GLOB Space 'x:?int?1'", "2")])
def test_each_filter_of_the_replay_view_passes_the_right_events(dyntrace, planted, by, passing):
    assert f"{passing} of 13 events pass" in stepped(dyntrace, planted, f"f {by} Enter")


def test_filters_of_the_replay_view_can_be_combined(dyntrace, planted):
    both = "f function Space f Enter f outcome Space hit Enter "
    assert "3 of 13 events pass" in stepped(dyntrace, planted, both)
    assert "lookup 2  event 3 of 13" in stepped(dyntrace, planted, both + "g")
    assert "lookup 8  event 13 of 13" in stepped(dyntrace, planted, both + "g j j j j j")


@pytest.mark.parametrize("keys, why", [("f outcome Space blue Enter", "blue: no such outcome"), ("f where Space nothing_like_it=1 Enter", "no such column"),
                                       ("f thread Space 99 Enter", "99: nothing recorded is like that"), ("f function Space nobody Enter", "nobody"),
                                       ("i nowhere Enter", "nowhere: not a time")])
def test_the_replay_view_refuses_wrong_input(dyntrace, planted, keys, why):
    assert why in stepped(dyntrace, planted, keys)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("seed", range(4))
def test_nonsense_in_a_trace_crashes_no_replay_view(dyntrace, replay, worked, tmp_path, seed):
    path, choose = tmp_path / "t.db", random.Random(100 + seed)
    shutil.copy(worked, path)
    db = sqlite3.connect(path)
    for table in ("lookup", "cache_entry", "compile", "thread", "process", "guard", "code", "frame", "recompile_cause", "signature"):
        names = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if not row[5]]
        for _ in range(5):
            value = choose.choice([None, -1, 0, 2**63 - 1, -2**63, "x\x1b[31m", b"\xff", 1.5, 3, "/dev/zero", "/proc/self/mem"])
            db.execute(f"UPDATE {table} SET {choose.choice(names)} = ? WHERE rowid % 5 = ?", (value, choose.randrange(5)))
    db.commit()
    db.close()
    for place in ("1", "first miss", "50%", "lookup 20", "last death", "last"):
        for more in ([], ["--json"]):
            done = replay(path, "--to", place, *more)
            assert done.returncode in (0, 2) and "\x1b" not in done.stdout + done.stderr, done
    done = subprocess.run([dyntrace, "tui", path, "--dump", "--keys", "9 " + "] j " * 40 + "[ k " * 40 + "G } {"], capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 2) and "\x1b" not in done.stdout + done.stderr, done


# ---- what makes it doubtful, and options

@pytest.mark.parametrize("argv", [["--verify"], ["--to", "first lookup"], ["--what-if", "isolate=no"]])
def test_losses_and_an_unfinished_recording_are_reported(replay, worked, tmp_path, argv):
    path = tmp_path / "t.db"
    shutil.copy(worked, path)
    assert replay(path, *argv).stderr == ""
    change(path, "UPDATE meta SET value = 'recording' WHERE key = 'state'",
           "INSERT INTO loss(process_id, at_ns, events, cause) VALUES (1, 1000000000000, 7, 'ring full')")
    done = replay(path, *argv)
    assert done.returncode == 0 and done.stdout
    assert "still being recorded" in done.stderr and "7 events were lost" in done.stderr + done.stdout.replace("Events", "7 events")


def test_what_if_accepts_values_with_an_equals_sign(replay, worked):
    for apart, together in ((["--what-if", "recompile_limit=2"], ["--what-if=recompile_limit=2"]), (["--to", "first miss"], ["--to=first miss"])):
        one, other = replay(worked, *apart), replay(worked, *together)
        assert one.returncode == other.returncode == 0 and one.stdout == other.stdout != "", other.stderr
    for bad in ("--to=nix", "--what-if=", "--function=", "--to="):
        done = replay(worked, bad)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout, done
