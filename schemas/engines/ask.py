"""The five questions of questions.sql, asked by an engine of a dataset that `dyntrace export --format parquet -o DATASET` made, or of a
trace that `dyntrace merge -o FILE` made:

    python3 ask.py duckdb|chdb|pyspark DATASET
    python3 ask.py datasette|chdb FILE

The answers are printed as a JSON object: a list of rows for each question.
"""
import asyncio
import json
import os
import re
import sys


def tables(dataset):
    return [(entry[6:], os.path.join(dataset, entry)) for entry in os.listdir(dataset) if entry.startswith("table=")]


def duckdb(dataset, questions):
    import duckdb
    db = duckdb.connect()
    with open(os.path.join(dataset, "duckdb.sql")) as views:
        db.execute(views.read())
    return {name: db.execute(sql).fetchall() for name, sql in questions.items()}


def chdb(dataset, questions):
    from chdb import session
    db = session.Session()
    if os.path.isfile(dataset):
        db.query(f"CREATE DATABASE main ENGINE = SQLite('{dataset}')")
    for table, folder in [] if os.path.isfile(dataset) else tables(dataset):
        db.query(f"CREATE VIEW {table} AS SELECT * FROM file('{folder}/*/*/*.parquet', Parquet) SETTINGS use_hive_partitioning = 1")
    answers = {name: [json.loads(line) for line in str(db.query(sql, "JSONCompactEachRow")).splitlines()] for name, sql in questions.items()}
    return {name: [[int(v) if isinstance(v, str) and v.isdigit() else v for v in row] for row in rows] for name, rows in answers.items()}


def pyspark(dataset, questions):
    from pyspark.sql import SparkSession
    db = SparkSession.builder.master("local[1]").getOrCreate()
    for table, folder in tables(dataset):
        db.read.parquet(folder).createOrReplaceTempView(table)
    return {name: [list(row) for row in db.sql(sql).collect()] for name, sql in questions.items()}


def datasette(file, questions):
    from datasette.app import Datasette

    async def answers():
        site = Datasette([file], settings={"sql_time_limit_ms": 3600000, "max_returned_rows": 1000000})
        page = f"/{os.path.basename(file).removesuffix('.db')}.json"
        return {name: (await site.client.get(page, params={"sql": sql, "_shape": "arrays"})).json()["rows"] for name, sql in questions.items()}

    return asyncio.run(answers())


ENGINES = {"duckdb": duckdb, "chdb": chdb, "pyspark": pyspark, "datasette": datasette}


def words(name):
    """A file of SQL beside this one, without comments but those that name a statement."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name)) as file:
        return re.sub(r"^--(?! name:).*\n", "", file.read(), flags=re.M)


if __name__ == "__main__":
    place = os.path.abspath(sys.argv[2])
    asked = dict(re.findall(r"^-- name: (\w+)\n((?:.|\n)*?);\n", words("questions.sql"), re.M))
    if os.path.isfile(place):
        asked = {name: words("sqlite.sql") + re.sub(r"^WITH\b", ",", sql) for name, sql in asked.items()}
    print(json.dumps(ENGINES[sys.argv[1]](place, asked)))
