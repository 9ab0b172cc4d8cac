"""Each test changes one row of a good trace so that it contradicts another row: fsck or --verify must report it. Changes
that contradict no other row are listed with the reason, and must not be reported."""
import shutil
import sqlite3
import subprocess

import pytest

from frame_rows import frame_rows
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
    "a frame of another caller": f"UPDATE frame_rows SET parent_id = parent_id - 1 WHERE {FRAME % 'outcome = 1'}",
    "a frame of other code": f"UPDATE frame SET code_id = (SELECT code_id FROM code WHERE qualname = 'numbers') WHERE {FRAME % 'outcome = 4'}",
    "a frame ends later": f"UPDATE frame_rows SET end_ns = end_ns + 1 WHERE {FRAME % 'outcome = 4'}",
    "a frame begins earlier": f"UPDATE frame_rows SET start_ns = start_ns - 1 WHERE {FRAME % 'outcome = 4'}",
    "a frame never ended": f"UPDATE frame_rows SET end_ns = NULL, exit = NULL WHERE {FRAME % 'outcome = 4'}",
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
SPAN = "span_id = (SELECT span_id FROM span WHERE %s LIMIT 1)"
ARGS = "frame_id = (SELECT a.frame_id FROM call_args a JOIN frame f USING (frame_id) JOIN code c USING (code_id) WHERE %s LIMIT 1)"
SAMPLE = "(thread_id, at_ns) = (SELECT thread_id, MAX(at_ns) FROM thread_cpu WHERE thread_id = 1)"
STRETCH = "(thread_id, start_ns) = (SELECT thread_id, start_ns FROM stretch WHERE %s LIMIT 1)"
MEASURED = STRETCH % "ran_ns IS NOT NULL"
# Of a trace of programs/timed_work.py, in which frames of `counted` were counted.
TIMED = {
    "a span without a name": f"UPDATE span SET name = NULL WHERE {SPAN % 1}",
    "a span of a kind that is none": f"UPDATE span SET kind = 'x' WHERE {SPAN % 1}",
    "a span without a thread": f"UPDATE span SET thread_id = 999 WHERE {SPAN % 1}",
    "a span on another thread": f"UPDATE span SET thread_id = thread_id + 1 WHERE {SPAN % 'thread_id = 1'}",
    "a span ended before it began": f"UPDATE span SET end_ns = start_ns - 1 WHERE {SPAN % 1}",
    "a span began before everything": f"UPDATE span SET start_ns = -1 WHERE {SPAN % 1}",
    "a span began before its frame": f"UPDATE span SET start_ns = 0 WHERE {SPAN % 1}",
    "a span began after its frame": f"UPDATE span SET start_ns = start_ns + 9000000000, end_ns = end_ns + 9000000000 WHERE {SPAN % 1}",
    "a span's frame is not there": f"UPDATE span SET frame_id = 999999999 WHERE {SPAN % 1}",
    "a span's attributes are no JSON": f"UPDATE span SET attributes = 'x' WHERE {SPAN % 1}",
    "a span's attributes are a list": f"UPDATE span SET attributes = '[1]' WHERE {SPAN % 1}",
    "a span's parent is not there": f"UPDATE span SET parent_span_id = 999999 WHERE {SPAN % 1}",
    "a span is its own parent": f"UPDATE span SET parent_span_id = span_id WHERE {SPAN % 1}",
    "a span's parent is its child": f"UPDATE span SET parent_span_id = (SELECT u.span_id FROM span u WHERE u.parent_span_id = span.span_id) WHERE {SPAN % 'name = char(111,117,116,101,114)'}",
    "a span's parent is of a forked child": f"UPDATE span SET parent_span_id = (SELECT MIN(s.span_id) FROM span s JOIN thread t USING (thread_id) WHERE t.process_id = 2)"
                                            f" WHERE span_id = (SELECT s.span_id FROM span s JOIN thread t USING (thread_id) WHERE t.process_id = 1 ORDER BY 1 DESC LIMIT 1)",
    "arguments are no JSON": f"UPDATE call_args SET arguments = '{{' WHERE {ARGS % 1}",
    "arguments are a number": f"UPDATE call_args SET arguments = '3' WHERE {ARGS % 1}",
    "a result is no JSON": f"UPDATE call_args SET result = 'x' WHERE {ARGS % 1}",
    "arguments of no call": f"UPDATE call_args SET frame_id = 999999999 WHERE {ARGS % 1}",
    "a call that raised has a result": f"UPDATE call_args SET result = '1' WHERE {ARGS % 'qualname = char(98,97,100)'}",
    "an exception of no process": "INSERT INTO uncaught(process_id, at_ns, type) VALUES (99, 1, 'KeyError')",
    "an exception in no function": "INSERT INTO uncaught SELECT process_id, start_ns, 'KeyError', 999999999, 1 FROM process LIMIT 1",
    "processor time shrinks": f"UPDATE thread_cpu SET cpu_ns = 1 WHERE {SAMPLE}",
    "time in the queue is negative": f"UPDATE thread_cpu SET queued_ns = -1 WHERE {SAMPLE}",
    "a sample has no processor time": f"UPDATE thread_cpu SET cpu_ns = NULL WHERE {SAMPLE}",
    "a sample of no thread": f"UPDATE thread_cpu SET thread_id = 999 WHERE {SAMPLE}",
    "a stretch of no thread": f"UPDATE stretch SET thread_id = 999 WHERE {STRETCH % 1}",
    "a stretch on another thread": f"UPDATE stretch SET thread_id = thread_id + 1 WHERE {STRETCH % 'thread_id = 1'}",
    "a stretch of no code": f"UPDATE stretch SET code_id = NULL WHERE {STRETCH % 1}",
    "a stretch ended before it began": f"UPDATE stretch SET end_ns = start_ns - 1 WHERE {STRETCH % 1}",
    "a stretch lasts longer than its frame": f"UPDATE stretch SET end_ns = end_ns + 9000000000 WHERE {STRETCH % 1}",
    "a stretch began within another": "UPDATE stretch SET start_ns = start_ns - 1000000 WHERE (thread_id, start_ns) ="
                                      " (SELECT s.thread_id, s.start_ns FROM stretch s JOIN stretch o ON o.thread_id = s.thread_id AND s.start_ns - o.end_ns BETWEEN 0 AND 900000 LIMIT 1)",
    "a stretch waited longer than it is": f"UPDATE stretch SET waited_ns = end_ns - start_ns + 1 WHERE {MEASURED}",
    "a stretch ran for less than nothing": f"UPDATE stretch SET ran_ns = -1 WHERE {MEASURED}",
    "a stretch was queued while it did not wait": f"UPDATE stretch SET queued_ns = waited_ns + 1 WHERE {MEASURED}",
    "a stretch is half measured": f"UPDATE stretch SET waited_ns = NULL WHERE {MEASURED}",
    "counted frames of no code": "UPDATE frame_count SET code_id = 999",
    "counted frames of no phase": "UPDATE frame_count SET phase = 77",
    "counted frames of no outcome": "UPDATE frame_count SET outcome = 77",
    "counted frames are fewer than their calls": "UPDATE frame_count SET frames = 1",
    "counted frames raised more often than they ran": "UPDATE frame_count SET raised = 3",
    "counted frames have less than no time of their own": "UPDATE frame_count SET self_ns = -1",
    "the longest counted frame has no time": "UPDATE frame_count SET max_ns = NULL",
    "the first counted frame is the last": "UPDATE frame_count SET first_ns = 4",
    "counted frames without a sum": "UPDATE frame_count SET inner_ns = NULL",
    "counted frames twice": "INSERT INTO frame_count SELECT * FROM frame_count",
    "counted frames are not in the totals": "DELETE FROM frame_count",
}
UNNOTICED_TIMED = {
    "a span is open": f"UPDATE span SET end_ns = NULL WHERE {SPAN % 1}",
    "a span has no parent": "UPDATE span SET parent_span_id = NULL",
    "a result is not known": "UPDATE call_args SET result = NULL",
    "nothing was sampled": "DELETE FROM thread_cpu",
    "a stretch was not measured": f"UPDATE stretch SET ran_ns = NULL, waited_ns = NULL, queued_ns = NULL WHERE {MEASURED}",
}


