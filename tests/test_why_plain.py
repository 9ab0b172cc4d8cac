"""`dyntrace why FUNC` for a function that no compiler handled: the durations of its calls, the slowest, and the callers."""
import json
import re
import sqlite3

import pytest

from frame_rows import frame_rows
from planted import make_trace
from shared import one_line, query, table

pytestmark = pytest.mark.one_python

MS = 1000000
META = """
INSERT INTO meta VALUES ('dyntrace_version', '0.1.0'), ('state', 'complete'), ('clock', 'tsc'), ('span_ns', 10000000000), ('frame_count', 9), ('open_frame_count', 0);
INSERT INTO process(process_id, pid, python_version, mode, start_ns, end_ns) VALUES (1, 100, '3.12.1', 'all', 0, 10000000000);
INSERT INTO thread VALUES (1, 1, 100, 'MainThread'), (2, 1, 101, 'worker');
INSERT INTO code(code_id, process_id, filename, qualname, first_line, kind) VALUES (1, 1, '/a/app.py', 'main', 1, 'function'),
    (2, 1, '/a/app.py', 'work', 10, 'function'), (3, 1, '/a/app.py', 'Rates.get', 20, 'function'), (4, 1, '/a/app.py', 'work.<locals>.parse', 30, 'function');
"""


