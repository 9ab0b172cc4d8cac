"""The output of each command as a page, so that a diff can be read. DYNTRACE_RENEW=1 writes the pages anew. The pages of
why, show, report and diff are in their own tests."""
import sqlite3

import pytest

from planted import one, size_changes
from shared import golden


@pytest.fixture
def trace(plant, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    p = plant()
    size_changes(p)
    p.insert("graph_break", graph_break_id=1, compile_id=2, code_id=1, line=12, reason="call of print\nmore")
    p.db.executescript("""
    INSERT INTO meta VALUES ('state', 'complete'), ('host', 'box'), ('command', '["python", "app.py"]'), ('span_ns', 20000000),
        ('started_unix_ns', 1700000000000000000), ('dyntrace_version', '0.1.0');
    UPDATE process SET argv = '["python", "app.py"]', start_ns = 0, end_ns = 20000000, exit_code = 0, mode = 'all', python_version = '3.11.7';
    UPDATE thread SET name = 'MainThread';
    INSERT INTO frame_rows VALUES (1, 1, NULL, 2, 0, 0, 0, 20000000, NULL, 0), (2, 1, 1, 1, 0, 2, 1000000, 3000000, 1, 0), (3, 1, 1, 1, 0, 1, 5000000, 6000000, 4, 2);""")
    path = p.done()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value = 3 WHERE key = 'frame_count'")
        db.execute("INSERT INTO meta VALUES ('open_frame_count', 0)")
    db.close()
    return path


@pytest.mark.parametrize("name, arguments, status", [
    ("check", ["check", "p1.db", "--max-recompiles", "0", "--max-graph-breaks", "0", "--max-eager-share", "0.1", "--require-compiled", "main"], 1),
    ("check-ok", ["check", "p1.db", "--max-recompiles", "3", "--max-guard-us", "5"], 0),
    ("check-json", ["check", "p1.db", "--max-recompiles", "2", "--json"], 1),
    ("export-folded", ["export", "p1.db", "--format", "folded"], 0),
    ("export-csv", ["export", "p1.db", "--format", "csv"], 0),
    ("export-perfetto", ["export", "p1.db", "--format", "perfetto"], 0),
    ("export-speedscope", ["export", "p1.db", "--format", "speedscope"], 0),
    ("export-jsonl", ["export", "p1.db", "--format", "jsonl", "--table", "guard_check"], 0),
    ("report-json", ["report", "p1.db", "--json"], 0),
    ("sql", ["sql", "p1.db", "recompile-causes"], 0),
    ("fsck", ["fsck", "p1.db"], 1),
])
def test_each_command_prints_its_golden_page(run, trace, name, arguments, status):
    done = run(*arguments)
    assert done.returncode == status
    golden(name, done.stdout)


def test_why_on_an_imported_log_is_the_golden_page(run, logs, tmp_path):
    """`why` reads the imported log of a torch program."""
    one(logs).write()
    assert run("import", "logs", "-o", "t.db").returncode == 0
    golden("import", run("why", "f", "t.db").stdout)


def test_each_commands_help_begins_with_its_usage(run):
    for line in run("help").stdout.splitlines():
        name = line.split()[:1]
        if line.startswith("  ") and name[0].isalpha():
            assert run(name[0], "--help").stdout.startswith(f"usage: dyntrace {name[0]}"), name
