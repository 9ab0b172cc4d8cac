"""`dyntrace diff`: the differences between two traces."""
import json
import sqlite3
import subprocess

import pytest

from planted import make_trace, size_changes
from shared import golden, one_line, table

pytestmark = pytest.mark.one_python

# Each changes trace B in one way; then the rows that must come of it: (kind, function, what, a, b).
CHANGES = {
    "nothing": ("", []),
    "another checkout": ("UPDATE code SET filename = '/elsewhere' || filename", []),
    "another name of the process": ("UPDATE process SET pid = 9, host = 'box'", []),
    "edited": ("UPDATE code SET fingerprint = 8, first_line = 11 WHERE code_id = 1", [("code", "f", "bytecode", "as it was", "changed")]),
    "outcome": ("UPDATE lookup SET outcome = 5 WHERE outcome = 1",
                [("outcome", "f", "hit", "5", "0"), ("outcome", "f", "limit", "7", "12")]),
    "entry": ("DELETE FROM cache_entry WHERE cache_entry_id = 4", [("entry", "f", "cache entries", "4", "3")]),
    "new reason": ("UPDATE recompile_cause SET source = 'L[''y'']' WHERE compile_id = 4",
                   [("reason", "f", "TENSOR_MATCH x", "3", "2"), ("reason", "f", "TENSOR_MATCH y", "", "1")]),
    "seen values alone": ("UPDATE recompile_cause SET actual = 'size[0] = 999'", []),
    "break gone": ("DELETE FROM graph_break", [("break", "f", "graph breaks", "1", "0"), ("break", "f", "call of print", "1", "")]),
    "another break": ("UPDATE graph_break SET reason = 'call of open'",
                      [("break", "f", "call of print", "1", ""), ("break", "f", "call of open", "", "1")]),
    "guards slower": ("UPDATE guard_check SET duration_ns = 100000", [("guard", "f", "guards of a call", "243 ns", "244 us")]),
    "guards as they vary": ("UPDATE guard_check SET duration_ns = 115", []),
    "time": ("UPDATE code_total SET self_ns = 90000000 WHERE code_id = 1", [("time", "f", "own time", "1 ns", "90 ms")]),
    "time as it varies": ("UPDATE code_total SET self_ns = 3000000 WHERE code_id = 1", []),
    "renamed": ("UPDATE code SET qualname = 'ff' WHERE code_id = 1",
                [("function", "f", "decided about", "yes", ""), ("function", "ff", "decided about", "", "yes"),
                 ("reason", "f", "TENSOR_MATCH x", "3", ""), ("reason", "ff", "TENSOR_MATCH x", "", "3"),
                 ("break", "f", "call of print", "1", ""), ("break", "ff", "call of print", "", "1")]),
    "nobody asked about it": ("UPDATE code SET qualname = 'other' WHERE code_id = 2", []),
}


@pytest.fixture
def two(plant):
    """two(SQL for B) -> paths of A and B. B is a copy of A, changed by the SQL."""
    def two(sql="", rank=False):
        paths = []
        for change in ("UPDATE process SET rank = 0;" if rank else "", ("UPDATE process SET rank = 1;" if rank else "") + sql):
            p = plant()
            size_changes(p)
            p.db.execute("UPDATE code SET fingerprint = 7")
            p.insert("graph_break", graph_break_id=1, compile_id=2, code_id=1, line=12, reason="call of print\nmore")
            p.done()
            with sqlite3.connect(p.path) as db:
                db.executescript(change)
            db.close()
            paths.append(p.path)
        return paths
    return two


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", CHANGES)
def test_each_kind_of_change_is_named(run, two, name):
    sql, expected = CHANGES[name]
    a, b = two(sql)
    done = run("diff", a, b)
    assert done.returncode == 0 and done.stderr == ""
    if not expected:
        assert done.stdout == "no difference\n"
    else:
        rows = table(done.stdout)
        assert sorted((r["kind"], r["function"], r["what"], r["a"], r["b"]) for r in rows) == sorted(expected)
        assert {r["where"] for r in rows} <= {"app.py:10", "app.py:11"}
    kinds = {row[0] for row in expected}
    for kind in "function code outcome entry reason break guard time".split():
        assert run("diff", a, b, "--fail-on", kind).returncode == (kind in kinds)
    assert run("diff", a, b, "--fail-on", "any").returncode == bool(kinds)
    found = json.loads(run("diff", a, b, "--json", "--fail-on=any").stdout)
    differences = [d["kind"] for d in found["differences"] if d["kind"] != "lookup"]  # which `any` asks for, too
    assert found["fails"] is bool(kinds) and len(differences) == len(expected)
    assert {k for k, n in found["counts"].items() if n} - {"lookup"} == kinds


