"""`dyntrace replay --what-if` of torch programs: what it predicts, beside what then is recorded; and --verify of all of that.

whatif_cases.py is some twenty short programs in one, so that torch is imported once for each setting."""
import collections
import concurrent.futures
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from shared import outcomes, predict


sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fuzz"))
from whatif_pairs import Widths

pytestmark = pytest.mark.slow
PROGRAM = Path(__file__).resolve().parent / "programs" / "whatif_cases.py"
HIDDEN = {"attributes.<locals>.Scaled.forward"}  # its guards look at an attribute, which no signature shows
SLICES = {"slices.<locals>.slices_f"}  # conditions on its size come of its number
FLOATS = {"factors.<locals>.factors_f"}

# (recorded under, what if, the other recording's words), and the functions of which calls may be guesses; None: any.
TRUTHS = [
    ("", "recompile_limit=2", "recompile_limit=2", HIDDEN | SLICES),
    ("recompile_limit=2", "recompile_limit=8", "recompile_limit=8", None), # a compile that was not recorded may give no code
    ("recompile_limit=1", "recompile_limit=8", "recompile_limit=8", None), # one entry does not tell what the next is like
    ("", "dynamic=all", "dynamic=all", None),
    ("", "dynamic=x[0]", "mark=x[0]", None), # code for one size does not show what conditions it has for others
    ("recompile_limit=2", "dynamic=all", "recompile_limit=2 dynamic=all", None),
    ("", "recompile_limit=2,dynamic=x[0]", "recompile_limit=2 mark=x[0]", None),
    ("", "isolate=region", "isolate=region", None), # a trace does not tell of which torch.compile() a call was
    ("recompile_limit=2", "isolate=region", "recompile_limit=2 isolate=region", None),
]
PAIRS = [("shim", *truth) for truth in TRUTHS] + [("observe", *truth) for truth in TRUTHS[:2] + TRUTHS[3:4]]
SETTINGS = sorted({(mode, words) for mode, under, _, words, _ in PAIRS for words in (under, words)})


