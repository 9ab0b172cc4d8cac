"""A new user's way: dyntrace run on a torch program with one planted recompile, then dyntrace tui, and at its cause in at most five keys."""
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mode", ["shim", "observe"])
def test_the_planted_cause_is_found_by_its_first_key(dyntrace, python, tmp_path, mode):
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run([dyntrace, "run", "--torch", mode, "--frames", "user", "-o", "t.db", "--python", python, ROOT / "examples/recompiles.py"],
                          cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr

    def screen(keys, size="100x40"):
        run = subprocess.run([dyntrace, "tui", "t.db", "--dump", "--screen", size, "--keys", keys], cwd=tmp_path, capture_output=True, text=True,
                             timeout=120, env=environment)
        assert run.returncode == 0 and not run.stderr
        return run.stdout

    first = screen("")
    assert re.search(r"^> .*scale: L\['factor'\]", first, re.M) and "graph break" in first
    cause = screen("Enter")
    assert "> compile scale" in cause and re.search(r"L\['factor'\].*0\.5", cause) and "as a tensor" in cause
    source = screen("4 Enter")
    assert ".item()" in source and "capture_scalar_outputs" in source and re.search(r"--> +21 +print", source)
    assert re.search(r"hit +\d+ +[·▁-█]+", screen("2 Enter")) or mode == "observe"
    assert "LOAD_FAST" in screen("5 /scale Enter Right Right Right Right Enter G", "160x60")
    assert "recorded" in screen("Enter w") and "predicted" in screen("Enter w")
