"""Capture's tests have the fixtures and options of dyntrace's: tests/conftest.py.

`./dev test` runs a core of them, with the first interpreter. The judges (corpus.py and its kin) and
the other interpreters are marked slow: `./dev slow`. A test that is marked every_python stays.
"""
import runpy
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2] / "tests"
sys.path.insert(0, str(TESTS))
SHARED = runpy.run_path(str(TESTS / "conftest.py"))
globals().update((name, value) for name, value in SHARED.items() if not name.startswith("__"))

collect_ignore = ["corpus"]


def pytest_configure(config):
    SHARED["pytest_configure"](config)
    config.addinivalue_line("markers", "every_python: quick enough for each interpreter")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(config, items):
    for item in items:
        python = getattr(item, "callspec", None) and item.callspec.params.get("python")
        is_ours = item.path.is_relative_to(Path(__file__).parent)
        if is_ours and python not in (None, SHARED["PYTHONS"][0]) and not item.get_closest_marker("every_python"):
            item.add_marker(pytest.mark.slow)
    SHARED["pytest_collection_modifyitems"](config, items)
