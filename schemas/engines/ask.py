"""The five questions of questions.sql, asked by an engine of a dataset that `dyntrace export --format parquet -o DATASET` made, or of a
trace that `dyntrace merge -o FILE` made:

    python3 ask.py duckdb|chdb|pyspark DATASET
    python3 ask.py datasette|chdb|duckdb FILE

The answers are printed as a JSON object: a list of rows for each question.
"""
import asyncio
import glob
import importlib.util
import json
import os
import re
import subprocess
import sys


def views(dataset, engine):
    """The statements that the export has put beside the files."""
    with open(os.path.join(dataset, engine + ".sql")) as file:
        return [statement for statement in re.sub(r"^--.*\n", "", file.read(), flags=re.M).split(";\n") if statement]


def duckdb_sqlite():
    """DuckDB's extension for SQLite files: that of the package duckdb-ext-sqlite, else the one that `INSTALL sqlite` has fetched."""
    package = importlib.util.find_spec("duckdb_ext")
    found = [file for folder in package.submodule_search_locations for file in glob.glob(f"{folder}/**/sqlite_scanner.duckdb_extension", recursive=True)] if package else []
    return f"'{found[0]}'" if found else "sqlite"


def duckdb(dataset, questions):
    import duckdb
    db = duckdb.connect()
    if os.path.isfile(dataset):
        db.execute(f"LOAD {duckdb_sqlite()}")
        db.execute(f"ATTACH '{dataset}' AS trace (TYPE sqlite, READ_ONLY); USE trace")
        db.execute("SET disabled_optimizers = 'cte_inlining'")  # which fails on tables of SQLite in DuckDB 1.4
    for view in [] if os.path.isfile(dataset) else views(dataset, "duckdb"):
        db.execute(view)
    return {name: db.execute(sql).fetchall() for name, sql in questions.items()}


def chdb(dataset, questions):
    from chdb import session
    db = session.Session()
    if os.path.isfile(dataset):
        db.query(f"CREATE DATABASE main ENGINE = SQLite('{dataset}')")
    for view in [] if os.path.isfile(dataset) else views(dataset, "clickhouse"):
        db.query(view)
    answers = {name: [json.loads(line) for line in str(db.query(sql, "JSONCompactEachRow")).splitlines()] for name, sql in questions.items()}
    return {name: [[int(v) if isinstance(v, str) and v.isdigit() else v for v in row] for row in rows] for name, rows in answers.items()}


def pyspark(dataset, questions):
    from pyspark.sql import SparkSession
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    db = SparkSession.builder.master("local[*]").config(map=quiet).getOrCreate()
    for view in views(dataset, "spark"):
        db.sql(view)
    answers = {name: [list(row) for row in db.sql(sql).collect()] for name, sql in questions.items()}
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
        asked = {name: f"SELECT * FROM job_{name}" for name in asked}
    else:
        asked = {name: words("sqlite.sql") + re.sub(r"^WITH\b", ",", sql) for name, sql in asked.items()}
    print(json.dumps(ENGINES[sys.argv[1]](place, asked)))
