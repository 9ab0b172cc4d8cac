"""Frames are read from the pages of the file if these have the usual form, otherwise by SQLite (src/trace/scan.c). The
results must be equal for every file. The table of an older trace, which has all columns as they are, is always read by
SQLite; its result is the expected one."""
import shutil
import sqlite3
import subprocess

import pytest

from frame_rows import frame_rows
from shared import PYTHONS

pytestmark = pytest.mark.one_python

PROGRAM = "def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\ndef wait(): yield 1\nlist(wait()); fib(14)"
MIDDLE = "(SELECT frame_id FROM frame ORDER BY frame_id LIMIT 1 OFFSET 600)"
OLDER = """
    PRAGMA legacy_alter_table = ON;
    CREATE TABLE older(frame_id INTEGER PRIMARY KEY, thread_id INTEGER, parent_id INTEGER, code_id INTEGER, kind INTEGER, outcome INTEGER,
                       start_ns INTEGER, end_ns INTEGER, cache_entry_id INTEGER, exit INTEGER);
    INSERT INTO older SELECT frame_id, thread_id, parent_id, code_id, kind, outcome, start_ns, end_ns, cache_entry_id, exit FROM frame;
    DROP TABLE frame;
    ALTER TABLE older RENAME TO frame;
"""
CHANGES = {
    "as recorded": "",
    "small pages": "PRAGMA page_size = 512; VACUUM",
    "large pages": "PRAGMA page_size = 65536; VACUUM",
    "a log": f"PRAGMA journal_mode = WAL; DELETE FROM frame WHERE frame_id = {MIDDLE}",
    "no frame": "DELETE FROM frame",
    "one frame": "DELETE FROM frame WHERE parent_id IS NOT NULL",
    "a text": f"UPDATE frame_rows SET start_ns = 'soon' WHERE frame_id = {MIDDLE}",
    "a long text": f"UPDATE frame SET kind = printf('%.9000c', 'x') WHERE frame_id = {MIDDLE}",
    "a fraction": f"UPDATE frame_rows SET end_ns = end_ns + 0.5 WHERE frame_id = {MIDDLE}",
    "no end": f"UPDATE frame_rows SET end_ns = NULL WHERE frame_id > {MIDDLE}",
    "large and negative numbers": f"UPDATE frame SET exit = -1, outcome = -9e15, code_id = code_id - 1000 * (frame_id = {MIDDLE})",
    "large and negative keys": f"UPDATE frame_rows SET frame_id = -1 WHERE frame_id = {MIDDLE}; UPDATE frame_rows SET frame_id = 1 << 62 WHERE frame_id ="
                               " (SELECT MAX(frame_id) FROM frame)",
}


@pytest.fixture(scope="module")
def traces(dyntrace, tmp_path_factory):
    """The same frames in pages of the usual form, and in pages of another form."""
    folder = tmp_path_factory.mktemp("scan")
    subprocess.run([dyntrace, "run", "-o", folder / "read.db", "--python", PYTHONS[0], "--", "-c", PROGRAM], check=True,
                   capture_output=True, timeout=60)
    shutil.copy(folder / "read.db", folder / "asked.db")
    return folder


def change(path, script):
    db = frame_rows(sqlite3.connect(path, isolation_level=None))
    db.executescript(script)
    return db


def told(run, path):
    done = run("export", path, "--format", "folded", "-o", "-")
    return done.returncode, done.stdout, done.stderr.replace(path.stem, "")


@pytest.mark.parametrize("name", CHANGES)
def test_frames_read_from_pages_equal_those_of_sqlite(run, traces, tmp_path, name):
    answers = []
    for file in ("read.db", "asked.db"):
        shutil.copy(traces / file, tmp_path)
        with change(tmp_path / file, CHANGES[name]) as db:  # its log is there until it is closed
            if file == "asked.db":
                db.executescript(OLDER)
            answers.append(told(run, tmp_path / file))
    assert answers[0] == answers[1]
    assert answers[0][0] == 0 and bool(answers[0][1]) == (name != "no frame")


@pytest.mark.parametrize("where", ["a leaf", "the root", "its end"])
def test_damaged_pages_are_reported_as_sqlite_does(run, traces, tmp_path, where):
    """SQLite reports the damage, after the same rows."""
    answers = []
    for file in ("read.db", "asked.db"):
        shutil.copy(traces / file, tmp_path)
        with sqlite3.connect(tmp_path / file) as db:
            root = (db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'frame'").fetchone()[0] - 1) * 4096
        db.close()
        data = bytearray((tmp_path / file).read_bytes())
        third = root + int.from_bytes(data[root + 16:root + 18], "big")
        leaf = (int.from_bytes(data[third:third + 4], "big") - 1) * 4096
        at = root if where == "the root" else leaf
        data[at:at + 4096] = b"Z" * 4096
        (tmp_path / file).write_bytes(data if where != "its end" else data[:leaf + 4000])
        answers.append(told(run, tmp_path / file))
    assert answers[0] == answers[1]
    assert answers[0][0] == 2 and "damaged" in answers[0][2]
