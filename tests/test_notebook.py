"""examples/notebook.ipynb, and cells with %%dyntrace, run by a kernel as Jupyter runs them; data frames.

They need a Python with nbclient, ipykernel, pandas and pyarrow, for which the extension was built:
`./dev test` makes one in build/venv. Else the tests are skipped.
"""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from shared import ROOT, command_path

LIBRARY = Path(command_path()).parent / "lib"
NEEDS = "nbclient, ipykernel, pandas, pyarrow"


def find_python():
    """The first Python here that can run notebooks with dyntrace."""
    look = "import %s, sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))" % NEEDS
    for python in (sys.executable, ROOT / "build/venv/bin/python"):
        if os.path.exists(python):
            done = subprocess.run([python, "-c", look], capture_output=True, text=True)
            if not done.returncode and (LIBRARY / f"_dyntrace{done.stdout.strip()}").exists():
                return python
    return None


PYTHON = find_python()
pytestmark = [
    pytest.mark.one_python,
    pytest.mark.skipif(not PYTHON, reason="no Python here has %s" % NEEDS),
]

RUN = """
import json, sys, nbclient, nbformat
notebook = nbformat.read(sys.stdin, 4)
client = nbclient.NotebookClient(notebook, timeout=120, allow_errors=True)
client.create_kernel_manager()
client.km.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
client.execute()
print(nbformat.writes(notebook))
"""


