"""`dyntrace export`: each format is checked against the rules of its readers."""
import collections
import csv
import io
import json
import os
import signal
import sqlite3
import subprocess
import time

import pytest
from perfetto_rules import slices_of

from frame_rows import frame_rows
from planted import make_trace
from shared import ROOT, Screen, one_line

pytestmark = pytest.mark.one_python

FORMATS = "perfetto chrome speedscope folded csv jsonl".split()
DECISIONS = """
INSERT INTO lookup VALUES (1, 2, 1, 2, 205, 30, 2, 1, 0, 1), (2, 3, 1, 2, 405, 10, 1, 1, 1, NULL);
INSERT INTO signature VALUES (1, 'x: int');
INSERT INTO compile VALUES (1, 2, 2, 1, '0/0', 210, 230, 'compiled', 1, 'first call', NULL);
INSERT INTO cache_entry VALUES (1, 2, 1, '0/0', 'eager', NULL, 0, 229, 4000, 'x died');
INSERT INTO graph_break(graph_break_id, compile_id, code_id, line, reason) VALUES (1, 1, 2, 11, 'print');
"""


def exported(run, path, form, *more):
    done = run("export", path, "--format", form, *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_chrome(text):
    """Check a file against the rules of Perfetto's importer. Returns the events by phase."""
    slices_of(text)
    events = collections.defaultdict(list)
    for event in json.loads(text)["traceEvents"]:
        events[event["ph"]].append(event)
    return events


def check_speedscope(text):
    """file-format-schema.json: required members, and events that open and close in order."""
    document = json.loads(text)
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    assert all(isinstance(f["name"], str) for f in frames)
    for profile in document["profiles"]:
        assert profile["type"] == "evented" and profile["unit"] == "nanoseconds" and isinstance(profile["name"], str)
        at, stack = profile["startValue"], []
        for event in profile["events"]:
            assert at <= event["at"] <= profile["endValue"] and 0 <= event["frame"] < len(frames)
            at = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                assert event["type"] == "C" and stack.pop() == event["frame"]
        assert not stack
    return document


def folded(text):
    return {tuple(line.rpartition(" ")[0].split(";")): int(line.rpartition(" ")[2]) for line in text.splitlines()}


def test_chrome_json_has_every_frame(run, tmp_path):
    path = make_trace(tmp_path / "t.db")
    with sqlite3.connect(path) as db:
        db.executescript(DECISIONS)
    db.close()
    text = exported(run, path, "perfetto")
    assert text == exported(run, path, "chrome")
    events = check_chrome(text)
    frame = {e["args"]["frame"]: e for e in events["X"]}
    assert frame[3] == {"ph": "X", "pid": 100, "tid": 100, "ts": 0.4, "dur": 0.5, "cat": "frame", "name": "work",
                        "args": {"frame": 3, "file": "/src/app/app.py", "line": 10, "exit": "raise"}}
    assert frame[130]["args"]["open"] is True and frame[130]["ts"] + frame[130]["dur"] == 4000000  # it ends with its process
    assert [(e["name"], e["ts"]) for e in events["i"]] == [("compiled", 0.205), ("hit", 0.405), ("cache entry died", 4.0)]
    assert events["i"][0]["args"] == {"lookup": 1, "function": "work", "entry": "0/0", "entries_checked": 0, "duration_ns": 30,
                                      "inputs": "x: int"}
    assert [(e["name"], e["ts"], e["args"].get("graph_breaks")) for e in events["b"] + events["e"]] == [
        ("compile work 0/0", 0.21, 1), ("compile work 0/0", 0.23, None)]
    names = {e["pid"]: e["args"]["name"] for e in events["M"] if e["name"] == "process_name"}
    assert names[100] == "python app.py --fast [100]" and names[101] == "python -c pass [101]"


def test_open_frames_contain_their_callees(run, tmp_path):
    """They do so even if the duration of the trace is unknown."""
    path = make_trace(tmp_path / "t.db", "DELETE FROM meta WHERE key = 'span_ns'", "UPDATE process SET end_ns = NULL",
                      "UPDATE frame_rows SET end_ns = NULL WHERE frame_id = 1", "UPDATE frame_rows SET end_ns = 9000000000 WHERE frame_id = 3",
                      "DELETE FROM frame WHERE frame_id > 3")
    events = {e["args"]["frame"]: e for e in check_chrome(exported(run, path, "perfetto"))["X"]}
    assert events[1]["args"]["open"] and events[1]["ts"] + events[1]["dur"] == events[3]["ts"] + events[3]["dur"] == 9000000


def test_reused_pids_are_separate_processes(run, tmp_path):
    path = make_trace(tmp_path / "t.db", "UPDATE process SET pid = 7", "UPDATE thread SET os_tid = 7")
    events = check_chrome(exported(run, path, "perfetto"))
    assert {(e["pid"], e["tid"]) for e in events["X"]} == {(10000001, 10000001), (10000002, 10000002)}
    assert "[7]" in [e["args"]["name"] for e in events["M"] if e["pid"] == 10000001 and e["name"] == "process_name"][0]


def test_speedscope_has_every_frame(run, trace):
    document = check_speedscope(exported(run, trace, "speedscope"))
    assert [p["name"] for p in document["profiles"]] == ["MainThread [100]", "MainThread [101]"]
    names = [document["shared"]["frames"][e["frame"]]["name"] + e["type"] for e in document["profiles"][0]["events"]]
    assert names == ["<module>O", "workO", "workC", "workO", "workO", "workC", "workC", "<module>C"]


def test_folded_stacks_have_the_sum_of_self_times(run, trace):
    assert folded(exported(run, trace, "folded")) == {
        ("python app.py --fast [100]", "MainThread", "<module> (app.py:1)"): 4300,
        ("python app.py --fast [100]", "MainThread", "<module> (app.py:1)", "work (app.py:10)"): 500,
        ("python app.py --fast [100]", "MainThread", "<module> (app.py:1)", "work (app.py:10)", "work (app.py:10)"): 100,
        ("python -c pass [101]", "MainThread", "work (app.py:10)"): 500 + 4000000000 - 2600}  # an open frame ends with its process


def test_csv_has_every_row(run, trace):
    with sqlite3.connect(trace) as db:
        db.execute("UPDATE thread SET name = 'a \"b\", c\nd' WHERE thread_id = 1")
        db.execute("UPDATE thread SET name = '' WHERE thread_id = 2")
    frames = db.execute("SELECT * FROM frames ORDER BY frame_id")
    rows = list(csv.reader(io.StringIO(exported(run, trace, "csv"), newline="")))
    assert rows[0] == [c[0] for c in frames.description]
    assert rows[1:] == [["" if v is None else str(v) for v in row] for row in frames]
    db.close()
    assert exported(run, trace, "csv", "--table", "thread") == (
        'thread_id,process_id,os_tid,name\n1,1,100,"a ""b"", c\nd"\n2,2,101,""\n')
    assert exported(run, trace, "csv", "--table=hot_functions").startswith("qualname,filename")


# Of one thread <module> 100-5000 calls work 200-300 and work 400-900, which calls work 500-600; of another work 2000-2500 and work 2600-.
PARTS = {
    "time": (["--time", "0.25us..0.55us"], {1: (250, 550), 2: (250, 300), 3: (400, 550), 4: (500, 550)}),
    "begin": (["--time=2.5us.."], {1: (2500, 5000), 129: (2500, 2500), 130: (2600, 4000000000)}),
    "from 0": (["--time", "0..450ns"], {1: (100, 450), 2: (200, 300), 3: (400, 450)}),
    "end": (["--time", "..450ns"], {1: (100, 450), 2: (200, 300), 3: (400, 450)}),
    "open": (["--time", "3us..1s", "--process", "101"], {130: (3000, 1000000000)}),
    "after its end": (["--time", "4.5s..", "--process", "101"], {}),
    "process": (["--process", "101"], {129: (2000, 2500), 130: (2600, 4000000000)}),
    "thread": (["--thread", "100"], {1: (100, 5000), 2: (200, 300), 3: (400, 900), 4: (500, 600)}),
    "function": (["--function", "work", "--process", "100"], {2: (200, 300), 3: (400, 900), 4: (500, 600)}),
    "both": (["--function", "wor?", "--thread", "Main*", "--time", "590ns..2.1us"], {3: (590, 900), 4: (590, 600), 129: (2000, 2100)}),
}


@pytest.mark.parametrize("name", PARTS)
def test_every_format_has_all_frames_of_an_exported_part(run, tmp_path, name):
    options, expected = PARTS[name]
    path = make_trace(tmp_path / "t.db")
    events = {e["args"]["frame"]: (round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000))
              for e in check_chrome(exported(run, path, "perfetto", *options))["X"]}
    assert events == expected
    rows = list(csv.DictReader(io.StringIO(exported(run, path, "csv", *options))))
    assert [int(row["frame_id"]) for row in rows] == sorted(expected)
    with sqlite3.connect(path) as db:  # tables have the whole of a frame
        whole = dict((i, (start, end)) for i, start, end in db.execute("SELECT frame_id, start_ns, end_ns FROM frame"))
    db.close()
    assert all((int(r["start_ns"]), int(r["end_ns"] or 0) or None) == whole[int(r["frame_id"])] for r in rows)
    lines = [json.loads(line) for line in exported(run, path, "jsonl", *options).splitlines()]
    assert [line["frame_id"] for line in lines if line["table"] == "frame"] == sorted(expected)
    document = check_speedscope(exported(run, path, "speedscope", *options))
    opened = [e["at"] for p in document["profiles"] for e in p["events"] if e["type"] == "O"]
    assert sorted(opened) == sorted(start for start, _ in expected.values())
    stacks = folded(exported(run, path, "folded", *options))
    outer = {frame: times for frame, times in expected.items() if not any(
        other != frame and (other > 100) == (frame > 100) and times[0] >= t[0] and times[1] <= t[1] and other < frame for other, t in expected.items())}
    assert sum(stacks.values()) == sum(end - start for start, end in outer.values())
    if name == "function":
        assert {stack[2] for stack in stacks} == {"work (app.py:10)"}


