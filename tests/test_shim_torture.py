"""The shim at length: `make shim-torture`, some minutes a Python. Not part of `make test`.

CPython's own test modules with every frame of their files replaced by a copy fail alike under a hook that replaces
nothing; thousands of random programs; four threads for ten seconds; a million calls of each kind.
"""
import json
import os
import subprocess
from pathlib import Path

import pytest

from shared import PROGRAMS

BUILD = Path(os.environ.get("DYNTRACE", Path(__file__).resolve().parent.parent / "build" / "dyntrace")).parent
MODULES = """test_generators test_coroutines test_exceptions test_scope test_functools test_contextlib test_traceback
    test_super test_with test_raise test_asyncgen test_genexps test_class test_descr test_decorators test_dataclasses
    test_enum test_keywordonlyarg test_positional_only_arg test_named_expressions test_call test_yield_from test_closure
    test_funcattrs test_property test_listcomps test_patma test_weakref test_gc test_inspect test_sys_settrace
    test_exception_group test_except_star test_frame test_types""".split()

# Not test_code: it runs an opcode that there is not, and code.replace() makes another one of it, which crashes CPython.

# Differences that replacing makes, each with its reason.
KNOWN = {
    "test_slots (test.test_descr.ClassPropertiesAndMethods.test_slots)": "counts all objects; a new entry has some",
}

pytestmark = [pytest.mark.slow,
              pytest.mark.skipif(not os.environ.get("SHIM_TORTURE"), reason="set SHIM_TORTURE, or make shim-torture")]


def cpython(python, mode, module):
    environment = dict(os.environ, PYTHONPATH=str(BUILD / "lib" / "python"))
    done = subprocess.run([python, str(PROGRAMS / "shim_cpython.py"), mode, module], capture_output=True, text=True,
                          env=environment, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("module", MODULES)
def test_cpythons_test_modules_pass_with_every_frame_replaced(python, module):
    here = subprocess.run([python, "-c", f"import test.{module}"], capture_output=True)
    if here.returncode:
        pytest.skip(f"no test.{module} here")
    declined, replaced = (cpython(python, mode, module) for mode in ("declined", "replaced"))
    assert set(replaced["bad"]) - set(KNOWN) == set(declined["bad"]) - set(KNOWN)
    assert replaced["ran"] == declined["ran"]
    assert replaced["replaced"] > 10 and declined["replaced"] == 0


def test_thousands_of_random_programs_do_the_same_under_a_callback(evaluate):
    out, _, _ = evaluate("shim_random.py", "1000", "2000")
    assert out.startswith("2000 programs, ")


def test_four_threads_do_the_same_under_a_callback_for_a_long_time(evaluate):
    out, err, _ = evaluate("shim_threads.py", "10")
    assert out.startswith("4 threads, ") and err == ""


def test_the_evaluator_leaks_nothing_in_a_million_rounds(evaluate):
    out, _, _ = evaluate("shim_leaks.py", "1000000", timeout=900)
    assert "LEAKS" not in out
