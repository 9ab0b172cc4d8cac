"""`dyntrace try`: the recorded command runs again under settings, and what that measured is in the trace."""
import json
import os
import sqlite3
import subprocess

import pytest

from planted import make_trace
from shared import holds, query, table

pytestmark = pytest.mark.one_python

# A baseline and three trials of function 1: one that gains, one that changes the output, one that was refused.
TRIALS = """
INSERT INTO trial(trial_id, batch, setting, exit_code, output_same, error, compiles, recompiles, breaks, eager, hits, compile_ns) VALUES
    (1, 1, '', 0, NULL, NULL, 5, 3, 1, 2, 10, 900), (2, 1, 'limit=9', 0, 1, NULL, 6, 4, 1, 0, 12, 900),
    (3, 1, 'dynamic=True', 0, 0, NULL, 1, 0, 0, 0, 16, 100), (4, 1, 'config.nope=1', 2, NULL, 'there is no nope', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO trial_function VALUES (1, 1, 5, 3, 1, 2, 10, 900, NULL), (2, 1, 6, 4, 1, 0, 12, 900, 50);
"""


def planted(path, rows=TRIALS):
    make_trace(path)
    with sqlite3.connect(path) as db:
        db.executescript(rows)
    return path


# ---- the tables ------------------------------------------------------------

def test_views_tell_which_trial_works_and_gains(tmp_path):
    path = holds(planted(tmp_path / "t.db"))
    assert query(path, "SELECT trial_id, baseline, works, gain, baseline_eager FROM trials") == [
        (1, 1, 1, 0, 2), (2, 0, 1, 1, 2), (3, 0, 0, 0, 2), (4, 0, 0, 0, 2)]
    assert query(path, "SELECT trial_id, works, gain, compiles, eager, step_ns FROM trial_functions") == [
        (1, 1, 0, 5, 2, None), (2, 1, 1, 6, 0, 50), (3, 0, 0, 0, 0, None), (4, 0, 0, None, None, None)]


@pytest.mark.parametrize("better, worse", [("eager = 1, compiles = 9", "eager = 3"), ("compiles = 4, recompiles = 9", "compiles = 6"),
                                           ("recompiles = 2, breaks = 9", "recompiles = 4"), ("breaks = 0", "breaks = 1, compile_ns = 0")])
def test_a_gain_is_fewer_eager_calls_then_compiles_then_recompiles_then_breaks(tmp_path, better, worse):
    rows = TRIALS + "UPDATE trial SET compiles = 5, recompiles = 3, breaks = 1, eager = 2, output_same = 1, error = NULL;" \
        f"UPDATE trial SET {better} WHERE trial_id = 2; UPDATE trial SET {worse} WHERE trial_id = 3"
    path = planted(tmp_path / "t.db", rows)
    assert query(path, "SELECT gain FROM trials") == [(0,), (1,), (0,), (0,)]


@pytest.mark.parametrize("change", ["output_same = 0", "output_same = NULL", "values_same = 'different'", "error = 'x'", "exit_code = 1",
                                    "exit_code = NULL, exit_signal = 11"])
def test_who_does_not_work_never_gains(tmp_path, change):
    path = planted(tmp_path / "t.db", TRIALS + f"UPDATE trial SET {change} WHERE trial_id = 2")
    assert query(path, "SELECT works, gain FROM trials WHERE trial_id = 2") == [(0, 0)]
    assert query(path, "SELECT works, gain FROM trial_functions WHERE trial_id = 2") == [(0, 0)]


def test_older_traces_have_no_trials(run, tmp_path):
    path = make_trace(tmp_path / "old.db", *(f"DROP {kind}" for kind in (
        "VIEW trials", "VIEW trial_functions", "TABLE trial", "TABLE trial_function")))
    holds(path)
    assert table(run("sql", path, "SELECT (SELECT COUNT(*) FROM trials) AS a, (SELECT COUNT(*) FROM trial_function) AS b").stdout) == [
        {"a": "0", "b": "0"}]
    newer = planted(tmp_path / "new.db", TRIALS + "UPDATE process SET pid = pid + 100")
    assert run("merge", path, newer, "-o", tmp_path / "m.db").returncode == 0
    assert query(holds(tmp_path / "m.db"), "SELECT trial_id, batch, function_id IS NOT NULL FROM trial_functions WHERE baseline") == [(1, 1, 1)]


def test_merged_trials_keep_their_baselines_and_functions(run, tmp_path):
    paths = [planted(tmp_path / f"{n}.db", TRIALS + f"UPDATE process SET pid = pid + {n}00; UPDATE code SET qualname = qualname || {n}") for n in (1, 2)]
    assert run("merge", *paths, "-o", tmp_path / "m.db").returncode == 0
    found = query(holds(tmp_path / "m.db"), "SELECT trial_id, batch, qualname FROM trial_functions WHERE setting IN ('', 'limit=9') ORDER BY 1")
    names = [query(path, "SELECT qualname FROM code WHERE code_id = 1")[0][0] for path in paths]
    assert found == [(1, 1, names[0]), (2, 1, names[0]), (5, 5, names[1]), (6, 5, names[1])]


# ---- what a recording keeps ------------------------------------------------

def meta(path):
    return dict(query(path, "SELECT key, value FROM meta"))


def test_a_trace_keeps_how_to_run_it_again(record, python, tmp_path):
    (tmp_path / "here").mkdir()
    trace = record(["-c", "pass", "x"], "--torch", "observe", "--exclude", "a*", "--values", "types", python=python, cwd=tmp_path / "here")
    found = meta(trace.path)
    assert found["directory"] == str(tmp_path / "here") and found["executable"] == str(python)
    assert json.loads(found["options"]) == ["--torch", "observe", "--values", "types", "--exclude", "a*", "--python", str(python)] and "launcher" not in found


def test_a_rank_keeps_its_launchers_words(dyntrace, python, tmp_path):
    words = [python, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:], check=True)"]
    subprocess.run([*words, dyntrace, "run", "-o", f"{tmp_path}/job/", "--python", python, "-c", "pass"], check=True, env={**os.environ, "RANK": "1"})
    [path] = (tmp_path / "job").iterdir()
    assert json.loads(meta(path)["launcher"]) == [str(word) for word in words]


def test_no_argv_keeps_nothing_of_it(record, python):
    assert not {"directory", "executable", "options", "launcher"} & set(meta(record(["-c", "pass"], "--no-argv", python=python).path))