def test_an_exported_part_has_its_decisions(run, tmp_path):
    path = make_trace(tmp_path / "t.db")
    with sqlite3.connect(path) as db:
        db.executescript(DECISIONS + "INSERT INTO guard_check(guard_check_id, lookup_id) VALUES (1, 2);")
    db.close()
    events = check_chrome(exported(run, path, "perfetto", "--time", "0.4us..1us"))
    assert [e["name"] for e in events["i"]] == ["hit"] and not events["b"]
    events = check_chrome(exported(run, path, "perfetto", "--time", "0.22us..1us"))
    assert [(e["ph"], e["ts"]) for e in events["b"] + events["e"]] == [("b", 0.22), ("e", 0.23)]
    assert not check_chrome(exported(run, path, "perfetto", "--process", "101"))["i"]
    for form, options, expected in [
            ("lookup", ["--time", "..0.3us"], ["1"]), ("calls", ["--time", "0.3us.."], ["2"]), ("guard_check", ["--time", "0.3us.."], ["1"]),
            ("guard_check", ["--time", "..0.3us"], []), ("graph_break", ["--thread", "100"], ["1"]), ("graph_break", ["--process", "101"], []),
            ("lookup", ["--function", "<module>"], ["1", "2"]), ("compiles", ["--function", "work"], ["1"])]:
        rows = list(csv.reader(io.StringIO(exported(run, path, "csv", "--table", form, *options))))
        assert [row[0] for row in rows[1:]] == expected, (form, options)
    assert "has no table hot_functions whose rows" in run("export", path, "--format", "csv", "--table", "hot_functions", "--time", "1s..").stderr


