"""`dyntrace run --set`: torch's own counters under a setting are those of the program with the same written into it."""
import ast
import functools
import json
import re
import sqlite3
import subprocess
from pathlib import Path

import pytest

from shared import holds, script

HERE = Path(__file__).resolve().parent
CASES, WHOLE = HERE / "settings_cases.py", HERE / "settings_whole.py"
SETTINGS = next(ast.literal_eval(node.value) for node in ast.parse(CASES.read_text()).body
                if isinstance(node, ast.Assign) and node.targets[0].id == "SETTINGS")


def run(dyntrace, python, folder, settings, *words, mode="auto", **more):
    words = [str(word) for setting in settings for word in ("--set", setting)] + ["--torch", mode, "--python", python, *words]
    return subprocess.run([dyntrace, "run", "--frames", "decided", "-o", "t.db", *words], capture_output=True, text=True, timeout=280,
                          cwd=folder, **more)


def said(done):
    """What dyntrace itself wrote; torch writes logs beside that."""
    return [line for line in done.stderr.splitlines() if line.startswith("dyntrace: ")]


def counted(done):
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def meta(folder):
    return dict(sqlite3.connect(folder / "t.db").execute("SELECT key, value FROM meta"))


@pytest.fixture(scope="module")
def available(dyntrace, python, tmp_path_factory):
    """Those of SETTINGS that this torch has; the others are refused before the program runs, each in a line."""
    folder = tmp_path_factory.mktemp("available")
    done = run(dyntrace, python, folder, SETTINGS.values(), "-c", "print('began')")
    refused = [line for line in said(done) if " has no " in line]
    assert refused or "began" in done.stdout
    return [one for one in SETTINGS.values() if not any("--set %s: " % one in line for line in refused)]


@pytest.fixture(scope="module")
def by_hand(python, tmp_path_factory):
    @functools.cache
    def by_hand(program, *words):
        done = subprocess.run([python, program, *words], capture_output=True, text=True, timeout=280, cwd=tmp_path_factory.mktemp("hand"))
        return counted(done)

    return by_hand


@pytest.fixture(scope="module")
def edited(by_hand):
    """The cases as they are, and with the edits."""
    plain, hand = by_hand(CASES), by_hand(CASES, "hand")
    assert sum(plain["compiles"].values()) > sum(hand["compiles"].values())
    return hand


@pytest.mark.parametrize("mode", ["shim", pytest.param("observe", marks=pytest.mark.slow)])
def test_each_setting_has_the_effect_of_the_same_edit_by_hand(dyntrace, python, tmp_path, mode, available, edited):
    done = run(dyntrace, python, tmp_path, available, CASES, mode=mode)
    assert said(done) == []
    assert counted(done) == edited
    holds(tmp_path / "t.db")
    assert json.loads(meta(tmp_path)["settings"]) == available and "settings_unused" not in meta(tmp_path)
    assert sqlite3.connect(tmp_path / "t.db").execute("SELECT cause FROM loss").fetchall() == []


@pytest.mark.slow
@pytest.mark.parametrize("mode, settings, edits", [
    ("shim", ["dynamic=True", "backend=aot_eager", "config.capture_scalar_outputs=True"], None),
    ("observe", ["fullgraph=True", "config.recompile_limit=2", "tensor=L['n']", "mark_dynamic=L['x'][0]"],
     ["fullgraph=True", "config.recompile_limit=2", "number", "rows"]),
    ("shim", ["stance=eager_on_recompile"], None),
    ("observe", ["stance=eager_on_recompile", "config.torch._dynamo.config.automatic_dynamic_shapes=False"],
     ["stance=eager_on_recompile", "config.automatic_dynamic_shapes=False"]),
])
def test_settings_for_the_whole_program_give_the_counts_of_their_edits(dyntrace, python, tmp_path, by_hand, mode, settings, edits):
    done = run(dyntrace, python, tmp_path, settings, WHOLE, mode=mode)
    assert said(done) == []
    assert counted(done) == by_hand(WHOLE, *(edits or settings))
    assert counted(done) != by_hand(WHOLE)


NUMBERS = """
import sys
import numpy
import torch
import torch._dynamo.utils
if "hand" in sys.argv:
    torch.compiler.config.dynamic_sources = "L['n'],___from_numpy(L['a']):0"
@torch.compile(backend="eager")
def f(x, n):
    return x * n
@torch.compile(backend="eager")
def g(a):
    return a * 2
for n in range(2, 6):
    f(torch.ones(3), n)
    g(numpy.ones((n, 3)))
print(dict(torch._dynamo.utils.counters["stats"]))
"""


@pytest.mark.slow
def test_values_that_are_no_tensors_are_marked_by_torchs_dynamic_sources(dyntrace, python, tmp_path):
    pytest.importorskip("numpy")
    program = script(tmp_path / "marks.py", NUMBERS)
    done = run(dyntrace, python, tmp_path, ["mark_dynamic=L['n']", "maybe_mark_dynamic=a[0]"], program)
    if "this torch has no dynamic_sources" in done.stderr:
        pytest.skip("this torch has no list of dynamic sources with dimensions")
    hand, plain = (subprocess.run([python, program, *words], capture_output=True, text=True, check=True).stdout for words in (["hand"], []))
    assert (done.returncode, done.stdout) == (0, hand) and hand != plain


