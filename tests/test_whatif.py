"""`dyntrace replay --what-if`: what it predicts, beside what then is recorded."""
import json
import sqlite3
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests/programs/whatif_cases.py"


def predict(dyntrace, path, settings, *more):
    done = subprocess.run([dyntrace, "replay", str(path), "--what-if", settings, "--json", *more], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads(done.stdout)


def recorded(path):
    """The outcomes of each function's calls, in order, by process."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        rows = db.execute("SELECT qualname, process_id, outcome FROM call_ledger ORDER BY start_ns, lookup_id").fetchall()
    calls = {}
    for name, process, outcome in rows:
        calls.setdefault((name, process), []).append(outcome)
    return calls


def predicted(dyntrace, path, settings):
    """The same as predicted: pairs of an outcome and whether it is a guess."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        process_of = dict(db.execute("SELECT lookup_id, process_id FROM call_ledger"))
    calls = {}
    for row in predict(dyntrace, path, settings, "--calls"):
        if row["predicted"] != "gone" or row["undecided"]:
            calls.setdefault((row["function"], process_of[row["lookup_id"]]), []).append((row["predicted"], row["undecided"]))
    return calls


def compare(told, truth):
    """The number of calls that were decided. Those that were must be right."""
    decided = 0
    assert set(told) >= set(truth), (told, truth)
    for function, calls in told.items():
        if any(outcome == "gone" for outcome, _ in calls):
            continue
        assert len(calls) == len(truth.get(function, [])), (function, calls, truth.get(function))
        for i, ((outcome, guess), real) in enumerate(zip(calls, truth[function])):
            assert guess or outcome == real, (function, i, calls, truth[function])
            decided += not guess
    return decided


# case: (recorded under, what if), ...
TRUTHS = {
    "sizes": [("", "recompile_limit=2"), ("recompile_limit=2", "recompile_limit=4"), ("recompile_limit=3", "recompile_limit=16"), ("", "dynamic=x[0]"),
              ("recompile_limit=2", "dynamic=x[0]"), ("", "accumulated_limit=3")],
    "two_dimensions": [("", "recompile_limit=3"), ("recompile_limit=2", "recompile_limit=6"), ("", "dynamic=x[0]"), ("", "dynamic=x[1]"),
                       ("", "dynamic=x[0],dynamic=x[1]"), ("recompile_limit=3", "dynamic=x[1]")],
    "size_and_number": [("", "recompile_limit=2"), ("recompile_limit=2", "recompile_limit=9"), ("", "dynamic=x[0]"), ("", "drop_guard=EQUALS_MATCH"),
                        ("", "drop_guard=EQUALS_MATCH,dynamic=x[0]"), ("recompile_limit=2", "drop_guard=EQUALS_MATCH,recompile_limit=3")],
    "values": [("", "recompile_limit=1"), ("recompile_limit=1", "recompile_limit=5"), ("recompile_limit=3", "recompile_limit=8"), ("", "drop_guard=EQUALS_MATCH")],
    "types": [("", "recompile_limit=2"), ("recompile_limit=2", "recompile_limit=5"), ("recompile_limit=1", "recompile_limit=16")],
    "unguarded": [("", "recompile_limit=2"), ("recompile_limit=2", "recompile_limit=4"), ("recompile_limit=1", "recompile_limit=9")],
    "lengths": [("", "recompile_limit=2"), ("recompile_limit=2", "recompile_limit=5")],
    "resets": [("", "recompile_limit=2"), ("recompile_limit=2", "recompile_limit=3"), ("", "dynamic=x[0]"), ("", "accumulated_limit=2")],
    "deaths": [("", "recompile_limit=2"), ("", "recompile_limit=3")],
    "two_functions": [("", "recompile_limit=2"), ("recompile_limit=2", "recompile_limit=8"), ("", "dynamic=x[0]")],
    "nested": [("", "recompile_limit=2"), ("recompile_limit=2", "recompile_limit=4")],
    "forks": [("", "recompile_limit=3"), ("recompile_limit=2", "recompile_limit=8"), ("", "dynamic=x[0]")],
    "threads": [("", "recompile_limit=2"), ("recompile_limit=2", "recompile_limit=4"), ("", "dynamic=x[0]")],
    "generators": [("", "recompile_limit=2"), ("recompile_limit=2", "recompile_limit=4")],
}


def as_program(settings):
    """A what-if's settings as whatif_cases.py takes them."""
    words = settings.replace("drop_guard", "drop").split(",") if settings else []
    made = {}
    for word in words:
        key, value = word.split("=", 1)
        made[key] = made.get(key, "") + value
    return made


def words(settings):
    return [f"{key}={value}" for key, value in settings.items()]


@pytest.mark.parametrize("case, under, settings", [(case, under, settings) for case, pairs in TRUTHS.items() for under, settings in pairs])
def test_predictions_come_true(record, dyntrace, case, under, settings):
    under = as_program(under)
    a = record([CASES, case, *words(under)])
    b = record([CASES, case, *words({**under, **as_program(settings)})])
    told, truth = predicted(dyntrace, a.path, settings), recorded(b.path)
    assert compare(told, truth) == sum(map(len, truth.values())), "none of these needs a guess"
