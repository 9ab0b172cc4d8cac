"""`dyntrace export --format parquet`: a dataset that engines read, and the five questions of schemas/engines/ on them.

DYNTRACE_ENGINES_PYTHON  a Python with pyarrow, and duckdb, chdb, pyspark or datasette, else the one that runs pytest, else the one that `make engines`
                         makes. What it does not have is skipped
"""
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from shared import ROOT, one_line, schema_sql
from test_ranks import job, recorded  # noqa: F401  a fixture

pytestmark = pytest.mark.one_python
HERE = ROOT / "build" / "engines" / "bin" / "python"
PYTHON = os.environ.get("DYNTRACE_ENGINES_PYTHON") or (str(HERE) if HERE.exists() else sys.executable)
QUESTIONS = dict(re.findall(r"^-- name: (\w+)\n((?:.|\n)*?);\n", schema_sql("engines/questions"), re.M))

ASK = ROOT / "schemas/engines/ask.py"


def has(module):
    return subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True).returncode == 0


needs_pyarrow = pytest.mark.skipif(not has("pyarrow"), reason="no pyarrow: `make engines` installs it")


@pytest.fixture
def traces(recorded, tmp_path):
    return job(tmp_path / "job", recorded, 8, shape=3, flag=6)


@pytest.fixture
def dataset(run, traces, tmp_path):
    out = tmp_path / "job's out"
    done = run("export", traces, "--format", "parquet", "-o", out, "--python", PYTHON)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return out


def own_answers(traces):
    """Return the answers from the traces themselves, by SQLite: their tables joined, with job and rank."""
    db = sqlite3.connect(":memory:")
    for path in sorted(traces.iterdir()):
        db.execute("ATTACH ? AS t", (str(path),))
        meta = dict(db.execute("SELECT key, value FROM t.meta"))
        for (table,) in db.execute("SELECT name FROM t.sqlite_schema WHERE type = 'table' AND name NOT IN ('meta', 'enum')").fetchall():
            columns = [row[1] for row in db.execute(f"PRAGMA t.table_info({table})")]
            names = ", ".join("rank AS own_rank" if c == "rank" else f"{c} + {meta['started_unix_ns']} AS {c}" if c in ("start_ns", "end_ns") else
                              f"COALESCE(host, '{meta['host']}') AS host" if c == "host" else c for c in columns)
            select = f"SELECT '{meta['job']}' AS job, {meta['rank']} AS rank, {names} FROM t.{table}"
            known = db.execute("SELECT 1 FROM main.sqlite_schema WHERE name = ?", (table,)).fetchone()
            db.execute(f"INSERT INTO main.{table} {select}" if known else f"CREATE TABLE main.{table} AS {select}")
        db.commit()
        db.execute("DETACH t")
    answers = {name: [list(row) for row in db.execute(sql)] for name, sql in QUESTIONS.items()}
    db.close()
    return answers


