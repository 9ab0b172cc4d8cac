"""`dyntrace tree`: the callees of a function with their times, for all calls, the longest, or one."""
import json
import os
import sqlite3

import pytest

from frame_rows import frame_rows
from planted import make_trace
from shared import Screen, one_line, query, table

pytestmark = pytest.mark.one_python

# main() calls work() twice; the second work() calls load() twice and parse() once. In a second process work() calls load() and
# is still open when the process is killed.
ROWS = """
INSERT INTO meta VALUES ('dyntrace_version', '0.1.0'), ('state', 'complete'), ('clock', 'tsc'), ('span_ns', 10000), ('frame_count', 8), ('open_frame_count', 1);
INSERT INTO process(process_id, pid, python_version, mode, start_ns, end_ns) VALUES (1, 100, '3.12.1', 'all', 0, 10000), (2, 101, '3.12.1', 'all', 0, 5000);
INSERT INTO thread VALUES (1, 1, 100, 'MainThread'), (2, 2, 101, 'MainThread');
INSERT INTO code(code_id, process_id, filename, qualname, first_line, kind) VALUES (1, 1, '/a/app.py', 'main', 1, 'function'),
    (2, 1, '/a/app.py', 'work', 10, 'function'), (3, 1, '/a/app.py', 'load', 20, 'function'), (4, 1, '/a/app.py', 'Parser.parse', 30, 'function'),
    (5, 2, '/a/app.py', 'work', 10, 'function'), (6, 2, '/a/app.py', 'load', 20, 'function');
INSERT INTO frame_rows VALUES (1, 1, NULL, 1, 0, 0, 0, 10000, NULL, 0), (2, 1, 1, 2, 0, 0, 100, 1100, NULL, 0), (3, 1, 1, 2, 0, 0, 2000, 6000, NULL, 2),
    (4, 1, 3, 3, 0, 0, 2100, 2600, NULL, 0), (5, 1, 3, 3, 0, 0, 2700, 3700, NULL, 0), (6, 1, 3, 4, 0, 0, 4000, 4030, NULL, 0),
    (129, 2, NULL, 5, 0, 0, 2000, NULL, NULL, NULL), (130, 2, 129, 6, 0, 0, 3000, 3500, NULL, 0);
INSERT INTO code_total(code_id, calls, total_ns, self_ns, raised) VALUES (1, 1, 10000, 5000, 0), (2, 2, 5000, 3470, 1), (3, 2, 1500, 1500, 0), (4, 1, 30, 30, 0),
    (5, 1, 3000, 2500, 0), (6, 1, 500, 500, 0);
"""


@pytest.fixture
def path(tmp_path):
    return make_trace(tmp_path / "t.db", rows=ROWS)


def nodes(run, *argv):
    done = run("tree", *argv, "--json")
    assert done.returncode == 0, done.stderr
    return [("  " * n["depth"] + n["qualname"], n["calls"], n["total_ns"], n["self_ns"]) for n in json.loads(done.stdout)["nodes"]]


def test_all_calls_of_both_processes_are_one_tree(run, path):
    assert nodes(run, "work", path) == [("work", 3, 8000, 5970), ("  load", 3, 2000, 2000)]  # parse has less than 1 %
    assert nodes(run, "work", path, "--least", "0")[2] == ("  Parser.parse", 1, 30, 30)
    done = run("tree", "work", path)
    assert done.stdout.startswith("All calls: 3 calls, 8 us, 5.97 us of that in the function itself\n\n") and not done.stderr
    rows = table(done.stdout.split("\n\n", 1)[1])
    assert rows[0] == {"total": "8 us", "share": "100.0 %", "self": "5.97 us", "calls": "3", "function": "work", "where": "a/app.py:10"}
    assert rows[1]["function"] == "  load" and rows[1]["share"] == "25.0 %"


def test_the_options_slowest_and_call_choose_the_call_of_a_tree(run, path):
    assert nodes(run, "work", path, "--slowest") == [("work", 1, 4000, 2470), ("  load", 2, 1500, 1500)]
    assert nodes(run, "work", path, "--call", "2") == [("work", 1, 1000, 1000)]
    assert nodes(run, "work", path, "--call", "129") == [("work", 1, 3000, 2500), ("  load", 1, 500, 500)]
    assert run("tree", "work", path, "--slowest").stdout.startswith(
        "Call 3, 4 us at 0.000 s in MainThread of process 100, ended by an exception\n\n")
    assert "still open at the end" in run("tree", "work", path, "--call", "129").stdout


