"""`dyntrace merge`: the merged trace has every row of every table, and every reference is right."""
import collections
import json
import os
import sqlite3

import pytest

from frame_rows import frame_rows
from planted import make_trace
from shared import ROOT, SCHEMA, holds, one_line

pytestmark = pytest.mark.one_python

# Every table and every reference, with texts that tell what is referred to.
ALL = """
UPDATE meta SET value = 'box2' WHERE key = 'host';
UPDATE meta SET value = 1700000003000000000 WHERE key = 'started_unix_ns';
INSERT INTO signature VALUES (1, 'x: int'), (5, 'y: str');
INSERT INTO lookup VALUES (1, 2, 1, 2, 205, 30, 2, 1, 0, 5), (2, 3, 1, 2, 405, 10, 1, 1, 1, NULL), (3, 999, 1, 2, 950, 1, 5, NULL, 0, 1);
INSERT INTO guard_check VALUES (1, 2, 0, 1, 'pass', NULL, 1, 9), (2, 3, 0, 1, 'fail', 2, 2, 9);
INSERT INTO compile VALUES (4, 2, 2, 1, '0/0', 210, 230, 'compiled', 1, 'first call', NULL);
INSERT INTO cache_entry VALUES (1, 2, 4, '0/0', 'eager', NULL, 2, 229, 4000, 'x died');
INSERT INTO guard VALUES (1, 1, 0, 'A', 'a', 'a', NULL), (2, 1, 1, 'B', 'b', 'b', NULL);
INSERT INTO guard_order VALUES (1, 300, '[1, 0]', 1);
INSERT INTO compile_phase VALUES (4, 'all', 211, 220, '0/0'), (NULL, 'backward', 400, 500, '0/0');
INSERT INTO code_mark VALUES (2, 600, 'skip', 'default', NULL, 'why');
INSERT INTO recompile_cause VALUES (4, 1, 0, 2, 'B', 'b', 'size', 3, '1', '2', 'text', 'observed');
INSERT INTO graph_break VALUES (1, 4, 2, 11, 4, 'print', NULL, 3);
INSERT INTO graph VALUES (1, 4, 'g', 1);
INSERT INTO graph_node VALUES (1, 0, 'output', 'o', 't', '', '');
INSERT INTO listing VALUES (4, 'guards', 'text');
INSERT INTO loss VALUES (2, 2, 800, 3, 'ring full');
"""
REFERENCES = {  # column -> table; said in words by the columns given
    "process_id": ("process", "pid"), "parent_process_id": ("process", "pid"), "thread_id": ("thread", "os_tid"),
    "code_id": ("code", "qualname || first_line || (SELECT pid FROM process p WHERE p.process_id = code.process_id)"),
    "resume_code_id": ("code", "qualname"), "cache_entry_id": ("cache_entry", "label || (born_ns + BEGAN)"),
    "compile_id": ("compile", "label"), "guard_id": ("guard", "source"), "failed_guard_id": ("guard", "source"),
    "signature_id": ("signature", "text"), "graph_id": ("graph", "name"),
    "lookup_id": ("lookup", "(start_ns + BEGAN)"), "frame_id": ("frame", "(start_ns + BEGAN)"),
    "parent_id": ("frame", "(start_ns + BEGAN)"),
}
KEYS = {"parent_process_id": "process_id", "resume_code_id": "code_id", "failed_guard_id": "guard_id", "parent_id": "frame_id"}
TIMES = ("start_ns", "end_ns", "born_ns", "died_ns", "at_ns", "from_ns")


def contents(path):
    """Return each table as a bag of rows in which references are resolved and times are wall-clock times."""
    with sqlite3.connect(path) as db:
        began = int(db.execute("SELECT value FROM meta WHERE key = 'started_unix_ns'").fetchone()[0])
        found = collections.Counter()
        for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('meta', 'enum', 'merged', 'signature')").fetchall():
            parts = [f"'{table}'"]
            for (column,) in db.execute(f"SELECT name FROM pragma_table_info('{table}')").fetchall():
                key = KEYS.get(column, column)
                if column in TIMES:
                    parts.append(f"x.{column} + {began}")
                elif column == "host":
                    parts.append("COALESCE(x.host, (SELECT value FROM meta WHERE key = 'host'))")
                elif column in REFERENCES:
                    target, words = REFERENCES[column]
                    words = words.replace("BEGAN", str(began))
                    parts.append(f"(SELECT {words} FROM {target} WHERE {target}.{key} = x.{column}) || ''")
                elif column.endswith("_id") and column not in ("region_id",) and not column.startswith(table) and column != "origin_code_id":
                    parts.append(f"x.{column} IS NULL")
                elif not column.endswith("_id"):
                    parts.append(f"x.{column}")
            found.update(db.execute(f"SELECT {', '.join(parts)} FROM {table} x").fetchall())
    db.close()
    return found