def answers_hold(engine, place, traces):
    if not has(engine):
        pytest.skip(f"no {engine}: `make engines` installs it")
    done = subprocess.run([PYTHON, ASK, engine, place], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found, own = json.loads(done.stdout.splitlines()[-1]), own_answers(traces)
    assert set(found) == set(QUESTIONS) == {"recompiles", "divergence", "slowest", "guards", "eager"}
    for name in QUESTIONS:
        assert [list(row) for row in found[name]] == own[name], name
    assert sorted(row[1] for row in own["divergence"]) == [3, 6] and len(own["eager"]) == 4


@needs_pyarrow
@pytest.mark.parametrize("engine", ["duckdb", "chdb", "pyspark"])
def test_each_engine_answers_five_questions_as_sqlite_does(traces, dataset, engine):
    answers_hold(engine, dataset, traces)


@pytest.mark.parametrize("engine", ["datasette", "chdb", "duckdb"])
def test_engines_answer_five_questions_on_a_merged_trace(run, traces, tmp_path, engine):
    """The same for the SQLite file that `merge` makes."""
    if engine == "duckdb" and not has("duckdb_ext"):
        pytest.skip("no duckdb_ext: `make engines` installs it")
    assert run("merge", traces, "-o", tmp_path / "one.db").returncode == 0
    answers_hold(engine, tmp_path / "one.db", traces)


@needs_pyarrow
def test_the_parquet_folder_has_its_documented_layout(run, traces, dataset, tmp_path):
    tables = sorted(path.name for path in dataset.iterdir())
    assert "duckdb.sql" in tables and "table=lookup" in tables and "table=frame" not in tables
    files = sorted(str(path.relative_to(dataset)) for path in dataset.glob("table=lookup/**/*.parquet"))
    assert files == [f"table=lookup/job=j/rank={rank}/{rank:03}.db.parquet" for rank in range(8)]
    done = run("export", traces, "--format", "parquet", "-o", tmp_path / "all", "--python", PYTHON, "--frames")
    assert done.returncode == 0 and (tmp_path / "all" / "table=frame").is_dir()
    code = "import sys, pyarrow.parquet as p; t = p.read_table(sys.argv[1]); print(t.num_rows, t.schema.field('frame_id').type, p.ParquetFile(sys.argv[2]).metadata.row_group(0).column(0).compression)"
    path = str(tmp_path / "all/table=frame/job=j/rank=0/000.db.parquet")
    said = subprocess.run([PYTHON, "-c", code, path, path], capture_output=True, text=True).stdout.split()
    assert said == [run("sql", traces / "000.db", "SELECT COUNT(*) FROM frame", "--no-header").stdout.strip(), "int64", "ZSTD"]
    before = sorted(dataset.rglob("*"))
    again = run("export", traces, "--format", "parquet", "-o", dataset, "--python", PYTHON)
    assert again.returncode == 2 and "exists already" in one_line(again.stderr) and sorted(dataset.rglob("*")) == before


READ = "import sys, json, pyarrow.parquet as p; print(json.dumps(p.ParquetFile(sys.argv[1]).read().to_pydict()))"


@needs_pyarrow
def test_every_row_of_every_table_is_exported(run, traces, tmp_path):
    """NULL and an empty text stay different, and bytes that are not UTF-8 are escaped."""
    one = traces / "001.db"
    texts = ["", "a\nb,\"c\"", "\u2603 snow \U0001f600", b"bad \xff\xc3 end", "x" * 200000, None, "12", "NULL"]
    with sqlite3.connect(one) as db:
        db.executemany("INSERT INTO code SELECT MAX(code_id) + 1, 1, 'f', CAST(? AS TEXT), ?, 'function', NULL, ? FROM code",
                       [(text, line, -2**63 if line else 2**63 - 1) for line, text in enumerate(texts[:5] + texts[6:])])
        db.execute("UPDATE cache_entry SET backend = NULL WHERE cache_entry_id = 1")
        db.executemany("INSERT INTO lookup SELECT MAX(lookup_id) + 1, NULL, 1, 1, ?, NULL, 1, NULL, -1, NULL FROM lookup", [(-5,), (2**63 - 2,)])
        db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 140000)"
                   " INSERT INTO lookup SELECT m.id + i, i, 1, 1, i * 3, NULL, i % 9, NULL, 0, NULL FROM n, (SELECT MAX(lookup_id) AS id FROM lookup) m")
        zero = int(dict(db.execute("SELECT key, value FROM meta"))["started_unix_ns"])
    assert run("export", one, "--format", "parquet", "-o", tmp_path / "out", "--python", PYTHON, "--frames").returncode == 0
    db.text_factory = bytes
    for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('meta', 'enum')").fetchall():
        table = table.decode()
        rows = db.execute(f"SELECT * FROM {table} NOT INDEXED").fetchall()
        files = list((tmp_path / "out").glob(f"table={table}/*/*/*.parquet"))
        assert bool(rows) == bool(files), table
        if not files:
            continue
        found = json.loads(subprocess.run([PYTHON, "-c", READ, str(files[0])], capture_output=True, text=True, check=True).stdout)
        for i, (name, *_) in enumerate(db.execute(f"SELECT * FROM {table}").description):
            moved = zero if name in ("start_ns", "end_ns", "at_ns", "from_ns", "born_ns", "died_ns") else 0
            meant = [row[i] for row in rows]
            meant = [re.sub(rb"[\xff\xc3](?= |\xc3)", lambda m: b"\\x%02x" % m[0][0], v).decode() if isinstance(v, bytes) else
                     v if v is None or not moved else v + moved if v + moved < 2**63 else None for v in meant]
            if (table, name) == ("process", "host"):
                meant = ["host1"] * len(rows)
            assert found[name] == meant, (table, name)
    db.close()


