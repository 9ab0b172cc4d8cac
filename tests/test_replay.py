"""`dyntrace replay`: recorded decisions verified and stepped through."""
import json
import random
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests/programs"
SCHEMA = (ROOT / "schemas/trace.sql").read_text() + (ROOT / "schemas/views.sql").read_text()


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
    import sys
    from conftest import PYTHONS
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

def test_what_was_recorded_follows(replay, worked):
    done = replay(worked, "--verify")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(replay(worked, "--verify", "--json").stdout)
    (lookups,), = rows(worked, "SELECT COUNT(*) FROM lookup")
    assert found["lookups"] == found["whole"] == lookups > 400
    outcomes = {name for name, in rows(worked, "SELECT DISTINCT outcome FROM call_ledger")}
    assert {"hit", "compiled", "limit", "run_only", "declined", "guard_error"} <= outcomes


@pytest.mark.parametrize("program", ["shim_rules.py", "shim_counts.py", "guard_rules.py"])
def test_programs_of_other_tests_follow(record, replay, program):
    trace = record([PROGRAMS / program], status=None, cwd=PROGRAMS)
    found = json.loads(replay(trace.path, "--verify", "--json").stdout)
    assert found["do_not_follow"] == found["orphan_checks"] == 0 and found["lookups"], found
    assert found["whole"] == found["lookups"], found


def test_threads_that_overlap_are_told(record, replay):
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


def test_a_fork_hands_the_cache_on(record, replay):
    trace = record(["-c", FORK])
    found = json.loads(replay(trace.path, "--verify", "--json").stdout)
    assert found["do_not_follow"] == 0 and found["whole"] == found["lookups"], found


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
def test_tampering_is_found(replay, worked, tmp_path, what):
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


def test_a_count_of_what_does_not_follow(replay, worked, tmp_path):
    path = tmp_path / "t.db"
    shutil.copy(worked, path)
    chosen = [at for at, in rows(path, "SELECT lookup_id FROM lookup WHERE outcome = 1 ORDER BY lookup_id")][10::60]
    change(path, *(f"UPDATE lookup SET entries_checked = 0 WHERE lookup_id = {at}" for at in chosen))
    found = json.loads(replay(path, "--verify", "--json").stdout)
    assert [f["lookup_id"] for f in found["findings"]] == chosen
    text = replay(path, "--verify").stdout
    assert text.startswith(f"{len(chosen)} of {found['lookups']} lookups do not follow") and f"lookup {chosen[0]} " in text


# ---- bad input

def test_usage(replay, worked, dyntrace):
    for argv in (["--nonsense"], ["other.db", "--verify"]):
        done = replay(worked, *argv)
        assert done.returncode == 2 and done.stderr.startswith("dyntrace: ") and done.stderr.count("\n") == 1, done
    done = replay("/nonexistent.db", "--verify")
    assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_an_empty_trace(replay, tmp_path):
    db = sqlite3.connect(tmp_path / "t.db")
    db.executescript(SCHEMA)
    db.close()
    done = replay(tmp_path / "t.db", "--verify")
    assert done.returncode == 0 and done.stdout == "No lookups are recorded: there is nothing to verify.\n"
    change(tmp_path / "t.db", "DROP TABLE lookup")
    done = replay(tmp_path / "t.db", "--verify")
    assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_older_traces(replay, worked, tmp_path):
    path = tmp_path / "t.db"
    shutil.copy(worked, path)
    change(path, *(f"DROP VIEW {view}" for view, in rows(path, "SELECT name FROM sqlite_schema WHERE type = 'view'")), "DROP TABLE code_mark",
           "ALTER TABLE process DROP COLUMN torch_version", "ALTER TABLE cache_entry DROP COLUMN region_id")
    done = replay(path, "--verify")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("seed", range(8))
def test_nonsense_is_survived(replay, worked, tmp_path, seed):
    """Any value anywhere: an answer or one line, never a crash."""
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