PROGRAM = """
import sys
import torch
import torch._dynamo
@torch.compile(backend="eager")
def f(x, n):
    return x * n
print([f(torch.ones(2), n).tolist() for n in range(3)])
torch._dynamo.config.recompile_limit = 7
print(torch._dynamo.config.recompile_limit, len(torch._dynamo.eval_frame._debug_get_cache_entry_list(f._torchdynamo_orig_callable.__code__)))
sys.exit(5)
"""
RESULT = "[[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]\n7 2\n"


def test_wrong_settings_are_refused_before_the_program_starts(dyntrace, python, tmp_path):
    reasons = {
        "config.recompile_limti=3": "has no config recompile_limti; near: recompile_limit",
        "config.recompile_limit=many": "is int, not many",
        "config.suppress_errors=1": "is bool, not 1",
        "config.dynamic_shapes=1": "is bool, not 1",
        "stance=lazy": "has no such stance",
        "mode=fastest": "has no such mode",
        "guard_filter_fn=skip_everything": "has no ",
    }
    done = run(dyntrace, python, tmp_path, reasons, script(tmp_path / "p.py", PROGRAM))
    assert done.stdout == "" and done.returncode == 2
    lines = done.stderr.splitlines()
    assert len(lines) == len(reasons), done.stderr
    for line, (setting, why) in zip(lines, reasons.items()):
        assert line.startswith(f"dyntrace: run: --set {setting}: ") and why in line
    assert not (tmp_path / "t.db").exists()


@pytest.mark.parametrize("mode", ["shim", pytest.param("observe", marks=pytest.mark.slow)])
def test_settings_that_match_nothing_are_errors_and_change_nothing(dyntrace, python, tmp_path, mode):
    program = script(tmp_path / "p.py", PROGRAM)
    settings = ["tensor=L['m']", "tensor=L['x']", "mark_static=L['x'][7]", "backend=nosuch", "dynamic=True@g", "limit=3",
                "drop_guard=TENSOR_MATCH L['y']", "fullgraph=True@f"]
    done = run(dyntrace, python, tmp_path, settings[:-1], program, mode=mode)
    if "has no guard_filter_fn" in done.stderr:
        done = run(dyntrace, python, tmp_path, settings[:-2], program, mode=mode)
        settings[-2:-1] = []
    assert (done.returncode, done.stdout) == (2, RESULT), done.stderr
    lines = said(done)
    assert [re.match(r"dyntrace: run: --set (.*): (matched nothing|torch \S+ has no such backend: .*)$", line)[1] for line in lines] == settings[:-1]
    assert [line.split(": ", 1)[0] for line in meta(tmp_path)["settings_unused"].splitlines()] == settings[:-1]
    holds(tmp_path / "t.db")


def test_a_forced_config_outlives_assignments(dyntrace, python, tmp_path):
    done = run(dyntrace, python, tmp_path, ["config.recompile_limit=1"], script(tmp_path / "p.py", PROGRAM))
    assert done.returncode == 5 and done.stdout.endswith("\n1 1\n"), done.stdout + done.stderr


@pytest.mark.slow
def test_settings_hold_in_forked_and_spawned_processes(dyntrace, python, tmp_path):
    program = script(tmp_path / "children.py", """
        import multiprocessing, sys
        def work(q):
            import torch, torch._dynamo.utils
            def f(x, n):
                return x * n
            f = torch.compile(f, backend="eager")
            for n in range(4):
                f(torch.ones(2), n)
            q.put(torch._dynamo.utils.counters["stats"]["unique_graphs"])
        if __name__ == "__main__":
            for how in "fork", "spawn":
                context = multiprocessing.get_context(how)
                q = context.Queue()
                child = context.Process(target=work, args=(q,))
                child.start()
                print(q.get())
                child.join()
        """)
    done = run(dyntrace, python, tmp_path, ["tensor=n@f"], program)
    assert (done.returncode, done.stdout, said(done)) == (0, "1\n1\n", [])


def test_pages_show_the_settings(dyntrace, python, tmp_path):
    settings = ["tensor=n@f", "dynamic=True@g"]
    assert run(dyntrace, python, tmp_path, settings, script(tmp_path / "p.py", PROGRAM)).returncode == 2
    words = "--set tensor=n@f --set dynamic=True@g; without effect: dynamic=True@g: matched nothing"

    def page(*command):
        done = subprocess.run([dyntrace, *command], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    assert f"settings\t{words}\n" in page("report", "t.db")
    for command in (["why", "f", "t.db"], ["show", "f", "t.db"], ["diff", "t.db", "t.db"], ["check", "t.db", "--max-recompiles", "9"]):
        assert f"recorded under {words}\n" in page(*command), command
    assert "recorded under --set tensor=n@f --set dynamic=True@g" in page("tui", "--dump", "t.db")
    page("report", "t.db", "--html", "t.html")
    assert words in (tmp_path / "t.html").read_text()
    assert json.loads(page("report", "--json", "t.db"))["meta"]["settings"] == settings
    for command in "why", "show":
        assert json.loads(page(command, "--json", "f", "t.db"))["settings"] == settings
    subprocess.run([dyntrace, "run", "-o", "other.db", "--python", python, "-c", "1"], cwd=tmp_path, check=True)
    page("merge", "t.db", "other.db", "-o", "m.db")
    assert "settings\tsettings (--set) that differ from trace to trace\n" in page("report", "m.db")
