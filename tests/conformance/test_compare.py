"""compare.py must see a difference when there is one: a make-believe PyTorch tree, a torch that is none, and a dyntrace that misbehaves."""
import argparse
import importlib.util
import json
import sqlite3
import sys
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("conformance_compare", Path(__file__).parent / "compare.py")
compare = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(compare)

TESTS = '''
import os, sys, signal, unittest

class C(unittest.TestCase):
    def test_a(self):
        self.assertEqual(__name__, "__main__")
        self.assertIs(sys.modules["__main__"].C, C)

    def test_b(self):
        self.assertFalse(OURS == "fails")
        if OURS == "skips":
            self.skipTest("no")
        if OURS == "dies":
            os.kill(os.getpid(), signal.SIGSEGV)

    @unittest.skip("never")
    def test_c(self):
        pass

    def test_d(self):
        for n in range(3):
            with self.subTest(n=n):
                self.assertNotEqual(n, 1)

    @unittest.expectedFailure
    def test_e(self):
        self.fail()

OURS = os.environ.get("OURS")
unittest.main()
'''
NATIVE = {"C.test_a": "ok", "C.test_b": "ok", "C.test_c": "skipped", "C.test_d": "FAILED", "C.test_e": "expected failure"}


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def world(tmp_path):
    """A tree of torch 9.1 with one test file, and an interpreter that claims to have it."""
    tests = tmp_path / "tree" / "test" / "dynamo"
    tests.mkdir(parents=True)
    (tmp_path / "tree" / "version.txt").write_text("9.1.0a0\n")
    (tests / "test_nops.py").write_text(TESTS)
    for package in ("torch", "expecttest"):
        (tmp_path / "site" / package).mkdir(parents=True)
        (tmp_path / "site" / package / "__init__.py").write_text(
            "__version__ = '9.1.2+cpu'\nclass version: git_version = 'abc'\n" if package == "torch" else "")
    python = executable(tmp_path / "python", f'#!/bin/sh\nPYTHONPATH={tmp_path}/site exec {sys.executable} "$@"\n')
    return tmp_path, ["--source", str(tmp_path / "tree"), "--python", python, "--baseline-dir", str(tmp_path / "kept"), "--no-check"]


def dyntrace(tmp_path, ours):
    """A program that takes what `dyntrace run` takes and has the tests do OURS."""
    (tmp_path / "bin").mkdir(exist_ok=True)
    return ["--dyntrace", executable(tmp_path / "bin" / "dyntrace", f'#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift\nOURS={ours} exec "$@"\n')]


@pytest.mark.parametrize("ours, status, said", [
    ("", 0, "same outcomes with and without"),
    ("fails", 1, "DIFFERENCE: C.test_b: native ok; shim FAILED\n    AssertionError: True is not false\n    alone: native ok; shim FAILED"),
    ("skips", 1, "DIFFERENCE: C.test_b: native ok; shim skipped"),
    ("dies", 1, "SIGSEGV"),
])
def test_differences_are_seen(world, capfd, ours, status, said):
    tmp_path, arguments = world
    assert compare.main([*arguments, *dyntrace(tmp_path, ours), "--json", str(tmp_path / "out.json")]) == status
    assert said in capfd.readouterr().out
    found = json.loads((tmp_path / "out.json").read_text())[0]
    assert found["native"][0]["outcomes"] == NATIVE
    assert found["ours"][0]["outcomes"] == {**NATIVE, **({"C.test_b": "skipped" if ours == "skips" else "FAILED"} if ours else {})}
    if ours:
        assert found["alone"]["C.test_b"]["native"] == "ok" and list(found["real"]) == ["C.test_b"]


def test_the_native_side_is_run_once(world, capfd):
    tmp_path, arguments = world
    assert compare.main([*arguments, "--baseline-only"]) == 0
    (kept,) = (tmp_path / "kept").rglob("*.json")
    stored = json.loads(kept.read_text())
    stored["runs"][0]["outcomes"]["C.test_a"] = "FAILED"
    kept.write_text(json.dumps(stored))
    assert compare.main([*arguments, *dyntrace(tmp_path, ""), "--no-retry"]) == 1          # believed
    assert compare.main([*arguments, *dyntrace(tmp_path, ""), "--no-retry", "--fresh"]) == 0
    (tmp_path / "tree" / "test" / "dynamo" / "test_nops.py").write_text(TESTS + "\n")
    kept.write_text("{}")
    assert compare.main([*arguments, *dyntrace(tmp_path, ""), "--no-retry"]) == 0          # another file, another result
    assert len(list((tmp_path / "kept").rglob("*.json"))) == 2


def test_one_test_of_a_file(world, capfd):
    tmp_path, arguments = world
    assert compare.main([*arguments, *dyntrace(tmp_path, "fails"), "--files", "test_nops:C.test_a"]) == 0
    assert "   1 tests" in capfd.readouterr().out


