"""The five questions of questions.sql, asked by an engine of a dataset that `dyntrace export --format parquet -o DATASET` made:

    python3 ask.py duckdb|chdb|pyspark DATASET

The answers are printed as a JSON object: a list of rows for each question.
"""
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
    for table, folder in tables(dataset):
        db.query(f"CREATE VIEW {table} AS SELECT * FROM file('{folder}/*/*/*.parquet', Parquet) SETTINGS use_hive_partitioning = 1")
    answers = {name: [json.loads(line) for line in str(db.query(sql, "JSONCompactEachRow")).splitlines()] for name, sql in questions.items()}
    return {name: [[int(v) if isinstance(v, str) and v.isdigit() else v for v in row] for row in rows] for name, rows in answers.items()}


def pyspark(dataset, questions):
    from pyspark.sql import SparkSession
    db = SparkSession.builder.master("local[1]").getOrCreate()
    for table, folder in tables(dataset):
        db.read.parquet(folder).createOrReplaceTempView(table)
    return {name: [list(row) for row in db.sql(sql).collect()] for name, sql in questions.items()}


ENGINES = {"duckdb": duckdb, "chdb": chdb, "pyspark": pyspark}

if __name__ == "__main__":
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "questions.sql")) as file:
        asked = dict(re.findall(r"^-- name: (\w+)\n((?:.|\n)*?);\n", file.read(), re.M))
    print(json.dumps(ENGINES[sys.argv[1]](os.path.abspath(sys.argv[2]), asked)))
