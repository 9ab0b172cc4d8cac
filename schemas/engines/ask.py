"""The five questions of questions.sql, asked by an engine of a dataset that `dyntrace export --format parquet -o DATASET` made, or of a
trace that `dyntrace merge -o FILE` made:

    python3 ask.py duckdb|chdb|pyspark DATASET
    python3 ask.py datasette|chdb|duckdb FILE

The answers are printed as a JSON object: a list of rows for each question. A question that cannot be answered, for a file is missing or cut,
is not in it; a line says why, and the exit status is 3.
"""
import asyncio
import glob
import importlib.util
import json
import os
import re
import subprocess
import sys


def views(engine):
    """The statements that the export has put beside the files."""
    with open(engine + ".sql") as file:
        return [statement for statement in re.sub(r"^--.*\n", "", file.read(), flags=re.M).split(";\n") if statement]


def each(statements, run):
    """RUN(statement) for each of these; a line for one that fails, such as one about a file that was not copied whole."""
    answers = {}
    for name, sql in statements.items():
        try:
            answers[name] = run(sql)
        except Exception as error:
            print(f"ask.py: {name}: {str(error).strip().splitlines()[0][:300]}", file=sys.stderr)
    return answers


def views_made(engine, run):
    each({re.search(r"VIEW (\w+)", view)[1]: view for view in views(engine)}, run)


def duckdb_sqlite():
    """DuckDB's extension for SQLite files: that of the package duckdb-ext-sqlite, else the one that `INSTALL sqlite` has fetched."""
    package = importlib.util.find_spec("duckdb_ext")
    found = [file for folder in package.submodule_search_locations for file in glob.glob(f"{folder}/**/sqlite_scanner.duckdb_extension", recursive=True)] if package else []
    return f"'{found[0]}'" if found else "sqlite"


def duckdb(file, questions):
    import duckdb
    db = duckdb.connect()
    if file:
        db.execute(f"LOAD {duckdb_sqlite()}")
        db.execute(f"ATTACH '{file}' AS trace (TYPE sqlite, READ_ONLY)")
        for name in MAIN:  # all columns are texts where SQLite runs the query
            rows = f"sqlite_query('trace', 'SELECT * FROM {name}')"
            columns = [column for column, *_ in db.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()]
            typed = ", ".join(f"CAST({c} AS BIGINT) AS {c}" if re.search(NUMBERS, c) else c for c in columns)
            db.execute(f"CREATE VIEW main.{name} AS SELECT {typed} FROM {rows}")
    else:
        views_made("duckdb", db.execute)
    return each(questions, lambda sql: db.execute(sql).fetchall())


def chdb(file, questions):
    from chdb import session
    db = session.Session()
    if file:
        db.query("CREATE DATABASE main")
        for name in MAIN:
            db.query(f"CREATE VIEW main.{name} AS SELECT * FROM sqlite('{file}', '{name}')")
    else:
        views_made("clickhouse", db.query)

    def rows(sql):
        found = [json.loads(line) for line in str(db.query(sql, "JSONCompactEachRow")).splitlines()]
        return [[int(v) if isinstance(v, str) and v.isdigit() else v for v in row] for row in found]

    return each(questions, rows)


def pyspark(file, questions):
    from pyspark.sql import SparkSession
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    db = SparkSession.builder.master("local[*]").config(map=quiet).getOrCreate()
    views_made("spark", db.sql)
    answers = each(questions, lambda sql: [list(row) for row in db.sql(sql).collect()])
    spark = db.sparkContext._gateway
    db.stop()
    spark.shutdown()
    spark.proc.stdin.close()
    spark.proc.wait()  # so that what it took is known as ours
    return answers


def datasette(file, questions):
    from datasette.app import Datasette

    async def answers():
        site = Datasette([file], settings={"sql_time_limit_ms": 3600000, "max_returned_rows": 1000000})
        page = f"/{os.path.basename(file).removesuffix('.db')}.json"
        return {name: (await site.client.get(page, params={"sql": sql, "_shape": "arrays"})).json()["rows"] for name, sql in questions.items()}

    return asyncio.run(answers())


MAIN = ("meta", "process", "code", "cache_entry", "guard_check", "compiles", "recompile_causes", "shares")  # that sqlite.sql reads
NUMBERS = "_(id|ns)$|^(rank|calls|ran_as_python|is_recompile|first_line)$"
ENGINES = {"duckdb": duckdb, "chdb": chdb, "pyspark": pyspark, "datasette": datasette}


def words(name):
    """A file of SQL beside this one, with values for its names, without comments but those that name a statement."""
    here = os.path.dirname(os.path.abspath(__file__))
    command = ["awk", "-f", f"{here}/../names.awk", f"{here}/../../src/vocabulary.h", f"{here}/{name}"]
    text = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    return re.sub(r"^--(?! name:).*\n", "", text, flags=re.M)


if __name__ == "__main__":
    place = os.path.abspath(sys.argv[2])
    asked = dict(re.findall(r"^-- name: (\w+)\n((?:.|\n)*?);\n", words("questions.sql"), re.M))
    if os.path.isdir(place):  # the views of the dataset are the questions
        os.chdir(place)
        file, questions = None, {name: f"SELECT * FROM job_{name}" for name in asked}
    else:
        file, questions = place, {name: words("sqlite.sql") + re.sub(r"^WITH\b", ",", sql) for name, sql in asked.items()}
    found = ENGINES[sys.argv[1]](file, questions)
    print(json.dumps(found))
    sys.exit(0 if len(found) == len(asked) else 3)