@pytest.fixture
def path(tmp_path):
    """main() calls work() 99 times for 1 to 99 us. The call on the other thread takes 400 ms, mostly in Rates.get."""
    path = make_trace(tmp_path / "t.db", rows=META)
    with frame_rows(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO frame_rows VALUES (1, 1, NULL, 1, 0, 0, 0, ?, NULL, 0)", (900 * MS,))
        db.executemany("INSERT INTO frame_rows VALUES (?, 1, 1, 2, 0, 0, ?, ?, NULL, ?)", [(i + 1, i * MS, i * MS + i * 1000, 2 if i == 7 else 0) for i in range(1, 100)])
        db.executemany("INSERT INTO frame_rows VALUES (?, 2, ?, ?, 0, 0, ?, ?, NULL, 0)", [
            (200, None, 2, 500 * MS, 900 * MS), (201, 200, 4, 501 * MS, 899 * MS), (202, 201, 3, 502 * MS, 602 * MS), (203, 201, 3, 603 * MS, 890 * MS)])
        db.execute("INSERT INTO code_total(code_id, calls, total_ns, self_ns, raised) VALUES (2, 100, ?, ?, 1)", (404950 * 1000, 6950 * 1000))
    return path


def test_the_page_prints_durations_slowest_calls_and_callers(run, path):
    done = run("why", "work", path)
    assert done.returncode == 0 and not done.stderr
    lines = done.stdout.splitlines()
    assert "would have" not in done.stdout and "callback" not in done.stdout and "Its calls" not in done.stdout
    assert "405 ms in it, 6.95 ms of that its own; 1 call ended by an exception" in lines
    assert "100 stored calls: p50 50 us, p95 95 us, max 400 ms" in lines
    assert re.search(r"^ +10 us \.\. 100 us +█+ +90$", done.stdout, re.M) and re.search(r"^ +100 ms \.\. 1 s +█ +1$", done.stdout, re.M)
    at = lines.index(f"Slowest calls: dyntrace tree work {path} --call ID")
    assert lines[at + 1] == "     400 ms  at 0.500 s, worker, call 200" and lines[at + 2].strip() == "parse > Rates.get x2, 387 ms of its own"
    assert lines[at + 3].strip() == "99 us  at 0.099 s, MainThread, call 100" and lines[at + 4].strip() == "99 us of its own"
    at = lines.index("Called by")
    assert lines[at + 1].split("  ")[-1].strip() == "the bottom of a stack" and lines[at + 2].split() == ["4.95", "ms", "99", "calls", "main", "a/app.py:1"]
    assert all(line == line.rstrip() for line in lines)


def test_the_json_has_durations_slowest_calls_and_callers(run, path):
    found = json.loads(run("why", "work", path, "--json").stdout)
    assert (found["call_count"], found["self_ns"], found["raised"]) == (100, 6950000, 1)
    durations = found["durations"]
    assert [durations[key] for key in ("calls", "p50_ns", "p95_ns", "max_ns")] == [100, 50000, 95000, 400 * MS]
    assert sum(bar["calls"] for bar in durations["histogram"]) == 100
    assert durations["slowest"][0]["path"][1] == {"code_id": 3, "calls": 2, "total_ns": 387 * MS, "self_ns": 387 * MS}
    assert durations["callers"] == [{"code_id": None, "calls": 1, "total_ns": 400 * MS}, {"code_id": 1, "calls": 99, "total_ns": 4950000}]


def test_tree_accepts_the_slowest_call_that_why_names(run, path):
    call = re.search(r"call (\d+)$", run("why", "work", path).stdout, re.M)[1]
    assert json.loads(run("tree", "work", path, "--call", call, "--json").stdout)["nodes"][0]["total_ns"] == 400 * MS


def test_a_function_with_one_call_gets_no_histogram(run, path):
    text = run("why", "main", path).stdout
    assert "max 900 ms" in text and "█" not in text and "the bottom of a stack" in text


def test_without_stored_frames_totals_are_printed(run, record):
    path = record(["-c", "def f(): pass\nfor i in range(9): f()"], "--min-duration", "10s").path
    done = run("why", "f", path)
    assert done.returncode == 0 and "in it, " in done.stdout and "How long single calls took is not known: they are not stored" in done.stdout
    done = run("why", "f", record(["-c", "def f(): pass\nf()"], "--frames", "decided").path)
    assert done.returncode == 2 and "no such function" in one_line(done.stderr)


def test_a_generator_has_durations_between_yields(run, record):
    path = record(["-c", "def g():\n  for i in range(3): yield i\nlist(g())"]).path
    text = run("why", "g", path).stdout
    assert re.search(r"^[45] stored parts between yields: p50", text, re.M)  # 3.11 makes a generator by a frame of its own


def test_functions_of_several_processes_are_one(run, record):
    path = record(["-c", "import os\ndef f(): pass\nf()\nif not os.fork():\n  f(); os._exit(0)\nos.wait(); f()"]).path
    durations = json.loads(run("why", "f", path, "--json").stdout)["durations"]
    assert durations["calls"] == query(path, "SELECT COUNT(*) FROM frames WHERE qualname = 'f'")[0][0] == 3
    assert len(durations["callers"]) == 1 and durations["callers"][0]["calls"] == 3


def test_open_calls_of_a_killed_program_last_to_its_end(run, record):
    path = record(["-c", "import os, time\ndef f():\n  time.sleep(0.2)\n  os.kill(os.getpid(), 9)\nf()"], status=None).path
    text = run("why", "f", path).stdout
    assert "still open at the end" in text
    assert json.loads(run("why", "f", path, "--json").stdout)["durations"]["max_ns"] >= 200 * MS


THREADS = """
import queue, threading, time
jobs = queue.Queue()
def worker():
    while (job := jobs.get()) is not None: job()
def slow(): time.sleep(0.05)
def deep(): slow()
def main():
    threads = [threading.Thread(target=worker) for i in range(2)]
    for thread in threads: thread.start()
    for i in range(8): jobs.put(deep if i == 3 else int)
    time.sleep(0.3)
    for thread in threads: jobs.put(None)
    for thread in threads: thread.join()
main()
"""


def test_the_query_slowest_frames_leaves_out_frames_that_only_wait(run, record):
    names = [row["qualname"] for row in table(run("sql", record(["-c", THREADS]).path, "slowest-frames").stdout)]
    assert not {"worker", "Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run", "Thread.join", "Queue.get", "Condition.wait"} & set(names)
    assert names[0] == "main" and names.index("deep") < names.index("slow")  # main() sleeps itself, for longest


def test_report_and_hot_functions_have_the_longest_call(run, record):
    path = record(["-c", "import time\ndef f(n): time.sleep(n)\nf(0.05)\nfor i in range(9): f(0)"]).path
    most, = query(path, "SELECT MAX(duration_ns) FROM frames WHERE qualname = 'f'")[0]
    assert query(path, "SELECT max_ns FROM hot_functions WHERE qualname = 'f'") == [(most,)]
    assert query(path, "SELECT COUNT(*) FROM code_total n WHERE max_ns IS NOT (SELECT MAX(duration_ns) FROM frames f WHERE f.code_id = n.code_id)") == [(0,)]
    row = next(row for row in table(run("report", path).stdout.split("library time first\n")[1]) if row["function"] == "f")
    assert row["max"].startswith("5") and row["max"].endswith(" ms")


def test_report_of_a_trace_without_max_ns_has_no_max_column(run, path):
    with sqlite3.connect(path) as db:
        db.execute("ALTER TABLE code_total DROP COLUMN max_ns")
    done = run("report", path)
    assert done.returncode == 0 and "per call\traised" in done.stdout and "405 ms" in done.stdout


def test_slowest_calls_of_a_recursive_function_are_its_outermost_ones(record, run):
    """A recursive function's time is counted once, and its slowest calls do not contain one another."""
    trace = record(["-c", "import time\ndef f(n):\n    time.sleep(.01)\n    if n: f(n - 1)\nfor n in range(3): f(n)\n"])
    found = json.loads(run("why", "f", trace.path, "--json").stdout)["durations"]
    outermost = trace.rows("SELECT f.frame_id, f.duration_ns FROM frames f JOIN frame p ON p.frame_id = f.parent_id JOIN code c ON c.code_id = p.code_id"
                           " WHERE f.qualname = 'f' AND c.qualname <> 'f' ORDER BY 2 DESC")
    assert found["calls"] == 6 and [(row["frame_id"], row["duration_ns"]) for row in found["slowest"]] == outermost
    assert sum(row["total_ns"] for row in found["callers"]) == sum(ns for _, ns in outermost)
    assert [row["calls"] for row in found["callers"]] == [3, 3] and found["callers"][1]["total_ns"] == 0
    page = run("why", "f", trace.path).stdout
    assert " included   3 calls  f" in page and "0 ns of its own" not in page, page
