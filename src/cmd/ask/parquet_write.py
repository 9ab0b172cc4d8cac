# Writes what `dyntrace export --format parquet` hands over on standard input as Parquet files below the directory DIR, and an SQL file with
# a view for each table. It ends with 0 when all is there; without an end of the input, or after an error, nothing is left in DIR.
import sys

sys.path[:] = filter(None, sys.path)  # nothing is imported from where the user happens to be
import io
import json
import os
import shutil
import signal
import urllib.parse

signal.signal(signal.SIGINT, signal.SIG_IGN)  # dyntrace ends, and so the input does
folder, place = sys.argv[1:]
try:
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet
except ImportError as error:
    sys.exit(f"dyntrace: export: Parquet files are written by pyarrow, which {sys.executable} does not have ({error}): "
             "`pip install pyarrow`, or name a Python that has it with --python")


class Rows(io.RawIOBase):
    """The rows of one table: pieces, each with its length on a line before it; the last has 0."""
    piece, ended = b"", False

    def readable(self):
        return True

    def readinto(self, to):
        if not self.piece and not self.ended:
            length = sys.stdin.buffer.readline()
            if not length:
                raise EOFError
            self.piece = sys.stdin.buffer.read(int(length))
            self.ended = not self.piece
        some = self.piece[:len(to)]
        to[:len(some)] = some
        self.piece = self.piece[len(some):]
        return len(some)


def table_write(head):
    kinds = {name: pyarrow.int64() if number else pyarrow.string() for name, number in head["columns"]}
    parts = [f"{key}={urllib.parse.quote(head[key], safe='')}" for key in ("table", "job", "rank")]
    os.makedirs(os.path.join(folder, *parts), exist_ok=True)
    path = os.path.join(folder, *parts, urllib.parse.quote(head["file"], safe="") + ".parquet")
    batches = pyarrow.csv.open_csv(
        io.BufferedReader(Rows(), 1 << 20), pyarrow.csv.ReadOptions(use_threads=False, block_size=4 << 20, column_names=list(kinds)),
        pyarrow.csv.ParseOptions(newlines_in_values=True),
        pyarrow.csv.ConvertOptions(column_types=kinds, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False))
    with pyarrow.parquet.ParquetWriter(path, pyarrow.schema(list(kinds.items())), compression="zstd") as out:
        for batch in batches:
            out.write_batch(batch)


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
