"""`why`, `show`, `report` and the ready queries on recordings of torch programs that really ran.

What the answers say of planted facts is in tests/test_torch_answers.py; here: that real facts arrive in them, in both
ways of watching, and that the remedies speak of what this torch has."""
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import planted_torch as planted  # noqa: E402

pytestmark = pytest.mark.slow
QUERIES = [path.stem for path in (Path(__file__).resolve().parents[2] / "schemas/queries").glob("*.sql")]


@pytest.fixture
def ask(dyntrace, runs):
    """ask(program, mode, "why", name) -> (page, what --json says)"""
    def ask(program, mode, *words):
        path = runs(program, mode).path
        pages = []
        for more in ([], ["--json"]):
            done = subprocess.run([dyntrace, *words, path, *more], capture_output=True, text=True, timeout=60)
            assert (done.returncode, done.stderr) == (0, ""), done.stderr
            pages.append(done.stdout)
        return pages[0], json.loads(pages[1])
    return ask


def texts(found):
    return " ".join(remedy["text"] for remedy in found["remedies"])


@pytest.mark.parametrize("way", ["shim", "observe"])
def test_why_explains_recompiles_and_the_reached_limit(ask, way):
    page, found = ask("batch_limit", way, "why", "score")
    assert re.search(r"^torch \d+\.\d+.*, %s: " % way, page, re.M)
    history, = found["histories"]
    assert (history["source"], history["values"]) == ("L['batch'].size()[0]", ["2", "3", "4", "5", "6"])
    assert (history["recompiles"], history["refused"], found["recompiles"]) == (3, 1, 3)
    assert "batch.size(0): expected 2 (0/0), actual 3" in page and "4 compiles (3 recompiles) and 1 attempt that gave no code" in page
    assert re.search(r"_limit \(4\) reached at .* with 4 compiles; since then 3 calls ran eagerly", page)
    assert "mark_dynamic(batch, 0)" in texts(found) and "Raise" in texts(found)
    assert [call["calls"] for call in found["calls"] if call["outcome"] == "limit"] == [3]
    assert {"bytecode_tracing", "entire_frame_compile"} & {phase["name"] for phase in found["phases"]}
    if way == "observe":
        assert "re-checked" in page and "tried " not in page.partition("Cache entries")[2].partition("\n\n")[0]
    else:
        assert "observed]" in page and found["guards"]["checks"] > 10 and found["guards"]["check_ns"] > 0


@pytest.mark.parametrize("way", ["shim", "observe"])
def test_why_and_show_explain_breaks_backends_and_stances(ask, runs, way):
    page, found = ask("stances", way, "why", "g")
    line = found["graph_breaks"][0]["line"]
    assert f"goes on in the rest of g after line {line}" in page and found["graph_breaks"][0]["rest_calls"] == 2
    assert "Take torch.compiler.disable off loud" in texts(found)
    rest, _ = ask("stances", way, "why", f"g@{line}")
    assert f"the rest of g after line {line}" in rest.splitlines()[0]
    page, found = ask("stances", way, "why", "f")
    assert "torch raised while compiling: the call failed" in page and 'set_stance("fail_on_recompile")' in texts(found)
    outcomes = {"hit", "compiled", "callback_error"} | ({"run_only"} if way == "shim" else set())
    assert outcomes <= {call["outcome"] for call in found["calls"]}
    if way == "shim":
        assert re.search(r"the backend: expected counting_eager \(0/0[^)]*\), actual eager ", page)
    shown, found = ask("stances", way, "show", "g")
    assert "    opcode         name " in shown and "bytecode before\n" in shown and "where its time went\n" in shown
    one = found["compiles"][0]
    assert one["graphs"][0]["nodes"] and one["graph_breaks"][0]["user_stack"] and one["phases"]
    if runs("stances", way).known["torch"] >= [2, 9]: # older ones keep few
        assert any(guard["user_stack"] for guard in one["guards"])


FORBIDDEN = """
import contextlib, torch
@torch.compile(backend="eager")
def scaled(x): return x * 2
scaled(torch.ones(3))
with torch.compiler.set_stance(skip_guard_eval_unsafe=True), contextlib.suppress(RuntimeError):
    scaled(torch.ones(3, dtype=torch.int64))
"""


@pytest.mark.parametrize("way", ["shim", "observe"])
def test_a_miss_that_a_stance_forbids_is_recorded_as_a_failed_compile(dyntrace, python, tmp_path, way):
    """Under skip_guard_eval_unsafe a miss raises before torch compiles. Both modes record a failed compile."""
    said = [subprocess.run([dyntrace, *map(str, words)], capture_output=True, text=True, check=True).stdout for words in (
        ["run", "--torch", way, "-o", tmp_path / "t.db", "--python", python, "-c", FORBIDDEN], ["fsck", tmp_path / "t.db"],
        ["replay", tmp_path / "t.db", "--verify"], ["why", tmp_path / "t.db", "scaled"])]
    assert "error: RuntimeError: Recompilation triggered with skip_guard_eval_unsafe stance" in said[-1]
    assert "Warm up scaled with these inputs before set_stance(skip_guard_eval_unsafe=True)" in said[-1] and "guard that raised" not in said[-1]
    outcomes = subprocess.run([dyntrace, "sql", tmp_path / "t.db", "SELECT outcome FROM call_ledger WHERE qualname = 'scaled' ORDER BY lookup_id"],
                              capture_output=True, text=True, check=True).stdout.split()
    assert outcomes == ["outcome", "compiled", "callback_error"]


TWO_ERRORS = """
import contextlib, torch
@torch.compile(backend="eager", fullgraph=True)
def f(x, way):
    if way == "print":
        print(x)
    return x @ x if way == "shape" else x * 2
for way in ("print", "fine", "shape", "print"):
    with contextlib.suppress(Exception):
        f(torch.ones(3, 2), way)
"""


