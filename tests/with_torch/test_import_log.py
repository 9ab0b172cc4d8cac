"""What torch logs of a run, imported, beside the recording of the same run; and the ready queries on both."""
import contextlib
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
PROGRAMS = Path(__file__).resolve().parent / "programs"
QUERIES = sorted(path.stem for path in (Path(__file__).resolve().parents[2] / "schemas/queries").glob("*.sql"))


@pytest.fixture(scope="module", params=["batch_limit", "tokenizer", "transformer"])
def both(request, dyntrace, python, tmp_path_factory):
    """(the recording, the imported log) of one run."""
    folder = tmp_path_factory.mktemp(request.param)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "PYTHON"))}
    environment.update(PYTHONDONTWRITEBYTECODE="1", TORCH_TRACE=str(folder / "logs"), TMPDIR=str(folder), OMP_NUM_THREADS="1")
    done = subprocess.run([dyntrace, "run", "--frames", "user", "-o", folder / "run.db", "--python", python, "--", PROGRAMS / f"{request.param}.py"],
                          capture_output=True, text=True, cwd=folder, env=environment, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    done = subprocess.run([dyntrace, "import", folder / "logs", "-o", folder / "log.db"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return folder / "run.db", folder / "log.db"


def rows(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


@pytest.mark.parametrize("what, sql", [
    # The name that torch logs is not the qualified one.
    ("compiles", "SELECT m.label, c.filename, c.first_line FROM compile m JOIN code c USING (code_id) WHERE m.cache_entry_id IS NOT NULL ORDER BY m.start_ns"),
    ("limits", "SELECT m.label FROM compile m WHERE m.outcome = 'limit' ORDER BY m.label"),
    # Conditions on sizes (LAMBDA_GUARD) are looked into by the recorder, which finds a source in them; dicts, whose length is
    # asked without a guard, have rows of their own there. The last guard of torch 2.6 has no text, so its log has not got it.
    ("guards", "SELECT e.label, g.kind, CASE WHEN g.kind <> 'LAMBDA_GUARD' THEN g.source END AS s, COUNT(*) FROM guard g"
               " JOIN cache_entry e USING (cache_entry_id) WHERE g.kind NOT IN ('DICT_LENGTH', 'EXISTS', 'HASATTR')"
               " AND COALESCE(g.source, '') NOT LIKE '%dict.keys%' AND (g.kind <> 'LAMBDA_GUARD' OR g.expression <> '') GROUP BY e.label, g.kind, s ORDER BY e.label, g.kind, s"),
    ("breaks", "SELECT m.label, b.line FROM graph_break b JOIN compile m USING (compile_id) ORDER BY m.label, b.line"),
    ("causes", "SELECT DISTINCT m.label, e.label, r.kind, CASE WHEN r.kind <> 'LAMBDA_GUARD' THEN r.source END FROM recompile_cause r JOIN compile m USING (compile_id)"
               " JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id WHERE r.ordinal = 0 AND m.outcome = 'compiled' ORDER BY 1, 2"),
    ("graphs", "SELECT m.label, COUNT(*) FROM graph g JOIN compile m USING (compile_id) GROUP BY m.label ORDER BY 1"),
])
def test_an_imported_log_has_the_same_facts_as_the_recording(both, what, sql):
    recorded, imported = (rows(path, sql) for path in both)
    assert imported == recorded
    if what in ("compiles", "guards"):
        assert recorded


@pytest.mark.parametrize("query", QUERIES)
def test_each_named_query_answers_on_an_imported_log(dyntrace, both, query):
    """Each query runs on the recording and on the imported log of one program."""
    for path in both:
        done = subprocess.run([dyntrace, "sql", path, query], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert "\t" in done.stdout.splitlines()[0]