@pytest.fixture
def other(tmp_path):
    path = make_trace(tmp_path / "other.db")
    with sqlite3.connect(path) as db:
        db.executescript(ALL)
    db.close()
    return path


def broken(run, path):
    """Return the rules that fsck finds broken. The traces are made by hand, so some are."""
    return {rule["rule"] for rule in json.loads(run("fsck", path, "--json").stdout)["rules"] if rule["broken"]}


def value(path, sql):
    with sqlite3.connect(path) as db:
        row = db.execute(sql).fetchone()[0]
    db.close()
    return row


def test_merged_traces_have_every_row_and_reference(run, trace, other, tmp_path):
    """The third trace is a copy of the second with the name of another machine."""
    third = tmp_path / "third.db"
    third.write_bytes(other.read_bytes())
    with sqlite3.connect(third) as db:
        db.execute("UPDATE meta SET value = 'box3' WHERE key = 'host'")
    db.close()
    out = tmp_path / "m.db"
    done = run("merge", trace, other, third, "-o", out)
    assert done.returncode == 0 and done.stdout == "" and "6 events were lost" in one_line(done.stderr)
    assert contents(out) == contents(trace) + contents(other) + contents(third)
    assert value(out, "SELECT COUNT(*) FROM signature") == 2  # each text once
    # The frame that was too short to be stored is nobody else's.
    assert value(out, "SELECT COUNT(*) FROM lookup l JOIN frame f USING(frame_id) WHERE l.start_ns < f.start_ns OR l.start_ns > f.end_ns") == 0
    assert value(out, "SELECT group_concat(key || '=' || value, ' ') FROM meta WHERE key IN ('host', 'state', 'frame_count',"
                 " 'open_frame_count', 'span_ns')") == "frame_count=18 host=several open_frame_count=3 span_ns=8000000000 state=complete"
    assert value(out, "SELECT json_array_length(value) FROM meta WHERE key = 'merged_from'") == 3
    assert oct(os.stat(out).st_mode & 0o777) == "0o600"
    assert sorted(os.listdir(tmp_path)) == ["m.db", "other.db", "t.db", "third.db"]
    assert broken(run, out) == broken(run, other)


def test_a_merged_trace_can_be_merged_again(run, trace, other, tmp_path):
    third = make_trace(tmp_path / "third.db", "UPDATE meta SET value = 'box3' WHERE key = 'host'")
    assert run("merge", trace, other, "-o", tmp_path / "a.db").returncode == 0
    assert run("merge", third, tmp_path / "a.db", "-o", tmp_path / "b.db").returncode == 0
    assert contents(tmp_path / "b.db") == contents(trace) + contents(other) + contents(third)


def test_a_merged_trace_has_the_same_indexes_and_views(run, trace, other, tmp_path):
    assert run("merge", trace, other, "-o", tmp_path / "m.db").returncode == 0
    schema = "SELECT group_concat(sql, char(10)) FROM (SELECT sql FROM sqlite_schema ORDER BY type, name)"
    assert value(tmp_path / "m.db", schema) == value(trace, schema)


def test_a_merge_of_real_recordings_has_all_rows_of_both(record, run, python, tmp_path):
    a = record([ROOT / "examples/shapes.py"], python=python).path
    b = record(["-c", "import os, threading\nt = threading.Thread(target=len, args=((),))\nt.start()\nt.join()\nif os.fork(): os.wait()"],
               python=python).path
    out = tmp_path / "m.db"
    assert run("merge", a, b, "-o", out).returncode == 0
    holds(out)
    assert value(out, "SELECT COUNT(*) FROM frame") == value(a, "SELECT COUNT(*) FROM frame") + value(b, "SELECT COUNT(*) FROM frame")
    assert contents(out) == contents(a) + contents(b)
    assert "hit" in run("why", "total", out).stdout
    twice = run("merge", a, out, "-o", tmp_path / "twice.db")
    assert twice.returncode == 2 and "would count twice" in one_line(twice.stderr) and not (tmp_path / "twice.db").exists()


