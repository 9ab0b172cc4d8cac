"""`dyntrace check`: does a trace keep the given limits?"""
import json
import os
import shutil
import sqlite3

import pytest

from planted import size_changes
from shared import one_line, table

pytestmark = pytest.mark.one_python


@pytest.fixture
def sized(plant):
    """f: 4 compiles (3 recompiles), 5 hits, 7 calls at the limit; each guard check takes 100 ns."""
    p = plant()
    size_changes(p)
    p.insert("graph_break", graph_break_id=1, compile_id=2, code_id=1, line=12, reason="call of print\nmore")
    p.insert("code", code_id=3, process_id=1, filename="/lib/x.py", qualname="turned", first_line=1, kind="function")
    p.insert("compile", compile_id=90, code_id=3, start_ns=5, end_ns=6, outcome="skipped")
    p.insert("lookup", lookup_id=900, frame_id=900, thread_id=1, code_id=3, start_ns=5, duration_ns=1, outcome=6)
    return p.done()


@pytest.mark.parametrize("limits, bad", [
    (["--max-recompiles", "3"], {}),
    (["--max-recompiles=2"], {"max-recompiles": 3}),
    (["--max-compiles", "4"], {}),
    (["--max-compiles", "3"], {"max-compiles": 4}),
    (["--max-graph-breaks", "0"], {"max-graph-breaks": 1}),
    (["--max-graph-breaks", "1"], {}),
    (["--max-eager-share", "0.44"], {}),
    (["--max-eager-share", "43%"], {"max-eager-share": 1}),           # 7 of 16; what was turned away does not count
    (["--max-eager-share", "0.1", "--function", "turned"], {"max-eager-share": 1}),  # unless it is named
    (["--max-guard-us", "3"], {}),
    (["--max-guard-us", "0.1"], {"max-guard-us": 1}),
    (["--require-compiled", "f"], {}),
    (["--require-compiled", "turned"], {"require-compiled": 1}),
    (["--require-compiled", "ff"], {"require-compiled": 1}),
    (["--max-recompiles", "0", "--function", "main"], {}),
    (["--max-recompiles", "0", "--function", "main", "--function", "*app*"], {"max-recompiles": 3}),
    (["--max-recompiles", "0", "--after-warmup", "4"], {}),
    (["--max-recompiles", "0", "--after-warmup", "3"], {"max-recompiles": 1}),
    (["--max-compiles", "0", "--after-warmup", "1"], {"max-compiles": 3}),
    (["--max-graph-breaks", "0", "--after-warmup", "2"], {}),
    (["--max-eager-share", "0.5", "--after-warmup", "9"], {"max-eager-share": 1}),  # 7 of 7
    (["--require-compiled", "f", "--after-warmup", "9"], {"require-compiled": 1}),
    (["--max-recompiles", "0", "--max-compiles", "0"], {"max-recompiles": 3, "max-compiles": 4}),
])
def test_check_passes_and_fails_each_limit_where_it_should(run, sized, limits, bad):
    done = run("check", sized, *limits)
    rows = table(done.stdout) if done.returncode else []
    assert done.returncode == bool(bad)
    assert {name: sum(row["check"] == name for row in rows) for name in bad} == bad and len(rows) == sum(bad.values())
    if not bad:
        assert ": ok: " in done.stdout and done.stdout.count("\n") == 1
    found = json.loads(run("check", sized, *limits, "--json").stdout)
    assert found["ok"] is not bool(bad) and len(found["rows"]) == sum(bad.values())
    assert {c["check"]: c["row_count"] for c in found["checks"] if not c["ok"]} == bad


def test_rows_of_an_exceeded_limit_name_the_cause(run, sized):
    rows = table(run("check", sized, "--max-recompiles", "0", "--max-graph-breaks", "0", "--max-eager-share", "0",
                     "--require-compiled", "nix").stdout)
    first, = [r for r in rows if r["compile"] == "0/1" and r["check"] == "max-recompiles"]
    assert first["why"] == "x size[0]: expected 16, actual 18"
    assert (first["allowed"], first["found"], first["function"], first["where"]) == ("0", "3", "f", "src/app.py:10")
    assert [r["why"] for r in rows if r["check"] == "max-graph-breaks"] == ["line 12: call of print"]
    assert [(r["found"], r["why"]) for r in rows if r["check"] == "max-eager-share"] == [("0.4375", "7 limit")]
    assert [r["why"] for r in rows if r["check"] == "require-compiled"] == ["is not in the trace"]


