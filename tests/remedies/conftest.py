"""A Python with torch, found as tests/with_torch/torch_here.py finds it."""
import importlib.util
from pathlib import Path

import pytest

collect_ignore = ["programs", "measure.py", "practice.py", "children.py", "recorded.py"]


def with_torch():
    path = Path(__file__).resolve().parent.parent / "with_torch" / "torch_here.py"
    spec = importlib.util.spec_from_file_location("torch_here", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def python():
    path, why = with_torch().torch_python()
    if not path:
        pytest.skip(why)
    return path