def test_different_times_are_no_difference_in_decisions(run, two):
    """Times differ between equal runs. `decisions` leaves times out. If --fail-on fails only because of times, it says so."""
    noise = "UPDATE guard_check SET duration_ns = 100000; UPDATE code_total SET self_ns = 90000000 WHERE code_id = 1;"
    a, b = two(noise)
    for kinds in ("guard", "time", "any", "entry,time"):
        done = run("diff", a, b, "--fail-on", kinds)
        assert done.returncode == 1 and "only times differ" in done.stderr and done.stderr.count("\n") == 1
    done = run("diff", a, b, "--fail-on", "decisions")
    assert (done.returncode, done.stderr) == (0, "")
    a, b = two(noise + "UPDATE lookup SET outcome = 5 WHERE outcome = 1")
    for kinds in ("any", "decisions"):
        done = run("diff", a, b, "--fail-on", kinds)
        assert (done.returncode, done.stderr) == (1, "")


EQUAL = """
import array
from dyntrace.eval_frame import set_eval_frame
from dyntrace.guards import GuardTree, L, TENSOR_MATCH, ID_MATCH, TYPE_MATCH
from dyntrace.types import GuardedCode
class Thing: pass
things = [Thing() for _ in range(3)]
def total(values, thing): return len(values)
def other(thing): return thing
def compiler(frame, entry, state):
    locals_ = frame.f_locals
    if frame.f_code is total.__code__:
        return GuardedCode(frame.f_code.replace(), GuardTree([TENSOR_MATCH(L["values"]), ID_MATCH(L["thing"])], example=locals_))
    if frame.f_code is other.__code__:
        return GuardedCode(frame.f_code.replace(), GuardTree([TYPE_MATCH(L["thing"])], example=locals_))
set_eval_frame(compiler)
for size in (2, 3, 4, 2):
    for thing in things:
        total(array.array("d", bytes(8 * size)), thing)
        other(thing)
        other(size)
set_eval_frame(None)
"""


def test_equal_runs_make_the_same_decisions(run, record, tmp_path):
    """Addresses, ids and times differ in each run. No kind of `decisions` may report them as a change."""
    (tmp_path / "equal.py").write_text(EQUAL)
    paths = [record(["equal.py"]).path for _ in range(5)]
    for a, b in zip(paths, paths[1:]):
        done = run("diff", a, b, "--fail-on", "decisions,lookup")
        assert done.returncode == 0, done.stdout


def test_the_printed_comparison_is_the_golden_page(run, two):
    a, b = two("""UPDATE lookup SET outcome = 5 WHERE outcome = 1; UPDATE graph_break SET reason = 'call of open';
                  UPDATE guard_check SET duration_ns = 100000; UPDATE code SET fingerprint = 8 WHERE code_id = 1;""")
    golden("diff", run("diff", a, b, "--lookups").stdout)
    golden("diff-json", run("diff", a, b, "--lookups", "--json").stdout)