def test_limits_are_checked_for_each_process(run, sized):
    """A second rank with one recompile does not raise the number of the first rank from three to four."""
    with sqlite3.connect(sized) as db:
        db.executescript("""
        INSERT INTO process(process_id, pid) VALUES (2, 101);
        INSERT INTO code SELECT 10, 2, filename, qualname, first_line, kind, NULL, fingerprint FROM code WHERE code_id = 1;
        INSERT INTO compile(compile_id, code_id, start_ns, end_ns, outcome, cache_entry_id) VALUES
            (50, 10, 1, 2, 'compiled', 50), (51, 10, 3, 4, 'compiled', 51);""")
    db.close()
    assert run("check", sized, "--max-recompiles", "3", "--max-compiles", "4").returncode == 0
    rows = table(run("check", sized, "--max-recompiles", "2").stdout)
    assert [r["pid"] for r in rows] == ["100"] * 3


def test_compiles_of_resume_functions_count_for_the_original_function(run, sized):
    with sqlite3.connect(sized) as db:
        db.executescript("""
        INSERT INTO code VALUES (10, 1, '/src/app.py', 'resume_1', 12, 'resume', 1, NULL), (11, 1, '/src/app.py', 'resume_2', 14, 'resume', 10, NULL);
        INSERT INTO compile(compile_id, code_id, start_ns, end_ns, outcome, cache_entry_id) VALUES (50, 11, 1, 2, 'compiled', 50);""")
    db.close()
    assert table(run("check", sized, "--max-compiles", "4", "--function", "f").stdout)[0]["found"] == "5"


def test_the_option_limit_cuts_the_printed_rows(run, sized):
    done = run("check", sized, "--max-recompiles", "0", "--limit", "1")
    assert len(table(done.stdout)) == 1 and "1 of 3 rows; --limit 0 shows all" in done.stderr
    assert len(table(run("check", sized, "--max-recompiles", "0", "--limit", "0").stdout)) == 3


