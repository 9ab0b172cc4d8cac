"""A trace with one damaged table: a command that comes upon the damage says so in one line and fails; others answer."""
import random
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
    """The same of another process."""
    path = whole.parent / "other.db"
    path.write_bytes(whole.read_bytes())
    with sqlite3.connect(path) as db:
        db.execute("UPDATE process SET pid = pid + 1")
    db.close()
    return path


@pytest.mark.parametrize("table", TABLES)
def test_one_table(run, whole, other, tmp_path, table):
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
            assert done.returncode == (1 if name == "sql" else 2), (name, done)
            assert "damaged" in one_line(done.stderr), name
            assert not (tmp_path / "out").exists(), name
        else:
            assert done.returncode in (0, 1), (name, done)
        (tmp_path / "out").unlink(missing_ok=True)
    assert said


@pytest.mark.parametrize("seed", range(3))
def test_nonsense_in_numbers(run, whole, other, tmp_path, seed):
    """Any number anywhere: an answer or one line; sums that no trace can have do not overflow (`make check-san` looks)."""
    choose = random.Random(seed)
    path = tmp_path / "t.db"
    path.write_bytes(whole.read_bytes())
    with sqlite3.connect(path) as db:
        for table, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('meta', 'enum', 'graph_node')").fetchall():
            for _, column, kind, _, _, key in db.execute(f"PRAGMA table_info({table})").fetchall():
                if kind == "INTEGER" and not key and choose.random() < .3:
                    db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid % ? = 0",
                               (choose.choice([2**63 - 1, -2**63, 2**62, -1, None, "x", 1e300]), choose.choice([1, 2, 7])))
    db.close()
    for name, argv in COMMANDS.items():
        done = run(*[{"FILE": path, "OTHER": other, "out": tmp_path / "out"}.get(a, a) for a in argv])
        assert done.returncode in (0, 1, 2) and "runtime error" not in done.stderr, (name, done)
        assert done.returncode < 2 or done.stderr.startswith("dyntrace: "), (name, done)
        (tmp_path / "out").unlink(missing_ok=True)
