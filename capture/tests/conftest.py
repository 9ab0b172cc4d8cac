"""Capture's tests have the fixtures and options of dyntrace's: tests/conftest.py."""
import runpy
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2] / "tests"
sys.path.insert(0, str(TESTS))
globals().update((name, value) for name, value in runpy.run_path(str(TESTS / "conftest.py")).items() if not name.startswith("__"))

collect_ignore = ["corpus"]