@needs_pyarrow
def test_a_bad_trace_is_left_out_of_the_export(run, traces, tmp_path):
    (traces / "003.db").write_text("no trace " * 1000)
    done = run("export", traces, "--format", "parquet", "-o", tmp_path / "out", "--python", PYTHON)
    assert done.returncode == 3 and "003.db" in one_line(done.stderr) and len(list((tmp_path / "out" / "table=code").glob("*/*"))) == 7


@needs_pyarrow
def test_an_interrupted_export_leaves_nothing(dyntrace, traces, tmp_path):
    slow = tmp_path / "python"  # the writer gets some tables, and then no more
    slow.write_text(f"#!/bin/sh\n{{ head -c 8000; sleep 1000; }} | exec {PYTHON} \"$@\"\n")
    slow.chmod(0o755)
    with subprocess.Popen([dyntrace, "export", traces, "--format", "parquet", "-o", tmp_path / "out", "--python", slow], start_new_session=True) as child:
        while not list(tmp_path.glob("out.*/table=*")):
            assert child.poll() is None
            time.sleep(0.01)
        os.killpg(child.pid, signal.SIGINT)
        assert child.wait() == -signal.SIGINT
    deadline = time.time() + 120
    while list(tmp_path.glob("out*")) and time.time() < deadline:
        time.sleep(0.05)
    assert not list(tmp_path.glob("out*"))


def test_without_pyarrow_the_error_says_how_to_get_it(run, traces, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f"#!/bin/sh\nexec {sys.executable} -S \"$@\"\n")
    bare.chmod(0o755)
    for python, words in ((bare, "`pip install pyarrow`"), (tmp_path / "nix", "cannot be started")):
        done = run("export", traces, "--format", "parquet", "-o", tmp_path / "out", "--python", python)
        assert done.returncode == 2 and words in one_line(done.stderr) and not list(tmp_path.glob("out*"))
    for words in (["-o", "-"], [], ["-o", tmp_path / "out", "--force"], ["-o", tmp_path / "out", "--function", "f"]):
        assert "parquet" in refused(run("export", traces, "--format", "parquet", *words))
    for words in (["--frames"], ["--python", "python3"]):
        assert "for parquet" in refused(run("export", traces, "--format", "csv", *words))


def refused(done):
    assert (done.returncode, done.stdout) == (2, "")
    return one_line(done.stderr)


def test_pyarrow_comes_from_pythonpath_and_not_from_the_working_directory(run, traces, tmp_path):
    """A pyarrow on the user's PYTHONPATH is used, but no module of the working directory."""
    for folder in ("own", "here"):
        (tmp_path / folder).mkdir()
        for name in ("json", "pyarrow"):
            (tmp_path / folder / f"{name}.py").write_text(f"raise ImportError('of {folder}')")
    (tmp_path / "own" / "json.py").unlink()
    done = run("export", traces, "--format", "parquet", "-o", tmp_path / "out", "--python", PYTHON, cwd=tmp_path / "here",
               env={**os.environ, "PYTHONPATH": str(tmp_path / "own")})
    assert "of own" in refused(done)
