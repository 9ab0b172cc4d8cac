"""Traces made to exhaust a reader: each command answers or prints one line, in bounded memory and time, and leaves no
files. The reader's own limits apply. The system's limits are higher, so that a failure is quick."""
import contextlib
import json
import os
import resource
import signal
import sqlite3
import subprocess

import pytest

from frame_rows import frame_rows
from planted import make_trace
from shared import COMMANDS, ROOT, SCHEMA, one_line
from tui_trace import make_trace as make_decided

pytestmark = [pytest.mark.one_python, pytest.mark.no_sanitizer]

READERS = {
    **COMMANDS, "perfetto": ["export", "FILE", "--format", "perfetto", "-o", "-"], "csv": ["export", "FILE", "--format", "csv", "-o", "-"], "fsck": ["fsck", "FILE"], "jsonl": ["export", "FILE", "--format", "jsonl", "-o", "-"],
    "speedscope": ["export", "FILE", "--format", "speedscope", "-o", "-"], "folded": ["export", "FILE", "--format", "folded", "-o", "-"],
    "show-json": ["show", "step", "FILE", "--json"], "why-json": ["why", "step", "FILE", "--json"],
    "tui": ["tui", "FILE", "--dump"], "views": ["tui", "FILE", "--dump", "--keys", "2 3 4 5 6 7 8 9"], "queries": ["sql", "FILE", "hot-functions"],
}
ENDLESS = "WITH RECURSIVE r(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM r) SELECT a AS lookup_id, a AS frame_id, a AS qualname FROM r"
LONG = "replace(hex(zeroblob(%d / 2)), '0', 'x')"
BASE_MB = 512


def bounded(command, limits=None, cwd=None, cpu=60, out=subprocess.DEVNULL):
    """Run COMMAND -> status, stderr, most memory in MB. The system kills what is far beyond the reader's own limits."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
        resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 30, 4 << 30))

    env = {k: v for k, v in os.environ.items() if k != "DYNTRACE_LIMITS"}
    env.update({"DYNTRACE_LIMITS": limits} if limits else {}, LC_ALL="C.UTF-8")
    with open(os.path.join(cwd, "stderr"), "w+b") as err:
        child = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd, env=env, preexec_fn=limit)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        # A process begins with the figure of the one that started it: below that it says nothing.
        most = used.ru_maxrss if used.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss else 0
        return child.returncode, err.read().decode(), most / 1000


@pytest.fixture(scope="module")
def decided(tmp_path_factory):
    """A trace that has something for every command."""
    path = tmp_path_factory.mktemp("hostile") / "t.db"
    make_decided(path, lookups=60, hostile=False)
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM loss")  # which every command would mention
    db.close()
    return path


@pytest.fixture
def all_readers(dyntrace, decided, tmp_path):
    """all_readers(SQL, limits=..., only=...) -> {name: (status, stderr)}, each within the bounds."""
    def read(*sql, limits=None, only=READERS):
        path, other = tmp_path / "h.db", tmp_path / "other.db"
        path.write_bytes(decided.read_bytes())
        other.write_bytes(decided.read_bytes())
        for name, change in ((other, ["UPDATE process SET pid = pid + 1, rank = rank + 10"]), (path, sql)):
            db = frame_rows(sqlite3.connect(name))
            for statement in change:
                db.execute(statement)
            db.commit()
            db.close()
        found, said = {}, []
        for name in only:
            argv = [{"FILE": path, "OTHER": other, "out": tmp_path / "out", "total": "step"}.get(a, a) for a in READERS[name]]
            status, err, mb = bounded([dyntrace, *argv], limits, tmp_path)
            assert status in (0, 1, 2), (name, status, err)
            if err and status:
                one_line(err)
            assert mb < BASE_MB + 4 * path.stat().st_size / 1e6, (name, mb)
            assert status == 0 or name in ("sql", "queries") or not (tmp_path / "out").exists(), name
            (tmp_path / "out").unlink(missing_ok=True)
            assert not [f for f in os.listdir(tmp_path) if f.startswith("out")], name
            found[name] = status, err
        return found
    return read


REFUSED = {
    "generated": (["ALTER TABLE code ADD COLUMN big GENERATED ALWAYS AS (zeroblob(1000000000)) VIRTUAL"], "generated columns in the table code"),
    "elsewhere": (["CREATE TABLE own(a, b GENERATED ALWAYS AS (zeroblob(1000000000)))"], "generated columns in the table own"),
    "view": (["DROP TABLE lookup", f"CREATE VIEW Lookup AS {ENDLESS}"], "in the place of the table Lookup"),
    "view of frames": (["DROP TABLE graph", "CREATE VIEW graph AS SELECT zeroblob(100000000) AS name FROM frame a, frame b"], "in the place of the table graph"),
    "virtual": (["CREATE VIRTUAL TABLE own USING fts5(a)"], "virtual table"),
    "trigger": (["CREATE TRIGGER own AFTER INSERT ON code BEGIN SELECT 1; END"], "trigger own"),
    "expression": (["CREATE INDEX own ON code(hex(qualname))"], "own"),
    "partial": (["CREATE INDEX own ON code(qualname) WHERE length(qualname) > 3"], "own"),
    "collation": (["CREATE INDEX own ON code(qualname COLLATE NOCASE)"], "own"),
    "many": ([f"CREATE TABLE t{i}(a)" for i in range(1000)], "more tables"),
}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.slow if kind == "many" else ()) for kind in REFUSED])
def test_a_schema_that_does_more_than_hold_rows_is_refused(all_readers, kind):
    sql, why = REFUSED[kind]
    for name, (status, err) in all_readers(*sql).items():
        assert status == 2 and why in one_line(err) and "is not read" in err, (name, err)


def test_a_view_declared_as_a_table_is_refused(all_readers):
    """The columns of sqlite_schema may have any value. SQLite's own reading of the statement counts."""
    for name, (status, err) in all_readers(
            "DROP TABLE lookup", "PRAGMA writable_schema = ON",
            f"INSERT INTO sqlite_schema VALUES ('table', 'innocent', 'innocent', 2, 'CREATE VIEW lookup AS {ENDLESS}')").items():
        assert status == 2 and ("in the place of the table lookup" in err or "damaged" in err), (name, err)


