"""One row of a good trace of torch.compile is changed, and another row says otherwise: fsck or verify notices.

tests/test_contradictions.py has what a trace without torch has, too."""
import contextlib
import sqlite3
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from test_contradictions import CHECK, FRAME, LOOKUP, damaged, found  # noqa: E402

pytestmark = pytest.mark.slow

G, REST = "(SELECT code_id FROM code WHERE qualname = 'g')", "(SELECT MIN(code_id) FROM code WHERE kind = 'resume')"
MADE = "compile_id = (SELECT MIN(compile_id) FROM compile WHERE cache_entry_id IS NOT NULL)"
REFUSED = "compile_id = (SELECT compile_id FROM compile WHERE outcome = 'error')"
BREAK = "graph_break_id = (SELECT MIN(graph_break_id) FROM graph_break)"
CAUSE = "rowid = (SELECT rowid FROM recompile_cause WHERE kind = 'TENSOR_MATCH' LIMIT 1)"
BACKEND = "rowid = (SELECT rowid FROM recompile_cause WHERE kind = 'BACKEND_MATCH' LIMIT 1)"
PHASE = "rowid = (SELECT rowid FROM compile_phase WHERE compile_id IS NOT NULL LIMIT 1)"
NEWEST = "(SELECT MAX(cache_entry_id) FROM cache_entry)"

