"""Ranges of torch's profiler and NVTX become spans, and what the program does stays the same."""
import json
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parent.parent / "programs" / "torch_ranges.py"
EXPECTED = [
    ("record_function", None, "step 0", '{"args": "the args"}'), ("record_function", "step 0", "inner", None),
    ("record_function", None, "step 1", '{"args": "the args"}'), ("record_function", "step 1", "inner", None),
    ("record_function", None, "decorated", None), ("record_function", None, "raises", None),
    ("nvtx", None, "pushed", None), ("nvtx", "pushed", "pushed inner", None), ("nvtx", None, "ranged 3", None),
    ("nvtx", None, "first", None), ("nvtx", "first", "second", None), ("record_function", None, "profiled", None)]


@pytest.mark.parametrize("options", [["--torch", "shim", "--frames", "all"], ["--torch", "observe", "--frames", "user"], ["--torch", "off", "--frames", "user"]],
                         ids=["shim", "observe", "off"])
def test_ranges_of_the_profiler_and_nvtx_are_recorded_as_spans(dyntrace, python, tmp_path, options):
    path = tmp_path / "ranges.db"
    env = dict(os.environ, OMP_NUM_THREADS="1")
    done = subprocess.run([dyntrace, "run", "-o", path, *options, "--python", python, PROGRAM], env=env, capture_output=True, text=True, timeout=300)
    plain = subprocess.run([python, PROGRAM], env=env, capture_output=True, text=True, timeout=300)
    lines = [[line for line in run.stdout.splitlines() if not line.startswith("USDT")] for run in (done, plain)]
    assert done.returncode == plain.returncode == 0, done.stderr
    assert lines[0] == lines[1] and lines[0][0].startswith("read ") and lines[0][1:] == ["0 1", "1 0", "['profiled']"]
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        assert db.execute("SELECT kind, parent, name, attributes FROM spans ORDER BY span_id").fetchall() == EXPECTED
        assert db.execute("SELECT COUNT(*) FROM span WHERE end_ns IS NULL OR end_ns < start_ns").fetchone() == (0,)
        assert db.execute("SELECT COUNT(*) FROM loss WHERE events > 0").fetchone() == (0,)
    names = json.loads(subprocess.run([dyntrace, "sql", path, "spans", "--json"], capture_output=True, text=True, check=True).stdout)
    assert {row["name"]: row["spans"] for row in names}["inner"] == 2