@pytest.mark.parametrize("statement, words", [
    ("UPDATE meta SET value = 'recording' WHERE key = 'state'", "still being recorded"),
    ("DELETE FROM meta WHERE key = 'started_unix_ns'", "does not say when it began"),
    ("UPDATE frame_rows SET frame_id = 9223372036854775807 WHERE frame_id = 130", "cannot be"),
    ("UPDATE frame_rows SET frame_id = -4 WHERE frame_id = 130", "cannot be"),
    ("UPDATE thread SET process_id = -1", "cannot be"),
    ("UPDATE meta SET value = 3 WHERE key = 'schema_version'", "newer dyntrace"),
])
def test_traces_that_cannot_be_merged_are_refused(run, trace, tmp_path, statement, words):
    bad = make_trace(tmp_path / "bad.db", "UPDATE meta SET value = 'bad' WHERE key = 'host'", statement)
    done = run("merge", trace, bad, "-o", tmp_path / "m.db")
    assert done.returncode == 2 and words in one_line(done.stderr)
    assert sorted(os.listdir(tmp_path)) == ["bad.db", "t.db"]


@pytest.mark.parametrize("arguments", [
    [], ["t.db", "-o", "m.db"], ["t.db", "other.db"], ["t.db", "other.db", "-o"], ["t.db", "other.db", "-o", "-"],
    ["t.db", "other.db", "-o", "t.db", "--force"], ["t.db", "other.db", "-o", "other.db"], ["t.db", "nix.db", "-o", "m.db"],
    ["t.db", "other.db", "--nix", "-o", "m.db"], ["t.db", "other.db", "-o", "nodir/m.db"],
])
def test_bad_usage_gives_a_one_line_error_and_status_2(run, trace, other, tmp_path, arguments):
    before = trace.read_bytes(), other.read_bytes()
    done = run("merge", *arguments)
    assert done.returncode == 2 and done.stdout == ""
    one_line(done.stderr)
    assert (trace.read_bytes(), other.read_bytes()) == before and sorted(os.listdir(tmp_path)) == ["other.db", "t.db"]


def test_force_replaces_the_output(run, trace, other, tmp_path):
    out = tmp_path / "m.db"
    out.write_text("mine")
    assert run("merge", trace, other, "-o", out).returncode == 2 and out.read_text() == "mine"
    assert run("merge", trace, other, "-o", out, "--force").returncode == 0 and broken(run, out) == broken(run, other)


def test_a_merge_of_decisions_only_says_so_and_is_whole(run, tmp_path):
    """A skipped call inside another, with frames between them that are not copied; a lookup whose frame is not copied."""
    paths = []
    for pid in 100, 200:
        paths.append(make_trace(tmp_path / f"{pid}.db"))
        with frame_rows(sqlite3.connect(paths[-1])) as db:
            db.execute("UPDATE process SET pid = pid + ?, rank = ?", (pid, pid // 100 - 1))
            db.execute("UPDATE frame_rows SET outcome = 4 WHERE frame_id IN (1, 4)")
            db.execute("UPDATE frame_rows SET outcome = 6 WHERE frame_id = 2")
            db.execute("INSERT INTO lookup(lookup_id, frame_id, thread_id, code_id, start_ns, duration_ns, outcome) VALUES (1, 2, 1, 2, 210, 5, 6)")
            db.execute("INSERT INTO meta VALUES ('counted_frame_count', 5)")
            db.execute("INSERT INTO frame_count(code_id, phase, outcome, frames, calls) VALUES (2, 0, 0, 5, 5)")
        db.close()
    out, again = tmp_path / "m.db", tmp_path / "again.db"
    assert run("merge", *paths, "--decisions-only", "-o", out).returncode == 0
    broken = {rule["rule"] for rule in json.loads(run("fsck", out, "--json").stdout)["rules"] if rule["broken"]}
    whole = {rule["rule"] for rule in json.loads(run("fsck", paths[0], "--json").stdout)["rules"] if rule["broken"]}
    assert broken <= whole and not [rule for rule in whole if "siblings" in rule or "agree" in rule]
    assert "only calls that were skipped or disabled (merge --decisions-only)" in run("report", out).stdout
    third = make_trace(tmp_path / "third.db")
    with sqlite3.connect(third) as db:
        db.execute("UPDATE process SET pid = pid + 900, rank = 7")
    db.close()
    assert run("merge", out, third, "-o", again).returncode == 0
    assert "merge --decisions-only" in run("report", again).stdout