@pytest.fixture(scope="module")
def timed(dyntrace, tmp_path_factory):
    from shared import PYTHONS
    path = tmp_path_factory.mktemp("contradictions") / "t.db"
    command = [dyntrace, "run", "-o", path, "--python", PYTHONS[0], "--args", "work", "--args", "bad", "--", PROGRAMS / "timed_work.py"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO frame_count SELECT code_id, 2, 0, 2, 2, 10, 5, 1, 8, 1, 3, 0 FROM code WHERE qualname = 'bad'")
        db.execute("UPDATE code_total SET calls = calls + 2, total_ns = total_ns + 10, self_ns = self_ns + 5, raised = raised + 1"
                   " WHERE code_id = (SELECT code_id FROM frame_count)")
    db.close()
    assert found(dyntrace, path) == ([], [])
    return path


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
    with frame_rows(sqlite3.connect(path)) as db:
        before = db.total_changes
        for statement in change.split(";"):
            db.execute(statement)
        assert db.total_changes > before, "nothing was changed"
    db.close()
    return path


def test_there_are_at_least_60_contradictions_to_test():
    assert len(NOTICED) >= 60


@pytest.mark.parametrize("name", NOTICED)
def test_a_changed_row_that_contradicts_another_is_reported(dyntrace, good, tmp_path, name):
    fsck, verify = found(dyntrace, damaged(good, tmp_path, NOTICED[name]))
    assert fsck or verify


@pytest.mark.parametrize("name", UNNOTICED)
def test_a_changed_row_without_contradiction_is_not_reported(dyntrace, good, tmp_path, name):
    assert found(dyntrace, damaged(good, tmp_path, UNNOTICED[name][0])) == ([], [])


@pytest.mark.parametrize("name", TIMED)
def test_a_changed_time_that_contradicts_another_row_is_reported(dyntrace, timed, tmp_path, name):
    assert found(dyntrace, damaged(timed, tmp_path, TIMED[name]))[0]


@pytest.mark.parametrize("name", UNNOTICED_TIMED)
def test_unknown_times_are_not_reported_as_contradictions(dyntrace, timed, tmp_path, name):
    assert found(dyntrace, damaged(timed, tmp_path, UNNOTICED_TIMED[name])) == ([], [])
