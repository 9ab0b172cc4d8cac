"""Each test changes one row of a good trace so that it contradicts another row: fsck or --verify must report it. Changes
that contradict no other row are listed with the reason, and must not be reported."""
import shutil
import sqlite3
import subprocess

import pytest

from shared import PROGRAMS

pytestmark = pytest.mark.one_python

# One row each: the first for which the condition holds.
LOOKUP = "lookup_id = (SELECT lookup_id FROM lookup WHERE %s LIMIT 1)"
CHECK = "guard_check_id = (SELECT guard_check_id FROM guard_check WHERE %s LIMIT 1)"
FRAME = "frame_id = (SELECT frame_id FROM frame WHERE %s LIMIT 1)"
MADE = "compile_id = (SELECT compile_id FROM compile WHERE cache_entry_id IS NOT NULL LIMIT 1)"
OTHER_GUARD = "(SELECT guard_id FROM guard g WHERE g.cache_entry_id = guard_check.cache_entry_id AND g.guard_id <> failed_guard_id LIMIT 1)"
HIT, LIMIT = LOOKUP % "outcome = 1", LOOKUP % "outcome = 5"

NOTICED = {
    # the list of the review
    "a hit without its entry": f"UPDATE lookup SET cache_entry_id = NULL WHERE {HIT}",
    "compiled is called limit": f"UPDATE lookup SET outcome = 5 WHERE {LOOKUP % 'outcome = 2'}",
    "a frame is decided otherwise than its lookup": f"UPDATE frame SET outcome = 5 WHERE {FRAME % 'outcome = 1'}",
    "another guard of the entry failed": f"UPDATE guard_check SET failed_guard_id = {OTHER_GUARD} WHERE {CHECK % 'failed_guard_id IS NOT NULL'}",
    "a check that passed ran fewer guards": f"UPDATE guard_check SET guards_run = guards_run - 1 WHERE {CHECK % 'result = char(112,97,115,115)'}",
    "an order of guards is empty": "UPDATE guard_order SET ordinals = '[]' WHERE rowid = (SELECT MIN(rowid) FROM guard_order)",
    "a compile with an entry declined": f"UPDATE compile SET outcome = 'declined' WHERE {MADE}",
    "a compile made a foreign entry": f"UPDATE compile SET cache_entry_id = (SELECT MAX(cache_entry_id) FROM cache_entry) WHERE {MADE}",
    "totals have another call": "UPDATE code_total SET calls = calls + 1 WHERE code_id = (SELECT code_id FROM code WHERE qualname = 'f')",
    "totals have less time": "UPDATE code_total SET total_ns = total_ns - 1 WHERE code_id = (SELECT code_id FROM code WHERE qualname = 'f')",
    "totals have more own time": "UPDATE code_total SET self_ns = self_ns + 1 WHERE code_id = (SELECT code_id FROM code WHERE qualname = 'work')",
    "totals have an exception": "UPDATE code_total SET raised = raised + 1 WHERE code_id = (SELECT code_id FROM code WHERE qualname = 'f')",
    "a function is not in the totals": "DELETE FROM code_total WHERE code_id = (SELECT code_id FROM code WHERE qualname = 'g')",
    "a hit is gone": f"DELETE FROM lookup WHERE {HIT}",
    "a hit is gone, with its checks": f"DELETE FROM guard_check WHERE lookup_id = (SELECT lookup_id FROM lookup WHERE outcome = 1 LIMIT 1);"
                                      f"DELETE FROM lookup WHERE {HIT}",
    "the last hit is gone, with its checks": "DELETE FROM guard_check WHERE lookup_id = (SELECT MAX(lookup_id) FROM lookup WHERE outcome = 1);"
                                             "DELETE FROM lookup WHERE lookup_id = (SELECT MAX(lookup_id) FROM lookup WHERE outcome = 1)",
    # lookups
    "a limit is gone": f"DELETE FROM lookup WHERE {LIMIT}",
    "a hit of another frame": f"UPDATE lookup SET frame_id = frame_id + 1 WHERE {HIT}",
    "a hit of no frame": f"UPDATE lookup SET frame_id = NULL WHERE {HIT}",
    "a hit on another thread": f"UPDATE lookup SET thread_id = 2 WHERE {LOOKUP % 'outcome = 1 AND thread_id = 1'}",
    "a hit of other code": f"UPDATE lookup SET code_id = (SELECT code_id FROM code WHERE qualname = 'bad') WHERE {HIT}",
    "a hit ran another entry": f"UPDATE lookup SET cache_entry_id = (SELECT MAX(cache_entry_id) FROM cache_entry) WHERE {HIT}",
    "a hit ran an entry that is not there": f"UPDATE lookup SET cache_entry_id = 999 WHERE {HIT}",
    "a call at the limit ran an entry": f"UPDATE lookup SET cache_entry_id = 1 WHERE {LIMIT}",
    "a limit is called a hit": f"UPDATE lookup SET outcome = 1 WHERE {LIMIT}",
    "an outcome is none": f"UPDATE lookup SET outcome = 77 WHERE {HIT}",
    "a lookup began before its call": f"UPDATE lookup SET start_ns = start_ns - 1000000 WHERE {HIT}",
    "a lookup took longer than its call": f"UPDATE lookup SET duration_ns = duration_ns + 100000000 WHERE {HIT}",
    "a lookup took less than its checks": f"UPDATE lookup SET duration_ns = 0 WHERE {LOOKUP % 'outcome = 5'}",
    "a lookup is shorter than nothing": f"UPDATE lookup SET duration_ns = -1 WHERE {LOOKUP % 'entries_checked = 0'}",
    "a lookup checked one more": f"UPDATE lookup SET entries_checked = entries_checked + 1 WHERE {HIT}",
    "a lookup's inputs are not there": f"UPDATE lookup SET signature_id = 999 WHERE {LOOKUP % 'signature_id IS NOT NULL'}",
    "declined is called a callback's error": f"UPDATE lookup SET outcome = 9 WHERE {LOOKUP % 'outcome = 6'}",
    # checks
    "a check is gone": f"DELETE FROM guard_check WHERE {CHECK % 'position = 0'}",
    "a check has another place": f"UPDATE guard_check SET position = position + 1 WHERE {CHECK % '1'}",
    "a check of another lookup": f"UPDATE guard_check SET lookup_id = lookup_id + 1 WHERE {CHECK % 'position = 1'}",
    "a check of another entry": f"UPDATE guard_check SET cache_entry_id = 1 + cache_entry_id % 2 WHERE {CHECK % '1'}",
    "a check that failed passed": f"UPDATE guard_check SET result = 'pass' WHERE {CHECK % 'failed_guard_id IS NOT NULL'}",
    "a check that passed failed": f"UPDATE guard_check SET result = 'fail' WHERE {CHECK % 'failed_guard_id IS NULL'}",
    "a check that failed raised": f"UPDATE guard_check SET result = 'error' WHERE {CHECK % 'failed_guard_id IS NOT NULL'}",
    "a check ended in a word that is none": f"UPDATE guard_check SET result = 'maybe' WHERE {CHECK % '1'}",
    "a check failed without a guard": f"UPDATE guard_check SET failed_guard_id = NULL WHERE {CHECK % 'failed_guard_id IS NOT NULL'}",
    "a guard of another entry failed": f"UPDATE guard_check SET failed_guard_id = (SELECT guard_id FROM guard g WHERE g.cache_entry_id <>"
                                       f" guard_check.cache_entry_id LIMIT 1) WHERE {CHECK % 'failed_guard_id IS NOT NULL'}",
    "a check that failed ran one more": f"UPDATE guard_check SET guards_run = guards_run + 1 WHERE {CHECK % 'guards_run = 2'}",
    "a check ran more than there are": f"UPDATE guard_check SET guards_run = 99 WHERE {CHECK % '1'}",
    "a check took longer than its lookup": f"UPDATE guard_check SET duration_ns = 10000000000 WHERE {CHECK % '1'}",
    # entries and guards
    "an entry is gone": "DELETE FROM cache_entry WHERE cache_entry_id = 1",
    "an entry of other code": "UPDATE cache_entry SET code_id = (SELECT code_id FROM code WHERE qualname = 'bad') WHERE cache_entry_id = 1",
    "an entry of another compile": "UPDATE cache_entry SET compile_id = 2 WHERE cache_entry_id = 1",
    "an entry with another label": "UPDATE cache_entry SET label = '9/9' WHERE cache_entry_id = 1",
    "an entry born too late": "UPDATE cache_entry SET born_ns = born_ns + 10000000000 WHERE cache_entry_id = 1",
    "an entry born before its compile": "UPDATE cache_entry SET born_ns = 0 WHERE cache_entry_id = 1",
    "an entry that lives died": "UPDATE cache_entry SET died_ns = born_ns + 1000, death_cause = 'x' WHERE cache_entry_id = 1",
    "a death without a cause": "UPDATE cache_entry SET death_cause = NULL WHERE cache_entry_id = (SELECT cache_entry_id FROM cache_entry WHERE died_ns)",
    "an entry that died lives on": "UPDATE cache_entry SET died_ns = NULL, death_cause = NULL WHERE cache_entry_id ="
                                   " (SELECT MIN(cache_entry_id) FROM cache_entry WHERE died_ns)",
    "an entry has another guard": "UPDATE cache_entry SET guard_count = guard_count + 1 WHERE cache_entry_id = 1",
    "a guard is gone": "DELETE FROM guard WHERE guard_id = 2",
    "a guard of another entry": "UPDATE guard SET cache_entry_id = 2 WHERE guard_id = 1",
    "a guard with another place": "UPDATE guard SET ordinal = 9 WHERE guard_id = 2",
    "a guard of another kind than its cause": "UPDATE guard SET kind = 'NONE_MATCH' WHERE guard_id = (SELECT MIN(guard_id) FROM recompile_cause)",
    "an order that is none": "UPDATE guard_order SET ordinals = 'x' WHERE rowid = 1",
    "an order with a guard twice": "UPDATE guard_order SET ordinals = '[0, 0, 1, 2]' WHERE rowid = 1",
    "an order of another entry": "UPDATE guard_order SET cache_entry_id = 999 WHERE rowid = 1",
    "an order of another process": "UPDATE guard_order SET process_id = 999 WHERE rowid = 1",
    # compiles, causes, marks
    "a compile is gone": f"DELETE FROM compile WHERE {MADE}",
    "a compile of another frame": f"UPDATE compile SET frame_id = frame_id + 1 WHERE {MADE}",
    "a compile of other code": f"UPDATE compile SET code_id = (SELECT code_id FROM code WHERE qualname = 'bad') WHERE {MADE}",
    "a compile on another thread": f"UPDATE compile SET thread_id = 2 WHERE {MADE}",
    "a compile with another label": f"UPDATE compile SET label = '9/9' WHERE {MADE}",
    "a compile ended before it began": f"UPDATE compile SET end_ns = start_ns - 1 WHERE {MADE}",
    "a compile began before its call": f"UPDATE compile SET start_ns = 0 WHERE {MADE}",
    "a compile ended after its call": f"UPDATE compile SET end_ns = end_ns + 100000000000 WHERE {MADE}",
    "a compile without an entry compiled": "UPDATE compile SET outcome = 'compiled' WHERE compile_id = (SELECT compile_id FROM compile WHERE outcome = 'error')",
    "an error was declined": "UPDATE compile SET outcome = 'declined' WHERE compile_id = (SELECT compile_id FROM compile WHERE outcome = 'error')",
    "a compile without its entry": f"UPDATE compile SET cache_entry_id = NULL WHERE {MADE}",
    "a cause is gone": "DELETE FROM recompile_cause WHERE ordinal = 0 AND rowid = (SELECT MIN(rowid) FROM recompile_cause)",
    "a cause of another compile": "UPDATE recompile_cause SET compile_id = compile_id + 1 WHERE rowid = (SELECT MIN(rowid) FROM recompile_cause)",
    "a cause names another guard": "UPDATE recompile_cause SET guard_id = guard_id - 1 WHERE rowid = (SELECT MIN(rowid) FROM recompile_cause)",
    "a cause of another kind": "UPDATE recompile_cause SET kind = 'NONE_MATCH' WHERE rowid = (SELECT MIN(rowid) FROM recompile_cause)",
    "a cause names a younger entry": "UPDATE recompile_cause SET cache_entry_id = (SELECT MAX(cache_entry_id) FROM cache_entry) WHERE rowid = (SELECT MIN(rowid) FROM recompile_cause)",
    # marks
    "a mark is gone": "DELETE FROM code_mark WHERE code_id = (SELECT code_id FROM code WHERE qualname = 'excluded')",
    "a mark of another action": "UPDATE code_mark SET action = 'run_only' WHERE code_id = (SELECT code_id FROM code WHERE qualname = 'excluded')",
    "a mark on another code": "UPDATE code_mark SET code_id = 1 WHERE code_id = (SELECT code_id FROM code WHERE qualname = 'excluded')",
    # frames, threads, processes, code, meta
    "a frame is gone": f"DELETE FROM frame WHERE {FRAME % 'outcome = 4'}",
    "a frame of another caller": f"UPDATE frame SET parent_id = parent_id - 1 WHERE {FRAME % 'outcome = 1'}",
    "a frame of other code": f"UPDATE frame SET code_id = (SELECT code_id FROM code WHERE qualname = 'numbers') WHERE {FRAME % 'outcome = 4'}",
    "a frame ends later": f"UPDATE frame SET end_ns = end_ns + 1 WHERE {FRAME % 'outcome = 4'}",
    "a frame begins earlier": f"UPDATE frame SET start_ns = start_ns - 1 WHERE {FRAME % 'outcome = 4'}",
    "a frame never ended": f"UPDATE frame SET end_ns = NULL, exit = NULL WHERE {FRAME % 'outcome = 4'}",
    "a frame raised": f"UPDATE frame SET exit = 2 WHERE {FRAME % 'outcome = 4'}",
    "a resumed generator was called": f"UPDATE frame SET kind = 0 WHERE {FRAME % 'kind = 1'}",
    "a frame ran an entry": f"UPDATE frame SET cache_entry_id = 1 WHERE {FRAME % 'outcome = 5'}",
    "a plain frame was a hit": f"UPDATE frame SET outcome = 1 WHERE {FRAME % 'outcome = 0'}",
    "a plain frame was skipped": f"UPDATE frame SET outcome = 4 WHERE {FRAME % 'outcome = 0'}",
    "a thread is gone": "DELETE FROM thread WHERE thread_id = 2",
    "a thread of another process": "UPDATE thread SET process_id = (SELECT MAX(process_id) FROM process) WHERE thread_id = 1",
    "a process is gone": "DELETE FROM process WHERE process_id = (SELECT MAX(process_id) FROM process)",
    "a process ended earlier": "UPDATE process SET end_ns = start_ns WHERE process_id = 1",
    "a process began later": "UPDATE process SET start_ns = end_ns WHERE process_id = (SELECT MAX(process_id) FROM process)",
    "a code is gone": "DELETE FROM code WHERE qualname = 'f'",
    "a code of a kind that is none": "UPDATE code SET kind = 'x' WHERE qualname = 'f'",
    "inputs are gone": "DELETE FROM signature WHERE signature_id = (SELECT signature_id FROM lookup WHERE signature_id IS NOT NULL LIMIT 1)",
    "another number of frames": "UPDATE meta SET value = value + 1 WHERE key = 'frame_count'",
    "another number of open frames": "UPDATE meta SET value = value + 1 WHERE key = 'open_frame_count'",
    "the recording ended earlier": "UPDATE meta SET value = 5 WHERE key = 'span_ns'",
    "an outcome with another name": "UPDATE enum SET name = 'miss' WHERE kind = 'outcome' AND value = 1",
}
UNNOTICED = {
    "a name": ("UPDATE code SET qualname = 'x' WHERE qualname = 'bad'", "a name is said once"),
    "a thread's name": ("UPDATE thread SET name = 'x' WHERE thread_id = 1", "the same"),
    "a guard's words": ("UPDATE guard SET expression = 'x' WHERE guard_id = 2", "the same"),
    "text of inputs": ("UPDATE signature SET text = 'x' WHERE signature_id = 1", "the same"),
    "what a cause saw": ("UPDATE recompile_cause SET actual = 'x' WHERE rowid = (SELECT MIN(rowid) FROM recompile_cause)", "values are said once"),
    "a check's time": (f"UPDATE guard_check SET duration_ns = duration_ns / 2 WHERE {CHECK % '1'}",
                       "a time within what holds it is as good as another"),
    "a lookup's inputs": (f"UPDATE lookup SET signature_id = NULL WHERE {LOOKUP % 'signature_id IS NOT NULL'}", "inputs need not be known"),
    "an exit code": ("UPDATE process SET exit_code = 7 WHERE exit_code = 0", "the system says it once"),
    "a pid": ("UPDATE process SET pid = pid + 1", "the same"),
}