def test_views_are_not_taken_from_the_trace(run, all_readers, tmp_path):
    """Our own views are used whatever the file has; fsck reports the difference."""
    views = [row[0] for row in sqlite3.connect(":memory:").executescript(SCHEMA).execute("SELECT name FROM sqlite_schema WHERE type = 'view'")]
    sql = [s for view in views for s in (f"DROP VIEW {view}", f"CREATE VIEW {view} AS {ENDLESS}")]
    for name, (status, err) in all_readers(*sql).items():
        assert status == (1 if name in ("fsck", "verify") else 0), (name, err)  # verify: the trace is made up
    done = run("fsck", tmp_path / "h.db")
    assert done.returncode == 1 and all(view in done.stdout for view in views[:3])
    done = run("sql", tmp_path / "h.db", "--no-header", "; ".join(f"SELECT COUNT(*) < 10000 FROM {view}" for view in views))
    assert set(done.stdout.split()) == {"1"}


@pytest.mark.slow
def test_values_of_5_mb_are_cut_and_marked_as_cut(all_readers, run, tmp_path):
    """Names, reasons and values have 5 MB each. Every command answers, and marks the cut."""
    text = LONG % 5_000_000
    found = all_readers(f"UPDATE code SET qualname = qualname || {text} WHERE code_id IN (2, 5)", f"UPDATE signature SET text = text || {text} WHERE signature_id = 1",
                        f"UPDATE guard SET expression = expression || {text} WHERE guard_id < 4", f"UPDATE recompile_cause SET text = text || {text}",
                        f"UPDATE thread SET name = {text} WHERE thread_id = 1")
    for name, (status, err) in found.items():
        assert status == 0 or name in ("verify", "fsck", "why", "show", "show-json", "why-json", "diff"), (name, err)
    assert "… (cut: 5000004 bytes)" in run("export", tmp_path / "h.db", "--format", "perfetto", "-o", "-").stdout
    done = run("sql", tmp_path / "h.db", "SELECT length(qualname) FROM code WHERE code_id = 2")  # the whole, where it is copied
    assert int(done.stdout.split()[-1]) > 5_000_000


def test_a_value_above_16_mb_is_an_error(all_readers):
    text = LONG % 30_000_000
    found = all_readers(f"UPDATE code SET qualname = {text} WHERE code_id = 2")
    assert any("more than 16 MB" in err for _, err in found.values())
    for name, (status, err) in found.items():
        assert status in (0, 2) or name in ("sql", "queries", "fsck", "check", "guards", "diff", "verify"), (name, err)