@pytest.mark.parametrize("arguments, why", [
    (["--time", "2s..1s"], "not from a time"), (["--time", "1s"], "not from a time"), (["--time", ".."], "not from a time"),
    (["--time", "1..2"], "not from a time"), (["--thread", "nobody"], "--thread nobody: there is none in this trace"),
    (["--process", "7"], "--process 7: there is none"), (["--function", "nix*"], "--function nix*: there is none"), (["--function", ""], "needs a value"),
])
def test_exporting_a_time_thread_process_or_function_that_is_not_there_is_an_error(run, tmp_path, arguments, why):
    done = run("export", make_trace(tmp_path / "t.db"), "--format", "folded", "-o", tmp_path / "out", *arguments)
    assert done.returncode == 2 and why in done.stderr and done.stderr.count("\n") == 1 and not (tmp_path / "out").exists()


def test_perfetto_groups_frames_of_unknown_processes(run, tmp_path):
    """The group exists only if it has rows."""
    group = "processes that are not known"
    assert group not in exported(run, make_trace(tmp_path / "t.db"), "perfetto")
    assert group in exported(run, make_trace(tmp_path / "u.db", "UPDATE frame SET thread_id = 9 WHERE frame_id = 130"), "perfetto")
    assert group in exported(run, make_trace(tmp_path / "v.db", "DELETE FROM process WHERE process_id = 2"), "perfetto")