def test_an_added_function_does_not_shift_others_of_the_same_name(run, plant):
    """A lambda is added between two others, which are matched as before."""
    paths = []
    for lines in ((10, 50), (10, 30, 52)):
        p = plant()
        for i, line in enumerate(lines):
            p.insert("code", code_id=20 + i, process_id=1, filename="/src/app.py", qualname="<lambda>", first_line=line, kind="lambda",
                     fingerprint=100 + (line // 10))
            p.insert("lookup", lookup_id=20 + i, thread_id=1, code_id=20 + i, start_ns=i, duration_ns=1, outcome=1)
        paths.append(p.done())
    rows = table(run("diff", *paths).stdout)
    assert [(r["kind"], r["where"], r["a"], r["b"]) for r in rows] == [("function", "app.py:30", "", "yes")]


def test_code_objects_of_several_processes_are_one_function(run, two):
    a, b = two("""INSERT INTO process(process_id, pid) VALUES (2, 101);
        INSERT INTO code SELECT 10, 2, filename, qualname, first_line, kind, NULL, fingerprint FROM code WHERE code_id = 1;
        UPDATE lookup SET code_id = 10 WHERE outcome = 5;""")
    assert run("diff", a, b).stdout == "no difference\n"


def test_two_ranks_of_different_traces_are_compared(run, two):
    a, b = two("UPDATE lookup SET outcome = 5, cache_entry_id = NULL WHERE lookup_id = 6", rank=True)
    row, = [r for r in table(run("diff", a, b, "--lookups").stdout) if r["kind"] == "lookup"]
    assert row["what"] == "? #1: after 5 alike"
    assert row["a"].startswith("f hit 0/3 (lookup 6 at ") and row["b"].startswith("f limit (lookup 6 at ")
    assert run("diff", a, b, "--fail-on", "lookup").returncode == 1
    assert run("diff", a, a, "--fail-on", "lookup").returncode == 0
    a, b = two("DELETE FROM lookup WHERE lookup_id > 14", rank=True)
    row, = [r for r in table(run("diff", a, b, "--lookups").stdout) if r["kind"] == "lookup"]
    assert row["what"] == "? #1: after 14 alike" and row["b"] == "no more lookups"


def test_ranks_of_one_trace_are_compared(run, two, tmp_path):
    """Both ranks are in one merged trace."""
    a, b = two("UPDATE lookup SET outcome = 5, cache_entry_id = NULL WHERE lookup_id = 6", rank=True)
    both = tmp_path / "job.db"
    for path, pid in ((a, 100), (b, 101)):
        with sqlite3.connect(path) as db:
            db.execute("UPDATE process SET pid = ?", (pid,))
            db.execute("INSERT INTO meta VALUES ('started_unix_ns', 1700000000000000000)")
        db.close()
    assert run("merge", a, b, "-o", both).returncode == 0
    rows = table(run("diff", both, both, "--rank", "0,1", "--lookups").stdout)
    assert [r["what"] for r in rows] == ["hit", "limit", "? #1: after 5 alike"]
    assert run("diff", both, both, "--rank", "1", "--fail-on", "any").returncode == 0
    done = run("diff", both, both, "--rank", "7")
    assert done.returncode == 2 and "no process of rank 7" in done.stderr and done.stderr.count("\n") == 1


def test_threads_are_matched_by_name(run, two):
    a, b = two("UPDATE thread SET name = 'other'")
    assert [r["what"] for r in table(run("diff", a, b, "--lookups").stdout)] == ["? #1", "other #1"]


def test_the_options_limit_and_function_choose_what_is_printed(run, two):
    a, b = two(CHANGES["renamed"][0])
    done = run("diff", a, b, "--limit", "1")
    assert len(table(done.stdout)) == 1 and "1 of 6 differences; --limit 0 shows all" in done.stderr
    assert len(table(run("diff", a, b, "--function", "ff").stdout)) == 3
    assert run("diff", a, b, "--function", "main", "--fail-on", "any").returncode == 0


def test_changes_within_the_tolerance_are_no_difference(run, two):
    a, b = two("UPDATE code_total SET self_ns = 90000000 WHERE code_id = 1")
    with sqlite3.connect(a) as db:
        db.execute("UPDATE code_total SET self_ns = 60000000 WHERE code_id = 1")
    db.close()
    assert run("diff", a, b, "--fail-on", "time").returncode == 1
    assert run("diff", a, b, "--fail-on", "time", "--tolerance", "60%").returncode == 0
    assert run("diff", a, b, "--fail-on", "time", "--tolerance=0.4").returncode == 1


@pytest.mark.parametrize("arguments", [
    [], ["A"], ["A", "B", "A"], ["A", "B", "--fail-on"], ["A", "B", "--fail-on", "x"], ["A", "B", "--fail-on", ""], ["A", "B", "--nix"],
    ["A", "B", "--fail-on", "time,x"], ["A", "B", "--tolerance", "x"], ["A", "B", "--tolerance", "-1"], ["A", "B", "--limit", "-1"],
    ["A", "B", "--function", ""], ["A", "none.db"], ["none.db", "B"], ["A", "B", "--rank", "x"], ["A", "B", "--rank", "1,"],
    ["A", "B", "--rank", "-1"],
])
def test_bad_usage_gives_a_one_line_error_and_status_2(run, two, arguments):
    paths = dict(zip("AB", two()))
    done = run("diff", *(paths.get(a, a) for a in arguments))
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("dyntrace: ") and done.stderr.count("\n") == 1


def test_outcomes_that_a_trace_does_not_have_are_not_compared(run, two):
    """A trace that was imported from a log has compiles, but no lookups."""
    a, b = two("DELETE FROM guard_check; DELETE FROM lookup; DELETE FROM cache_entry WHERE cache_entry_id = 4")
    for pair in (a, b), (b, a):
        done = run("diff", *pair, "--fail-on", "outcome")
        assert [row["kind"] for row in table(done.stdout)] == ["entry"] and done.returncode == 0
        assert "p2.db: has compiles but no lookups, so outcomes of calls are not compared" in one_line(done.stderr)


def test_losses_and_an_unfinished_recording_are_reported(run, two):
    a, b = two("INSERT INTO loss VALUES (1, 1, 5, 7, 'ring full'); INSERT INTO meta VALUES ('state', 'recording')")
    done = run("diff", a, b)
    assert done.stdout == "no difference\n" and "events were lost" in done.stderr and "still being recorded" in done.stderr


def test_a_damaged_trace_is_refused(run, two):
    a, b = two()
    b.write_bytes(b.read_bytes()[:9000])
    assert run("diff", a, b).returncode == 2


def test_hostile_names_are_printed_harmlessly(run, two):
    evil = "\\x1b]0;owned\\x07\\n\\t\\u202e"
    a, b = two("UPDATE code SET qualname = 'X', filename = 'X'; UPDATE recompile_cause SET source = 'X', text = 'X';"
               " UPDATE graph_break SET reason = 'X'; UPDATE thread SET name = 'X'; UPDATE cache_entry SET label = 'X'".replace("X", eval(f'"{evil}"')))
    for more in ([], ["--json"]):
        text = run("diff", a, b, "--lookups", *more).stdout
        assert not set(text) & set("\x1b\x07\u202e") and "owned" in text
        assert more or {line.count("\t") for line in text.splitlines()} == {5}


def test_two_recordings_of_one_program_differ_in_time_only(record, run, python, tmp_path):
    """Two runs of the same program differ only in time. With one more input, the diff shows its effects."""
    from test_why import ROOT
    program = (ROOT / "examples/shapes.py").read_text()
    (tmp_path / "shapes.py").write_text(program)
    first, again = (record([tmp_path / "shapes.py"], python=python).path for _ in range(2))
    assert run("diff", first, again, "--lookups", "--fail-on", "function,code,outcome,entry,reason,break,lookup").returncode == 0
    (tmp_path / "shapes.py").write_text(program.replace("(16, 18, 20, 20, 16)", "(16, 18, 20, 24, 16)"))
    more = record([tmp_path / "shapes.py"], python=python).path
    rows = [(r["kind"], r["function"], r["what"], r["a"], r["b"]) for r in
            table(run("diff", first, more, "--function", "total", "--fail-on", "entry").stdout) if r["kind"] not in ("guard", "time")]
    assert ("entry", "total", "cache entries", "3", "4") in rows and ("outcome", "total", "hit", "2", "1") in rows
    assert ("outcome", "total", "compiled", "3", "4") in rows and ("reason", "total", "TENSOR_MATCH values", "2", "3") in rows
    assert len(rows) == 4


def test_diff_compares_traces_of_300000_lookups_within_its_time_limit(dyntrace, two):
    a, b = two("""WITH RECURSIVE r(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM r WHERE i < 301000)
        INSERT INTO lookup SELECT i, i, 1, 1, i * 1000000, 500, 1, 4, 1, NULL FROM r;
    INSERT INTO guard_check SELECT lookup_id, lookup_id, 0, 4, 'pass', NULL, 2, 100 FROM lookup WHERE lookup_id >= 1000;""")
    assert subprocess.run([dyntrace, "diff", b, b, "--lookups", "--fail-on", "any"], stdout=subprocess.DEVNULL).returncode == 0


def test_a_function_in_neither_trace_is_an_error(run, tmp_path):
    """Comparing nothing must not count as "no difference", or a check in CI would always pass."""
    path = make_trace(tmp_path / "t.db")
    done = run("diff", path, path, "--function", "nix*", "--fail-on", "any")
    assert done.returncode == 2 and "--function" in one_line(done.stderr) and done.stdout == ""


def test_a_function_that_moved_to_another_file_is_matched(run, two):
    """Functions with the same name and bytecode are the same function in any file: their reasons, breaks and lookups are
    matched, too."""
    moved = "UPDATE code SET filename = '/src/other.py', first_line = 90 WHERE code_id = 1;"
    a, b = two(moved)
    assert run("diff", a, b, "--lookups").stdout == run("diff", b, a, "--lookups").stdout == "no difference\n"
    a, b = two(moved + "UPDATE lookup SET outcome = 5 WHERE outcome = 1; UPDATE graph_break SET reason = 'call of open'")
    rows = table(run("diff", a, b).stdout)
    assert [(r["kind"], r["where"], r["what"], r["a"], r["b"]) for r in rows] == [
        ("outcome", "other.py:90", "hit", "5", "0"), ("outcome", "other.py:90", "limit", "7", "12"),
        ("break", "other.py:90", "call of open", "", "1"), ("break", "app.py:10", "call of print", "1", "")]
    a, b = two(moved + "UPDATE code SET fingerprint = 8 WHERE code_id = 1")  # another one, for all that is known
    rows = [r for r in table(run("diff", a, b).stdout) if r["kind"] == "function"]
    assert [(r["where"], r["a"], r["b"]) for r in rows] == [("app.py:10", "yes", ""), ("other.py:90", "", "yes")]


def test_two_moved_functions_are_matched_by_bytecode(run, plant):
    """If several unmatched functions have the same name, each is matched with the one that has its bytecode."""
    paths = []
    for files in (("a.py", "b.py"), ("y.py", "x.py")):
        p = plant()
        for i, file in enumerate(files):
            p.insert("code", code_id=20 + i, process_id=1, filename=file, qualname="forward", first_line=5, kind="function",
                     fingerprint=7 - i)
            for n in range(3 + i):
                p.insert("lookup", lookup_id=20 + 10 * i + n, thread_id=1, code_id=20 + i, start_ns=n, duration_ns=1, outcome=1)
        paths.append(p.done())
    assert run("diff", *paths).stdout == "no difference\n"


def test_ranks_forked_from_one_process_are_compared(run, plant):
    """Workers run the code objects of the process that forked them. A call belongs to the process of its thread."""
    p = plant()
    p.compile()
    for rank in (0, 1):
        p.insert("process", process_id=2 + rank, pid=200 + rank, parent_process_id=1, rank=rank)
        p.insert("thread", thread_id=2 + rank, process_id=2 + rank, name="worker")
        for i in range(5):
            p.insert("lookup", lookup_id=50 + 10 * rank + i, thread_id=2 + rank, code_id=1, start_ns=i, duration_ns=1,
                     outcome=1 if i < 4 or not rank else 5)
    path = p.done()
    rows = table(run("diff", path, path, "--rank", "0,1", "--lookups").stdout)
    assert [(r["kind"], r["what"], r["a"][:7], r["b"][:7]) for r in rows] == [
        ("outcome", "hit", "5", "4"), ("outcome", "limit", "0", "1"), ("lookup", "worker #1: after 4 alike", "f hit (", "f limit")]
