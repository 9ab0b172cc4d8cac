"""A trace with one damaged table: a command that reads the damaged part reports it in one line and fails; other commands
answer."""
import json
import random
import re
import sqlite3
import subprocess

import pytest

from shared import COMMANDS, ROOT, one_line

pytestmark = pytest.mark.one_python

TABLES = "frame code lookup guard_check cache_entry guard compile recompile_cause graph_break signature lookup_code".split()
@pytest.fixture(scope="module")
def whole(dyntrace, tmp_path_factory):
    from shared import PYTHONS
    path = tmp_path_factory.mktemp("damage") / "t.db"
    subprocess.run([dyntrace, "run", "-o", path, "--python", PYTHONS[0], "--", ROOT / "examples/shapes.py"], check=True,
                   capture_output=True, timeout=60)
    return path


@pytest.fixture(scope="module")
def other(whole):
    """Change the trace so that it is from another process."""
    path = whole.parent / "other.db"
    path.write_bytes(whole.read_bytes())
    with sqlite3.connect(path) as db:
        db.execute("UPDATE process SET pid = pid + 1")
    db.close()
    return path


@pytest.mark.sweep(2)
@pytest.mark.parametrize("table", TABLES)
def test_a_damaged_table_is_reported_and_other_tables_are_read(run, whole, other, tmp_path, table):
    with sqlite3.connect(f"file:{whole}?mode=ro", uri=True) as db:
        root, = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", [table]).fetchone()
        size, = db.execute("PRAGMA page_size").fetchone()
    db.close()
    data = bytearray(whole.read_bytes())
    data[(root - 1) * size:(root - 1) * size + 200] = b"Z" * 200
    path = tmp_path / "t.db"
    path.write_bytes(data)
    said = []
    for name, argv in COMMANDS.items():
        done = run(*[{"FILE": path, "OTHER": other, "out": tmp_path / "out"}.get(a, a) for a in argv])
        if done.stderr:
            said.append(name)
            assert done.returncode == 2, (name, done)
            assert "damaged" in one_line(done.stderr), name
            assert not (tmp_path / "out").exists(), name
        else:
            assert done.returncode in (0, 1), (name, done)
        (tmp_path / "out").unlink(missing_ok=True)
    assert said


@pytest.mark.parametrize("seed", range(3))
def test_random_numbers_in_a_trace_crash_no_command(run, whole, other, tmp_path, seed):
    """With any number in any column, a command answers or prints one line. Sums do not overflow (`make check-san` checks
    this)."""
    choose = random.Random(seed)
    path = tmp_path / "t.db"
    path.write_bytes(whole.read_bytes())
    with sqlite3.connect(path) as db:
        for table, sql in db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('meta', 'enum', 'merged')").fetchall():
            number = {"graph_node": "ordinal", "thread_cpu": "cpu_ns", "stretch": "ifnull(frame_id, 0)"}.get(table, "rowid")
            assert ("WITHOUT ROWID" in sql) == (number != "rowid")
            for _, column, kind, _, _, key in db.execute(f"PRAGMA table_info({table})").fetchall():
                if kind == "INTEGER" and not key and choose.random() < .3:
                    db.execute(f"UPDATE {table} SET {column} = ? WHERE {number} % ? = 0",
                               (choose.choice([2**63 - 1, -2**63, 2**62, -1, None, "x", 1e300]), choose.choice([1, 2, 7])))
    db.close()
    for name, argv in COMMANDS.items():
        done = run(*[{"FILE": path, "OTHER": other, "out": tmp_path / "out"}.get(a, a) for a in argv])
        assert done.returncode in (0, 1, 2) and "runtime error" not in done.stderr, (name, done)
        assert done.returncode < 2 or done.stderr.startswith("dyntrace: "), (name, done)
        (tmp_path / "out").unlink(missing_ok=True)


# ---- what fsck says of a damaged file ------------------------------------------------------------

def fsck(run, path, *words):
    """fsck of a damaged file: its status, what it prints, and its line. It never refers to itself for more."""
    done = run("fsck", path, *words)
    assert done.returncode in (1, 2) and "tells more" not in done.stdout + done.stderr, done
    assert done.returncode == 1 or len(done.stderr.splitlines()) == (1 if "--recover" not in words else 3), done.stderr
    return done


def page_size(data):
    size = int.from_bytes(data[16:18], "big")
    return 65536 if size == 1 else size


@pytest.fixture(scope="module")
def owners(whole):
    """Return the table or index of each page, as SQLite reports it."""
    with sqlite3.connect(f"file:{whole}?mode=ro", uri=True) as db:
        try:
            return dict(db.execute("SELECT pageno, name FROM dbstat"))
        except sqlite3.OperationalError:
            pytest.skip("this SQLite has no dbstat")
        finally:
            db.close