STRANGE = [ # nothing is known of some threads and code objects; numbers that mean nothing; texts that must be quoted
    "INSERT INTO process(process_id, pid, start_ns) VALUES (7, NULL, 5)",
    "INSERT INTO thread VALUES (70, 7, NULL, '=1+1,\"x\"'), (71, 999, 4, NULL), (72, NULL, 5, char(13, 10) || 'two')",
    "INSERT INTO code(code_id, process_id, filename, qualname, first_line, kind) VALUES (50, 1, NULL, '', NULL, NULL), (51, 1, '/a \"b\",c.py', 'f' || char(10) || 'g', -3, '+k')",
    *(f"INSERT INTO frame_rows VALUES ({1000 + n}, {', '.join(row.split())})" for n, row in enumerate((
        "70 NULL 50 0 0 10 20 NULL 0", "70 1000 51 1 1 11 19 3 1", "71 NULL 77 2 200 12 NULL NULL NULL", "72 NULL NULL 99 NULL 13 NULL 5 3",
        "NULL NULL 50 NULL 3 14 15 NULL 77", "88 NULL 51 3 9 NULL 16 NULL 2", "70 NULL 50 0 0 9 3 NULL 0", "70 NULL 50 0 0 -9 -1001 NULL 0")))]


@pytest.mark.parametrize("form", ["csv", "safe"])
def test_csv_of_frames_equals_the_csv_of_the_view_byte_for_byte(run, tmp_path, form):
    """The export reads frames without SQL. The result must equal that of the view, which is read by SQL."""
    path = make_trace(tmp_path / "t.db", *STRANGE)
    for name, table in (("fast.csv", []), ("slow.csv", ["--table", "FRAMES"])):  # a table that is named is read by SQL
        exported(run, path, "csv", "-o", name, *table, *(["--safe-csv"] if form == "safe" else []))
    found = (tmp_path / "fast.csv").read_bytes()
    assert found == (tmp_path / "slow.csv").read_bytes() and found.count(b"\r\n") == 1 + 6 + 8 + 1  # names, rows, and one within a name