def test_a_file_that_cannot_be_imported(world, capfd):
    tmp_path, arguments = world
    (tmp_path / "tree" / "test" / "dynamo" / "test_nops.py").write_text("import nothing_of_the_sort\n")
    assert compare.main([*arguments, *dyntrace(tmp_path, ""), "-v"]) == 0
    assert "does not import" in capfd.readouterr().out


@pytest.mark.parametrize("spoil, said", [
    (lambda tmp_path: (tmp_path / "tree" / "version.txt").write_text("9.2.0a0"), "do not fit torch 9.1.2+cpu"),
    (lambda tmp_path: (tmp_path / "tree" / "version.txt").unlink(), "has no version.txt"),
    (lambda tmp_path: (tmp_path / "tree" / "test" / "dynamo" / "test_nops.py").unlink(), "not a PyTorch source tree"),
    (lambda tmp_path: (tmp_path / "site" / "expecttest" / "__init__.py").unlink() or (tmp_path / "site" / "expecttest").rename(tmp_path / "e"),
     "has no expecttest"),
    (lambda tmp_path: (tmp_path / "site" / "torch" / "__init__.py").write_text("import nothing_of_the_sort"), "has no torch (ModuleNotFoundError"),
    (lambda tmp_path: (tmp_path / "python").unlink(), "no such interpreter"),
    (lambda tmp_path: (tmp_path / "tree").rename(tmp_path / "t"), "no such directory"),
    (lambda tmp_path: (tmp_path / "bin" / "dyntrace").unlink(), "not built"),
])
def test_what_is_wrong_is_said_in_one_line(world, capfd, spoil, said):
    if said == "has no expecttest" and importlib.util.find_spec("expecttest"):
        pytest.skip("this interpreter has it")
    tmp_path, arguments = world
    more = dyntrace(tmp_path, "")
    spoil(tmp_path)
    assert compare.main([*arguments, *more]) == 2
    errors = capfd.readouterr().err
    assert said in errors and errors.startswith("conformance: ") and errors.count("\n") == 1


def test_no_tree(capfd):
    assert compare.main([]) == 2
    assert "PYTORCH_SRC" in capfd.readouterr().err


def test_a_hung_test_is_that_tests_outcome(world, capfd):
    tmp_path, arguments = world
    (tmp_path / "tree" / "test" / "dynamo" / "test_nops.py").write_text(TESTS.replace("import os,", "import time, os,")
        .replace('if OURS == "skips":\n            self.skipTest("no")', 'if OURS == "hangs":\n            time.sleep(60)'))
    assert compare.main([*arguments, *dyntrace(tmp_path, "hangs"), "--no-retry", "--test-timeout", "1", "--json", str(tmp_path / "out.json")]) == 1
    found = json.loads((tmp_path / "out.json").read_text())[0]["ours"][0]
    assert found["outcomes"] == {**NATIVE, "C.test_b": "FAILED"} and found["why"]["C.test_b"] == "still running after 1 s"


SCHEMA = """
    CREATE TABLE frame(frame_id INTEGER PRIMARY KEY, parent_id, start_ns, end_ns, thread_id);
    CREATE TABLE enum(kind, name, value); INSERT INTO enum VALUES ('outcome', 'hit', 2), ('frame.kind', 'hit', 3);
    CREATE TABLE lookup(lookup_id INTEGER PRIMARY KEY, outcome, cache_entry_id); CREATE TABLE guard_check(lookup_id);
    CREATE TABLE compile(compile_id INTEGER PRIMARY KEY); CREATE TABLE cache_entry(compile_id);
    CREATE TABLE process(torch_mode, torch_note); CREATE TABLE loss(cause, events);
    INSERT INTO process VALUES ('shim', NULL); INSERT INTO frame VALUES (1, NULL, 10, 20, 1);
"""


@pytest.mark.parametrize("row, fault", [
    ("frame VALUES (2, 1, 12, 13, 1)", None), ("frame VALUES (2, 7, 12, 13, 1)", "parent missing"), ("frame VALUES (2, 1, 12, 99, 1)", "outside its parent"),
    ("lookup VALUES (1, 2, NULL)", "hits without an entry"), ("lookup VALUES (1, 2, 5)", None), ("guard_check VALUES (3)", "guard checks of no lookup"),
    ("cache_entry VALUES (3)", "entries of no compile"), ("cache_entry VALUES (NULL)", None),
])
def test_check_trace(tmp_path, row, fault):
    path = tmp_path / "t.db"
    trace = sqlite3.connect(path)
    trace.executescript(SCHEMA + f"INSERT INTO {row};")
    trace.close()
    found = compare.check_trace(str(path), argparse.Namespace(no_check=False, check_rows=1000))
    assert found["modes"] == {"shim": 1}
    assert not found["faults"] if fault is None else fault in found["faults"][0]


def test_no_trace_is_a_fault(tmp_path):
    assert compare.check_trace(str(tmp_path / "none.db"), argparse.Namespace(no_check=False, check_rows=1000))["faults"]