@pytest.mark.parametrize("way", ["shim", "observe"])
def test_each_error_has_a_remedy_of_its_own(dyntrace, python, tmp_path, way):
    trace = tmp_path / "t.db"
    subprocess.run([dyntrace, "run", "--torch", way, "--frames", "decided", "-o", trace, "--python", python, "-c", TWO_ERRORS], check=True)
    found = json.loads(subprocess.run([dyntrace, "why", trace, "f", "--json"], capture_output=True, text=True, check=True).stdout)
    told = {one["name"]: one["because"] for one in found["remedies"]}
    assert told["allow the break"].startswith("2 calls") and told["mend the call"].startswith("1 call:")


def test_why_names_the_cause_of_an_entrys_death(ask):
    page, found = ask("reset_reload", "shim", "why", "shift")
    assert "0 had died at " in page and "L['kind']" in page and "Do not call torch.compiler.reset()" in texts(found)


def test_entries_of_regions_are_told_apart(ask):
    page, found = ask("regions", "shim", "why", "f")
    assert [entry["region_id"] for entry in found["entries"]] == [0, 1, None]
    assert "0/0 belongs to region 0 and is not seen by others (isolate_recompiles)" in page


def test_a_global_flag_that_changed_is_named_as_the_cause(ask, runs):
    page, found = ask("grad_modes", "shim", "why", "f")
    assert "grad_mode: expected True (0/0), actual False" in page
    # Autocast became part of the global state; before, the dispatch keys of tensors tell of it.
    autocast = "autocast" if runs("grad_modes", "shim").known["torch"] >= [2, 7] else "modes"
    assert {"grad mode", autocast} <= {remedy["name"] for remedy in found["remedies"]}


@pytest.mark.parametrize("way", ["shim", "observe"])
def test_report_and_queries_have_the_decisions(ask, dyntrace, runs, way):
    page, found = ask("stances", way, "report")
    assert found["torch"][0]["torch_mode"] == way and f", {way}\n" in page and "Compiles, most recompiles first" in page
    assert any(row["qualname"] == "f" and row["compiles"] == 4 for row in found["compiles"])
    for name in QUERIES:
        done = subprocess.run([dyntrace, "sql", runs("stances", way).path, name], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), name


# ---- what remedies speak of ------------------------------------------------

CHECK = """
import inspect, json, sys, torch, torch._dynamo
names = json.load(sys.stdin)
missing = [name for name in names["options"] if not hasattr(torch._dynamo.config, name)]
for name in names["names"]:
    at = torch
    for part in name.split(".")[1:]:
        at = getattr(at, part, None)
    if at is None:
        missing.append(name)
missing += [name for name in names["arguments"] if name not in inspect.signature(torch.compile).parameters]
for stance in names["stances"]:
    try:
        torch.compiler.set_stance(stance)
    except Exception as error:
        missing.append("%s: %s" % (stance, error))
print(json.dumps({"version": torch.__version__, "missing": missing}))
"""


def test_remedies_name_only_options_that_this_torch_has(dyntrace, python, tmp_path):
    version = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, cwd="/").stdout.strip()
    said, count = [], 0

    def tell(plant):
        nonlocal count
        count += 1
        p = planted.Torch(tmp_path / f"{count}.db", version=version)
        plant(p)
        done = subprocess.run([dyntrace, "why", "f", p.done(), "--json"], capture_output=True, text=True, timeout=60)
        said.extend(remedy["text"] for remedy in json.loads(done.stdout)["remedies"])

    def cause(kind, source, values, text):
        def plant(p):
            for i, value in enumerate(values):
                p.compile([dict(entry=j, kind=kind, source=source, expected=str(older), actual=str(value), text=text)
                           for j, older in enumerate(values[:i])])
        return plant

    def breaks(reason):
        def plant(p):
            p.compile()
            p.breaks(reason)
        return plant

    def limit(p):
        p.sizes(2, 3)
        p.limit()

    def more(p):
        p.compile(backend="one")
        p.compile([dict(kind="BACKEND_MATCH", guard=None, text="another backend")], backend="two")
        for outcome in ("run_only", "disabled"):
            p.call(outcome)
        p.compile(outcome="error", reason="RuntimeError: stance is 'fail_on_recompile'")
        p.limit("accumulated_recompile_limit (256) reached")

    for kind, source, values, text, *_ in planted.CAUSES:
        tell(cause(kind, source, values, text))
    for reason, *_ in planted.BREAKS:
        tell(breaks(reason))
    for reason, *_ in planted.SKIPS:
        tell(lambda p: p.turned_away(reason, calls=1))
    tell(limit)
    tell(more)
    text = "\n".join(said)
    names = {
        "options": re.findall(r"torch\._dynamo\.config\.(\w+)", text),
        "names": re.findall(r"\btorch(?:\._dynamo|\.compiler|\.library)?\.(?!compile\b|_dynamo\b|compiler\b|library\b|func\b)\w+", text),
        "arguments": re.findall(r"torch\.compile\(\.\.\., (\w+)=", text),
        "stances": re.findall(r'set_stance\("(\w+)"\)', text),
    }
    names = {key: sorted(set(value)) for key, value in names.items()}
    names["names"] = [name for name in names["names"] if not name.startswith("torch._dynamo.config")]
    assert len(names["options"]) >= 7 and "torch._dynamo.mark_dynamic" in names["names"] and len(names["stances"]) == 3, names
    done = subprocess.run([python, "-c", CHECK], input=json.dumps(names), capture_output=True, text=True, timeout=120, cwd="/")
    assert json.loads(done.stdout.splitlines()[-1])["missing"] == [], done.stdout + done.stderr
