"""recompile_cause.aspect and .dimension are torch's guards' own, not read from a text."""
import sqlite3
import subprocess

import pytest

PROGRAM = """
import torch
@torch.compile(backend="eager", dynamic=False)
def f(x, n): return x * n
f(torch.ones(3), 2); f(torch.ones(4), 2); f(torch.ones(4), 3); f(torch.ones(4, dtype=torch.float64), 3)
"""


@pytest.mark.parametrize("mode", ["shim", pytest.param("observe", marks=pytest.mark.slow)])
def test_each_cause_has_the_aspect_and_dimension_of_torchs_guard(dyntrace, python, tmp_path, mode):
    (tmp_path / "p.py").write_text(PROGRAM)
    subprocess.run([dyntrace, "run", "--torch", mode, "--frames", "decided", "-o", tmp_path / "t.db", "--python", python, tmp_path / "p.py"],
                   check=True, timeout=280)
    found = sqlite3.connect(tmp_path / "t.db").execute("SELECT DISTINCT source, aspect, dimension FROM recompile_cause ORDER BY 1").fetchall()
    assert found == [("L['n']", "value", None), ("L['x'].dtype", "dtype", None), ("L['x'].size()[0]", "size", 0)]