def test_perfetto_events_of_frames_equal_the_rows_of_the_trace(run, tmp_path):
    path = make_trace(tmp_path / "t.db", *STRANGE)
    events = [e for e in json.loads(exported(run, path, "perfetto"))["traceEvents"] if e["ph"] == "X"]
    with sqlite3.connect(path) as db:
        rows = db.execute("""
            SELECT f.frame_id, COALESCE(k.pid, 0), COALESCE(k.tid, 0), f.start_ns, COALESCE(f.end_ns, iif(k.thread_id IS NULL, NULL, e.end_ns), 5000000000),
                   COALESCE(c.qualname, '?'), c.filename, c.first_line, v.kind, v.outcome, v.exit, f.end_ns IS NULL
            FROM frame f JOIN frames v USING (frame_id) LEFT JOIN tracks k ON k.thread_id = f.thread_id LEFT JOIN thread_ends e ON e.thread_id = f.thread_id
            LEFT JOIN code c ON c.code_id = f.code_id ORDER BY f.frame_id""").fetchall()
    db.close()
    assert [e["args"]["frame"] for e in events] == [row[0] for row in rows] and len(rows) == 14
    for event, (_, pid, tid, start, end, name, file, line, kind, outcome, exit, is_open) in zip(events, rows):
        assert (event["pid"], event["tid"], event["name"], event["cat"]) == (pid, tid, name, "frame")
        assert event["ts"] == pytest.approx((start or 0) / 1000) and event["dur"] == pytest.approx(max(end - (start or 0), 0) / 1000)
        wanted = {"file": file, "line": line, "kind": None if kind == "call" else kind, "outcome": None if outcome == "plain" else outcome,
                  "exit": None if exit == "return" else exit, "open": True if is_open else None}
        assert {k: v for k, v in event["args"].items() if k != "frame"} == {k: v for k, v in wanted.items() if v is not None}, event


def test_safe_csv_has_no_formulas(run, trace):
    """Texts and column names that a spreadsheet would run as a formula are changed. Numbers stay numbers."""
    texts = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "a=1", "", '="a,b"', "'=1"]
    with sqlite3.connect(trace) as db:
        db.execute('CREATE TABLE own("=name" TEXT, number)')
        db.executemany("INSERT INTO own VALUES (?, ?)", [(text, -i) for i, text in enumerate(texts)])
    db.close()

    def rows(*more):
        exported(run, trace, "csv", "--table", "own", "-o", "own.csv", "--force", *more)
        with open(trace.parent / "own.csv", newline="") as file:
            return list(csv.reader(file))
    assert rows() == [["=name", "number"]] + [[text, str(-i)] for i, text in enumerate(texts)]
    assert rows("--safe-csv") == [["'=name", "number"]] + [["'" * (text[:1] in tuple("=+-@\t\r")) + text, str(-i)] for i, text in enumerate(texts)]
    done = run("export", trace, "--format", "jsonl", "--safe-csv", "-o", "-")
    assert done.returncode == 2 and "--safe-csv is for csv" in one_line(done.stderr)


def test_jsonl_has_every_row_of_every_table(run, trace):
    lines = [json.loads(line) for line in exported(run, trace, "jsonl").splitlines()]
    count = collections.Counter(line["table"] for line in lines)
    with sqlite3.connect(trace) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'"):
            assert count[name] == db.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0]
    db.close()
    assert {"table": "thread", "thread_id": 2, "process_id": 2, "os_tid": 101, "name": "MainThread"} in lines
    assert {json.loads(line)["table"] for line in exported(run, trace, "jsonl", "--table", "frame").splitlines()} == {"frame"}


@pytest.mark.parametrize("form", FORMATS)
def test_an_export_is_complete_and_replaces_no_file(run, trace, tmp_path, form):
    out = tmp_path / "out"
    done = run("export", trace, "--format", form, "-o", out)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = out.read_text()
    out.write_text("mine")
    assert "--force" in one_line(run("export", trace, "--format", form, "-o", out).stderr) and out.read_text() == "mine"
    assert run("export", trace, "--format", form, "-o", out, "--force").returncode == 0 and out.read_text() == text
    assert sorted(os.listdir(tmp_path)) == ["out", "t.db"]


@pytest.mark.parametrize("arguments", [
    [], ["--format"], ["--format", "pdf"], ["--format", "folded", "--table", "frame"], ["--format", "csv", "--table", "nix"],
    ["--format", "csv", "-o"], ["--format", "csv", "-o", "nodir/x"], ["--format", "csv", "-o", "."], ["--format", "csv", "-o", "x/"],
    ["--format", "csv", "-o", ".", "--force"], ["--format", "csv", "--nix"], ["other", "--format", "csv"],
    ["--format", "csv", "-o", "t.db", "--force"], ["--format", "csv", "--table", "sqlite_master"],
])
def test_bad_usage_gives_a_one_line_error_and_status_2(run, trace, tmp_path, arguments):
    before = trace.read_bytes()
    done = run("export", trace, *arguments)
    assert done.returncode == 2 and done.stdout == ""
    one_line(done.stderr)
    assert os.listdir(tmp_path) == ["t.db"] and trace.read_bytes() == before