def test_omitted_lines_are_counted(run, path):
    done = run("tree", "main", path, "--limit", "1", "--least", "0")
    assert done.stdout.endswith("\n(3 more; --limit 0 shows all)\n") and done.stdout.count("app.py") == 1
    assert run("tree", "main", path, "--limit", "0", "--least", "0").stdout.count("app.py") == 4


def test_bad_usage_gives_a_one_line_error(run, path):
    for argv, part in [(["work", path, "--call", "1"], "is a call of main, not of work"), (["work", path, "--call", "77"], "no such call is stored"),
                       (["work", path, "--call", "2", "--slowest"], "one of the two"), ([path], "needs the name of a function"),
                       (["wrok", path], "did you mean work?"), (["work", path, "--least", "x"], "--least"),
                       (["work", path, "--least", "2"], "--least"),
                       (["work", path, "--least", "200%"], "--least")]:
        done = run("tree", *argv)
        assert done.returncode == 2 and not done.stdout and part in one_line(done.stderr), argv
    done = run("tree", "*r*", path)
    assert done.returncode == 1 and "several functions" in done.stdout


def test_a_name_means_the_programs_function_rather_than_a_graphs_code(run, path):
    # torch and dyntrace.compile name the function of each graph `forward`
    db = frame_rows(sqlite3.connect(path))
    db.executescript("""INSERT INTO code(code_id, process_id, filename, qualname, first_line, kind) VALUES
        (7, 1, '/a/app.py', 'forward', 40, 'function'), (8, 1, '<eval_with_key>.1', 'forward', 4, 'function'), (9, 1, '<eval_with_key>.3', 'only', 4, 'function');
        INSERT INTO code_total(code_id, calls, total_ns, self_ns, raised) VALUES (7, 1, 10, 10, 0), (8, 1, 10, 10, 0), (9, 1, 10, 10, 0);
        INSERT INTO frame_rows VALUES (9, 1, 1, 7, 0, 0, 7000, 7010, NULL, 0), (10, 1, 1, 8, 0, 0, 8000, 8010, NULL, 0), (11, 1, 1, 9, 0, 0, 9000, 9010, NULL, 0);""")
    db.close()
    assert json.loads(run("tree", "forward", path, "--json").stdout)["function"]["filename"] == "/a/app.py"
    for name in "only", "<eval_with_key>.1:4":
        assert json.loads(run("tree", name, path, "--json").stdout)["function"]["filename"].startswith("<eval_with_key>.")


def test_tree_says_if_a_function_has_no_stored_call(run, record):
    words = ["-c", "import json\ndef f(): return json.dumps({})\nf()"]
    done = run("tree", "f", record(words, "--frames", "user").path)
    assert done.returncode == 0 and "dumps" not in done.stdout
    done = run("tree", "f", record(words, "--frames", "decided").path)
    assert done.returncode == 2 and "f: no such function" in one_line(done.stderr)
    done = run("tree", "f", record(words, "--min-duration", "10s").path)
    assert done.returncode == 2 and "no call of f is stored" in one_line(done.stderr)


def test_tree_times_of_a_recorded_program_are_right(run, record):
    path = record(["-c", "def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\ndef f():\n  fib(12)\n  fib(5)\nf()"]).path
    found = nodes(run, "f", path, "--least", "0", "--limit", "0")
    took, = query(path, "SELECT duration_ns FROM frames WHERE qualname = 'f'")[0]
    assert found[0][:3] == ("f", 1, took) and found[1][:2] == ("  fib", 2) and sum(n[3] for n in found) == took
    assert sum(n[1] for n in found[1:]) == query(path, "SELECT COUNT(*) FROM frames WHERE qualname = 'fib'")[0][0]


def test_the_tree_fits_80_columns(dyntrace, path):
    screen = Screen([dyntrace, "tree", "work", path], size=(24, 80), NO_COLOR="1")
    text, status = screen.finish()
    assert status == 0 and all(len(line) <= 80 for line in text.splitlines())


