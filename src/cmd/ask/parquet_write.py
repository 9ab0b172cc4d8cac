# Writes what `dyntrace export --format parquet` hands over on standard input as Parquet files below the directory DIR, and for each engine an SQL
# file with views of the tables and of the questions of schemas/engines/questions.sql. It ends with 0 when all is there; without an end of the input, or after an error, nothing is left in DIR.
import sys

sys.path[:] = filter(None, sys.path)  # nothing is imported from where the user happens to be
import array
import json
import os
import shutil
import signal
import urllib.parse

signal.signal(signal.SIGINT, signal.SIG_IGN)  # dyntrace ends, and so the input does
folder, place = sys.argv[1:]
try:
    import pyarrow
    import pyarrow.parquet
except ImportError as error:
    sys.exit(f"dyntrace: export: Parquet files are written by pyarrow, which {sys.executable} does not have ({error}): "
             "`pip install pyarrow`, or name a Python that has it with --python")


def read(length):
    """As many bytes of the input, as pyarrow has them."""
    found = sys.stdin.buffer.read(length)
    if len(found) < length:
        raise EOFError
    return pyarrow.py_buffer(found)


def column(kind, rows):
    """A bit for each row that is there, and a number: of a text where it ends in the bytes that follow."""
    valid, numbers = read(-(-rows // 8)), read(rows * 8)
    if kind != pyarrow.string():
        return pyarrow.Array.from_buffers(kind, rows, [valid, numbers])
    ends = array.array("q", bytes(8) + numbers.to_pybytes())
    return pyarrow.Array.from_buffers(kind, rows, [valid, pyarrow.py_buffer(array.array("i", ends)), read(ends[-1])])


def table_write(head):
    schema = pyarrow.schema([(name, pyarrow.int64() if number else pyarrow.string()) for name, number in head["columns"]])
    parts = [f"{key}={urllib.parse.quote(head[key], safe='')}" for key in ("table", "job", "rank")]
    os.makedirs(os.path.join(folder, *parts), exist_ok=True)
    path = os.path.join(folder, *parts, urllib.parse.quote(head["file"], safe="") + ".parquet")
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as out:
        while rows := int(sys.stdin.buffer.readline()):
            out.write_batch(pyarrow.RecordBatch.from_arrays([column(field.type, rows) for field in schema], schema=schema))


ENGINES = {  # what comes first, how it makes a view, and one of a table's files
    "duckdb": ("", "CREATE VIEW", """AS SELECT * EXCLUDE ("table") FROM read_parquet('{place}/*/*/*.parquet', hive_partitioning = true)"""),
    "clickhouse": ("", "CREATE VIEW", "AS SELECT * FROM file('{place}/*/*/*.parquet', Parquet) SETTINGS use_hive_partitioning = 1"),
    # So it looks for the files once, in 32 tasks, not in one for each rank and anew for each question, and not for the columns in them.
    "spark": ("SET spark.sql.sources.parallelPartitionDiscovery.parallelism = 32;\n", "CREATE OR REPLACE TEMPORARY VIEW",
              "({columns}) USING parquet OPTIONS (path '{place}')"),
}
tables, ranks = {}, set()  # the columns of each table
try:
    for line in sys.stdin.buffer:
        head = json.loads(line)
        if "questions" in head:
            break
        table_write(head)
        tables[head["table"]] = {name: "BIGINT" if number else "STRING" for name, number in head["columns"]}
        ranks.add(head["rank"])
    else:
        raise EOFError
    parts = {"job": "STRING", "rank": "BIGINT" if all(map(str.isdigit, ranks)) else "STRING"}
    for engine, (first, view, table) in ENGINES.items():
        with open(os.path.join(folder, engine + ".sql"), "w") as out:
            out.write(f"-- Views of this dataset for {engine}: its tables, in which job and rank are columns, and five questions, job_*.\n{first}")
            for name in sorted(tables):
                text = f"{place}/table={name}"
                text = text.replace("'", "''") if engine == "duckdb" else text.replace("\\", "\\\\").replace("'", "\\'")
                columns = ", ".join(f"`{column}` {kind}" for column, kind in {**tables[name], **parts}.items())
                out.write(f"{view} {name} {table.format(place=text, columns=columns)};\n")
            for name, sql in head["questions"].items():
                out.write(f"{view} job_{name} AS\n{sql};\n")
except BaseException as error:
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if isinstance(error, EOFError) else f"dyntrace: export: {place}: {error}")
