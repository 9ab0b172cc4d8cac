"""functions.function_id: our connections look it up (src/trace/function_ids.c), and find the same value as the view in
the trace."""
import re
import sqlite3

import pytest

from shared import ROOT, SCHEMA

pytestmark = pytest.mark.one_python
CODES = [
    (1, 1, "a.py", "f", 3, "function"), (2, 2, "a.py", "f", 3, "function"),  # one, in two processes
    (3, 1, "a.py", "f", 4, "function"), (4, 1, "b.py", "f", 3, "function"), (5, 1, "a.py", "g", 3, "function"),
    (6, 1, "a.py", "f", 3, "compiled"),  # code that a compiler made of the first
    (7, 1, None, "f", 3, "function"), (8, 1, None, "f", 3, "function"), (9, 1, "", "f", 3, "function"),
    (10, 1, "a.py", None, None, "function"), (11, 1, "a.py", None, None, None), (12, 1, "a.py", None, 0, "function"), (13, 1, None, None, None, None),
]


def test_function_of_equals_the_view_functions(run, tmp_path):
    db = sqlite3.connect(tmp_path / "t.db")
    db.executescript(SCHEMA)
    db.executemany("INSERT INTO code(code_id, process_id, filename, qualname, first_line, kind) VALUES (?, ?, ?, ?, ?, ?)", CODES)
    db.commit()
    expected = dict(db.execute("SELECT code_id, function_id FROM functions"))
    db.close()
    assert expected == {1: 1, 2: 1, 3: 3, 4: 4, 5: 5, 6: 1, 7: 7, 8: 7, 9: 9, 10: 10, 11: 10, 12: 12, 13: 13}
    done = run("sql", "t.db", "SELECT code_id, function_id FROM functions", "--no-header")
    assert {int(code): int(function) for code, function in (line.split("\t") for line in done.stdout.splitlines())} == expected
    ours = run("sql", "t.db", "SELECT sql FROM temp.sqlite_schema WHERE name = 'functions'").stdout
    assert "function_of(code_id)" in ours and "OVER" not in ours


def test_no_statement_groups_by_a_functions_name_file_and_line():
    spelled = re.compile(r"(?:GROUP|PARTITION) BY [^)\n]*filename[^)\n]*first_line")
    # A log of torch has no code objects yet; in a dataset of several ranks nothing else names a function of all of them.
    others = {"import", "engines"}
    files = [path for path in (ROOT / "schemas").rglob("*.sql") if path.name != "views.sql" and not others & set(path.parts)]
    assert [str(path) for path in files if spelled.search(path.read_text())] == []
    assert len(spelled.findall((ROOT / "schemas/views.sql").read_text())) == 1  # the definition
