"""--frames decided: every decision that --frames all has, no other frame, and no hook where nothing is decided."""
import functools
import re
import sqlite3
import subprocess
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "recompiles.py"
TABLES = ["SELECT qualname, outcome, entries_checked, label FROM lookup JOIN code USING (code_id) LEFT JOIN cache_entry USING (cache_entry_id)"
          " ORDER BY lookup_id",
          "SELECT lookup_id, position, result, guards_run FROM guard_check ORDER BY guard_check_id",
          "SELECT qualname, label, outcome FROM compile JOIN code USING (code_id) ORDER BY compile_id",
          "SELECT kind, source, aspect, dimension, expected, actual FROM recompile_cause ORDER BY rowid",
          "SELECT label, line, graph_break.reason FROM graph_break JOIN compile USING (compile_id) ORDER BY 1, 2",
          "SELECT label, kind, source FROM guard JOIN cache_entry USING (cache_entry_id) ORDER BY guard_id",
          "SELECT qualname, action, recursive_action, code_mark.reason FROM code_mark JOIN code USING (code_id) ORDER BY 1, 2, 3, 4",
          "SELECT cause FROM loss"]
HOOK = """
import dyntrace._native
owner = dyntrace._native.native._owner
import torch._dynamo
said = [owner() == "-"]
@torch.compile(backend="eager")
def f(x):
    return x + 1
for _ in range(2):
    f(torch.ones(3))
said.append(owner() == "-")
print(said)
"""


def record(dyntrace, python, folder, mode, frames, *program):
    path = folder / f"{frames}.db"
    done = subprocess.run([dyntrace, "run", "--force", "--torch", mode, "--frames", frames, "-o", path, "--python", python, *program],
                          capture_output=True, text=True, timeout=280, check=True)
    return done.stdout, sqlite3.connect(path)


@pytest.fixture(scope="module")
def example(dyntrace, python, tmp_path_factory):
    """example(mode, frames) -> what record() returns of the example, made once."""
    @functools.cache
    def example(mode, frames):
        return record(dyntrace, python, tmp_path_factory.mktemp("example"), mode, frames, EXAMPLE)
    return example


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["shim", "observe"])
def test_frames_decided_has_the_decisions_of_frames_all(example, mode):
    (said, every), (said_too, decided) = (example(mode, frames) for frames in ("all", "decided"))
    assert said == said_too
    for table in TABLES:
        assert every.execute(table).fetchall() == decided.execute(table).fetchall(), table
    (frames,), (lookups,) = decided.execute("SELECT count(*) FROM frame UNION ALL SELECT count(*) FROM lookup")
    assert 0 < lookups == frames


@pytest.mark.parametrize("mode", ["shim", pytest.param("observe", marks=pytest.mark.slow)])
def test_the_frame_hook_is_removed_where_nothing_is_decided(dyntrace, python, tmp_path, mode):
    said, db = record(dyntrace, python, tmp_path, mode, "decided", "-c", HOOK)
    assert said == "[True, True]\n"
    assert db.execute("SELECT outcome, count(*) FROM lookup JOIN code USING (code_id) WHERE qualname = 'f' GROUP BY 1 ORDER BY 1").fetchall() == [(1, 1), (2, 1)]


@pytest.mark.slow
def test_run_suggests_frames_decided_after_a_large_trace(dyntrace, python, tmp_path):
    program = "import torch\nf = torch.compile(lambda x: x + 1, backend='eager')\nf(torch.ones(3))\ndef g():\n    pass\nfor _ in range(6_000_000): g()"
    path, small = tmp_path / "t.db", tmp_path / "small.db"
    for frames, where in (("all", path), ("decided", small)):
        done = subprocess.run([dyntrace, "run", "--frames", frames, "-o", where, "--python", python, "-c", program], capture_output=True,
                              text=True, timeout=280, check=True)
        said = [line for line in done.stderr.splitlines() if " MB" in line]
        if frames == "decided":
            assert not said
        else:
            size, most = map(int, re.fullmatch(r"dyntrace: .*t\.db has (\d+) MB; --frames decided would have made (\d+) MB at most, with the same "
                                               r"decisions", *said).groups())
    assert size == path.stat().st_size >> 20 >= 200
    assert small.stat().st_size / 2**20 <= most < size / 20