def test_export_to_a_terminal_is_refused(dyntrace, trace):
    text, status = Screen([dyntrace, "export", trace, "--format", "csv"]).finish()[:2]
    assert "-o OUT" in text and len(text.splitlines()) == 1


def test_a_full_disk_is_an_error(dyntrace, trace):
    done = subprocess.run(["sh", "-c", '"$0" export "$1" --format jsonl > /dev/full', dyntrace, trace],
                          capture_output=True, text=True)
    assert done.returncode == 2 and "No space left" in one_line(done.stderr)


@pytest.mark.parametrize("form", FORMATS)
def test_a_hostile_trace_is_exported_harmlessly(run, tmp_path, form):
    evil = "\x1b]0;o;wned\x07\"},{\\\n\t, '"
    path = make_trace(tmp_path / "e.db")
    with frame_rows(sqlite3.connect(path)) as db:
        db.executescript(DECISIONS)
        db.execute("UPDATE process SET argv = ?", (evil,))
        db.execute("UPDATE code SET qualname = ?, filename = CAST(x'ff2f80' AS TEXT)", (evil,))
        db.execute("UPDATE thread SET name = ?", (evil,))
        db.execute("UPDATE signature SET text = ?", (evil,))
        db.execute("UPDATE frame_rows SET end_ns = start_ns - 50 WHERE frame_id = 4")
        db.execute("UPDATE frame_rows SET parent_id = 77, thread_id = 9 WHERE frame_id = 2")
        db.execute("UPDATE frame SET code_id = 'x' WHERE frame_id = 3")
        db.execute("INSERT INTO frame_rows VALUES (9223372036854775807, 1, 9223372036854775807, NULL, 99, 99, NULL, NULL, NULL, 99)")
    db.close()
    text = run("export", path, "--format", form, errors="surrogateescape").stdout
    if form in ("perfetto", "chrome", "speedscope"):
        json.loads(text)
    if form == "jsonl":
        assert all(json.loads(line) for line in text.splitlines())
    if form == "folded":
        assert all(line.rpartition(" ")[2].isdigit() for line in text.splitlines())
    assert form == "csv" or not set(text) & set("\x1b\x07")


def test_losses_and_an_unfinished_recording_are_reported(run, tmp_path):
    path = make_trace(tmp_path / "t.db", "INSERT INTO loss VALUES (1, 1, 5, 7, 'ring full')",
                      "UPDATE meta SET value = 'recording' WHERE key = 'state'")
    said = run("export", path, "--format", "folded").stderr
    assert "7 events were lost" in said and "stored at the end" in said


def test_an_interrupted_export_leaves_no_file(dyntrace, tmp_path):
    path = make_trace(tmp_path / "t.db", "DELETE FROM frame", "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r"
                      " WHERE i < 1500000) INSERT INTO frame_rows SELECT i, 1, NULL, 1, 0, 0, i * 10, i * 10 + 5, NULL, 0 FROM r")
    running = subprocess.Popen([dyntrace, "export", path, "--format", "csv", "-o", tmp_path / "out"], stderr=subprocess.PIPE)
    while len(os.listdir(tmp_path)) < 2 and running.poll() is None:
        running.send_signal(signal.SIGCONT)
        time.sleep(0.005)
        running.send_signal(signal.SIGSTOP)  # it is not to end while nobody looks
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGCONT)
    running.communicate()
    assert running.returncode == -signal.SIGINT and os.listdir(tmp_path) == ["t.db"]