@pytest.fixture(scope="module")
def recordings(dyntrace, python, tmp_path_factory):
    """recordings(mode, words) -> the trace of whatif_cases.py under those settings, all made at once."""
    folder = tmp_path_factory.mktemp("whatif")
    jobs = int(os.environ.get("DYNTRACE_TORCH_JOBS") or min(2, os.cpu_count() or 1))

    def run(mode, words):
        path = folder / f"{mode}-{words.replace(' ', '-')}.db"
        done = subprocess.run([dyntrace, "run", "-o", path, "--frames", "user", "--torch", mode, "--python", python, "--", PROGRAM, *words.split()],
                              capture_output=True, text=True, timeout=280, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr[-3000:]
        return path

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        made = {}

        def get(mode, words):
            for one in SETTINGS:
                if one not in made:
                    made[one] = pool.submit(run, *one)
            return made[mode, words].result()
        yield get
        for one in made.values():
            one.cancel()


def torch_of(trace):
    with sqlite3.connect(trace) as db:
        (version,), = db.execute("SELECT torch_version FROM process")
    return tuple(map(int, version.split(".")[:2]))


def has_isolation(python):
    return subprocess.run([python, "-c", "import inspect, torch; exit('isolate_recompiles' not in inspect.signature(torch.compile).parameters)"],
                          cwd="/").returncode == 0


@pytest.mark.parametrize("mode, under, settings, words, guesses", PAIRS, ids=[f"{pair[0]} {pair[1]}->{pair[2]}" for pair in PAIRS])
def test_predictions_equal_recordings_under_the_changed_settings(recordings, dyntrace, python, mode, under, settings, words, guesses):
    if "isolate" in words and not has_isolation(python):
        pytest.skip("this torch has no isolate_recompiles")
    before, truth = recordings(mode, under), outcomes(recordings(mode, words), "%/whatif_cases.py")
    old = torch_of(before) < (2, 7) # which of its floats are dynamic is a guess
    whole = predict(dyntrace, before, settings)
    summary = {f["qualname"]: f for f in whole["functions"] if f["filename"].endswith("/whatif_cases.py")}
    outside = [words for name, one in summary.items() for words in Widths().add(one, truth[name])]
    every = [outcome for real in outcomes(recordings(mode, words)).values() for outcome in real]
    assert not outside + Widths().add({"qualname": "all", **whole}, every)
    told = collections.defaultdict(list)
    for row in predict(dyntrace, before, settings, "--calls"):
        if row["function"] in summary and row["predicted"] != "gone":
            told[row["function"]].append((row["predicted"], row["undecided"]))
    wrong, compared = {}, 0
    for name, calls in told.items():
        assert not sum(guess for _, guess in calls) or guesses is None or name in guesses or mode == "observe" or \
            (name in FLOATS and old), (name, calls)
        real = truth[name]
        # What the trace has nothing of was told to be so: a compile that says no, functions for the rest after a graph break.
        if summary[name]["trusting"] and "declined" in real:
            real = calls = []
        if summary[name]["unrecorded"]:
            real = real[:len(calls)] if "_resume_in_" not in name else []
            calls = calls[:len(real)]
        compared += len(calls)
        if len(calls) != len(real) or any(outcome != is_ and not guess for (outcome, guess), is_ in zip(calls, real)):
            wrong[name] = calls, truth[name]
    assert not wrong
    assert len(told) >= 18 and compared >= 120


@pytest.mark.parametrize("mode, words", SETTINGS)
def test_recordings_of_torch_programs_pass_verify(recordings, dyntrace, python, mode, words):
    if "isolate" in words and not has_isolation(python):
        pytest.skip("this torch has no isolate_recompiles")
    done = subprocess.run([dyntrace, "replay", recordings(mode, words), "--verify", "--json"], capture_output=True, text=True, timeout=60)
    found = json.loads(done.stdout)
    assert (done.returncode, found["do_not_follow"], found["orphan_checks"]) == (0, 0, 0), found["findings"][:3]
    assert found["lookups"] == found["whole" if mode == "shim" else "in_part_observed"] > 100


@pytest.mark.parametrize("mode", ["shim", "observe"])
def test_predicting_the_recorded_settings_changes_nothing(recordings, dyntrace, mode):
    for words in ("", "recompile_limit=2"):
        found = predict(dyntrace, recordings(mode, words), "isolate=no")
        if mode == "observe": # which entries a call tried was not seen
            found["recorded"]["checks"] = found["predicted"]["checks"]
        assert (found["changed"], found["gone"], found["undecided"], found["recorded"]) == (0, 0, 0, found["predicted"]), words


def test_best_finds_the_settings_that_help(recordings, dyntrace):
    found = predict(dyntrace, recordings("shim", "recompile_limit=2"), "best")
    recorded = found["recorded"]["compiles"] + found["recorded"]["eager"]
    if found["settings"]: # what is announced is proven
        assert found["compiles_high"] + found["eager_high"] < recorded
    assert "dynamic=" in found["unproven"] and "recompile_limit=" in found["unproven"]
    maybe = predict(dyntrace, recordings("shim", "recompile_limit=2"), found["unproven"])
    assert maybe["predicted"]["compiles"] + maybe["predicted"]["eager"] < recorded - 20
    assert "config." in maybe["try"] and "maybe_mark_dynamic=" in maybe["try"]


@pytest.mark.parametrize("case, taken_in", [("breaks_off", None), ("taken_in", "leaf"), ("method", "leaf")])
def test_callees_of_a_function_at_its_limit_are_predicted(dyntrace, python, tmp_path, case, taken_in):
    """Calls of compiled callees are as predicted. For each inlined callee the number of unrecorded calls is predicted."""
    for limit in (8, 2):
        done = subprocess.run([dyntrace, "run", "-o", tmp_path / f"{limit}.db", "--frames", "user", "--torch", "shim", "--python", python, "--",
                               PROGRAM.with_name("whatif_callees.py"), case, str(limit)],
                              capture_output=True, text=True, timeout=280, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr[-3000:]
    if case == "method" and torch_of(tmp_path / "8.db") < (2, 9):
        pytest.skip("the guards of this torch do not say that it took a method in")
    truth, told = outcomes(tmp_path / "2.db", "%/whatif_callees.py"), collections.defaultdict(list)
    for row in predict(dyntrace, tmp_path / "8.db", "recompile_limit=2", "--calls"):
        if row["predicted"] != "gone":
            told[row["function"]].append(row["predicted"])
    found = {f["qualname"]: f for f in predict(dyntrace, tmp_path / "8.db", "recompile_limit=2")["functions"]}
    assert set(told) >= set(truth) and len(truth) >= 2
    for name, real in truth.items():
        assert found[name]["unrecorded"] == len(real) - len(told[name]) and (found[name]["unrecorded"] > 0) == (name.rpartition(".")[2] == taken_in), name
        assert told[name] == real or found[name]["unrecorded"]


SEVERAL_FAILED = """
import torch
class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))
@torch.compile(backend="eager")
def f(x):
    return x * 2
f(torch.ones(3))
with torch.no_grad(), Mode():
    f(torch.ones(3))
"""


def test_dropping_one_of_several_failed_guards_is_predicted_right(dyntrace, python, tmp_path):
    """Without one of the guards, another one that failed too would still need the recompile."""
    trace = tmp_path / "t.db"
    subprocess.run([dyntrace, "run", "--torch", "shim", "--frames", "decided", "-o", trace, "--python", python, "-c", SEVERAL_FAILED], check=True, timeout=280)
    for kinds, left in (("GLOBAL_STATE", 2), ("TORCH_FUNCTION_MODE_STACK", 2), ("GLOBAL_STATE,drop_guard=TORCH_FUNCTION_MODE_STACK", 1)):
        found, = [one for one in predict(dyntrace, trace, f"drop_guard={kinds}")["functions"] if one["qualname"] == "f"]
        assert (found["predicted"]["compiles"], found["undecided"]) == (left, 0), kinds


# Torch's CONSTANT_MATCH becomes an EQUALS_MATCH.
DROPS = """
import sys, torch
options = {"guard_filter_fn": lambda guards: [one.guard_type.replace("CONSTANT", "EQUALS") != sys.argv[1] for one in guards]} if sys.argv[1:] else None
"""
# The second compile made the size a symbol, so the third has a condition on it. Without the second, has it?
SYMBOL = DROPS + """
@torch.compile(backend="eager", options=options)
def f(x, mode):
    return x.relu() if mode == "a" else x.tanh()
for size, kind, mode in (6, torch.float, "b"), (4, torch.float, "b"), (6, torch.int64, "a"), (1, torch.float, "a"):
    f(torch.ones(size, 3, dtype=kind), mode)
"""
# The guard on a key turned the third call away; no call came to the guard on what lies there.
KEYS = DROPS + """
torch._dynamo.config.recompile_limit = 2
@torch.compile(backend="eager", options=options)
def f(x, d):
    return x * sum(d.values())
for keys, size in ("qp", 1), ("q", 4), ("rq", 1), ("q", 1):
    f(torch.ones(size), dict.fromkeys(keys, torch.ones(1)))
"""
# The third compile made n a symbol, and later ones have a condition on it. Without the third?
NUMBER = DROPS + """
@torch.compile(backend="eager", options=options)
def f(x, n):
    return x + sum(range(n))
for size, kind, n in (6, torch.float, 2), (2, torch.double, 2), (3, torch.double, 0), (2, torch.float, 2), (4, torch.float, 3):
    f(torch.ones(size, 3, dtype=kind), n)
"""


@pytest.mark.parametrize("program, kind, real, guesses", [
    (SYMBOL, "TENSOR_MATCH", ["compiled", "hit", "compiled", "hit"], [3]),
    (NUMBER, "EQUALS_MATCH", ["compiled", "compiled", "hit", "compiled", "hit"], [4]),
    (KEYS, "EQUALS_MATCH", ["compiled", "compiled", "limit", "limit"], [2, 3])], ids=["a size", "a number", "a key"])
def test_calls_whose_other_guards_are_unknown_are_marked_as_guesses(dyntrace, python, tmp_path, program, kind, real, guesses):
    (tmp_path / "p.py").write_text(program)
    for name, words in ("kept", []), ("dropped", [kind]):
        subprocess.run([dyntrace, "run", "--torch", "shim", "--frames", "decided", "-o", tmp_path / f"{name}.db", "--python", python, tmp_path / "p.py", *words],
                       check=True, timeout=280)
    if torch_of(tmp_path / "kept.db") < (2, 8):
        pytest.skip("this torch has no guard_filter_fn")
    told = [row for row in predict(dyntrace, tmp_path / "kept.db", f"drop_guard={kind}", "--calls") if row["function"] == "f"]
    assert outcomes(tmp_path / "dropped.db", "%p.py")["f"] == real
    assert [n for n, row in enumerate(told) if row["undecided"]] == guesses
    assert all(row["undecided"] or row["predicted"] == is_ for row, is_ in zip(told, real))


def test_calls_of_torchs_helpers_by_code_no_longer_compiled_are_a_guess(dyntrace, python, tmp_path):
    """In the second entry the float is a symbol. Its code calls a helper of torch that makes a tensor of the float."""
    (tmp_path / "p.py").write_text(DROPS + """
@torch.compile(backend="eager", options=options)
def f(x, s):
    return x * s
for s in 0.5, 0.25, 2.0:
    f(torch.ones(3), s)
""")
    for name, words in ("kept", []), ("dropped", ["EQUALS_MATCH"]):
        subprocess.run([dyntrace, "run", "--torch", "shim", "--frames", "user", "-o", tmp_path / f"{name}.db", "--python", python, tmp_path / "p.py", *words],
                       check=True, timeout=280)
    if torch_of(tmp_path / "kept.db") < (2, 8):
        pytest.skip("this torch has no guard_filter_fn")
    whole = predict(dyntrace, tmp_path / "kept.db", "drop_guard=EQUALS_MATCH")
    every = [outcome for real in outcomes(tmp_path / "dropped.db").values() for outcome in real]
    assert outcomes(tmp_path / "dropped.db")["f"] == ["compiled", "hit", "hit"]
    assert "_as_tensor_fullprec" in outcomes(tmp_path / "kept.db")
    assert not Widths().add({"qualname": "all", **whole}, every)


def test_calls_that_vanish_if_a_guess_is_right_are_marked_as_guesses(dyntrace, python, tmp_path):
    """If f is at its limit, which is a guess, its resume function is not called. The prediction says both."""
    (tmp_path / "p.py").write_text("""
import sys, torch
torch._dynamo.config.recompile_limit = int(sys.argv[1])
@torch.compile(backend="eager")
def f(x):
    return x * 2 if x.sum().item() > 20 else x * 3
for size, kind in (4, torch.float), (5, torch.int64), (6, torch.float), (6, torch.float), (8, torch.int64), (3, torch.float), (4, torch.float):
    f(torch.ones(size, 3, dtype=kind))
""")
    for limit in "8", "2":
        subprocess.run([dyntrace, "run", "--torch", "shim", "--frames", "user", "-o", tmp_path / f"{limit}.db", "--python", python, tmp_path / "p.py", limit],
                       check=True, timeout=280)
    (name, real), = [(name, real) for name, real in outcomes(tmp_path / "2.db", "%p.py").items() if "resume" in name]
    told = [row for row in predict(dyntrace, tmp_path / "8.db", "recompile_limit=2", "--calls") if row["function"] == name]
    called = [row for row in told if row["predicted"] != "gone"]
    assert len(called) <= len(real) <= len(called) + sum(row["predicted"] == "gone" and row["undecided"] for row in told)
    assert all(row["undecided"] or row["predicted"] == is_ for row, is_ in zip(called, real))


@pytest.mark.parametrize("seed", ["7"])
def test_predictions_of_random_torch_programs_come_true(dyntrace, python, seed):
    """Some pairs of `make whatif-torch-pairs`. Certain predictions come true, and counts lie within the predicted ranges."""
    done = subprocess.run([sys.executable, Path(__file__).resolve().parents[1] / "fuzz/whatif_torch.py", "--dyntrace", dyntrace, "--python", python, seed],
                          capture_output=True, text=True, timeout=280, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0 and " 0 wrong; " in done.stdout and "; 0 outside" in done.stdout, done.stdout + done.stderr