@pytest.fixture(scope="module")
def good(dyntrace, tmp_path_factory):
    from shared import PYTHONS
    path = tmp_path_factory.mktemp("contradictions") / "t.db"
    subprocess.run([dyntrace, "run", "-o", path, "--python", PYTHONS[0], "--", PROGRAMS / "damage_work.py"], check=True,
                   capture_output=True, timeout=60)
    assert found(dyntrace, path) == ([], [])
    return path


def found(dyntrace, path):
    """Return what fsck and --verify print about the trace if they find a fault, as lines."""
    said = []
    for command in (["fsck", path], ["replay", path, "--verify"]):
        done = subprocess.run([dyntrace, *command], capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 1) and not done.stderr, done
        said.append(done.stdout.splitlines() if done.returncode else [])
    return tuple(said)


def damaged(good, tmp_path, change):
    path = tmp_path / "t.db"
    shutil.copy(good, path)
    with sqlite3.connect(path) as db:
        before = db.total_changes
        for statement in change.split(";"):
            db.execute(statement)
        assert db.total_changes > before, "nothing was changed"
    db.close()
    return path


def test_there_are_enough_cases():
    assert len(NOTICED) >= 60


@pytest.mark.parametrize("name", NOTICED)
def test_a_changed_row_that_contradicts_another_is_reported(dyntrace, good, tmp_path, name):
    fsck, verify = found(dyntrace, damaged(good, tmp_path, NOTICED[name]))
    assert fsck or verify


@pytest.mark.parametrize("name", UNNOTICED)
def test_a_changed_row_without_contradiction_is_not_reported(dyntrace, good, tmp_path, name):
    assert found(dyntrace, damaged(good, tmp_path, UNNOTICED[name][0])) == ([], [])
