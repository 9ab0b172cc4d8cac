"""dyntrace.pytest_plugin on tests that use torch.compile."""
import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
TESTS = """
import pytest, torch

@torch.compile(backend="eager", dynamic=False)
def scale(x):
    return x * 2

@pytest.mark.dyntrace(max_recompiles=0, reset=True)
def test_sizes():
    for size in (2, 3):
        scale(torch.ones(size))

@pytest.mark.dyntrace(max_recompiles=0, max_graph_breaks=0, require_compiled="scale", reset=True)
def test_one_size():
    for _ in range(3):
        scale(torch.ones(2))
"""


def test_the_plugin_checks_recompile_limits_of_torch_tests(dyntrace, python, tmp_path):
    if subprocess.run([python, "-c", "import pytest"], capture_output=True).returncode:
        pytest.skip("this Python has no pytest")
    (tmp_path / "test_it.py").write_text(TESTS)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "PYTEST"))}
    environment.update(PYTHONPATH=str(Path(dyntrace).parent / "lib" / "python"), PYTHONDONTWRITEBYTECODE="1", COLUMNS="200")
    done = subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "dyntrace.pytest_plugin", f"--basetemp={tmp_path}/base", "test_it.py"],
                          cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "max-recompiles (1, allowed 0): scale " in done.stdout and "x.size(0): expected 2, actual 3" in done.stdout