@pytest.mark.slow
def test_huge_column_defaults_are_limited(all_readers):
    """A column's default is stored once and appears in every row: 5 GB of names in 1 MB. The time or memory limit ends
    the command with one line."""
    found = all_readers(
        "DROP TABLE code", "CREATE TABLE code(code_id INTEGER PRIMARY KEY, process_id INTEGER, filename TEXT, first_line INTEGER, kind TEXT,"
        " origin_code_id INTEGER, fingerprint INTEGER)",
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 5000) INSERT INTO code SELECT i, 1, 'a' || i, 1, 'function', NULL, i FROM r",
        f"ALTER TABLE code ADD COLUMN qualname TEXT DEFAULT '{'x' * 1_000_000}'", limits="1:200",
        only=[name for name in READERS if name not in ("csv", "merge")])
    said = [name for name, (status, err) in found.items() if "DYNTRACE_LIMITS=off" in err]
    assert "jsonl" in said, found
    for name, (status, err) in found.items():
        assert (name not in said or status == 2) and (status != 2 or one_line(err)), (name, err)


KEYLESS = [
    "DROP TABLE frame", "CREATE TABLE frame(frame_id INTEGER, thread_id INTEGER, parent_id INTEGER, code_id INTEGER, kind INTEGER,"
    " outcome INTEGER, start_ns INTEGER, end_ns INTEGER, cache_entry_id INTEGER, exit INTEGER)",
    "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 100000)"
    " INSERT INTO frame SELECT 400000 - i, 1, 400000 - i * 7919 % 100000, 2, 0, 0, i, i, NULL, 0 FROM r"]  # parents lie far away


def test_reading_a_table_without_its_key_stops_at_the_time_limit(all_readers):
    """A search by key reads the whole table. No command runs for ever."""
    found = all_readers(*KEYLESS, limits="1:512", only=["fsck", "html", "tui"])
    assert "took more than" in found["fsck"][1]


def test_a_sparse_file_does_not_raise_the_time_limit(dyntrace, all_readers, tmp_path):
    """A file that claims a terabyte does not get more time."""
    all_readers(*KEYLESS, only=[])
    os.truncate(tmp_path / "h.db", 1 << 40)
    status, err, _ = bounded([dyntrace, "fsck", tmp_path / "h.db"], "1:512", tmp_path)
    assert status == 2 and int(one_line(err).split("took more than ")[1].split()[0]) < 60


def test_the_users_own_query_may_run_long(dyntrace, trace_of_frames, tmp_path):
    """`sql` has no time limit, but a memory limit."""
    count = "WITH RECURSIVE r(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM r WHERE a < 8000000) SELECT COUNT(*) FROM r"
    status, err, _ = bounded([dyntrace, "sql", trace_of_frames, count], "1:100", tmp_path)
    assert (status, err) == (0, "")
    status, err, mb = bounded([dyntrace, "sql", trace_of_frames, "SELECT group_concat(hex(zeroblob(4000000)), '') FROM frame a, frame b"], "1:100", tmp_path)
    assert status in (1, 2) and one_line(err) and mb < 150
    many = "WITH RECURSIVE r(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM r WHERE a < 200000) SELECT json_group_array(hex(zeroblob(1000))) FROM r"
    status, err, mb = bounded([dyntrace, "sql", trace_of_frames, many], "1:100", tmp_path)
    assert status in (1, 2) and one_line(err) and mb < 150


@pytest.fixture
def trace_of_frames(tmp_path):
    return make_trace(tmp_path / "t.db")


def test_limits_of_readers_can_be_set_and_nonsense_values_are_ignored(dyntrace, decided, tmp_path):
    for limits in ("off", "1:1", "x", "0:0", "60:512"):
        assert bounded([dyntrace, "report", decided], limits, tmp_path)[:2] == (0, ""), limits


def test_ctrl_c_ends_every_reader(dyntrace, tmp_path, all_readers):
    """Ctrl-C ends every command, also in its longest step, and removes its unfinished file."""
    all_readers("CREATE TABLE own(a)", "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 3000000) INSERT INTO own SELECT i FROM r", only=[])
    for argv in (["export", "h.db", "--format", "jsonl", "-o", "out"], ["fsck", "h.db"],
                 ["sql", "h.db", "SELECT COUNT(*) FROM own a, own b"]):
        child = subprocess.Popen([dyntrace, *argv], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "DYNTRACE_LIMITS": "off"})
        try:
            child.wait(0.3)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
        assert child.returncode in (0, 130, -signal.SIGINT) or argv[0] == "fsck", argv  # done before that: the trace is made up
        assert not [f for f in os.listdir(tmp_path) if f.startswith("out.")]


def test_fsck_json_names_changed_views_and_indexes(run, tmp_path):
    path = make_trace(tmp_path / "t.db", "DROP VIEW losses", "CREATE VIEW losses AS SELECT 1 AS a", "DROP INDEX guard_entry")
    found = json.loads(run("fsck", path, "--json").stdout)
    assert [r["rows"] for r in found["rules"] if "schema" in r["rule"]] == [["guard_entry", "losses"]]