def test_exports_of_a_real_recording_have_its_frames_and_decisions(record, run, python):
    path = record([ROOT / "examples/shapes.py"], python=python).path
    events = check_chrome(exported(run, path, "perfetto"))
    assert [e["name"] for e in events["i"]][:5] == ["compiled"] * 3 + ["hit"] * 2 and len(events["b"]) == 3
    check_speedscope(exported(run, path, "speedscope"))
    with sqlite3.connect(path) as db:
        frames, total = db.execute("SELECT COUNT(*), SUM(end_ns - start_ns) FILTER (WHERE parent_id IS NULL) FROM frame").fetchone()
    db.close()
    assert len(events["X"]) == frames
    assert sum(folded(exported(run, path, "folded")).values()) == total


@pytest.mark.parametrize("program, processes", [(["run_everything.py"], 1), (["run_processes.py", "fork", "fork"], 3)])
def test_perfetto_slices_nest_as_the_calls_did(record, run, program, processes):
    """With threads, forks, generators and exceptions, each slice lies within its caller's slice, to the nanosecond."""
    path = record([ROOT / "tests/programs" / program[0], *program[1:]], status=None).path
    drawn = [s for track in slices_of(exported(run, path, "perfetto")).values() for s in track if "frame" in (s.args or ())]
    with sqlite3.connect(path) as db:
        parents = dict(db.execute("SELECT frame_id, parent_id FROM frame"))
        assert db.execute("SELECT COUNT(*) FROM process").fetchone()[0] == processes
    db.close()
    assert {s.args["frame"]: s.parent and s.parent.args["frame"] for s in drawn} == parents and len(drawn) == len(parents) > 50


def test_the_size_of_a_large_export_is_printed_before_it_is_written(run, record, tmp_path):
    """Folded stacks repeat the names of all callers, so a small trace may make a large file."""
    name = "f" * 200
    path = record(["-c", f"import sys\nsys.setrecursionlimit(3000)\ndef {name}(n): return n and {name}(n - 1)\n{name}(1500)"]).path
    done = run("export", path, "--format", "folded", "-o", tmp_path / "out")
    size = (tmp_path / "out").stat().st_size
    assert size > 200_000_000 and f"{size // 1_000_000} MB will be written; --time, --thread and --function take a part" in done.stderr


@pytest.mark.parametrize("form, rows", [("perfetto", '"ph":"X"'), ("speedscope", '"type":"O"'), ("csv", ",call,"), ("jsonl", '"table":"frame"')])
def test_the_estimated_bytes_of_a_frame_are_a_lower_bound(run, record, tmp_path, form, rows):
    least = {"perfetto": 80, "speedscope": 60, "csv": 20, "jsonl": 100}[form]
    text = exported(run, record(["-c", "def f(): pass\nfor i in range(50): f()"]).path, form)
    lengths = [len(line) + 1 for line in text.splitlines() if rows in line]
    assert len(lengths) > 50 and min(lengths) * (2 if form == "speedscope" else 1) >= least
    assert f"export_{form}, {'true' if form in ('csv', 'jsonl') else 'false'}, {least}" in (ROOT / "src/cmd/export.c").read_text().replace("export_chrome", f"export_{form}")


def test_exports_say_that_callers_include_the_time_of_frames_without_rows(run, dyntrace, tmp_path):
    """Under --frames folded, library frames are counted and have no rows."""
    from terminal import dump

    said = "unstored frames: their callers' time"
    path = make_trace(tmp_path / "t.db")
    before = run("report", path, "--html", "-").stdout + dump(dyntrace, tmp_path, ":timeline Enter") + dump(dyntrace, tmp_path, ":flame Enter")
    assert "were counted, not stored" not in before and said not in before
    path.unlink()
    make_trace(path, "INSERT INTO frame_count SELECT code_id, 2, 0, 1234567, 1234567, 10, 5, 0, 8, 1, 3, 0 FROM code LIMIT 1")
    page = run("report", path, "--html", "-").stdout
    assert page.count("1.23 M frames of libraries inside torch&#39;s compiles and imports were counted, not stored (--frames all stores them): their time is their callers' own time here.") == 2
    assert said in dump(dyntrace, tmp_path, ":timeline Enter") and said in dump(dyntrace, tmp_path, ":flame Enter")
    assert "their time is their callers' own time in the result" in run("export", "--format", "folded", path).stderr
