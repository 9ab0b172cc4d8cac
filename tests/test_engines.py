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
from test_ranks import changed, job, recorded  # noqa: F401  a fixture

pytestmark = pytest.mark.one_python
HERE = ROOT / "build" / "engines" / "bin" / "python"
PYTHON = os.environ.get("DYNTRACE_ENGINES_PYTHON") or (str(HERE) if HERE.exists() else sys.executable)
QUESTIONS = dict(re.findall(r"^-- name: (\w+)\n((?:.|\n)*?);\n", schema_sql("engines/questions"), re.M))

ASK = ROOT / "schemas/engines/ask.py"
READ = "import sys, json, pyarrow.parquet as p; print(json.dumps(p.ParquetFile(sys.argv[1]).read().to_pydict()))"


def has(module):
    return subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True).returncode == 0


needs_pyarrow = pytest.mark.skipif(not has("pyarrow"), reason="no pyarrow: `make engines` installs it")


@pytest.fixture
def traces(recorded, tmp_path):
    """A job of 8 ranks. In rank 2 a function was given up, and five calls of it ran as Python; in rank 5 two calls were at the limit."""
    folder = job(tmp_path / "job", recorded, 8, shape=3, flag=6)
    changed(folder / "002.db", "INSERT INTO code VALUES (900, 1, '/job/given_up.py', 'given_up', 1, 'function', NULL, 9)",
            "INSERT INTO compile VALUES (900, NULL, 900, 1, '9/0', 5, 6, 'declined', NULL, 'no', 1)",
            "INSERT INTO lookup SELECT MAX(lookup_id) + 1, NULL, 1, 900, 5, 9, 6, NULL, 0, NULL FROM lookup",
            *["INSERT INTO frame_rows SELECT MAX(frame_id) + 1, 1, NULL, 900, 0, 4, MAX(start_ns) + 1, MAX(start_ns) + 2, NULL, 0 FROM frame"] * 5)
    changed(folder / "005.db", "UPDATE lookup SET outcome = 5 WHERE lookup_id IN (SELECT lookup_id FROM lookup WHERE outcome = 1 LIMIT 2)")
    return folder


@pytest.fixture
def dataset(run, traces, tmp_path):
    out = tmp_path / "job's out"
    done = run("export", traces, "--format", "parquet", "-o", out, "--python", PYTHON)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return out


def own_answers(run, traces, tmp_path):
    """dyntrace's own answers to the five questions: from its views, rank by rank, and for guards from the statement of `report`."""
    def asked(each, then):
        each = re.sub(r"\bRANK\b", "(SELECT value FROM meta WHERE key = 'rank') AS rank", each)
        done = run("sql", traces, each, "--then", then, "--arrays")
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()[1:]]

    zero = "CAST((SELECT value FROM meta WHERE key = 'started_unix_ns') AS INTEGER)"
    compiled = asked(f"SELECT qualname, RANK, COUNT(*) AS compiles, {zero} + MAX(start_ns) AS last_ns FROM compiles WHERE cache_entry_id IS NOT NULL GROUP BY 1",
                     "SELECT qualname, CAST(rank AS INTEGER), compiles, last_ns FROM result")
    counts = {name: sorted(row[2] for row in compiled if row[0] == name) for name in {row[0] for row in compiled}}
    most = {name: min(set(found), key=lambda n: (-found.count(n), n)) for name, found in counts.items()}
    odd = [[name, rank, n, most[name], last] for name, rank, n, last in compiled if n != most[name]]
    assert run("merge", traces, "-o", tmp_path / "own.db").returncode == 0
    costs = run("sql", "--print", "report/guard_costs").stdout
    guards = json.loads(run("sql", tmp_path / "own.db", costs, "--json").stdout)
    return {
        "recompiles": asked("SELECT RANK, COALESCE(k.source, k.text) AS cause FROM compiles m JOIN recompile_causes k ON k.cause_id = m.cause_id WHERE m.is_recompile",
                            "SELECT cause, COUNT(*), COUNT(DISTINCT rank) FROM result GROUP BY 1 ORDER BY 2 DESC, 1"),
        "divergence": sorted(odd, key=lambda row: (row[4], row[0], row[1])),
        "slowest": asked("SELECT qualname, RANK, label, compile_ns FROM compiles WHERE end_ns IS NOT NULL",
                         "SELECT qualname, CAST(rank AS INTEGER) AS rank, label, compile_ns FROM result ORDER BY compile_ns DESC, qualname, rank, label LIMIT 20"),
        "guards": [[row["qualname"], row["checks"], row["ns"]] for row in guards][:20],
        "eager": asked("SELECT (SELECT value FROM meta WHERE key = 'host') AS host, calls, ran_as_python FROM shares",
                       "SELECT host, SUM(calls), SUM(ran_as_python) FROM result GROUP BY 1 ORDER BY 1"),
    }


