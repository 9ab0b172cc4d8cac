"""The commands that read a trace: sql, report, fsck; and the schema they read. Python's sqlite3 makes the traces from
schemas/*.sql, so these tests need no recorder, and can make traces that no recorder would make."""
import fcntl
import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import termios

import pytest

from frame_rows import frame_rows
from crash_help import catches, until
from planted import ROWS, make_trace
from shared import CONTRACT, ROOT, SCHEMA, Screen, one_line

QUERIES = sorted(path.stem for path in (ROOT / "schemas/queries").glob("*.sql"))

# ---- the schema ------------------------------------------------------------

def test_the_table_frame_has_the_columns_that_its_page_writer_writes(trace):
    columns = [row[1:5:3] + (row[2], row[6]) for row in sqlite3.connect(trace).execute("PRAGMA table_xinfo(frame)")]
    assert columns == [(name, default, "INTEGER", computed) for name, default, computed in (
        ("start_ns", None, 0), ("took_ns", None, 0), ("parent_distance", None, 0), ("code_id", None, 0), ("thread_id", None, 0),
        ("exit", "0", 0), ("kind", "0", 0), ("outcome", "0", 0), ("cache_entry_id", None, 0), ("frame_id", None, 0),
        ("parent_id", None, 2), ("end_ns", None, 2))]
    assert sqlite3.connect(trace).execute("SELECT count(*) FROM sqlite_master WHERE tbl_name = 'frame'"
                                          " AND type <> 'table'").fetchone() == (0,)


def test_every_column_of_the_trace_has_an_explanation():
    """In schemas/trace.sql each line of a column ends in a comment, unless the name is enough."""
    for line in (ROOT / "schemas/trace.sql").read_text().splitlines():
        if line.startswith("    ") and not line.lstrip().startswith(("(", "--", "PRIMARY")):
            name = line.split()[0]
            assert "--" in line or "PRIMARY KEY" in line or name in ("key", "value", "start_ns", "end_ns", "text"), line