def test_a_million_frames_take_half_a_second(run, tmp_path):
    path = make_trace(tmp_path / "big.db", rows=ROWS.split("INSERT INTO frame_rows")[0])
    with frame_rows(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO frame_rows VALUES (1, 1, NULL, 1, 0, 0, 0, 30000000, NULL, 0)")
        db.executemany("INSERT INTO frame_rows VALUES (?, 1, 1, 2, 0, 0, ?, ?, NULL, 0)", ((i, i * 20, i * 20 + i % 19) for i in range(2, 1000000)))
    before = os.times()
    assert nodes(run, "work", path, "--slowest")[0][2] == 18
    after = os.times()
    assert after.children_user + after.children_system - before.children_user - before.children_system < 2.5  # 0.2 s on a quiet machine


@pytest.mark.parametrize("command", ["why", "tree"])
def test_a_name_that_is_neither_file_nor_function_is_reported_as_such(run, record, command):
    """The name is taken for a function in the newest trace. An error about that trace alone would mislead."""
    path = record(["-c", "def f(): pass\nf()"]).path
    done = run(command, "gone.db", cwd=path.parent)
    assert done.returncode == 2 and one_line(done.stderr).strip() == f"dyntrace: gone.db: no such file, and no such function in {path.name}"


@pytest.mark.parametrize("command", ["why", "tree", "show"])
def test_a_missing_trace_is_named_where_no_other_trace_is(run, tmp_path, command):
    """A message about the directory alone would hide a mistyped name."""
    done = run(command, "gone.db", cwd=tmp_path)
    assert done.returncode == 2 and one_line(done.stderr).strip() == "dyntrace: gone.db: No such file or directory"


def test_a_tree_below_a_deep_recursion_is_printed(run, tmp_path):
    path = make_trace(tmp_path / "deep.db", rows=ROWS.split("INSERT INTO frame_rows")[0])
    deep = 400_000
    with sqlite3.connect(path) as db:
        frame_rows(db).executemany("INSERT INTO frame_rows VALUES (?, 1, ?, 1, 0, 0, ?, ?, NULL, 0)",
                                   [(i, i - 1 if i > 1 else None, i, 3 * deep - i) for i in range(1, deep + 1)])
    done = run("tree", "main", path, "--limit", "2", "--least", "0")
    assert done.returncode == 0 and done.stdout.count("app.py:1") == 2 and "(399998 more; " in done.stdout, done.stderr
    assert json.loads(run("tree", "main", path, "--limit", "2", "--least", "0", "--json").stdout)["left_out"] == deep - 2


def test_tree_counts_a_generators_steps_as_one_call(run, record):
    """Its frame begins again after each yield."""
    program = "def gen():\n    for i in range(20): yield i\ndef main():\n    for _ in range(3): list(gen())\nmain()"
    path = record(["-c", program]).path
    assert [(name.strip(), calls) for name, calls, *_ in nodes(run, "main", "--least", "0", path)] == [("main", 1), ("gen", 3)]
    callers = run("why", "gen", path).stdout.split("Called by")[1]
    assert " 3 calls  main" in callers


@pytest.mark.parametrize("option, why", [
    (["--min-duration", "10ms"], "frames under 10 ms are in the totals only (--min-duration)"),
    (["--thin"], "of functions called over a million times all but the first million calls, the slowest, and one in 1000 of the rest are in the totals only (--thin)"),
], ids=["short", "thin"])
def test_the_tree_says_that_callers_have_the_time_of_calls_that_are_not_stored(run, record, option, why):
    times = 1_100_000 if option == ["--thin"] else 1000
    program = f"def leaf(): pass\ndef main():\n    for _ in range({times}): leaf()\n    import time; time.sleep(0.02)\nmain()"
    path = record(["-c", program], *option).path
    assert f"{why}: their time is their callers' own time in the tree" in one_line(run("tree", "main", path).stderr)
    assert f"({why}: their time is their callers' own time here)" in run("why", "main", path).stdout
    assert run("tree", "main", record(["-c", program.replace(str(times), "10")], "--thin").path).stderr == ""


@pytest.mark.slow
def test_more_than_two_million_stacks_are_said_not_to_have_room(run, record):
    program = (
        "outer, inner = [], []\n"
        "for i in range(1500):\n"
        "    names = {}\n"
        "    exec(f'def inner_{i}(): pass\\ndef outer_{i}(all):\\n    for one in all: one()', names)\n"
        "    outer.append(names[f'outer_{i}']); inner.append(names[f'inner_{i}'])\n"
        "def main():\n"
        "    for one in outer: one(inner)\n"
        "main()\n")
    path = record(["-c", program]).path
    left = 1500 * 1500 + 1500 + 1 - 2_000_000
    said, = [line for line in run("tree", "main", path).stdout.splitlines() if "different stacks" in line]
    assert said == f"({left} calls are counted in their callers' own time: there are more than 2000000 different stacks)"
    assert json.loads(run("tree", "main", path, "--json").stdout)["counted_in_callers"] == left