def ask(engine, place):
    if not has(engine):
        pytest.skip(f"no {engine}: `make engines` installs it")
    done = subprocess.run([PYTHON, ASK, engine, place], capture_output=True, text=True)
    return done, json.loads(done.stdout.splitlines()[-1])


def answers_hold(engine, place, own):
    done, found = ask(engine, place)
    assert done.returncode == 0, done.stderr
    assert set(found) == set(QUESTIONS) == {"recompiles", "divergence", "slowest", "guards", "eager"}
    for name in QUESTIONS:
        assert [list(row) for row in found[name]] == own[name], name
    assert sorted(row[1] for row in own["divergence"]) == [3, 6] and len(own["guards"]) == 1
    assert [row[2] for row in own["eager"]] == [0, 2, 6, 0] and own["recompiles"]


@needs_pyarrow
@pytest.mark.parametrize("engine", ["duckdb", "chdb", "pyspark"])
def test_each_database_engine_answers_five_questions_as_dyntrace_does(run, traces, dataset, tmp_path, engine):
    """They do so even after the dataset was moved, because all of its paths are relative."""
    own = own_answers(run, traces, tmp_path)
    moved = tmp_path / "elsewhere" / "data"
    moved.parent.mkdir()
    if engine != "pyspark":  # which takes half a minute
        answers_hold(engine, dataset, own)
    answers_hold(engine, dataset.rename(moved), own)


@pytest.mark.parametrize("engine", ["datasette", "chdb", "duckdb"])
def test_engines_answer_five_questions_on_a_merged_trace(run, traces, tmp_path, engine):
    """Engines that read SQLite files answer on the file that `merge` makes."""
    if engine == "duckdb" and not has("duckdb_ext"):
        pytest.skip("no duckdb_ext: `make engines` installs it")
    assert run("merge", traces, "-o", tmp_path / "one.db").returncode == 0
    answers_hold(engine, tmp_path / "one.db", own_answers(run, traces, tmp_path))


@needs_pyarrow
@pytest.mark.parametrize("engine", ["duckdb", "chdb", "pyspark"])
@pytest.mark.parametrize("harm", ["cut", "missing"])
def test_queries_on_the_intact_files_of_a_damaged_parquet_dataset_work(run, traces, dataset, tmp_path, engine, harm):
    """A line names the damaged file and each question that needs it."""
    own = own_answers(run, traces, tmp_path)
    path = dataset / "guard_check.parquet"
    path.write_bytes(path.read_bytes()[:-100]) if harm == "cut" else path.unlink()
    done, found = ask(engine, dataset)
    lines = [line.split(": ")[1] for line in done.stderr.splitlines() if line.startswith("ask.py: ")]
    assert done.returncode == 3 and {"guards"} <= set(lines) <= {"guard_check", "job_guards", "guards"}, done.stderr
    assert {name: [list(row) for row in rows] for name, rows in found.items()} == {name: rows for name, rows in own.items() if name != "guards"}


@needs_pyarrow
@pytest.mark.parametrize("address", ["place", "parts"])
def test_paths_in_a_parquet_datasets_sql_can_be_replaced(run, traces, dataset, tmp_path, address):
    """Paths begin with ./ in the SQL of each engine. `sed` can replace ./ by an object store, or by several datasets."""
    if not has("duckdb"):
        pytest.skip("no duckdb: `make engines` installs it")
    paths = set(re.findall(r"'([^' ]*\.parquet)'", "".join((dataset / f"{engine}.sql").read_text() for engine in ("duckdb", "clickhouse", "spark"))))
    assert paths == {f"./{path.name}" for path in dataset.glob("*.parquet")}
    to = dataset
    if address == "parts":
        for part in range(2):
            files = sorted(traces.iterdir())[part * 4:part * 4 + 4]
            assert run("export", *files, "--format", "parquet", "-o", tmp_path / f"part{part}", "--python", PYTHON).returncode == 0
        to = tmp_path / "part?"
    sql = (dataset / "duckdb.sql").read_text().replace("'./", "'" + str(to).replace("'", "''") + "/")
    code = "import sys, duckdb, json; db = duckdb.connect(); db.execute(sys.argv[1]); print(json.dumps(db.execute('SELECT * FROM job_eager').fetchall()))"
    done = subprocess.run([PYTHON, "-c", code, sql], capture_output=True, text=True, cwd="/")
    assert json.loads(done.stdout) == own_answers(run, traces, tmp_path)["eager"], done.stderr


ABOUT = """
import json, sys, pyarrow.parquet as p
f = p.ParquetFile(sys.argv[1])
groups = [f.metadata.row_group(g).column(1).statistics for g in range(f.num_row_groups)]
print(json.dumps([f.metadata.num_rows, str(f.schema_arrow.field("frame_id").type), f.metadata.row_group(0).column(0).compression,
                  sorted(set(f.read(["rank"])["rank"].to_pylist())), [[g.min, g.max] for g in groups]]))
"""


