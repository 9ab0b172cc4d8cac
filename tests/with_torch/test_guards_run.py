"""How many of torch's guards ran in each check, and which: against torch's own account of the order before the check."""
import contextlib
import itertools
import json
import sqlite3
from pathlib import Path

import pytest

from shared import holds

pytestmark = pytest.mark.slow
PROGRAM = Path(__file__).with_name("guards_run.py")
# Rows of ours that are no leaf guards of torch's, which it does not count.
NO_LEAVES = "('DICT_LENGTH', 'HASATTR', 'EXISTS')"


def told_and_traced(record, python, tmp_path, mode, seed, calls):
    """[(function, what torch told of each entry, what the trace has of each check), ...] by call."""
    trace = holds(record([PROGRAM, seed, calls, tmp_path / "told"], "--torch", mode, "--frames", "decided", python=python))
    told = json.loads((tmp_path / "told").read_text())
    names = {name for name, _ in told}
    with contextlib.closing(sqlite3.connect(trace.path)) as db:
        ran = {(lookup, position): leaves for lookup, position, leaves in db.execute(
            f"SELECT lookup_id, position, SUM(kind NOT IN {NO_LEAVES}) FROM guard_evaluation GROUP BY 1, 2")}
        rows = db.execute("SELECT l.lookup_id, c.qualname, k.position, e.label, k.result, k.guards_run,"
                          " (SELECT COUNT(*) FROM guard_evaluation v WHERE v.guard_check_id = k.guard_check_id)"
                          " FROM lookup l JOIN code c USING (code_id) LEFT JOIN guard_check k USING (lookup_id)"
                          " LEFT JOIN cache_entry e ON e.cache_entry_id = k.cache_entry_id ORDER BY 1, 3").fetchall()
    lookups = [(key[1], [row for row in group if row[3]]) for key, group in itertools.groupby(rows, lambda row: row[:2]) if key[1] in names]
    assert [name for name, _ in lookups] == [name for name, _ in told]
    return [(name, expected, checks, ran) for (name, expected), (_, checks) in zip(told, lookups)]


@pytest.mark.parametrize("seed", [1, 11])
def test_the_count_of_run_guards_is_by_their_order_before_the_check(record, python, tmp_path, seed):
    """torch moves a failed guard forward before we can read the order. The count must be by the order before that."""
    checks = failed = 0
    for name, expected, found, ran in told_and_traced(record, python, tmp_path, "shim", seed, 250):
        assert [(row[3], row[4] == "pass") for row in found] == [(label, passed) for label, _, passed in expected], name
        for row, (_, leaves, passed) in zip(found, expected):
            assert ran[row[0], row[2]] == leaves and row[5] == row[6], (name, row, leaves)
            checks += 1
            failed += not passed
    assert failed > 500 and checks > failed


def test_observe_mode_records_no_guard_count_of_a_failed_check(record, python, tmp_path):
    for name, _, found, _ in told_and_traced(record, python, tmp_path, "observe", 1, 100):
        assert all(row[5] is None for row in found if row[4] != "pass"), name


DUPLICATES = '''
import torch

@torch.compile(backend="eager")
def f(x, n):
    return x + n if n in {2, 3, 4, 5} else x - n

for n in (1, 2, 3, 4, 5):
    f(torch.ones(2), n)
'''


@pytest.mark.parametrize("mode", ["shim", "observe"])
def test_equal_causes_of_different_guard_kinds_are_one_cause(record, run, python, tmp_path, mode):
    """EQUALS_MATCH in one entry and LAMBDA_GUARD in others guard the same value: one cause, one remedy, one row."""
    (tmp_path / "f.py").write_text(DUPLICATES)
    trace = holds(record(["f.py"], "--torch", mode, "--frames", "decided", python=python))
    with contextlib.closing(sqlite3.connect(trace.path)) as db:
        assert db.execute("SELECT compile_id, cache_entry_id, source, aspect, COUNT(*) FROM recompile_cause GROUP BY 1, 2, 3, 4 HAVING COUNT(*) > 1").fetchall() == []
        kinds = db.execute("SELECT DISTINCT kind, aspect FROM recompile_cause ORDER BY 1").fetchall()
        assert kinds == [("EQUALS_MATCH", "value"), ("LAMBDA_GUARD", "value")]
        assert db.execute("SELECT compile_id, older_entry, COUNT(*) FROM recompile_causes WHERE decided GROUP BY 1, 2 HAVING COUNT(*) <> 1").fetchall() == []
    why = json.loads(run("why", "f", trace.path, "--json").stdout)
    history, = why["histories"]
    assert (history["source"], history["recompiles"], history["values"]) == ("L['n']", 4, ["1", "2", "3", "4", "5"])
    assert sum("L['n']" in remedy["text"] for remedy in why["remedies"]) == 1
    report = json.loads(run("report", trace.path, "--json").stdout)
    assert [(cause["source"], cause["recompiles"]) for cause in report["recompile_causes"]] == [("L['n']", 4)]
