"""The stand-alone evaluator: tests/programs/shim_*.py, each with every Python, alone and under `dyntrace run`.

The programs are unittest scripts that need nothing but the package; run one by hand with

    PYTHONPATH=build/lib/python python3 tests/programs/shim_rules.py -v
"""
import pytest


def test_rules(evaluate):
    assert "\nOK" in evaluate("shim_rules.py")[1]


def test_every_shape_of_function(evaluate):
    assert "\nOK" in evaluate("shim_shapes.py")[1]


def test_bad_input(evaluate):
    assert "\nOK" in evaluate("shim_bad.py")[1]


def test_random_programs(evaluate):
    """2000 each in test_shim_torture.py."""
    out, err, _ = evaluate("shim_random.py", "0", "150")
    assert out.startswith("150 programs, ")


def test_threads(evaluate):
    out, err, _ = evaluate("shim_threads.py", "2")
    assert out.startswith("4 threads, ")
    assert err == ""


@pytest.mark.no_sanitizer  # which keeps what is freed
def test_leaks(evaluate):
    out, err, _ = evaluate("shim_leaks.py", "20000")
    assert "LEAKS" not in out and out.count(" ok") >= 18