@pytest.fixture
def ask(tmp_path):
    """ask(code, text) -> what the Python for notebooks prints, with TEXT as its input."""

    def ask(code, text=None):
        env = dict(os.environ, PYTHONPATH=str(LIBRARY / "python"), IPYTHONDIR=str(tmp_path / "ipy"))
        env["PATH"] = f"{Path(command_path()).parent}:{env['PATH']}"
        done = subprocess.run(
            [PYTHON, "-c", textwrap.dedent(code)],
            input=text,
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return ask


def without_colours(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.fixture
def cells(ask):
    """cells(code, ...) -> for each cell the list of its outputs: (kind, text) or (kind, text, html)."""

    def cells(*sources):
        codes = [
            {
                "cell_type": "code",
                "metadata": {},
                "outputs": [],
                "execution_count": None,
                "id": f"c{n}",
            }
            | {"source": source}
            for n, source in enumerate(["%load_ext dyntrace", *sources])
        ]
        page = {"cells": codes, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        return [list(map(output, cell["outputs"])) for cell in run(page)[1:]]

    def run(page):
        return json.loads(ask(RUN, json.dumps(page)))["cells"]

    def output(out):
        if out["output_type"] == "stream":
            return (out["name"], "".join(out["text"]))
        if out["output_type"] == "error":
            return ("error", without_colours("\n".join(out["traceback"])))
        data = {kind: "".join(text) for kind, text in out["data"].items()}
        return (out["output_type"], data["text/plain"], data.get("text/html"))

    cells.run = run
    return cells


def test_the_example_notebook_runs_and_shows_what_its_text_says(cells):
    page = json.loads((ROOT / "examples/notebook.ipynb").read_text())
    assert all(cell["outputs"] == [] for cell in page["cells"] if cell["cell_type"] == "code")
    done = [cell for cell in cells.run(page) if cell["cell_type"] == "code"]
    outputs = [cell["outputs"] for cell in done]
    assert [out for outs in outputs for out in outs if out["output_type"] == "error"] == []

    def texts(number, kind="text/plain"):
        found = [out.get("data", {}).get(kind, out.get("text", "")) for out in outputs[number]]
        return "\n".join(map("".join, found))

    assert "['guard', 'graph', 'compile']" in texts(2)
    assert re.search(r"load: one call took [2-9]\d\d ms", texts(2)) and "load waited at least" in texts(2)
    assert "What to look at first" in texts(2, "text/html")
    assert re.search(r"\bload +20 +2\d{8}", texts(3)) and "distance" in texts(3)
    assert "call 7 of 20 took 20" in texts(4) and "Slowest calls" in texts(4)
    assert "qualname='distance', calls=21" in texts(5) and "<td>distance</td>" in texts(
        5, "text/html"
    )
    assert "scale was compiled again 2 times, most often for factor" in texts(7)
    assert "L['factor']: expected 0.5, actual 0.25" in texts(8)


def test_a_recorded_notebook_cell_does_what_it_does_unrecorded(cells):
    plain, recorded, after = cells(
        "import sys\nx = [1]\n!echo shell\nprint('out'); print('err', file=sys.stderr)\nx",
        "%%dyntrace\nimport sys\nx = [1]\n!echo shell\nprint('out'); print('err', file=sys.stderr)\nx",
        "x is _, Out[3] is x, _dyntrace.sql('SELECT COUNT(*) > 0 AS n FROM frame')",
    )
    assert sorted(recorded[:-1]) == sorted(plain)
    kind, text, html = recorded[-1]
    assert kind == "display_data" and "What to look at first" in text and "<pre" in html
    assert after == [("execute_result", "(True, True, [Row(n=1)])", None)]


def test_an_error_is_shown_once_and_ends_the_recording(cells):
    define, plain, recorded, after = cells(
        "def f(n): return sum(range(500_000)) / n",
        "f(0)",
        "%%dyntrace -o mine\nf(1)\nf(0)",
        "import dyntrace._native as n; (n.native._active(), [c.exit for c in mine.calls('f')])",
    )
    (_, expected), (kind, shown), (_, found, _) = plain[0], *recorded
    assert kind == "error"
    assert (
        "Cell In[4], line 2\n      1 f(1)\n----> 2 f(0)\n" in shown and "_notebook.py" not in shown
    )
    assert shown.splitlines()[-4:] == expected.splitlines()[-4:]
    assert "What to look at first" in found
    assert after == [("execute_result", "(None, ['return', 'raise'])", None)]


def test_an_error_stops_the_run_of_all_cells(ask):
    """`Run all cells` stops at the cell that raised."""
    out = ask("""
        import nbclient, nbformat
        cell = nbformat.v4.new_code_cell
        for body in ("1 / 0", "x = = 3", "1"):
            notebook = nbformat.v4.new_notebook(cells=[cell("%load_ext dyntrace"), cell("%%dyntrace\\n" + body)])
            try: print(bool(nbclient.NotebookClient(notebook, timeout=120).execute()))
            except nbclient.exceptions.CellExecutionError as error: print(error.ename)
        """)
    assert out.split() == ["ZeroDivisionError", "SyntaxError", "True"]


def test_a_cell_with_a_syntax_error_is_not_recorded(cells):
    plain, recorded, after = cells(
        "x = = 3", "%%dyntrace t.db\nx = = 3", "import os; os.path.exists('t.db')"
    )
    strip = lambda text: re.sub(r"In\[\d+\]|\d+\.py", "", text)
    assert [(kind, strip(text)) for kind, text in recorded] == [(k, strip(t)) for k, t in plain]
    assert after == [("execute_result", "False", None)]


def test_the_notebook_magic_accepts_the_options_of_run(cells):
    named, there, replaced, typed, unknown, nowhere, found = cells(
        "%%dyntrace t.db -o mine\n(lambda: 1)()",
        "%%dyntrace t.db\n1",
        "%%dyntrace t.db --force --values types --no-argv\n2",
        "import json; [mine, _dyntrace, *_dyntrace.sql(\"SELECT value FROM meta WHERE key = 'values'\")]",
        "%%dyntrace --nix\n1",
        "%%dyntrace /no/such/place/t.db\n1",
        "_dyntrace.sql('SELECT argv FROM process')",
    )
    assert len(named) == len(replaced) == 2
    ((kind, text),) = there
    assert kind == "stderr" and "t.db: the file is there already; --force replaces it" in text
    assert typed == [("execute_result", "['t.db', 't.db', Row(value='types')]", None)]
    assert "unrecognized arguments: --nix" in unknown[0][1]
    assert "/no/such/place/t.db: No such file or directory" in nowhere[0][1]
    assert found[0][1] == "[Row(argv=None)]"


def test_a_temporary_trace_is_deleted_with_its_variable(cells):
    _, there, forked, gone, _, closed = cells(
        "%%dyntrace\n1",
        "import os, gc\npath = str(_dyntrace)\n_dyntrace.functions() != [] and os.path.exists(path)",
        "pid = os.fork()\nif not pid: _dyntrace._finish(); os._exit(0)\n"
        "os.waitpid(pid, 0)\nos.path.exists(path)",
        "del _dyntrace\ngc.collect(); os.path.exists(path)",
        "%%dyntrace\n2",
        "path = str(_dyntrace)\n_dyntrace.close(); os.path.exists(os.path.dirname(path))",
    )
    texts = [outputs[-1][1] for outputs in (there, forked, gone, closed)]
    assert texts == ["True", "True", "False", "False"]


def test_a_kernel_that_is_recorded_keeps_its_recording(cells):
    within, after = cells(
        "import dyntrace\nwith dyntrace.record('outer.db') as outer:\n"
        "    get_ipython().run_cell_magic('dyntrace', '', '(lambda: 5)()')",
        "_dyntrace == outer, len(outer.calls('<lambda>')) > 0",
    )
    kinds = [out[0] for out in within]
    assert kinds == ["stdout", "execute_result"], within
    assert within[0][1].startswith(
        "%%dyntrace: this process is being recorded already: the cell is in "
    )
    assert within[0][1].count("\n") == 1 and within[1][1] == "5"
    assert after[0][1].endswith(", True)")


def test_a_recorded_cell_may_not_await_but_a_record_block_may(cells):
    refused, block = cells(
        "%%dyntrace\nimport asyncio\nawait asyncio.sleep(0)",
        "import asyncio, dyntrace\nasync def tick(): await asyncio.sleep(0.01)\n"
        "with dyntrace.record('t.db') as trace: await tick()\nlen(trace.calls('tick'))",
    )
    ((kind, text),) = refused
    assert kind == "stderr" and "with dyntrace.record" in text and text.count("\n") <= 2
    assert block == [("execute_result", "1", None)]


def test_ipython_in_a_terminal_shows_text_and_may_await(ask):
    """IPython's shell has no kernel and no running event loop, so a cell may await."""
    out = ask(r"""
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance(colors="NoColor")
        for cell in ("%load_ext dyntrace", "%%dyntrace\nimport asyncio\nawait asyncio.sleep(0)\n3", "_dyntrace"):
            assert shell.run_cell(cell, store_history=True).success
        """)
    assert (
        "3\n" in out and out.count("What to look at first") + out.count("Nothing stands out") == 2
    )


# ---- data frames ----

FRAMES = """
import dyntrace, sys
sys.modules.pop("pandas", None)
t = dyntrace.open("t.db")
print("pandas" in sys.modules)
big = 2 ** 62 + 1
rows = t.sql("SELECT ? AS big, 'x' AS text, 1.5 AS real, NULL AS none UNION ALL SELECT NULL, NULL, NULL, NULL", big)
df = rows.df
print(df.dtypes["big"], df["big"][0] == big, df.shape, df["real"].dtype, list(df.columns))
print(t.functions().df.equals(t.functions().df), t.functions().df["calls"].dtype, len(t.calls().df))
empty = t.sql("SELECT 1 AS a, 'b' AS b WHERE 0")
print(empty.df.shape, list(empty.df.columns), empty.arrow.schema.names, empty.arrow.num_rows)
print(t.sql("SELECT 1 AS a, 2 AS a").df.values.tolist())
table = rows.arrow
print(table.schema.types, table.to_pylist()[0]["big"] == big)
print(t.sql("SELECT 1 AS a, x'00' AS b UNION ALL SELECT 'x', x'ff'").arrow.to_pydict())
print(t.sql("SELECT CAST(x'ff41' AS TEXT) AS a").arrow.to_pydict())
print(t.sql("SELECT ? AS a", df["big"].iloc[0])[0].a == big, t.sql("SELECT ? AS a", df["real"][0])[0].a)
"""


def test_data_frames_keep_types_and_numbers(ask, trace):
    lines = ask(FRAMES).splitlines()
    assert lines == [
        "False",
        "Int64 True (2, 4) float64 ['big', 'text', 'real', 'none']",
        "True int64 " + lines[2].split()[-1],
        "(0, 2) ['a', 'b'] ['a', 'b'] 0",
        "[[1, 2]]",
        "[DataType(int64), DataType(string), DataType(double), DataType(null)] True",
        "{'a': ['1', 'x'], 'b': [b'\\x00', b'\\xff']}",
        "{'a': ['\\\\udcffA']}",
        "True 1.5",
    ]
