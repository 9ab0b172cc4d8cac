"""tests/cpython/compare.py must report each real difference. It is tested on texts and traces made by hand."""
import argparse
import importlib.util
import sqlite3
import sys
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("cpython_compare", Path(__file__).parent / "cpython" / "compare.py")
compare = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(compare)

OUTPUT = """\
test_a (test.test_m.C.test_a) ... ok
test_b (test.test_m.C.test_b)
What it is about ... FAIL

======================================================================
FAIL: test_b (test.test_m.C.test_b)
What it is about
----------------------------------------------------------------------
======================================================================
ERROR: test_sub (test.test_m.C.test_sub) (n=3)
----------------------------------------------------------------------
======================================================================
ERROR: setUpClass (test.test_m.D)
----------------------------------------------------------------------
== Tests result: FAILURE ==
"""


def test_compare_reads_outcomes_from_the_xml_report_and_the_output(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text('<testsuites><testsuite><testcase name="test.test_m.C.test_a"/><testcase name="test.test_m.C.test_b">'
                      '<failure/></testcase><testcase/><testcase name="test.test_m.C.test_c"><skipped/></testcase></testsuite></testsuites>')
    assert compare.read_outcomes(report, OUTPUT) == {
        "test.test_m.C.test_a": "ok", "test.test_m.C.test_b": "FAILED", "test.test_m.C.test_c": "skipped",
        "test.test_m.C.test_sub": "FAILED", "<setUpClass (test.test_m.D)>": "FAILED",
        compare.VERDICT: "FAILURE", compare.OUTSIDE: "1 errors"}


def test_compare_reads_outcomes_of_a_crashed_run(tmp_path):
    found = compare.read_outcomes(tmp_path / "none.xml", "test_a (test.test_m.C.test_a) ... ok\n"
                                  "test_b (test.test_m.C.test_b)\nAbout ... skipped 'no'\ntest_c (test.test_m.C.test_c) ... ")
    assert found == {"test.test_m.C.test_a": "ok", "test.test_m.C.test_b": "skipped",
                     compare.VERDICT: "none", compare.OUTSIDE: "no errors"}


class Scripted(compare.Comparison):
    """Plays runs from two lists in place of running anything."""

    def __init__(self, plain, traced, reruns=2, strict=False):
        self.options = argparse.Namespace(baseline_only=False, reruns=reruns, strict=strict)
        self.plain, self.traced, self.real, self.flaky, self.any_hook = [], [], {}, {}, {}
        self.left_out = None
        self.plays = {"plain": iter(plain), "traced": iter(traced)}

    def run_plain(self):
        self.plain.append(compare.Run(next(self.plays["plain"]), 1.0))

    def run_traced(self):
        self.traced.append(compare.Run(next(self.plays["traced"]), 1.0))


@pytest.mark.parametrize("plain, traced, real, flaky", [
    (["ok"], ["ok"], [], []),
    (["FAILED"], ["FAILED"], [], []),
    (["ok", "ok", "ok"], ["FAILED", "FAILED", "FAILED"], ["t"], []),
    (["ok", "ok", "ok"], ["skipped", "skipped", "skipped"], ["t"], []),
    (["ok"], ["FAILED", "ok"], [], ["t"]),
    (["ok", "FAILED"], ["FAILED", "FAILED"], [], ["t"]),
    (["ok", "ok"], ["FAILED", "FAILED", "ok"], [], ["t"]),
])
def test_compare_separates_flaky_tests_from_real_differences(plain, traced, real, flaky):
    found = Scripted([{"t": outcome} for outcome in plain], [{"t": outcome} for outcome in traced]).compare()
    assert (list(found.real), list(found.flaky)) == (real, flaky)


def test_a_test_that_vanishes_is_a_difference():
    found = Scripted([{"t": "ok", "u": "ok"}] * 3, [{"t": "ok"}] * 3).compare()
    assert list(found.real) == ["u"]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("other", ["ok", "FAILED"])
def test_known_effects_of_a_hook_hide_no_other_difference(strict, other):
    known = "test.test_sys.TestSysJIT.test_jit_is_active"
    plain = {known: "ok", "t": "ok", compare.END: "exit 0", compare.VERDICT: "SUCCESS"}
    traced = {known: "FAILED", "t": other, compare.END: "exit 2", compare.VERDICT: "FAILURE"}
    found = Scripted([plain] * 3, [traced] * 3, strict=strict).compare()
    assert bool(found.real) == (strict or other == "FAILED")
    assert ("t" in found.real) == (other == "FAILED")
    assert (known in found.any_hook) == (not strict)


@pytest.mark.parametrize("row, fault", [
    ("3, 1, 77, 12, 13", "parent missing"), ("3, 1, 4, 12, 13", "parent not older"), ("3, 2, 1, 12, 13", "another thread"),
    ("3, 1, 1, 12, 99", "outside its parent"), ("3, 1, 1, 12, NULL", "open inside"), ("3, 1, 1, 12, 13", None),
])
def test_check_trace_finds_each_kind_of_wrong_parent(tmp_path, row, fault):
    path = tmp_path / "t.db"
    trace = sqlite3.connect(path)
    trace.executescript(f"""
        CREATE TABLE frame(frame_id INTEGER PRIMARY KEY, thread_id, parent_id, start_ns, end_ns);
        CREATE TABLE process(process_id); CREATE TABLE loss(events, cause);
        INSERT INTO frame VALUES (1, 1, NULL, 10, 20), (4, 1, NULL, 11, 20), ({row});""")
    trace.close()
    faults = compare.check_trace(str(path), 1000)["faults"]
    assert not faults if fault is None else fault in faults[0]


def test_a_missing_trace_is_a_fault(tmp_path):
    assert compare.check_trace(str(tmp_path / "none.db"), 1000)["faults"]


@pytest.mark.parametrize("home", [None, "/here:/there"])
def test_run_module_sets_pythonhome_whatever_the_user_has_set(tmp_path, monkeypatch, home):
    monkeypatch.setenv("PYTHONHOME", "/nowhere")  # what the user has set must not decide
    seen = tmp_path / "seen"
    compare.run_module(["sh", "-c", f"echo \"$PYTHONHOME\" >{seen}"], "test_m", 60, home)
    assert seen.read_text() == f"{home or ''}\n"


@pytest.mark.parametrize("answer, left_out", [("print(True)", "test_t"), ("print(False)", None), ("raise SystemExit(1)", None)])
def test_a_test_that_hangs_without_dyntrace_is_left_out(monkeypatch, answer, left_out):
    monkeypatch.setattr(compare, "HANGS", {"test_m": ("test_t", answer, "why")})
    interpreter = compare.Interpreter(sys.executable, None)
    options = argparse.Namespace(fresh=False, use="cpu")
    found = compare.Comparison(interpreter, "test_m", options)
    assert found.words() == ("-u cpu -i test_t test_m" if left_out else "-u cpu test_m")
    assert compare.Comparison(interpreter, "test_n", options).words() == "-u cpu test_n"