@needs_pyarrow
def test_the_parquet_folder_has_its_documented_layout(run, traces, dataset, tmp_path):
    """Each table has one file, with the ranks of the job in order. A row group has many ranks, or a part of one."""
    tables = {path.stem for path in dataset.glob("*.parquet")}
    with sqlite3.connect(traces / "001.db") as db:
        assert tables == {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('meta', 'enum', 'merged')")} | {"shares"}
        frames = [f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 140000)"
                  f" INSERT INTO frame_rows SELECT i + 1000000, 1, NULL, 1, 0, 0, 5, 6, NULL, 0 FROM n"]
    db.close()
    assert {path.name for path in dataset.iterdir()} == {f"{name}.parquet" for name in tables} | {"duckdb.sql", "clickhouse.sql", "spark.sql"}
    changed(traces / "004.db", *frames)
    done = run("export", traces, "--format", "parquet", "-o", tmp_path / "all", "--python", PYTHON, "--frames")
    assert done.returncode == 0
    rows, kind, compression, ranks, groups = json.loads(subprocess.run([PYTHON, "-c", ABOUT, tmp_path / "all/frame.parquet"], capture_output=True, text=True).stdout)
    assert rows == sum(int(run("sql", path, "SELECT COUNT(*) FROM frame", "--no-header").stdout) for path in traces.iterdir())
    assert (kind, compression, ranks, groups) == ("int64", "ZSTD", list(range(8)), [[0, 4], [4, 7]])
    given_up = json.loads(subprocess.run([PYTHON, "-c", ABOUT, dataset / "frame.parquet"], capture_output=True, text=True).stdout)
    assert given_up[0] == 5 and given_up[3] == [2]
    before = sorted(dataset.rglob("*"))
    again = run("export", traces, "--format", "parquet", "-o", dataset, "--python", PYTHON)
    assert again.returncode == 2 and "exists already" in one_line(again.stderr) and sorted(dataset.rglob("*")) == before


@needs_pyarrow
def test_parquet_export_gives_traces_without_rank_negative_ranks(run, recorded, tmp_path):
    """The files' names are not in the order of ranks. Two traces without a rank get different ones, so that ids stay unique."""
    folder = job(tmp_path / "job", recorded, 12)
    for rank in range(12):
        (folder / f"{rank:03}.db").rename(folder / f"h-{rank}.db")
    for rank in (3, 10):
        changed(folder / f"h-{rank}.db", "UPDATE process SET rank = NULL", "DELETE FROM meta WHERE key = 'rank'")
    assert run("export", folder, "--format", "parquet", "-o", tmp_path / "out", "--python", PYTHON).returncode == 0
    code = json.loads(subprocess.run([PYTHON, "-c", READ, tmp_path / "out/process.parquet"], capture_output=True, text=True, check=True).stdout)
    assert code["rank"] == [0, 1, 2, 4, 5, 6, 7, 8, 9, 11, -1, -2] and code["own_rank"][-2:] == [None, None] and set(code["job"]) == {"j"}


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
    for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('meta', 'enum', 'merged')").fetchall():
        table = table.decode()
        rows = db.execute(f"SELECT * FROM {table} NOT INDEXED").fetchall()
        found = json.loads(subprocess.run([PYTHON, "-c", READ, tmp_path / f"out/{table}.parquet"], capture_output=True, text=True, check=True).stdout)
        assert found.pop("job") == ["j"] * len(rows) and found.pop("rank") == [1] * len(rows)
        found["rank"] = found.pop("own_rank", None)
        for i, (name, *_) in enumerate(db.execute(f"SELECT * FROM {table}").description):
            if name in ("took_ns", "parent_distance"):
                continue  # how `frame` stores end_ns and parent_id, which are exported
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
    assert done.returncode == 3 and "003.db" in one_line(done.stderr)
    found = json.loads(subprocess.run([PYTHON, "-c", READ, tmp_path / "out/process.parquet"], capture_output=True, text=True, check=True).stdout)
    assert found["rank"] == [0, 1, 2, 4, 5, 6, 7]


@needs_pyarrow
def test_an_interrupted_export_leaves_no_file(dyntrace, traces, tmp_path):
    slow = tmp_path / "python"  # the writer gets some tables, and then no more
    slow.write_text(f"#!/bin/sh\n{{ head -c 20000; sleep 1000; }} | exec {PYTHON} \"$@\"\n")
    slow.chmod(0o755)
    with subprocess.Popen([dyntrace, "export", traces, "--format", "parquet", "-o", tmp_path / "out", "--python", slow], start_new_session=True) as child:
        while not list(tmp_path.glob("out.*/*.parquet")):
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
