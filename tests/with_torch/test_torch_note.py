"""A backend of torch.compile's has dyntrace.note as well: what it says is of torch's compile."""
import subprocess

import pytest

from shared import holds, query

PROGRAM = """
import torch
from dyntrace import note
def backend(module, inputs):
    with note.phase("lowering"):
        note.listing("schedule", "one kernel")
    return module.forward
@torch.compile(backend=backend)
def f(x): return x * 2
f(torch.ones(3)); f(torch.ones(3))
note.listing("schedule", "nobody's")
"""


@pytest.mark.parametrize("mode", ["shim", "off", pytest.param("observe", marks=pytest.mark.slow)])
def test_notes_of_a_backend_belong_to_torchs_compile(dyntrace, python, tmp_path, mode):
    (tmp_path / "p.py").write_text(PROGRAM)
    subprocess.run([dyntrace, "run", "--torch", mode, "--frames", "user", "-o", tmp_path / "t.db", "--python", python, tmp_path / "p.py"], check=True, timeout=280)
    said = query(holds(tmp_path / "t.db"), "SELECT qualname, text FROM listing JOIN compiles USING (compile_id) WHERE listing.kind = 'schedule'")
    assert said == ([] if mode == "off" else [("f", "one kernel")])
    assert query(tmp_path / "t.db", "SELECT count(*) FROM compile_phase WHERE name = 'lowering'") == [(len(said),)]