# Of the program `stances`: hits, compiles, recompiles, a call that was not compiled for a stance, one for which torch raised, marks,
# graph breaks and what is behind them, another backend.
BOTH = {
    "a break in other code": f"UPDATE graph_break SET code_id = (SELECT code_id FROM code WHERE qualname = 'f') WHERE {BREAK}",
    "a break of another compile": f"UPDATE graph_break SET compile_id = 1 WHERE {BREAK}",
    "a break of no compile": f"UPDATE graph_break SET compile_id = 999 WHERE {BREAK}",
    "what is behind a break is none": f"UPDATE graph_break SET resume_code_id = {G} WHERE {BREAK}",
    "what is behind a break is behind another": f"UPDATE graph_break SET resume_code_id = (SELECT MAX(code_id) FROM code WHERE kind = 'resume') WHERE {BREAK}",
    "the rest of a function is of another one": f"UPDATE code SET origin_code_id = (SELECT code_id FROM code WHERE qualname = 'f' AND kind = 'function') WHERE code_id = {REST}",
    "the rest of a function is none": f"UPDATE code SET kind = 'function' WHERE code_id = {REST}",
    "the rest of a function is of code that is not there": f"UPDATE code SET origin_code_id = 99999 WHERE code_id = {REST}",
    "a graph of no compile": "UPDATE graph SET compile_id = 999 WHERE graph_id = 1",
    "a graph of a compile that made nothing": f"UPDATE graph SET compile_id = (SELECT compile_id FROM compile WHERE outcome = 'skipped' LIMIT 1) WHERE graph_id = 1",
    "a graph is gone": "DELETE FROM graph WHERE graph_id = 1",
    "a node is gone": "DELETE FROM graph_node WHERE graph_id = 1 AND ordinal = 1",
    "a node has another place": "UPDATE graph_node SET ordinal = 77 WHERE graph_id = 1 AND ordinal = 1",
    "a graph has another node": "UPDATE graph SET node_count = node_count + 1 WHERE graph_id = 1",
    "a listing of no compile": "UPDATE listing SET compile_id = 999 WHERE rowid = 1",
    "a phase of a compile with another label": f"UPDATE compile_phase SET label = '9/9' WHERE {PHASE}",
    "a phase of no compile": f"UPDATE compile_phase SET compile_id = 999 WHERE {PHASE}",
    "a phase ended before it began": f"UPDATE compile_phase SET end_ns = start_ns - 1 WHERE {PHASE}",
    "a compile has another label": f"UPDATE compile SET label = '9/9' WHERE {MADE}",
    "a compile of other code": f"UPDATE compile SET code_id = {G} WHERE {MADE}",
    "a compile without its entry": f"UPDATE compile SET cache_entry_id = NULL WHERE {MADE}",
    "a compile is gone": f"DELETE FROM compile WHERE {MADE}",
    "code was made, and the call given up": f"UPDATE compile SET sticky = 1 WHERE {MADE}",
    "torch raised, and declined": f"UPDATE compile SET outcome = 'declined' WHERE {REFUSED}",
    "torch raised, and compiled": f"UPDATE compile SET outcome = 'compiled' WHERE {REFUSED}",
    "the call that failed ran as Python": f"UPDATE lookup SET outcome = 3 WHERE {LOOKUP % 'outcome = 9'}",
    "what was forbidden was compiled": f"UPDATE lookup SET outcome = 2 WHERE {LOOKUP % 'outcome = 3'}",
    "the frame of a call that was not compiled hit": f"UPDATE frame SET outcome = 1 WHERE {FRAME % 'outcome = 3'}",
    "a hit is gone": f"DELETE FROM lookup WHERE {LOOKUP % 'outcome = 1'}",
    "a hit ran an entry of other code": f"UPDATE lookup SET cache_entry_id = (SELECT cache_entry_id FROM cache_entry WHERE code_id = {G}) WHERE {LOOKUP % 'outcome = 1'}",
    "a frame ran another entry": f"UPDATE frame SET cache_entry_id = {NEWEST} WHERE {FRAME % 'outcome = 1'}",
    "a declined call hit": f"UPDATE lookup SET outcome = 1 WHERE {LOOKUP % 'outcome = 6'}",
    "an entry has another label": "UPDATE cache_entry SET label = '9/9' WHERE cache_entry_id = 1",
    "an entry of other code": f"UPDATE cache_entry SET code_id = {G} WHERE cache_entry_id = 1",
    "an entry without one of its guards": "DELETE FROM guard WHERE guard_id = 2",
    "a guard of another kind than its cause": f"UPDATE guard SET kind = 'ID_MATCH' WHERE guard_id = (SELECT guard_id FROM recompile_cause WHERE {CAUSE})",
    "a cause of another kind": f"UPDATE recompile_cause SET kind = 'ID_MATCH' WHERE {CAUSE}",
    "a cause of another guard": f"UPDATE recompile_cause SET guard_id = (SELECT MAX(guard_id) FROM guard) WHERE {CAUSE}",
    "a cause of a younger entry": f"UPDATE recompile_cause SET cache_entry_id = {NEWEST} WHERE {CAUSE}",
    "a cause found in no way there is": f"UPDATE recompile_cause SET how = 'x' WHERE {CAUSE}",
    "a mark on no code": "UPDATE code_mark SET code_id = 999999",
    "a mark of no time": "UPDATE code_mark SET at_ns = NULL",
}
SHIM = {  # what torch's own evaluator tried in vain is seen here only
    "a check that passed ran fewer guards": f"UPDATE guard_check SET guards_run = guards_run - 1 WHERE {CHECK % 'failed_guard_id IS NULL AND guards_run > 1'}",
    "a check that passed failed": f"UPDATE guard_check SET result = 'fail' WHERE {CHECK % 'failed_guard_id IS NULL'}",
    "another backend's entry fitted": f"UPDATE guard_check SET result = 'pass' WHERE {CHECK % 'result = char(98,97,99,107,101,110,100,95,109,105,115,109,97,116,99,104)'}",
    "another guard failed": f"UPDATE guard_check SET failed_guard_id = failed_guard_id - 1 WHERE {CHECK % 'failed_guard_id IS NOT NULL'}",
    "a check is gone": f"DELETE FROM guard_check WHERE {CHECK % 'position = 0'}",
    "a cause that decided is gone": f"DELETE FROM recompile_cause WHERE {CAUSE}",
    "the cause of another backend is gone": f"DELETE FROM recompile_cause WHERE {BACKEND}",
    "the cause that decided was one more": f"UPDATE recompile_cause SET ordinal = 1 WHERE {CAUSE}",
}


@pytest.fixture(scope="module")
def good(runs, dyntrace):
    def good(mode):
        path = runs("stances", mode).path
        assert found(dyntrace, path) == ([], [])
        return path
    return good


def test_there_are_at_least_20_contradictions_to_test():
    assert len(BOTH) >= 20


@pytest.mark.parametrize("mode, name", [("shim", name) for name in {**BOTH, **SHIM}] + [("observe", name) for name in BOTH])
def test_a_changed_row_that_contradicts_another_is_reported(dyntrace, good, tmp_path, mode, name):
    if name == "a declined call hit":
        with contextlib.closing(sqlite3.connect(good(mode))) as db:
            if not db.execute("SELECT 1 FROM lookup WHERE outcome = 6").fetchone():
                pytest.skip("this torch declines no call of the program")
    fsck, verify = found(dyntrace, damaged(good(mode), tmp_path, {**BOTH, **SHIM}[name]))
    assert fsck or verify