@pytest.mark.parametrize("keep", [1, 15, 16, 99, 100, 101, 511, 4095, 4096, 4097, 8192, .1, .25, .5, .75, -4097, -4096, -4095, -1])
def test_fsck_describes_a_truncated_file(run, whole, tmp_path, keep):
    data = whole.read_bytes()
    path = tmp_path / "t.db"
    path.write_bytes(data[:int(len(data) * keep) if isinstance(keep, float) else keep])
    done = fsck(run, path)
    pages, size = len(data) // page_size(data), path.stat().st_size
    if size < 100:
        assert f"is cut: it has {size} bytes" in done.stdout
    else:
        assert f"is cut: it has {size // page_size(data)} of its {pages} pages" in done.stdout
    if size % page_size(data) and size >= 100:
        assert f"there are {size % page_size(data)} bytes" in done.stdout
    if size > len(data) // 2:
        assert "--recover" in done.stdout and "rows of all tables can be read" in done.stdout


@pytest.mark.parametrize("pages", [8, pytest.param(40, marks=pytest.mark.slow)])
def test_fsck_names_the_page_and_its_table(run, whole, tmp_path, owners, pages):
    """The test overwrites one page after another with a repeated byte."""
    data, path = whole.read_bytes(), tmp_path / "t.db"
    size = page_size(data)
    for page in sorted(owners)[1::max(1, len(owners) // pages)]:
        for filling in (b"Z", b"\0", b"\xff"):
            path.write_bytes(data[:(page - 1) * size] + filling * size + data[page * size:])
            done = fsck(run, path)
            named = [line for line in done.stdout.splitlines() if line.startswith("  ") and " cannot be read" in line]
            if filling == b"\0" and not named:  # the rest of a long row may be zeros
                continue
            assert any(f" {owners[page]}" in line.split(":")[0] and str(page) in line for line in named), (page, owners[page], done.stdout)
            path.unlink()


def test_fsck_names_a_view_whose_definition_was_overwritten(run, whole, tmp_path):
    """A row that is too long for its page continues in overflow pages. Their bytes may have any value, so they look
    sound."""
    path = tmp_path / "t.db"
    path.write_bytes(whole.read_bytes())
    with sqlite3.connect(path) as db:
        db.execute(f"CREATE VIEW long AS SELECT 1 WHERE 1 IN ({str(list(range(5000)))[1:-1]})")
    db.close()
    data = path.read_bytes()
    size = page_size(data)
    page = data.rindex(b"4999") // size + 1
    for filling in (b"Z", b"\xff"):
        path.write_bytes(data[:(page - 1) * size] + filling * size + data[page * size:])
        said = fsck(run, path, "--recover").stdout
        assert re.search(rf"the definition of the view long cannot be read as SQL \(pages [0-9, -]*\b{page}\)", said), said
        assert run("report", f"{path}.recovered.db").returncode == 0


@pytest.mark.parametrize("begin, words", [
    (b"", "is empty: it has no bytes"), (b"hello\n" * 100, "begins as a text"), (b"\x1f\x8b\x08" + b"x" * 1000, "a gzip file: unpack it first"),
    (b"\x28\xb5\x2f\xfd" + b"x" * 1000, "a zstd file"), (b"PK\x03\x04" + b"\0x" * 1000, "a zip file"), (b"\x7fELF" + b"\1x" * 1000, "a program"), (b"\0" * 20000, "zeros"),
    (b"\x37\x7f\x06\x82" + b"\0x" * 1000, "the log of an SQLite database: name the database"), (b"\x01\x02\x03\x90" * 1000, "not an SQLite database"),
    (b"{\"a\": 1}", "a text")])
def test_fsck_names_the_kind_of_a_file_that_is_no_trace(run, tmp_path, begin, words):
    path = tmp_path / "t.db"
    path.write_bytes(begin)
    done = fsck(run, path)
    assert done.returncode == 2 and words in done.stdout and "nothing can be read" in done.stdout and "--recover" not in done.stdout


@pytest.mark.parametrize("at, bytes_, words, status", [
    (0, b"Z" * 16, "its first 16 bytes were overwritten", 2), (16, b"\1\1", "its header is damaged", 2), (18, b"\7\7", "its header is damaged", 2),
    (28, b"\0\0\1\0", "is cut: it has", 2), (0, b"Z" * 4096, "its first page was overwritten", 2), (None, b"Z" * 10000, "is longer than its header says", 1),
    (None, b"Z" * 10, "ends within a page", 1)])
def test_fsck_reports_an_overwritten_header(run, whole, tmp_path, at, bytes_, words, status):
    data, path = bytearray(whole.read_bytes()), tmp_path / "t.db"
    at = len(data) if at is None else at
    data[at:at + len(bytes_)] = bytes_
    path.write_bytes(data)
    done = fsck(run, path)
    assert done.returncode == status and words in done.stdout, done.stdout


def logged(whole, path):
    """Make a copy of the trace with five more rows, which are only in the write-ahead log. Returns the log."""
    path.write_bytes(whole.read_bytes())
    db = sqlite3.connect(path)
    db.executescript("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
    for i in range(5):
        db.execute("INSERT INTO loss(process_id, at_ns, events, cause) VALUES (1, 0, 1, ?)", ("x" * 6000,))
        db.commit()
    log = path.with_name(path.name + "-wal")
    main, text = path.read_bytes(), log.read_bytes()
    db.close()
    path.write_bytes(main)
    return log, text


@pytest.mark.parametrize("change, words, losses", [
    (lambda log: log, None, 5), (lambda log: log[:len(log) // 2], "is cut or overwritten after", 2), (lambda log: b"Z" * 32 + log[32:], "is damaged", 0),
    (lambda log: log[:20], "is damaged", 0), (lambda log: log[:8000] + b"Q" * 100 + log[8100:], "is cut or overwritten after 0 of", 0), (lambda log: b"", None, 0)])
def test_fsck_reports_a_truncated_write_ahead_log(run, whole, tmp_path, change, words, losses):
    path = tmp_path / "t.db"
    log, text = logged(whole, path)
    log.write_bytes(change(text))
    done = fsck(run, path) if words else run("fsck", path)
    assert (done.returncode == 0) == (words is None) and (words or "ok") in done.stdout and f"losses {losses}" in done.stdout
    if words:
        recovered = run("fsck", path, "--recover")
        assert re.search(r", \d+ rows, is in ", recovered.stderr) and len(rows(tmp_path / "t.db.recovered.db", "SELECT * FROM loss WHERE cause LIKE 'xxx%'")) == losses


def test_fsck_keeps_the_write_ahead_log_beside_an_empty_file(run, whole, tmp_path):
    """SQLite deletes the log beside an empty file. This log may be all that is left."""
    path = tmp_path / "t.db"
    log, text = logged(whole, path)
    log.write_bytes(text)
    path.write_bytes(b"")
    assert "all that is left of it is in its log" in fsck(run, path).stdout
    for command in ("report", "sql", "fsck"):
        run(command, path, *(["SELECT 1"] if command == "sql" else []))
    assert log.read_bytes() == text


def rows(path, sql):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def contents(path):
    names = [name for name, in rows(path, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
    return {name: set(rows(path, f"SELECT * FROM {name}")) for name in names}


@pytest.mark.parametrize("keep", [1.0, .4, .6, .9])
def test_recover_copies_exactly_the_readable_rows(run, whole, tmp_path, keep):
    """The new trace has every row of the readable pages, no other row, and a loss that names the unreadable ones."""
    data, path = whole.read_bytes(), tmp_path / "t.db"
    path.write_bytes(b"Z" * 16 + data[16:] if keep == 1 else data[:int(len(data) * keep)])
    done = fsck(run, path, "--recover")
    made = tmp_path / "t.db.recovered.db"
    assert f"rows, is in {made}" in done.stderr
    before, after = contents(whole), contents(made)
    causes = {cause for *_, cause in after["loss"]}
    for table, found in after.items():
        if table == "meta":  # counts are of the copied rows
            changed = {"state", "frame_count", "open_frame_count"}
            assert {row for row in found if row[0] not in changed} <= before[table]
            assert dict(found) | {"state": "recovered", "frame_count": len(after["frame"])} == dict(found)
        elif table != "loss":
            assert found <= before[table], table
            assert found == before[table] or any(f"table {table}: page" in cause for cause in causes) or keep < 1, table
    assert all(cause.startswith("recovered from a damaged file: ") for cause in causes) and causes
    assert run("sql", made, "SELECT COUNT(*) FROM frame").returncode == 0 and run("report", made).returncode == 0
    assert "what could be read of a damaged file" in run("report", made).stdout
    assert not re.search(r"\d events? w", run("check", made, "--max-recompiles", "9").stderr)
    if keep == 1:
        assert run("fsck", made).returncode == 0 and after["frame"] == before["frame"] and after["graph_break"] == before["graph_break"]
    assert "exists" in fsck(run, path, "--recover").stderr, "a file is never written over"


def test_fsck_json_lists_the_damage(run, whole, tmp_path):
    data, path = whole.read_bytes(), tmp_path / "t.db"
    path.write_bytes(data[:len(data) // 2])
    found = json.loads(run("fsck", path, "--json").stdout)
    assert found["ok"] is False and "is cut: it has" in found["rules"][0]["rows"][0] and any("table frame: page" in line for line in found["damage"])
    found = json.loads(run("fsck", whole, "--json").stdout)
    assert found["ok"] is True and found["damage"] == []
