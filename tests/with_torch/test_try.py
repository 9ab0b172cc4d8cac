"""`dyntrace try` with torch: it finds the fix, and its counts are those that torch itself counts for the same edit made by hand."""
import json
import os
import re
import subprocess

import pages
import pytest
from torch_here import PROGRAMS

from shared import ROOT, holds, query, script

TRIED = PROGRAMS / "tried.py"


def run(*words, timeout=900, **more):
    more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout, **more)


def recorded(dyntrace, python, folder, *words, mode="auto"):
    done = run(dyntrace, "run", "-o", folder / "t.db", "--frames", "decided", "--torch", mode, "--python", python, *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "t.db"


def tried(dyntrace, *words, **more):
    done = run(dyntrace, "try", *words, "--json", **more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["trials"]


def by_hand(python, folder, *words):
    """How many graphs torch counts."""
    done = run(python, TRIED, *words, env={**os.environ, "COUNTED": str(folder / "counted")})
    assert done.returncode == 0, done.stderr
    return int((folder / "counted").read_text())


@pytest.mark.parametrize("mode", ["shim", pytest.param("observe", marks=pytest.mark.slow)])
def test_try_finds_that_a_learning_rate_should_be_a_tensor(dyntrace, python, tmp_path, mode):
    path = recorded(dyntrace, python, tmp_path, TRIED, "rate", mode=mode)
    trials = tried(dyntrace, path, "step", "--compare")
    assert trials[0]["compiles"] == by_hand(python, tmp_path, "rate")
    [gain] = [trial for trial in trials if trial["gain"]]
    assert gain["setting"].startswith("tensor=") and gain["compiles"] == by_hand(python, tmp_path, "rate", "hand")
    assert gain["same_output"] is True and gain["values"] == "equal" and gain["hits"] == 11 and gain["step_ns"] > 0
    holds(path)


@pytest.mark.slow
def test_the_best_of_remedies_and_their_pairs_is_found(dyntrace, python, tmp_path):
    path = recorded(dyntrace, python, tmp_path, TRIED, "sizes")
    trials = tried(dyntrace, path, "forward")
    plain, hand = by_hand(python, tmp_path, "sizes"), by_hand(python, tmp_path, "sizes", "hand")
    best = min((trial for trial in trials if trial["gain"]), key=lambda trial: trial["compiles"])
    assert trials[0]["compiles"] == plain and best["compiles"] <= hand < plain
    for trial in trials:
        assert trial["compiles"] + trial["hits"] == 16 and trial["works"]


@pytest.mark.slow
def test_the_table_in_docs_try_md_is_what_its_commands_print(dyntrace, python, tmp_path):
    """The first table of docs/try.md is compared without its times. Its settings are cut as on a screen."""
    if not run(python, "-c", "import torch; print(torch.__version__)").stdout.startswith("2.13."):
        pytest.skip("the table is that of torch 2.13")
    recorded(dyntrace, python, tmp_path, ROOT / "examples/lengths.py")
    printed = [line.split("\t") for line in run(dyntrace, "try", tmp_path / "t.db", "score").stdout.splitlines()]
    table = re.search(r"^    setting .*?\n\n", (ROOT / "docs/try.md").read_text(), re.M | re.S)[0]
    rows = [re.split(" {2,}", line.strip()) for line in table.strip().splitlines()]
    assert len(rows) == len(printed) == 8
    for row, line in zip(rows, printed):
        assert line[0].startswith(row[0].rstrip("…")) and line[1:6] == row[1:6], line
        assert line[8:] == row[8:] or (line[8:], row[8:]) == (["0", "", ""], ["0"]), line


@pytest.mark.slow
def test_calls_after_a_function_was_given_up_are_not_counted(dyntrace, python, tmp_path):
    """Such calls make no lookup, and --frames decided stores no other frames."""
    text = """
import torch
@torch.compile(backend="eager")
def rows(x):
    out = x
    for i in range(2):
        out = out + torch.nonzero(x > i).sum()
    return out
for _ in range(4):
    rows(torch.ones(3))
"""
    path = recorded(dyntrace, python, tmp_path, script(tmp_path / "rows.py", text))
    base, mended, other = tried(dyntrace, path, "rows", "config.capture_dynamic_output_shape_ops=True", "dynamic=True@rows")
    assert (base["eager"], base["compiles"]) == (None, 0) == (other["eager"], other["compiles"]) and not other["gain"]
    assert (mended["eager"], mended["hits"], mended["gain"]) == (0, 3, True)
    assert "not counted" in run(dyntrace, "try", path, "rows", "dynamic=True@rows").stdout
    holds(path)


@pytest.mark.slow
def test_a_remedy_that_raises_is_marked(dyntrace, python, tmp_path):
    path = recorded(dyntrace, python, tmp_path, TRIED, "mark")
    trials = tried(dyntrace, path, "broken", "mark_dynamic=L['x'][0]", "dynamic=True")
    assert trials[0]["works"] and not trials[1]["works"] and not trials[1]["gain"]
    assert trials[1]["exit_code"] == 1 and trials[1]["error"], trials[1]
    assert trials[2]["gain"] and trials[2]["compiles"] == 1


TEST = """
import torch
def scaled(x, n):
    return x * n
def test_scaled():
    f = torch.compile(scaled, backend="eager")
    for n in range(1, 5):
        assert f(torch.ones(3), n / 2)[0] == n / 2
"""


@pytest.mark.slow
def test_try_runs_a_recorded_pytest_again(dyntrace, python, tmp_path):
    """pytest's last line has the time that it took, which differs in each run."""
    script(tmp_path / "test_it.py", TEST)
    path = recorded(dyntrace, python, tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    trials = tried(dyntrace, path, "scaled", "tensor=n")
    assert [trial["compiles"] for trial in trials] == [2, 1] and trials[1]["same_output"] is True and trials[1]["gain"]


RANKS = """
import sys
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
def step(x, lr):
    return (x * lr).sum()
f = torch.compile(step, backend="eager")
for i in range(6):
    y = f(torch.ones(4), 0.5 / (i + 1))
    dist.all_reduce(y)
sys.stdout.write(f"rank {dist.get_rank()} {float(y)}\\n")  # in one piece: ranks share the pipe
dist.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.parametrize("apart", [False, True])
def test_try_runs_a_torchrun_job_of_two_ranks_again(dyntrace, python, tmp_path, apart):
    """If `apart`, the launcher starts `dyntrace run` for each rank, and the traces are in a directory."""
    program = script(tmp_path / "ranks.py", RANKS)
    launcher = [python, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0", "--rdzv-backend", "c10d",
                "--rdzv-endpoint", "localhost:0"]
    options = ["run", "--frames", "decided", "-o"]
    words = [*launcher, "--no-python", dyntrace, *options, f"{tmp_path}/job/", "--python", python, program] if apart else [
        dyntrace, *options, tmp_path / "job.db", *launcher, program]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = run(*words, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    trace = tmp_path / ("job" if apart else "job.db")
    trials = tried(dyntrace, trace, "step", "tensor=lr", env=environment)
    assert [(trial["compiles"], trial["recompiles"], trial["hits"]) for trial in trials] == [(4, 2, 8), (2, 0, 10)], trials
    assert trials[1]["same_output"] is True and trials[1]["gain"], trials[1]
    stored = [query(path, "SELECT COUNT(*) FROM trial")[0][0] for path in sorted(trace.iterdir())] if apart else [2]
    assert stored == [2, 0] if apart else stored == [2]


def test_the_five_minute_page_shows_what_its_commands_print(dyntrace, python, tmp_path):
    if not run(python, "-c", "import torch; print(torch.__version__)").stdout.startswith("2.13."):
        pytest.skip("the figures are those of torch 2.13")
    pages.hold("docs/start-torch.md", dyntrace, tmp_path, {"PYTHON_WITH_TORCH": python})
