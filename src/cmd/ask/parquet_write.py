# Writes what `dyntrace export --format parquet` hands over on standard input as Parquet files below the directory DIR, and an SQL file with
# a view for each table. It ends with 0 when all is there; without an end of the input, or after an error, nothing is left in DIR.
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


tables = set()
try:
    for line in sys.stdin.buffer:
        head = json.loads(line)
        if not head:
            break
        table_write(head)
        tables.add(head["table"])
    else:
        raise EOFError
    with open(os.path.join(folder, "duckdb.sql"), "w") as out:
        out.write("-- A view for each table, for DuckDB: job and rank are columns.\n")
        for table in sorted(tables):
            files = f"{place}/table={table}/*/*/*.parquet".replace("'", "''")
            out.write(f"CREATE VIEW {table} AS SELECT * EXCLUDE (\"table\") FROM read_parquet('{files}', hive_partitioning = true);\n")
except BaseException as error:
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if isinstance(error, EOFError) else f"dyntrace: export: {place}: {error}")
