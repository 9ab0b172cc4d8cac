"""dyntrace.open(): queries of a trace from Python. Data frames: tests/test_notebook.py."""

import json
import os
import re
import sqlite3
import subprocess
import textwrap
from pathlib import Path

import pytest

from shared import query


@pytest.fixture
def ask(dyntrace, python, tmp_path):
    """ask(code, ...) -> what the code prints. It can use `dyntrace` and `tr`."""

    def ask(code, **more):
        library = Path(dyntrace).parent / "lib/python"
        head = "import dyntrace\nfrom dyntrace import trace as tr\n"
        env = dict(os.environ, PYTHONPATH=str(library), **more)
        done = subprocess.run(
            [python, "-c", head + textwrap.dedent(code)],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        return done.stdout

    return ask


RECORDED = """
class Box:
    def get(self, n): return n
def get(n):
    if n == 3: raise ValueError
    return n
with dyntrace.record("r.db") as trace:
    for n in range(5):
        Box().get(n)
        try: get(n)
        except ValueError: pass
"""


@pytest.mark.newest_too
def test_the_trace_of_a_record_block_can_be_queried_after_it(ask):
    out = ask(RECORDED + """
row, = [f for f in trace.functions() if f.qualname == "Box.get"]
print(row.calls, row.raised, row.is_own, row.self_ns > 0, row.kind, row.first_line, type(row).__name__)
print(len(trace.calls()) > 10, len(trace.calls("get")), len(trace.calls("Box.get")), len(trace.calls("et")))
print([call.exit for call in trace.calls("get") if call.qualname == "get"], len(trace.calls(limit=3)))
print(trace.recompiles(), trace.recompiles().columns == list(tr.Recompile._fields))
print("Box.get" in trace.why("Box.get"), "What to look at first" in trace.why())
""")
    assert out.splitlines() == [
        "5 0 1 True function 5 Function",
        "True 10 5 0",
        "['return', 'return', 'return', 'raise', 'return'] 3",
        "[] True",
        "True True",
    ]


def test_a_trace_object_can_be_used_as_the_path_of_its_file(ask):
    out = ask(RECORDED + """
import os, pathlib
other = dyntrace.open(pathlib.Path("r.db"))
with open(trace, "rb") as file: print(file.read(6), other == "r.db" == trace, f"{trace} {other}")
os.chdir("/")
print(len(trace.calls("get")), [name for name in dir(trace) if name[0] != "_"])
""")
    names = ["calls", "close", "functions", "recompiles", "sql", "why"]
    assert out == f"b'SQLite' True r.db r.db\n10 {names}\n"


def test_recompiles_returns_the_rows_of_the_view(ask, plant):
    p = plant()
    p.compile()
    cause = dict(kind="EQUALS_MATCH", source="L['n']", expected="1", actual="2", text="n")
    p.compile([cause])
    path = p.done()
    out = ask(f"""
import json
row, = dyntrace.open({str(path)!r}).recompiles()
print(json.dumps(row._asdict()))
""")
    row = json.loads(out)
    columns = ", ".join(row)
    assert list(row.values()) == list(query(path, f"SELECT {columns} FROM recompiles")[0])
    assert (row["source"], row["why"]) == ("L['n']", "L['n']: expected 1, actual 2")


def test_sql_returns_every_type_of_value_and_every_column(ask, trace):
    out = ask("""
t = dyntrace.open("t.db")
rows = t.sql("SELECT 1 AS a, 1.5 AS b, NULL, 'x' AS 'select', x'00ff' AS a, 9e999, 'a\\nb' AS \\"it's\\"")
print(rows, rows.columns, rows[0].a, rows[0]._4)
print(t.sql("SELECT ?1 + 1 AS n, ?2 AS text, typeof(?3) AS none", 41, "a'b", None))
print(t.sql("SELECT pid FROM process WHERE 0"), t.sql("SELECT 1 AS n WHERE 0").columns)
print(len(t.sql("process-tree")), type(t.sql("SELECT 1")).__name__)
class Number:  # as numpy has them
    def item(self): return 7
print(t.sql("-- a comment\\nSELECT ? AS n", Number()))
""")
    assert out.splitlines() == [
        "[Row(a=1, b=1.5, NULL=None, select='x', _4=b'\\x00\\xff', _5=inf, _6='a\\nb')]"
        " ['a', 'b', 'NULL', 'select', 'a', '9e999', \"it's\"] 1 b'\\x00\\xff'",
        "[Row(n=42, text=\"a'b\", none='null')]",
        "[] ['n']",
        "2 Rows",
        "[Row(n=7)]",
    ]


def test_many_rows_equal_those_of_sqlite(ask, trace):
    out = ask("""
rows = dyntrace.open("t.db").sql(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25001) SELECT i, i % 7 AS m FROM n")
print(len(rows), rows[9999:10001], sum(row.i for row in rows))
""")
    assert out == f"25001 [Row(i=10000, m=4), Row(i=10001, m=5)] {25001 * 25002 // 2}\n"


WRONG = [
    ('dyntrace.open("nix.db")', "nix.db: there is no such file: dyntrace.record()"),
    ('dyntrace.open(".")', ".: is a directory: open one trace in it"),
    ('dyntrace.open("text.db")', "text.db: not an SQLite database, so not a trace"),
    ('dyntrace.open("other.db")', "other.db: "),
    ('dyntrace.open("-x.db")', "-x.db: there is no such file"),
    ('t.sql("SELECT qualnam FROM code")', "no such column: qualnam; did you mean qualname?"),
    ('t.sql("SELECT 1 FROM frams")', "no such table: frams; did you mean frame"),
    ('t.sql("proces-tree")', "no such query; did you mean process-tree?"),
    ('t.sql("SELECT ?", 1, 2)', "has 1 parameter, and the values given are 2"),
    ('t.sql("SELECT 1; SELECT 2")', "one statement"),
    ('t.sql("")', "not a query"),
    ('t.sql("DELETE FROM frame")', "reading"),
    ("t.sql(\"ATTACH 'x.db' AS x\")", "only reading is allowed here"),
    ('t.sql("SELECT " + "1, " * 100000 + "1")', ": "),
    ('tr.Trace("gone.db").functions()', "gone.db: there is no such file"),
    ('t.sql("SELECT ?", "x" * 300000)', "Argument list too long"),
    ('t.why("nix")', "nix: no such function"),
    ('t.why("--try")', "--try: no such function"),
]


@pytest.mark.parametrize("code, words", WRONG)
def test_every_error_is_a_trace_error(ask, trace, tmp_path, code, words):
    (tmp_path / "text.db").write_text("no database, but long enough to be taken for one" * 50)
    with sqlite3.connect(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE bookmark(url)")
    out = ask(f"""
t = dyntrace.open("t.db")
try: print("no error:", {code})
except tr.TraceError as error: print(isinstance(error, RuntimeError), error)
""")
    assert out.startswith("True ") and words in out and "True dyntrace: " not in out, out
    assert out.count("\n") == 1


def test_a_query_parameter_of_a_wrong_type_is_a_type_error(ask, trace):
    out = ask("""
try: dyntrace.open("t.db").sql("SELECT ?", object())
except TypeError as error: print(error)
""")
    assert out == "a parameter is a object, not a number, a str or None\n"


def test_nothing_is_written_beside_the_trace(ask, trace, tmp_path):
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    ask('with dyntrace.open("t.db") as t: t.sql("SELECT 1"), t.functions(), t.why()')
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_using_a_closed_trace_raises_an_error_that_says_so(ask, trace, tmp_path):
    out = ask("""
with dyntrace.open("t.db") as t: t.sql("SELECT 1")
for ask in (t.functions, t.why):
    try: ask()
    except tr.TraceError as error: print(error)
print(t._repr_html_().count("t.db: this Trace was closed"))
""")
    assert out == "t.db: this Trace was closed\n" * 2 + "1\n"
    assert (tmp_path / "t.db").exists()


LIVE = """
import time
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
with dyntrace.record("live.db") as trace:
    fib(23)
    for _ in range(500):
        count = trace.sql("SELECT calls FROM hot_functions WHERE qualname = ?", "fib")
        if count and count[0].calls == 92735: break
        time.sleep(0.02)
    print(count)
    try: trace.calls("fib")
    except tr.TraceError as error: print(error)
    notes, _, page = trace.why().partition("\\n\\n")
    print("recorded" in notes, "What to look at first" in page)
    print(trace.functions()[0].qualname != "", trace.sql("SELECT value FROM meta WHERE key = 'state'"))
print(len(trace.calls("fib")), trace.sql("SELECT value FROM meta WHERE key = 'state'")[0].value)
own = [f.qualname for f in trace.functions() if f.is_own]
print(sorted(own))
"""


@pytest.mark.newest_too
def test_a_trace_can_be_queried_while_it_is_recorded(ask):
    """The functions of ours that run the query are not recorded."""
    counted, refused, noted, state, whole, own = ask(LIVE).splitlines()
    assert counted == "[Row(calls=92735)]" and state == "True [Row(value='recording')]"
    assert "still being recorded" in refused and noted == "True True"
    assert whole == "92735 complete"
    assert "fib" in own and "_read_rows" not in own and "Trace.sql" not in own


def test_more_than_a_million_calls_need_a_limit(ask, trace):
    out = ask("""
tr._CALLS_MOST = 2
t = dyntrace.open("t.db")
print(len(t.calls(limit=4)))
try: t.calls()
except tr.TraceError as error: print(error)
""")
    assert out == "4\nt.db: more than 2 calls: name a function, or give a limit\n"


HOSTILE = "<script>alert(1)</script>&\x1b[31m"


def test_texts_of_a_hostile_trace_are_escaped_in_html(ask, tmp_path, trace):
    with sqlite3.connect(trace) as db:
        db.execute("UPDATE code SET qualname = ?, filename = ?", (HOSTILE, HOSTILE))
        db.execute("UPDATE code SET qualname = CAST(x'ff3c62' AS TEXT) WHERE code_id = 1")
        db.execute("UPDATE thread SET name = ?", (HOSTILE,))
    os.rename(trace, tmp_path / "<b>.db")
    out = ask("""
t = dyntrace.open("<b>.db")
rows = t.sql("SELECT qualname AS '<i>', filename FROM code")
pages = [t._repr_html_(), rows._repr_html_(), t.functions()._repr_html_()]
print(len(set(pages)))
for page in pages: print(page.encode().decode())
print(rows[0]._0 == "\\udcff<b", "alert" in pages[1], "\\\\udcff" in pages[1])
""")
    assert out.startswith("3\n") and out.endswith("True True True\n"), out
    for tag in set(re.findall(r"<(/?\w+)", out)):
        assert tag.strip("/") in "div b pre table thead tbody tr th td p".split(), tag
    assert "<b>.db" not in out and "<i>" not in out


def test_the_html_table_of_a_result_shows_its_first_20_rows(ask, trace):
    out = ask("""
rows = dyntrace.open("t.db").sql("SELECT value AS n, NULL AS none FROM json_each(?)", "[" + ",".join("5" * 30) + "]")
page = rows._repr_html_()
print(page.count("<tr>"), page.rpartition("<p>")[2], rows[:0], dyntrace.trace.Rows(rows[:1], rows.columns)._repr_html_()[-12:])
""")
    assert out == "21 30 rows, the first 20 of them</p> [] <p>1 row</p>\n"


def test_a_query_works_even_if_the_program_reaps_all_children(ask, trace):
    out = ask("""
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
t = dyntrace.open("t.db")
print(t.sql("SELECT 1 AS n"))
try: t.sql("SELECT nix")
except tr.TraceError as error: print(error)
""")
    assert out.startswith("[Row(n=1)]\n") and "no such column: nix" in out


def test_data_frames_name_the_package_that_is_missing(ask, trace, tmp_path):
    for name in ("pandas", "pyarrow"):
        (tmp_path / f"{name}.py").write_text("raise ImportError")
    out = ask("""
rows = dyntrace.open("t.db").functions()
for name in ("df", "arrow"):
    try: getattr(rows, name)
    except ImportError as error: print(error)
""")
    assert out == (
        "Rows.df needs pandas: pip install pandas\nRows.arrow needs pyarrow: pip install pyarrow\n"
    )


def test_queries_import_neither_sqlite3_nor_pandas(ask, trace):
    out = ask("""
import sys
t = dyntrace.open("t.db"); t.functions(); t.why()
print([name for name in ("sqlite3", "_sqlite3", "pandas", "pyarrow", "IPython", "html") if name in sys.modules])
""")
    assert out == "[]\n"