@pytest.mark.skipif(not CONTRACT.exists(), reason="the public contract's checker is not on this machine")
def test_empty_and_filled_traces_pass_the_public_contracts_checker(tmp_path):
    for rows in ("", ROWS):
        path = make_trace(tmp_path / f"{len(rows)}.db", rows=rows)
        done = subprocess.run([sys.executable, CONTRACT, path], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_views_have_words_where_tables_have_numbers(trace):
    db = sqlite3.connect(trace)
    assert db.execute("SELECT qualname, pid, kind, outcome, exit, duration_ns FROM frames WHERE frame_id = 4").fetchone() \
        == ("work", 100, "resume", "plain", "yield", 100)
    assert db.execute("SELECT exit, end_ns FROM frames WHERE frame_id = 130").fetchone() == (None, None)
    # the same function in two processes is one line
    assert db.execute("SELECT qualname, calls, total_ns, self_ns, ns_per_call FROM hot_functions").fetchall() \
        == [("work", 4, 3999998500, 3999998500, 999999625), ("<module>", 1, 4900, 4300, 4900)]


DECISIONS = """
INSERT INTO compile(compile_id, frame_id, code_id, thread_id, label, start_ns, end_ns, outcome, cache_entry_id) VALUES
    (1, 2, 2, 1, '0/0', 210, 220, 'ok', 1), (2, 3, 2, 1, '0/1', 410, 420, 'ok', 2);
INSERT INTO cache_entry VALUES (1, 2, 1, '0/0', 'eager', 0, 3, 220, NULL, NULL), (2, 2, 2, '0/1', 'eager', 0, 1, 420, 800, 'reset');
INSERT INTO guard(guard_id, cache_entry_id, ordinal, kind, source, expression) VALUES (1, 1, 0, 'TYPE', 'L[x]', 'a'), (2, 1, 1, 'VALUE', 'L[x]', 'b'), (3, 1, 2, 'VALUE', 'L[y]', 'c'),
    (4, 2, 0, 'TYPE', 'L[x]', 'd');
INSERT INTO lookup VALUES (1, 2, 1, 2, 200, 25, 2, 1, 0, 1), (2, 3, 1, 2, 400, 28, 2, 2, 1, 1), (3, 4, 1, 2, 500, 20, 1, 2, 2, NULL);
INSERT INTO guard_check VALUES (1, 2, 0, 1, 'fail', 2, 2, 6), (2, 3, 0, 1, 'error', 1, 1, 4), (3, 3, 1, 2, 'pass', NULL, 1, 10);
INSERT INTO signature VALUES (1, 'x: int');
INSERT INTO recompile_cause VALUES (2, 1, 0, 2, 'VALUE', 'L[x]', 'value', NULL, '1', '2', 'x was 1, is 2', 'observed');
INSERT INTO graph_break VALUES (1, 2, 2, 12, 8, 'print', 'app.py:12', NULL);
"""


def test_the_decision_views_have_the_planted_rows(tmp_path):
    db = sqlite3.connect(make_trace(tmp_path / "d.db", rows=ROWS + DECISIONS))
    # guards before the one that failed passed, that one has the check's result, later ones did not run
    assert db.execute("SELECT guard_check_id, guard_id, result, share_ns FROM guard_evaluation ORDER BY 1, ordinal").fetchall() \
        == [(1, 1, "pass", 3.0), (1, 2, "fail", 3.0), (2, 1, "error", 4.0), (3, 4, "pass", 10.0)]
    assert db.execute("SELECT kind, source, evaluations, failures, estimated_ns FROM guard_bill").fetchall() \
        == [("TYPE", "L[x]", 3, 1, 17.0), ("VALUE", "L[x]", 1, 1, 3.0)]
    assert db.execute("SELECT cache_entry_id, tried, hit, last_use_ns, died_ns FROM cache_entries ORDER BY 1").fetchall() \
        == [(1, 2, 0, 225, None), (2, 1, 1, 500, 800)]
    assert db.execute("SELECT outcome, entry, lookup_ns, frame_ns, signature FROM call_ledger ORDER BY lookup_id").fetchall() \
        == [("compiled", "0/0", 25, 100, "x: int"), ("compiled", "0/1", 28, 500, "x: int"), ("hit", "0/1", 20, 100, None)]
    assert db.execute("SELECT label, older_entry, source, expected, actual FROM recompile_causes").fetchall() \
        == [("0/1", "0/0", "L[x]", "1", "2")]
    assert db.execute("SELECT qualname, line, reason FROM graph_breaks").fetchall() == [("work", 12, "print")]
    if CONTRACT.exists():
        done = subprocess.run([sys.executable, CONTRACT, tmp_path / "d.db"], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


# ---- sql: output -----------------------------------------------------------

def test_sql_writes_tsv_to_a_pipe(run, trace):
    done = run("sql", trace, "SELECT pid, exit_code, exit_signal FROM process")
    assert (done.returncode, done.stdout, done.stderr) == (0, "pid\texit_code\texit_signal\n100\t3\t\n101\t\t9\n", "")
    assert run("sql", trace, "SELECT count(*) FROM frame", "--no-header").stdout == "6\n"
    assert run("sql", trace, "SELECT pid FROM process WHERE 0").stdout == "pid\n"


def test_sql_json_is_valid_json(run, trace):
    query = "SELECT pid, argv, NULL AS n, 1.5 AS r, 9e999 AS inf, x'00ff' AS b, char(27) || '\"\\' || char(10, 155, 8238) AS t FROM process LIMIT 1"
    text = run("sql", trace, query, "--json").stdout
    assert json.loads(text) == [{"pid": 100, "argv": '["python", "app.py", "--fast"]', "n": None, "r": 1.5, "inf": None,
                                 "b": "00ff", "t": "\x1b\"\\\n\x9b\u202e"}]
    assert all(" " <= c < "\x7f" for c in text.replace("\n", ""))  # nothing that a terminal would act on
    assert json.loads(run("sql", trace, "SELECT 1 WHERE 0", "--json").stdout) == []


def test_broken_utf8_is_shown_not_passed_on(run, trace):
    query = "SELECT CAST(x'61ff1b5b32' AS TEXT) AS t"
    assert run("sql", trace, query, "--no-header").stdout == "a\\xff\\x1b[2\n"
    assert json.loads(run("sql", trace, query, "--json").stdout) == [{"t": "a\udcff\x1b[2"}]


def test_sql_prints_aligned_columns_to_a_terminal(dyntrace, trace):
    text, status = Screen([dyntrace, "sql", trace, "SELECT 'ä' AS name, 5 AS n UNION ALL SELECT 'long', 1234"], NO_COLOR="1").finish()
    assert (text.replace("\r\n", "\n"), status) == ("name     n\nä        5\nlong  1234\n", 0)


def test_sql_shortens_and_escapes_cells_on_a_terminal(dyntrace, trace):
    query = "SELECT 1 AS a, char(27) || '[31m' || printf('%.*c', 10000000, 'x') AS b"
    text, status = Screen([dyntrace, "sql", trace, query], NO_COLOR="1").finish()
    assert status == 0 and len(text) < 1000 and "\x1b" not in text and "…" in text
    assert max(map(len, text.splitlines())) <= 100


def test_every_named_query_runs(run, trace):
    for name in QUERIES:
        done = run("sql", trace, name)
        assert (done.returncode, done.stderr) == (0, ""), name
        assert done.stdout.count("\n") >= 1
    listed = run("sql", "--list").stdout
    assert [line.split("\t")[0] for line in listed.splitlines()[1:]] == QUERIES
    assert all(line.split("\t")[1] for line in listed.splitlines())


@pytest.mark.parametrize("name", QUERIES)
def test_named_queries_are_explained(run, trace, name):
    """Each explanation has the question, the purpose, and every column, in order."""
    comment = []
    for line in (ROOT / f"schemas/queries/{name}.sql").read_text().splitlines():
        if not line.startswith("--"):
            break
        comment.append(line[2:].strip())
    assert comment[0] and len(comment[0]) <= 160
    text = " ".join(comment[1:])
    assert re.search(r"Why: [^.]+\.", text)
    columns = re.search(r"Columns: (.*?)\.(?: |$)", text)[1]
    named = [column for part in columns.split("; ") for column in part.split(":")[0].split(", ")]
    assert all(":" in part for part in columns.split("; "))
    assert named == run("sql", trace, name).stdout.splitlines()[0].split("\t")


def test_there_are_at_least_20_named_queries():
    assert len(QUERIES) >= 20


def test_named_queries_find_planted_rows(run, trace):
    def rows(name):
        return json.loads(run("sql", trace, name, "--json").stdout)
    assert rows("deepest-stacks")[0]["depth"] == 3 and rows("deepest-stacks")[0]["frame_id"] == 4
    assert [row["frame_id"] for row in rows("open-frames")] == [130]
    assert [(row["qualname"], row["exit"]) for row in rows("slowest-frames")[:2]] == [("work", None), ("<module>", "return")]
    assert [(row["qualname"], row["raised"]) for row in rows("raised-frames")] == [("work", 1)]
    assert [(row["pid"], row["ended"]) for row in rows("process-tree")] == [("100", "exit 3"), ("  101", "signal 9")]


def test_every_process_is_in_the_process_tree(run, trace):
    """Below 300 forks, too, and where parents form a cycle."""
    with sqlite3.connect(trace) as db:
        db.executemany("INSERT INTO process(process_id, pid, parent_process_id, argv, start_ns, end_ns) VALUES (?, ?, ?, '[]', ?, 9000)",
                       [(i, 1000 + i, i - 1, 2000 + i) for i in range(3, 303)] + [(5001, 5001, 5002, 1), (5002, 5002, 5001, 1)])
        db.execute("INSERT INTO cache_entry(cache_entry_id, code_id, born_ns) VALUES (1, 3, 1)")
        db.execute("INSERT INTO compile(compile_id, code_id, thread_id, start_ns, cache_entry_id) VALUES (1, 3, 2, 2100, 1)")
    db.close()
    rows = json.loads(run("sql", trace, "process-tree", "--json").stdout)
    assert sorted(row["pid"].strip() for row in rows) == sorted(str(pid) for pid in [100, 101, *range(1003, 1303), 5001, 5002])
    processes = json.loads(run("report", trace, "--json", "--limit", "0").stdout)["processes"]
    assert len(processes) == 304 and processes[250]["depth"] == 250
    sql = "SELECT COUNT(*) AS n, MIN(ancestor_id) AS least FROM lineage WHERE process_id IN (200, 5001) GROUP BY process_id"
    ancestors = run("sql", trace, sql, "--json")
    assert [tuple(row.values()) for row in json.loads(ancestors.stdout)] == [(200, 1), (2, 5001)]


def test_the_deepest_stack_does_not_depend_on_the_clock(record, run):
    """Frames that begin and end at one moment are as deep as their callers say."""
    code = "def f(n): return n and f(n - 1)\nf(40); f(3)"
    trace = record(["-c", code], "--clock", "coarse", "--frames", "user")
    deepest = json.loads(run("sql", trace.path, "deepest-stacks", "--json").stdout)[0]
    assert (deepest["qualname"], deepest["depth"]) == ("f", 42)


def test_sql_reads_a_query_from_standard_input(run, trace):
    done = run("sql", trace, input="SELECT 1 AS a; -- one\nSELECT 2 AS b")
    assert (done.returncode, done.stdout) == (0, "a\n1\n\nb\n2\n")
    assert run("sql", trace, input="").returncode == 0


def test_dot_commands_work_as_argument_and_on_standard_input(run, trace):
    """The same as an argument, on standard input and (below) at the prompt; in the TUI: test_tui.py."""
    for how in ("argument", "stdin"):
        def ask(line, *more):
            return run("sql", trace, *more, input=line) if how == "stdin" else run("sql", trace, line, *more)
        assert "guard_check\ttable\n" in ask(".tables").stdout and "recompiles\tview\n" in ask(".tables;").stdout
        assert "    os_tid     INTEGER, -- as the system knew it\n" in ask(".schema thread\n").stdout
        assert "CREATE TABLE guard(" in ask(".schema").stdout and "CREATE TABLE guard(" not in ask(".schema thread").stdout
        assert "CREATE VIEW recompiles AS" in ask(".schema RECOMPILES").stdout and "no such" not in ask(".schema RECOMPILES").stdout
        assert "nix: no such table or view" in ask(".schema nix").stdout
        assert ".schema [T]\thow they" in ask(".help").stdout
        assert ask(".queries").stdout == run("sql", "--list").stdout and len(ask(".queries").stdout.splitlines()) == len(QUERIES) + 1
        assert {"name": "frame", "type": "table"} in json.loads(ask(".tables", "--json").stdout)
        done = ask(".nix")
        assert (done.returncode, done.stderr) == (2, "dyntrace: .nix: no such command; .help lists them\n")
        assert ask(".schema it's").stderr == ""
    done = run("sql", trace, "--no-header", input="SELECT 1;\n.schema enum\nSELECT 2;SELECT 3")
    assert done.stdout.startswith("1\n\nCREATE TABLE enum(\n") and done.stdout.endswith(";\n\n2\n\n3\n") and done.returncode == 0


# ---- sql: which file, which query ------------------------------------------

def test_without_a_name_the_newest_trace_of_the_folder_is_read(run, tmp_path):
    make_trace(tmp_path / "old.db", "UPDATE meta SET value = 'old' WHERE key = 'host'")
    make_trace(tmp_path / "new.db", "UPDATE meta SET value = 'new' WHERE key = 'host'")
    os.utime(tmp_path / "old.db", (1, 1))
    (tmp_path / "text.db").write_text("not a database")
    sqlite3.connect(tmp_path / "other.db").executescript("CREATE TABLE meta(key, value); CREATE TABLE t(a);")
    os.mkfifo(tmp_path / "fifo.db")
    (tmp_path / "folder.db").mkdir()
    for name in ("text.db", "other.db"):
        os.utime(tmp_path / name, (4000000000, 4000000000))
    assert run("sql", "SELECT value FROM meta WHERE key = 'host'", "--no-header").stdout == "new\n"
    assert "\ntrace\tnew.db\n" in run("report").stdout


def test_file_names_with_uri_characters_are_opened(run, tmp_path):
    for name in ("a?mode=rwc&x.db", "b#c.db", "d%20e.db", "ü .db"):
        make_trace(tmp_path / name)
        done = run("sql", name, "SELECT 1 AS a")
        assert (done.returncode, done.stdout) == (0, "a\n1\n"), done.stderr
    assert not [name for name in os.listdir(tmp_path) if name in ("a", "b")]


@pytest.mark.parametrize("name, content, why", [
    ("none.db", None, "No such file or directory"),
    ("text.db", b"hello " * 1000, "not an SQLite database"),
    ("empty.db", b"", "not a dyntrace trace"),
])
def test_files_that_are_no_trace_are_refused(run, tmp_path, name, content, why):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    for command in (["sql", name, "SELECT 1"], ["report", name], ["fsck", name]):
        done = run(*command)
        assert done.returncode == 2 and (done.stdout == "" or command[0] == "fsck")  # which says what the file is instead
        assert why in one_line(done.stderr) and name in done.stderr


def test_a_folder_a_fifo_and_another_database_are_refused(run, tmp_path):
    (tmp_path / "folder.db").mkdir()
    os.mkfifo(tmp_path / "fifo.db")
    sqlite3.connect(tmp_path / "other.db").executescript("CREATE TABLE meta(a, b); CREATE TABLE t(a);")
    for name, why in (("folder.db", "no *.db is in this directory"), ("fifo.db", "not a regular file"), ("other.db", "not a dyntrace trace")):
        done = run("report", name)
        assert done.returncode == 2 and why in one_line(done.stderr)


def test_a_folder_without_a_trace_is_an_error(run):
    for command in ("sql", "report"):
        done = run(command)
        assert done.returncode == 2 and "no trace" in one_line(done.stderr)


@pytest.mark.parametrize("change, words", [
    ("UPDATE meta SET value = 3 WHERE key = 'schema_version'", "made by a newer dyntrace (schema 3, this one reads 2): please upgrade dyntrace"),
    ("PRAGMA user_version = 3", "made by a newer dyntrace (schema 3, this one reads 2): please upgrade dyntrace"),
    ("PRAGMA user_version = 1; DROP TABLE lookup", "made by an older dyntrace (schema 1, this one reads 2): record it again"),
    ("DROP TABLE guard_check", "has no table guard_check"),
])
def test_a_database_with_another_schema_is_refused_with_an_explanation(run, tmp_path, change, words):
    """Commands read exactly one schema, and need all of its tables."""
    path = make_trace(tmp_path / "new.db", *change.split("; "))
    for command in ("sql", "report", "fsck", "check --max-compiles 1", "why f", "show f", "export --format csv", "replay --verify"):
        name, *more = command.split()
        done = run(name, *([*more[:1], path, *more[1:]] if name in ("why", "show") else [path, *more]), *(["SELECT 1"] if name == "sql" else []))
        assert done.returncode == 2 and words in one_line(done.stderr), command


def test_bad_usage_gives_a_one_line_error_and_status_2(run, trace):
    for argv in (["sql", "--nonsense"], ["sql", trace, "SELECT 1", "SELECT 2"], ["sql", "no-such-query"],
                 ["sql", trace, "no-such-query"], ["report", "--limit", "x"], ["report", "--limit"], ["report", "a", "b"],
                 ["report", "--x"], ["fsck"], ["fsck", "a", "b"], ["fsck", trace, "--x"]):
        done = run(*argv)
        assert done.returncode == 2 and done.stdout == "", argv
        one_line(done.stderr)


def test_an_error_in_sql_gives_a_one_line_error_and_status_2(run, trace):
    for query in ("SELECT nope", "SELEKT 1", "SELECT 1; SELECT nope", 'SELECT "nope"', "SELECT load_extension('x')"):
        done = run("sql", trace, query)
        assert done.returncode == 2
        one_line(done.stderr)


# ---- sql: harmless ---------------------------------------------------------

@pytest.mark.parametrize("query", [
    "DELETE FROM process", "UPDATE meta SET value = 2", "INSERT INTO meta VALUES ('a', 1)", "DROP TABLE frame",
    "CREATE TABLE t(a)", "CREATE TABLE temp.t(a)", "ATTACH 'made.db' AS made", "VACUUM;", "VACUUM INTO 'made.db'", "PRAGMA query_only = OFF",
    "PRAGMA journal_mode = WAL", "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema",
    "PRAGMA query_only = OFF; DELETE FROM process", "PRAGMA user_version = 5; SELECT nope", "REINDEX;", "ANALYZE;",
    "SELECT writefile('made.db', 'x')", "PRAGMA temp_store_directory = '/'", "BEGIN IMMEDIATE; DELETE FROM process",
])
def test_sql_cannot_write(run, tmp_path, trace, query):
    before = trace.read_bytes()
    done = run("sql", trace, query)
    assert done.returncode == 2, done.stdout
    one_line(done.stderr)
    assert trace.read_bytes() == before
    assert os.listdir(tmp_path) == ["t.db"]


def test_a_hostile_schema_is_not_trusted(run, tmp_path):
    path = tmp_path / "hostile.db"
    db = sqlite3.connect(path)
    db.executescript(SCHEMA + ROWS + """
        DROP VIEW frames; CREATE VIEW frames AS SELECT load_extension('/tmp/evil') AS a;
        DROP VIEW hot_functions; CREATE VIEW hot_functions AS WITH RECURSIVE r(a) AS (SELECT 1 UNION ALL SELECT a FROM r) SELECT * FROM r;
        CREATE VIEW innocent AS SELECT sqlite_compileoption_get(0), fts3_tokenizer('simple') AS a;
    """)
    db.close()
    done = run("sql", path, "SELECT * FROM innocent")
    assert done.returncode == 2
    one_line(done.stderr)
    assert run("sql", path, "SELECT COUNT(*) FROM frames; SELECT COUNT(*) FROM hot_functions", "--no-header").stdout.split() == ["6", "2"]  # our own
    assert run("report", path).returncode == 0  # asks no view


def test_a_view_in_place_of_a_table_is_refused(run, tmp_path):
    for how in ("CREATE VIEW loss AS WITH RECURSIVE r(a) AS (SELECT 1 UNION ALL SELECT a FROM r) SELECT * FROM r",
                "CREATE VIRTUAL TABLE loss USING fts5(a)"):
        path = make_trace(tmp_path / "x.db", "DROP VIEW losses", "DROP TABLE loss", how)
        done = run("report", path)
        assert done.returncode == 2 and "not a dyntrace trace" in one_line(done.stderr)
        path.unlink()


def test_damage_is_reported_in_one_line(run, trace):
    data = bytearray(trace.read_bytes())
    with sqlite3.connect(trace) as db:
        page_size, = db.execute("PRAGMA page_size").fetchone()
        root, = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'process'").fetchone()
    data[(root - 1) * page_size:root * page_size] = b"\xa5" * page_size
    trace.write_bytes(data)
    done = run("sql", trace, "SELECT * FROM process")
    assert done.returncode == 2 and "damaged" in one_line(done.stderr)
    done = run("report", trace)
    assert done.returncode == 2 and "damaged" in done.stderr
    done = run("fsck", trace)
    assert done.returncode == 1 and "broken" in done.stdout


def test_a_truncated_trace_is_reported(run, trace):
    data = trace.read_bytes()
    for length in (50, 100, 1000, 4096, 10000, len(data) // 2, len(data) - 4096):
        trace.write_bytes(data[:length])
        for command in (["sql", trace, "process-tree"], ["report", trace], ["fsck", trace], ["fsck", trace, "--json"]):
            done = run(*command)
            assert done.returncode in (0, 1, 2), (length, command, done.stderr)
            if command[0] == "fsck":
                assert done.returncode != 0


def test_live_trace_in_wal_mode_is_readable(run, tmp_path, trace):
    writer = sqlite3.connect(trace)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("UPDATE meta SET value = 'recording' WHERE key = 'state'")
    writer.execute("INSERT INTO meta VALUES ('session', ?)", (str(tmp_path),))
    writer.execute("UPDATE process SET end_ns = NULL, exit_code = NULL WHERE process_id = 1")
    writer.commit()
    writer.execute("INSERT INTO loss VALUES (1, NULL, 5, 5, 'not committed')")
    assert run("sql", trace, "SELECT count(*) FROM loss", "--no-header").stdout == "0\n"
    assert "still recording, or interrupted" in run("report", trace).stdout
    assert "still being recorded" in run("fsck", trace).stdout
    lock = open(tmp_path / "collector.lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    text = run("report", trace).stdout
    assert "still recording" in text and "still running" in text
    assert json.loads(run("report", trace, "--json").stdout)["live"] is True
    lock.close()
    text = run("report", trace).stdout
    assert "interrupted" in text and "--recover" in text and "still running" not in text
    writer.rollback()
    writer.close()


def test_reading_a_trace_leaves_no_file_behind(run, tmp_path, trace):
    with sqlite3.connect(trace) as db:
        db.execute("PRAGMA journal_mode = WAL")
    db.close()
    assert os.listdir(tmp_path) == ["t.db"]
    for command in (["sql", trace, "SELECT * FROM process"], ["report", trace], ["fsck", trace]):
        assert run(*command).returncode == 0
    assert os.listdir(tmp_path) == ["t.db"]


def test_ctrl_c_ends_a_query(dyntrace, trace):
    endless = "WITH RECURSIVE r(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM r) SELECT count(*) FROM r"
    running = subprocess.Popen([dyntrace, "sql", trace, endless], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: catches(running.pid, signal.SIGINT), "it asks")
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 130 and out == "" and "interrupted" in one_line(err)


# ---- sql: the prompt -------------------------------------------------------

def test_the_sql_prompt_answers_and_goes_on_after_an_error(dyntrace, tmp_path, trace):
    screen = Screen([dyntrace, "sql", trace], NO_COLOR="1", XDG_STATE_HOME=str(tmp_path / "state"))
    screen.wait("dyntrace> ")
    screen.type("select pid,\n")
    screen.wait("...> ")
    screen.type("exit_code from process;\n")
    assert "pid  exit_code\r\n100          3\r\n101  NULL" in screen.wait("dyntrace> ")
    screen.type("select nope;\n")
    assert "no such column" in screen.wait("dyntrace> ")
    screen.type(".tables\n")
    assert "guard_check" in screen.wait("dyntrace> ")
    screen.type(".schema thread\n")
    assert "-- as the system knew it" in screen.wait("dyntrace> ")
    screen.type(".queries\n")
    assert "process-tree" in screen.wait("dyntrace> ")
    screen.type("process-tree\n")
    assert "signal 9" in screen.wait("dyntrace> ")
    screen.type("process-tr\t;\n")  # completed
    assert "signal 9" in screen.wait("dyntrace> ")
    screen.type("select f.parent_i\tis null from frame f limit 1;\n")
    assert "f.parent_id is null" in screen.wait("dyntrace> ")
    screen.type(".he\t\n")
    assert ".schema [T]" in screen.wait("dyntrace> ")
    screen.type("select 'garb")
    screen.wait("garb")
    screen.interrupt("dyntrace> ")  # forgets the line
    screen.type("with recursive r(a) as (select 1 union all select a + 1 from r) select count(*) from r;\n")
    screen.wait("running: 1 s")
    os.kill(screen.pid, signal.SIGINT)  # ends the query, not the program
    assert "interrupted" in screen.wait("dyntrace> ")
    screen.type("select 'größe';\n")
    assert "größe\r\n" in screen.wait("dyntrace> ")
    screen.type("\x04")
    assert screen.finish()[1] == 0
    history = tmp_path / "state/dyntrace/sql_history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert stat.S_IMODE(history.parent.stat().st_mode) == 0o700
    screen = Screen([dyntrace, "sql", trace], NO_COLOR="1", XDG_STATE_HOME=str(tmp_path / "state"))
    screen.wait("dyntrace> ")
    screen.type("\x1b[A\n")  # the last statement again
    assert "größe\r\n" in screen.wait("dyntrace> ")
    screen.type(".quit\n")
    assert screen.finish()[1] == 0


def test_ctrl_d_typed_as_soon_as_the_prompt_is_seen_ends_it(dyntrace, trace, tmp_path):
    """Otherwise a Ctrl-D that is typed at once would be lost: a terminal in line mode keeps it for itself."""
    for _ in range(20):
        screen = Screen([dyntrace, "sql", trace], NO_COLOR="1", XDG_STATE_HOME=str(tmp_path))
        screen.wait("dyntrace> ")
        assert not termios.tcgetattr(screen.fd)[3] & termios.ICANON
        screen.type("\x04")
        assert screen.finish()[1] == 0


# ---- report ----------------------------------------------------------------

def test_report_in_a_pipe_has_no_colours(run, trace):
    done = run("report", trace, env={**os.environ, "TZ": "UTC"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"""\
9.00 s in 2 processes together: 4.00 s in functions of the program, on all 2 threads together

What to look at first
1. work: 4.00 s of its own in 4 calls, 99.9999 % of all functions' own time
   dyntrace why work {trace}

Processes
pid	ended	ran	threads	python	command
100	exit 3	5 s	1	3.12.1	python app.py --fast
  101	signal 9 (SIGKILL)	4.00 s	1	3.12.1	python -c pass

Threads
pid	tid	name
100	100	MainThread
101	101	MainThread

Functions of the program, most self and library time first
calls	total	self	per call	raised	function	where
4	4.00 s	4.00 s	1.00 s	1	work	app/app.py:10
1	4.9 us	4.3 us	4.9 us	0	<module>	app/app.py:1

The recording
trace	{trace}
state	complete
command	python app.py --fast
recorded	2023-11-14 22:13:20 on box by dyntrace 0.1.0
span	5 s
frames	6, of which 1 still open
processes	2
threads	2
clock	tsc
"""


def test_report_prints_losses_in_red(run, dyntrace, tmp_path):
    path = make_trace(tmp_path / "l.db", "INSERT INTO loss VALUES (1, 1, 1000, 7, 'collector gone'), (1, 1, 2000, 5, 'collector gone'),"
                                         "(1, 1, 3000, 0, 'stall: waited 2 ms'), (2, NULL, 10, NULL, 'no ring')")
    lines = run("report", path).stdout.splitlines()
    assert "LOSS\t12\t2\t1 us\tcollector gone" in lines and "LOSS\t?\t1\t10 ns\tno ring" in lines
    assert "waited\t0\t1\t3 us\tstall: waited 2 ms" in lines
    text, status = Screen([dyntrace, "report", path]).finish()
    red = [line for line in text.splitlines() if line.startswith("\x1b[31m")]
    assert status == 0 and len(red) == 2 and all("LOSS" in line for line in red)
    assert "\x1b" not in Screen([dyntrace, "report", path], NO_COLOR="1").finish()[0]
    found = json.loads(run("report", path, "--json").stdout)
    assert found["lost_events"] == 12
    assert [(row["cause"], row["events"], row["times"]) for row in found["losses"]] == [
        ("collector gone", 12, 2), ("no ring", None, 1), ("stall: waited 2 ms", 0, 1)]


def test_report_prints_waits_for_the_recorder_as_one_row_after_the_findings(run, tmp_path):
    """Nothing is missing after them, so they are not the first thing that a reader needs."""
    wait = "(1, 1, {}, 0, 'stall: the program waited {} ms for the collector')"
    path = make_trace(tmp_path / "w.db", f"INSERT INTO loss VALUES {wait.format(1000, '2.5')}, {wait.format(3000, '10.0')}")
    text = run("report", path).stdout
    row = "waited\t0\t2\t1 us\tstall: the program waited 12.5 ms for the collector, at most 10.0 ms at once"
    assert text.count("stall") == 1 and text.index("The recording") < text.index(row)
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO loss VALUES (1, 1, 5000, 3, 'collector gone')")
    db.close()
    text = run("report", path).stdout
    assert text.index("collector gone") < text.index(row) < text.index("The recording")


def test_report_json_is_valid(run, trace):
    found = json.loads(run("report", trace, "--json").stdout)
    assert found["meta"]["schema_version"] == 2 and found["meta"]["command"] == ["python", "app.py", "--fast"]
    assert (found["frames"], found["open_frames"], found["process_count"], found["thread_count"]) == (6, 1, 2, 2)
    assert [(row["pid"], row["depth"], row["argv"]) for row in found["processes"]] == [
        (100, 0, ["python", "app.py", "--fast"]), (101, 1, ["python", "-c", "pass"])]
    assert found["hot_functions"][0] == {
        "qualname": "work", "filename": "/src/app/app.py", "first_line": 10, "kind": "function", "calls": 4,
        "total_ns": 3999998500, "self_ns": 3999998500, "ns_per_call": 999999625, "max_ns": None, "raised": 1}


def test_report_limit_cuts_its_lists(run, trace):
    text = run("report", trace, "--limit", "1").stdout
    assert "signal 9" not in text and "(1 of 2; --limit 0 shows all)" in text
    assert len(json.loads(run("report", trace, "--json", "--limit=1").stdout)["hot_functions"]) == 1
    assert run("report", trace, "--limit", "0").stdout == run("report", trace).stdout


def test_report_escapes_a_hostile_trace(run, dyntrace, tmp_path):
    evil = "\x1b]0;owned\x07\x9b2J\u202e\n\t"
    path = make_trace(tmp_path / "e.db")
    with sqlite3.connect(path) as db:
        db.execute("UPDATE process SET argv = ?, python_version = ?", (evil, evil))
        db.execute("UPDATE code SET qualname = ?, filename = ?", (evil, evil))
        db.execute("UPDATE thread SET name = ?", (evil,))
        db.execute("UPDATE process SET parent_process_id = process_id")
        db.execute("UPDATE meta SET value = ? WHERE key IN ('host', 'command', 'state', 'clock')", (evil,))
        db.execute("INSERT INTO loss VALUES (99, 99, -5, -7, ?)", (evil,))
    db.close()
    for text in (run("report", path).stdout, run("report", path, "--json").stdout,
                 Screen([dyntrace, "report", path], NO_COLOR="1").finish()[0].replace("\r", "")):
        assert not set(text) & set("\x1b\x07\x9b\u202e")
        assert "owned" in text
    assert json.loads(run("report", path, "--json").stdout)["processes"][0]["argv"] == [evil]


def test_report_terminates_if_parent_frames_form_a_cycle(run, tmp_path):
    """No process is the root. Reporting that is fsck's task; report must end."""
    path = make_trace(tmp_path / "r.db", "UPDATE process SET parent_process_id = 3 - process_id")
    assert run("report", path).returncode == 0


def test_report_never_reads_frames_of_a_large_trace(run, tmp_path):
    """If a trace claims many frames, their count is taken from meta, whatever the table holds."""
    path = make_trace(tmp_path / "m.db", "UPDATE meta SET value = 40000000 WHERE key = 'frame_count'",
                      "DELETE FROM meta WHERE key = 'open_frame_count'")
    found = json.loads(run("report", path, "--json").stdout)
    assert found["frames"] == 40000000 and found["open_frames"] is None


# ---- fsck ------------------------------------------------------------------

def test_fsck_accepts_a_sound_trace(run, trace):
    done = run("fsck", trace)
    assert (done.returncode, done.stderr) == (0, "")
    assert ": ok: " in done.stdout and "frames 6, open frames 1" in done.stdout
    found = json.loads(run("fsck", trace, "--json").stdout)
    assert found["ok"] is True and found["rows"]["frames"] == 6


@pytest.mark.parametrize("change, rule, row", [
    ("UPDATE frame SET thread_id = 9 WHERE frame_id = 130", "a frame's thread exists", "130"),
    ("UPDATE frame SET code_id = 9 WHERE frame_id = 2", "a frame's code exists", "2"),
    ("UPDATE frame_rows SET end_ns = 150 WHERE frame_id = 2", "has a start", "2"),
    ("UPDATE frame_rows SET start_ns = NULL WHERE frame_id = 2", "has a start", "2"),
    ("UPDATE frame_rows SET start_ns = 1999 WHERE frame_id = 130", "follow start time", "130"),
    ("UPDATE frame SET kind = 9 WHERE frame_id = 2", "are in `enum`", "2"),
    ("UPDATE frame_rows SET parent_id = 77 WHERE frame_id = 2", "a frame's parent exists", "2"),
    ("UPDATE frame_rows SET parent_id = 0 WHERE frame_id = 2", "a frame's parent exists", "2"),
    ("UPDATE frame_rows SET parent_id = 3 WHERE frame_id = 2", "smaller id", "2"),
    ("UPDATE frame SET thread_id = 2 WHERE frame_id = 4", "child's thread", "4"),
    ("UPDATE frame_rows SET end_ns = 5001 WHERE frame_id = 3", "ends after it", "3"),
    ("UPDATE frame_rows SET end_ns = NULL WHERE frame_id = 4", "no open child", "4"),
    ("UPDATE frame_rows SET end_ns = 450 WHERE frame_id = 2", "siblings", "3"),
    ("UPDATE frame_rows SET end_ns = 2700 WHERE frame_id = 129", "siblings", "130"),
    ("DELETE FROM frame WHERE frame_id = 129", "frame_count", "meta says 6, there are 5"),
    ("UPDATE thread SET process_id = 9 WHERE thread_id = 2", "thread's process", "2"),
    ("UPDATE code SET process_id = NULL WHERE code_id = 3", "code's process", "3"),
    ("INSERT INTO code_total(code_id, calls, total_ns, self_ns, raised) VALUES (77, 1, 1, 1, 0)", "totals", "77"),
    ("UPDATE process SET parent_process_id = 7 WHERE process_id = 2", "process's parent", "2"),
    ("UPDATE process SET parent_process_id = 2 WHERE process_id = 2", "process's parent", "2"),
    ("UPDATE process SET exit_code = 0 WHERE process_id = 2", "not both", "2"),
    ("UPDATE process SET end_ns = 0 WHERE process_id = 2", "process ends no earlier", "2"),
    ("INSERT INTO loss VALUES (7, NULL, 0, 1, 'x')", "a loss has a cause", "1"),
])
def test_fsck_finds_a_violation_of_each_of_its_rules(run, tmp_path, change, rule, row):
    path = make_trace(tmp_path / "b.db", change)
    done = run("fsck", path)
    assert done.returncode == 1 and done.stdout.startswith("broken: ")
    line, = [line for line in done.stdout.splitlines() if rule in line]
    assert line.endswith(f": {row}")
    found = json.loads(run("fsck", path, "--json").stdout)
    assert found["ok"] is False
    assert [r["rows"] for r in found["rules"] if rule in r["rule"]] == [[row]]


def test_fsck_quotes_the_first_rows_of_many(run, tmp_path):
    path = make_trace(tmp_path / "b.db", "UPDATE frame SET code_id = 99")
    assert "a frame's code exists: 6 rows: 1, 2, 3, 4, 129, ...\n" in run("fsck", path).stdout


def test_fsck_checks_parents_that_are_no_longer_in_memory(run, tmp_path):
    """A parent that is no longer in memory is read again, and a parent that does not enclose its child is still reported."""
    count = 200000
    path = make_trace(tmp_path / "far.db", "DELETE FROM frame",
                      f"UPDATE meta SET value = {count} WHERE key = 'frame_count'",
                      f"INSERT INTO frame_rows VALUES (1, 1, NULL, 1, 0, 0, 0, {count * 10}, NULL, 0)",
                      f"WITH RECURSIVE r(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM r WHERE i < {count}) "
                      "INSERT INTO frame_rows SELECT i, 1, 1, 2, 0, 0, i * 10, i * 10 + 9 - 9 * (i = %d), NULL, 0 FROM r" % count,
                      "DELETE FROM code_total", "UPDATE meta SET value = 0 WHERE key = 'open_frame_count'",
                      f"INSERT INTO code_total(code_id, calls, total_ns, self_ns, raised) VALUES (1, 1, {count * 10}, {count * 10 - (count - 2) * 9}, 0),"
                      f" (2, {count - 1}, {(count - 2) * 9}, {(count - 2) * 9}, 0)")
    assert run("fsck", path).returncode == 0
    with frame_rows(sqlite3.connect(path)) as db:
        db.execute(f"UPDATE frame_rows SET end_ns = {count * 10 + 1} WHERE frame_id = {count}")
    assert f"ends after it: 1 row: {count}\n" in run("fsck", path).stdout


@pytest.mark.parametrize("change, names", [
    ("DROP VIEW losses; CREATE VIEW losses AS SELECT 1 AS a", "losses"), ("DROP INDEX guard_entry", "guard_entry"),
    ("DROP TABLE listing; CREATE TABLE listing(compile_id, kind, text, more)", "listing, listing_compile"),
    ("DROP VIEW guard_bill", "guard_bill"),
])
def test_fsck_finds_a_schema_that_is_not_ours(run, tmp_path, change, names):
    path = make_trace(tmp_path / "b.db", *change.split("; "))
    done = run("fsck", path)
    assert done.returncode == 1 and f"those of the schema: {names.count(',') + 1} row" in done.stdout and f": {names}\n" in done.stdout
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value = '0.0.9' WHERE key = 'dyntrace_version'")  # which made it otherwise, for all we know
    assert run("fsck", path).returncode == 0


def test_fsck_recognises_a_dead_recording(run, tmp_path):
    """The session directory still exists, or is gone. On another machine fsck cannot know whether a recording lives."""
    session, host = tmp_path / "dyntrace-0-abcdef", os.uname().nodename
    path = make_trace(tmp_path / "r.db", "UPDATE meta SET value = 'recording' WHERE key = 'state'", f"INSERT INTO meta VALUES ('session', '{session}')",
                      f"UPDATE meta SET value = '{host}' WHERE key = 'host'")
    done = run("fsck", path)
    assert done.returncode == 1 and "has a recorder" in done.stdout and "its session is gone" in done.stdout
    session.mkdir()
    (session / "session").write_bytes(b"cut sho")
    with open(session / "collector.lock", "w") as lock:
        done = run("fsck", path)
        assert done.returncode == 1 and "`--recover` finishes the recording" in done.stdout
        done = run("fsck", path, "--recover")
        assert done.returncode == 1 and "its session cannot be read" in done.stdout
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run("fsck", path)
        assert done.returncode == 0 and "still being recorded" in done.stdout
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value = 'elsewhere.example' WHERE key = 'host'")
    assert run("fsck", path).returncode == 0
