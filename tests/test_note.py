"""dyntrace.note: what a program's own compiler notes about its compiles is printed like torch's facts."""
import json
import os
import subprocess
from pathlib import Path

import pytest

from shared import PROGRAMS, ROOT, holds, query

pytestmark = pytest.mark.one_python

PROGRAM = PROGRAMS / "notes.py"


@pytest.fixture(scope="module")
def noted(dyntrace, python, tmp_path_factory):
    """The trace, and what the program printed."""
    trace = tmp_path_factory.mktemp("noted") / "t.db"
    done = subprocess.run([dyntrace, "run", "-o", trace, "--python", python, PROGRAM], capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    return holds(trace), done.stdout


def test_notes_are_stored_with_their_compiles(noted):
    trace, _ = noted
    compiles = [row for row, in query(trace, "SELECT compile_id FROM compiles WHERE qualname = 'f' ORDER BY start_ns")]
    assert len(compiles) == 2
    for compile in compiles:
        assert query(trace, "SELECT kind, text FROM listing WHERE compile_id = ? AND kind = 'who'", compile) == [("who", "f")]
        assert query(trace, "SELECT g.name, node_count, group_concat(n.opcode || ' ' || n.target, ', ') FROM graph g JOIN graph_node n USING (graph_id)"
                            " WHERE compile_id = ?", compile) == [("__compiled_fn_0", 3, "placeholder x, call_function int.__add__, output output")]
        (name, inside), = query(trace, "SELECT p.name, p.start_ns >= m.start_ns - 1000000 AND p.end_ns <= m.end_ns + 1000000 FROM compile_phase p JOIN compile m USING (compile_id)"
                                       " WHERE compile_id = ?", compile)
        assert (name, inside) == ("capture", 1)
        (line, reason, function), = query(trace, "SELECT line - first_line, reason, resume_function FROM graph_breaks b JOIN code USING (code_id) WHERE compile_id = ?", compile)
        assert (line, reason, function) == (2, "a call of print\n  Explanation: it prints\n  Hint: print the result", "rest")
    assert query(trace, "SELECT text FROM listing WHERE kind = 'input x' ORDER BY compile_id") == [("1",), ("2",)]
    assert query(trace, "SELECT c.qualname, o.qualname FROM code c JOIN code o ON o.code_id = c.origin_code_id WHERE c.kind = 'resume'") == [("rest", "f")]


def test_notes_do_not_belong_to_an_enclosing_compile(noted):
    """A compile within a compile, another thread, and a child have their own notes, or none."""
    trace, _ = noted
    assert query(trace, "SELECT qualname, text, count(*) FROM listing JOIN compiles USING (compile_id) WHERE kind = 'who' GROUP BY 1, 2 ORDER BY 1") == [
        ("f", "f", 2), ("inner", "inner", 1)]
    assert query(trace, "SELECT count(*) FROM graph") == [(2,)]
    assert query(trace, "SELECT m.outcome, b.reason FROM compiles m LEFT JOIN graph_breaks b USING (compile_id) WHERE m.qualname = 'refused'") == 2 * [("error", "a yield\n  Hint: ")]


def test_every_command_prints_notes(noted, dyntrace):
    trace, _ = noted
    def said(*words):
        return subprocess.run([dyntrace, *words], capture_output=True, text=True)
    page = said("why", "f", trace).stdout
    assert "Mend the break at line 13 (a call of print): print the result." in page
    assert "line 13, 2 times: a call of print\n           it prints\n" in page and "\n           goes on in rest" in page
    assert "capture" in page.partition("Where compile time went")[2]
    shown = said("show", "f", trace).stdout
    assert "graph __compiled_fn_0, 3 nodes" in shown and "hint: print the result" in shown and "input x" in shown
    report = json.loads(said("report", trace, "--json").stdout)
    assert "a call of print" in json.dumps(report)
    checked = said("check", trace, "--max-graph-breaks", "0")
    assert checked.returncode == 1 and "a call of print" in checked.stdout
    assert said("diff", trace, trace).returncode == 0
    assert json.loads(said("replay", trace, "--what-if", "recompile_limit=1", "--json").stdout)["functions"]


def test_without_a_recording_only_wrong_types_are_errors(noted, dyntrace, python):
    _, out = noted
    library = Path(dyntrace).parent / "lib" / "python"
    alone = subprocess.run([python, PROGRAM], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(library)})
    assert (alone.returncode, alone.stdout, alone.stderr) == (3, out, "")
    assert out.splitlines()[-5:] == [f"{name} is a {kind}, not a str" for name, kind in
                                     (("name", "int"), ("reason", "NoneType"), ("text", "bytes"), ("text", "int"), ("name", "int"))]


@pytest.mark.parametrize("values", ["types", "off"])
def test_inputs_are_not_recorded_with_values_types_or_values_off(dyntrace, python, tmp_path, values):
    subprocess.run([dyntrace, "run", "--values", values, "-o", tmp_path / "t.db", "--python", python, PROGRAM], capture_output=True)
    assert query(holds(tmp_path / "t.db"), "SELECT count(*) FROM listing WHERE kind LIKE 'input%'") == [(0,)]
    assert query(tmp_path / "t.db", "SELECT count(*) FROM graph_break") == [(4,)]


def test_examples_breaks_py_is_recorded_with_its_breaks_and_resume_functions(dyntrace, python, tmp_path):
    trace, program = tmp_path / "t.db", ROOT / "examples/breaks.py"
    assert len(program.read_text().splitlines()) <= 60
    done = subprocess.run([dyntrace, "run", "-o", trace, "--python", python, program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-1], done.stdout.count("is")) == (0, "6 9 10.5", 6)
    broken = query(holds(trace), "SELECT qualname, line - (SELECT first_line FROM code WHERE qualname = 'steps'), resume_function, count(*) FROM graph_breaks GROUP BY 1 ORDER BY 2")
    (first, line, rest, times), (second, later, last, again) = broken
    assert (first, line, times, rest, later, again) == ("steps", 2, 2, second, 4, 2)
    assert query(trace, "SELECT qualname, kind, calls FROM code JOIN code_total USING (code_id) WHERE kind = 'resume' ORDER BY code_id") == [(rest, "resume", 3), (last, "resume", 3)]
    assert {origin for origin, in query(trace, "SELECT o.qualname FROM code c JOIN code o ON o.code_id = c.origin_code_id WHERE c.kind = 'resume'")} == {"steps"}
    page = subprocess.run([dyntrace, "why", "steps", trace], capture_output=True, text=True).stdout
    assert "(a call of print): return the values and print them outside." in page
    assert f"goes on in {rest}: 3 calls, 2 compiles (1 recompile)" in page and "inputs: x: float 2.5" in page