@pytest.mark.parametrize("arguments", [
    [], ["--max-recompiles"], ["--max-recompiles", "-1"], ["--max-recompiles", "x"], ["--max-compiles", "1.5"],
    ["--max-eager-share", "2"], ["--max-eager-share", "nan"], ["--max-eager-share", "200%"], ["--max-guard-us", "inf"],
    ["--require-compiled"], ["--require-compiled", ""], ["--max-recompiles", "1", "--function", ""],
    ["--max-recompiles", "1", "--after-warmup", "-3"], ["--max-recompiles", "1", "--limit", "x"], ["--nix"],
    ["--max-recompilesx", "1"], ["other.db", "--max-recompiles", "1"], ["--max-recompiles", "1", "--function", "nosuch*"],
])
def test_bad_usage_gives_a_one_line_error_and_status_2(run, sized, arguments):
    done = run("check", sized, *arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("dyntrace: ") and done.stderr.count("\n") == 1


def test_an_ambiguous_name_is_an_error_that_lists_the_functions(run, sized):
    with sqlite3.connect(sized) as db:
        db.execute("INSERT INTO code VALUES (10, 1, '/b.py', 'A.f', 3, 'function', NULL, NULL), (11, 1, '/b.py', 'B.f', 9, 'function', NULL, NULL)")
        db.execute("DELETE FROM code WHERE code_id = 1")
    db.close()
    done = run("check", sized, "--require-compiled", "f")
    assert done.returncode == 2 and "several functions" in done.stderr and "B.f" in done.stderr


def test_losses_and_an_unfinished_recording_are_reported(run, sized):
    with sqlite3.connect(sized) as db:
        db.execute("INSERT INTO loss VALUES (1, 1, 5, 7, 'ring full')")
        db.execute("INSERT INTO meta VALUES ('state', 'recording')")
    db.close()
    done = run("check", sized, "--max-recompiles", "3")
    assert done.returncode == 0 and "7 events were lost" in done.stderr and "still being recorded" in done.stderr
    found = json.loads(run("check", sized, "--max-recompiles", "3", "--json").stdout)
    assert (found["lost_events"], found["recording"]) == (7, True)
    for losses, words, number in [((1,), "1 event was lost", 1), ((None,), "events were lost, how many is not known", None),
                                  ((None, 5), "at least 5 events were lost", None)]:
        with sqlite3.connect(sized) as db:
            db.execute("DELETE FROM loss")
            db.executemany("INSERT INTO loss VALUES (1, 1, 5, ?, 'ring full')", [(events,) for events in losses])
        db.close()
        assert f": {words} (" in run("check", sized, "--max-recompiles", "3").stderr
        assert json.loads(run("check", sized, "--max-recompiles", "3", "--json").stdout)["lost_events"] == number


def test_unknown_guard_times_are_not_zero(run, sized):
    """torch's own evaluator does not report the time of guards, so the time is unknown, not zero."""
    with sqlite3.connect(sized) as db:
        db.execute("UPDATE guard_check SET duration_ns = NULL")
    db.close()
    done = run("check", sized, "--max-guard-us", "1")
    assert done.returncode == 2 and "was not seen" in done.stderr


def test_breaks_compiled_in_the_warmup_count_if_calls_meet_them_later(run, plant):
    """Each later call pays for a graph break that was compiled in the first call, also in a process that inherited
    the entry."""
    p = plant()
    first = p.compile()
    p.insert("graph_break", graph_break_id=1, compile_id=1, code_id=1, line=12, reason="call of print\nmore")
    for _ in range(29):
        p.call("hit", first)
    p.insert("process", process_id=2, pid=101, parent_process_id=1, start_ns=p.now)
    p.insert("thread", thread_id=2, process_id=2, os_tid=101)
    for n in range(3):
        p.insert("lookup", lookup_id=900 + n, frame_id=900 + n, thread_id=2, code_id=1, start_ns=p.now + n, duration_ns=1, outcome=1,
                 cache_entry_id=first, entries_checked=1)
    path = p.done()
    rows = table(run("check", path, "--max-graph-breaks", "0", "--after-warmup", "1").stdout)
    said = "line 12: call of print; compiled in the warm-up, met by "
    assert [(r["function"], r["found"], r["pid"], r["why"]) for r in rows] == [
        ("f", "1", "100", said + "29 calls after it"), ("f", "1", "101", said + "2 calls after it")]
    assert run("check", path, "--max-graph-breaks", "1", "--after-warmup", "1").returncode == 0
    assert [r["why"] for r in table(run("check", path, "--max-graph-breaks", "0").stdout)] == ["line 12: call of print"]
    assert run("check", path, "--max-graph-breaks", "0", "--after-warmup", "30").returncode == 0
    assert run("check", path, "--max-graph-breaks", "0", "--after-warmup", "1", "--function", "main").returncode == 0


def test_a_warmup_without_calls_is_an_error(run, sized):
    with sqlite3.connect(sized) as db:
        db.execute("DELETE FROM lookup")
    db.close()
    assert run("check", sized, "--max-recompiles", "3").returncode == 0
    done = run("check", sized, "--max-recompiles", "3", "--after-warmup", "1")
    assert done.returncode == 2 and "no calls" in done.stderr


def test_hostile_names_are_printed_harmlessly(run, plant):
    evil = "\x1b]0;owned\x07\n\t\u202e"
    p = plant(qualname=evil, filename=evil)
    size_changes(p)
    p.db.execute("UPDATE recompile_cause SET text = ?", (evil,))
    p.db.execute("UPDATE compile SET label = ?", (evil,))
    path = p.done()
    for more in ([], ["--json"]):
        text = run("check", path, "--max-recompiles", "0", "--max-eager-share", "0", "--max-guard-us", "0",
                   "--require-compiled", evil, "--after-warmup", "2", *more).stdout
        assert not set(text) & set("\x1b\x07\u202e") and "owned" in text
        assert more or {line.count("\t") for line in text.splitlines()} == {10}


def test_check_passes_and_fails_on_a_really_recorded_trace(record, run, python):
    trace = record([os.path.join(os.path.dirname(__file__), "../examples/shapes.py")], python=python)
    assert run("check", trace.path, "--max-recompiles", "2", "--require-compiled", "total").returncode == 0
    assert run("check", trace.path, "--max-recompiles", "1").returncode == 1
    assert run("check", trace.path, "--max-recompiles", "0", "--after-warmup", "3").returncode == 0


PLAIN = "def f(x): return x + 1\nprint(sum(f(i) for i in range(10)))\n"
COMPILER = """
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode
def f(x): return x + 1
set_eval_frame(lambda frame, entry, state: GuardedCode(frame.f_code.replace(), lambda f_locals: True) if frame.f_code is f.__code__ else None)
f(1), f(2)
set_eval_frame(None)
"""
LIMITS = [["--max-recompiles", "0"], ["--max-compiles", "0"], ["--max-graph-breaks", "0"], ["--max-guard-us", "0"], ["--max-eager-share", "0"],
          ["--max-recompiles", "0", "--after-warmup", "1"], ["--max-recompiles", "5", "--function", "*"]]


@pytest.mark.parametrize("frames, why", [("all", "no compiler was loaded"), ("user", "no compiler was loaded"), ("none", "--frames none")])
def test_check_fails_on_a_trace_without_a_compiler(record, run, python, tmp_path, frames, why):
    (tmp_path / "plain.py").write_text(PLAIN)
    path = record(["plain.py"], "--frames", frames, python=python).path
    for limits in LIMITS:
        if frames == "none" and "--function" in limits:
            continue
        done = run("check", path, *limits)
        assert done.returncode == 2 and not done.stdout, limits
        assert one_line(done.stderr).startswith(f"dyntrace: {path}: nothing can be checked: ") and why in done.stderr
        found = json.loads(run("check", path, *limits, "--json").stdout)
        assert found["ok"] is False and found["rows"] == [] == found["checks"]
    assert run("check", path, "--require-compiled", "f").returncode == 1 # that has an answer


def test_check_names_each_trace_that_had_no_compiler_and_returns_3(record, run, python, tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    for name, text in (("a", PLAIN), ("b", COMPILER), ("c", PLAIN)):
        (tmp_path / f"{name}.py").write_text(text)
        shutil.copy(record([f"{name}.py"], python=python).path, folder / f"{name}.db")
    assert run("check", folder / "b.db", "--max-recompiles", "0").returncode == 0
    done = run("check", folder, "--max-recompiles", "0")
    assert done.returncode == 3 and ": ok: " in done.stdout
    assert [line.partition(": not checked: ")[0] for line in done.stderr.splitlines()] == [f"dyntrace: {folder / name}" for name in ("a.db", "c.db")]
    assert run("check", folder, "--max-recompiles", "0", "--allow-left-out").returncode == 0
    assert run("check", folder, "--max-compiles", "0").returncode == 1
    (folder / "b.db").unlink()
    done = run("check", folder, "--max-recompiles", "0")
    assert done.returncode == 2 and "nothing can be checked: no compiler was loaded" in done.stderr
    assert run("merge", folder / "a.db", tmp_path / "trace2.db", "-o", tmp_path / "merged.db").returncode == 0
    done = run("check", tmp_path / "merged.db", "--max-recompiles", "0")
    assert done.returncode == 3 and "a.db: not checked" in done.stderr


def test_check_ignores_a_jobs_launcher_that_compiled_nothing(record, run, python, tmp_path):
    """torchrun's own process has no decisions and no rank. It is left out silently if the job has ranks. A rank without
    decisions, or a launcher alone, is reported."""
    for name, text in (("plain", PLAIN), ("rank", COMPILER)):
        (tmp_path / f"{name}.py").write_text(text)
    of_rank = {number: dict(os.environ, TORCHELASTIC_RUN_ID="j", RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE="2") for number in (0, 1)}
    launcher = record(["plain.py"], python=python).path
    first = record(["rank.py"], python=python, env=of_rank[0]).path
    second = record(["rank.py"], python=python, env=of_rank[1]).path
    idle = record(["plain.py"], python=python, env=of_rank[1]).path
    done = run("check", launcher, first, second, "--max-recompiles", "0")
    assert (done.returncode, done.stderr) == (0, "") and ": ok: " in done.stdout
    done = run("check", launcher, first, idle, "--max-recompiles", "0")
    assert done.returncode == 3 and one_line(done.stderr).startswith(f"dyntrace: {idle}: not checked: ")
    assert run("check", launcher, "--max-recompiles", "0").returncode == 2


def test_a_time_range_without_decisions_is_an_error(record, run, python, tmp_path):
    (tmp_path / "b.py").write_text(COMPILER)
    path = record(["b.py"], python=python).path
    done = run("check", path, "--max-recompiles", "0", "--time", "..1us")
    assert done.returncode == 2 and "no compiler decided anything in this part" in one_line(done.stderr)
