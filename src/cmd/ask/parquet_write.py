# Writes the Parquet files of `dyntrace export --format parquet` to the directory argv[1], a file for each table. argv[2] is the name of
# the directory in messages. src/cmd/parquet.c sends the rows to standard input. For each engine it also writes an SQL file with views of
# the tables and of the questions of schemas/engines/questions.sql. Exits with 0 if everything was written. If the input ends early, or
# after an error, it removes the directory.
import sys

sys.path[:] = filter(None, sys.path)  # import nothing from the working directory
import array
import json
import os
import shutil
import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends dyntrace, which ends the input of this process
folder, place = sys.argv[1:]
try:
    import pyarrow
    import pyarrow.parquet
except ImportError as error:
    sys.exit(f"dyntrace: export: Parquet files are written by pyarrow, which {sys.executable} does not have ({error}): "
             "`pip install pyarrow`, or name a Python that has it with --python")


def read_buffer(length):
    """Read LENGTH bytes of the input. Returns them as a pyarrow buffer."""
    found = sys.stdin.buffer.read(length)
    if len(found) < length:
        raise EOFError
    return pyarrow.py_buffer(found)


def read_column(kind, rows):
    """Read a column: validity bits, a number for each row and, for texts, their bytes: a text's number is its end in them."""
    valid, numbers = read_buffer(-(-rows // 8)), read_buffer(rows * 8)
    if kind != pyarrow.string():
        return pyarrow.Array.from_buffers(kind, rows, [valid, numbers])
    ends = array.array("q", bytes(8) + numbers.to_pybytes())
    return pyarrow.Array.from_buffers(kind, rows, [valid, pyarrow.py_buffer(array.array("i", ends)), read_buffer(ends[-1])])


def rows_write(out, rows):
    columns = [read_column(field.type, rows) for field in out.schema]
    out.write_batch(pyarrow.RecordBatch.from_arrays(columns, schema=out.schema), row_group_size=rows)


def table_open(name, columns):
    schema = pyarrow.schema([(column, pyarrow.int64() if number else pyarrow.string()) for column, number in columns])
    return pyarrow.parquet.ParquetWriter(os.path.join(folder, name + ".parquet"), schema, compression="zstd")


ENGINES = {  # the start of a view's statement, and the rest for a table's file; paths are relative, so the dataset can be moved
    "duckdb": ("CREATE VIEW", "AS SELECT * FROM read_parquet('./{name}.parquet')"),
    "clickhouse": ("CREATE VIEW", "AS SELECT * FROM file('./{name}.parquet', Parquet)"),
    "spark": ("CREATE OR REPLACE TEMPORARY VIEW", "USING parquet OPTIONS (path './{name}.parquet')"),
}
HEAD = """-- Views of this dataset for {engine}: its tables, in which job and rank are columns, and five questions, job_*.
-- The paths begin with ./, which is the directory in which {engine} runs.
"""
try:
    head = json.loads(sys.stdin.buffer.readline() or "{}")
    if not head:
        raise EOFError
    tables = {name: table_open(name, columns) for name, columns in head["tables"].items()}
    while (line := sys.stdin.buffer.readline().decode().split()) != ["end"]:
        if not line:
            raise EOFError
        rows_write(tables[line[0]], int(line[1]))
    for out in tables.values():
        out.close()
    for engine, (view, table) in ENGINES.items():
        with open(os.path.join(folder, engine + ".sql"), "w") as out:
            out.write(HEAD.format(engine=engine))
            for name in sorted(tables):
                out.write(f"{view} {name} {table.format(name=name)};\n")
            for name, sql in head["questions"].items():
                out.write(f"{view} job_{name} AS\n{sql};\n")
    os.umask(mask := os.umask(0))
    os.chmod(folder, 0o777 & ~mask)  # mkdtemp gave access only to its owner
except BaseException as error:
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if isinstance(error, EOFError) else f"dyntrace: export: {place}: {error}")
