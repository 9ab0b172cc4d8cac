"""Query a trace from Python: `dyntrace.open("trace.db")`.

    trace = dyntrace.open("trace.db")
    for function in trace.functions():                          # named tuples
        print(function.qualname, function.calls, function.self_ns)
    trace.sql("SELECT qualname, ms FROM ... WHERE ms > ?", 3)   # any query, or a named one
    trace.functions().df                                        # pandas; .arrow: pyarrow

A Trace holds no file open. Each query starts the program `dyntrace`, so its definitions, limits and
errors are those of the command line, and the file may still be in the middle of a recording. SQLite
never runs in this process, because this process may be the recorded one.

Runs in: any Python process.
"""

from __future__ import annotations

import os
from typing import NamedTuple, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    import pandas
    import pyarrow

__all__ = ["Call", "Function", "Recompile", "Rows", "Trace", "TraceError"]

_BATCH = 10000  # number of rows that are parsed at once
_SHOWN = 20  # the most rows that a notebook shows
_CALLS_MOST = 1000000  # the most rows that calls() returns if the caller sets no limit

_Row = TypeVar("_Row")


class TraceError(RuntimeError):
    """Raised if a trace cannot be read, or if a query is wrong. The message says what is wrong and
    how to mend it."""


# ---- rows ----------------------------------------------------------------------------------------


class Function(NamedTuple):
    """A function and its time, a row of the view hot_functions. Times are in nanoseconds."""

    qualname: str | None
    filename: str | None
    first_line: int | None
    kind: str | None
    calls: int
    self_ns: int
    total_ns: int
    ns_per_call: int | None
    max_ns: int | None
    raised: int
    is_own: int | None
    code_id: int
    library_ns: int | None


class Recompile(NamedTuple):
    """A recompile and the guard that caused it: a row of the view recompiles."""

    qualname: str | None
    filename: str | None
    first_line: int | None
    label: str | None
    why: str | None
    compile_ns: int | None
    start_ns: int | None
    source: str | None
    kind: str | None
    aspect: str | None
    dimension: int | None
    expected: str | None
    actual: str | None
    older_entry: str | None
    reason: str | None
    pid: int | None
    thread_id: int | None
    code_id: int | None
    compile_id: int


class Call(NamedTuple):
    """A recorded call: a row of the view frames. Times are nanoseconds since the recording began.
    """

    qualname: str | None
    filename: str | None
    first_line: int | None
    start_ns: int
    duration_ns: int | None
    outcome: str | None
    exit: str | None
    thread: str | None
    pid: int | None
    thread_id: int | None
    code_id: int | None
    parent_id: int | None
    frame_id: int


def _escape_undecodable(text):
    """Return TEXT with escapes in place of the bytes that are not UTF-8, because encoders refuse
    such bytes.
    """
    return text.encode("utf-8", "backslashreplace").decode()


class Rows(list[_Row]):
    """The rows that a query returns: a list of named tuples. A notebook shows them as a table.

    The members of a tuple have the names of the columns. If a name is not an identifier, or if an
    earlier column has the same name, the member is named after its position: _0, _1, ...

    Attributes
    ----------
    columns : list of str
        The names of the columns, as SQLite has them.
    """

    columns: list[str]

    def __init__(self, rows: list[_Row], columns: list[str]) -> None:
        super().__init__(rows)
        self.columns = columns

    def _iterate_columns(self):
        """Yield a list of the values of each column."""
        for i in range(len(self.columns)):
            yield [row[i] for row in self]

    @property
    def df(self) -> pandas.DataFrame:
        """The rows as a pandas.DataFrame. Columns of whole numbers stay exact: a column in which
        some numbers are unknown has the type Int64.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("Rows.df needs pandas: pip install pandas") from None

        def make_series(values):
            mixed = set(map(type, values)) == {int, type(None)}
            return pandas.Series(values, dtype="Int64" if mixed else None)

        columns = list(map(make_series, self._iterate_columns()))
        frame = pandas.concat(columns, axis=1) if columns else pandas.DataFrame()
        frame.columns = pandas.Index(self.columns)
        return frame

    @property
    def arrow(self) -> pyarrow.Table:
        """The rows as a pyarrow.Table. A column with values of several types is text.

        Raises
        ------
        ImportError
            pyarrow is not installed.
        """
        try:
            import pyarrow
        except ImportError:
            raise ImportError("Rows.arrow needs pyarrow: pip install pyarrow") from None

        def make_array(values):
            kinds = set(map(type, values)) - {type(None)}
            if kinds == {str} or len(kinds) > 1 and kinds != {int, float}:
                values = [value if value is None else _escape_undecodable(str(value)) for value in
                values]
            return pyarrow.array(values)

        arrays = list(map(make_array, self._iterate_columns()))
        return pyarrow.Table.from_arrays(arrays, names=self.columns)

    def _repr_html_(self) -> str:
        """Return the first rows as an HTML table, for notebooks."""
        from html import escape

        def make_cell(value):
            text = "" if value is None else _escape_undecodable(str(value))
            return "<td>%s</td>" % escape(text if len(text) <= 200 else text[:199] + "…")

        heads = "".join("<th>%s</th>" % escape(_escape_undecodable(name)) for name in self.columns)
        rows = ("<tr>%s</tr>" % "".join(map(make_cell, row)) for row in self[:_SHOWN])
        left = len(self) - _SHOWN
        count = "%s row%s" % (format(len(self), ","), "" if len(self) == 1 else "s")
        shown = ", the first %d of them" % _SHOWN if left > 0 else ""
        return (
            '<table class="dataframe"><thead><tr>%s</tr></thead><tbody>%s</tbody></table>'
            "<p>%s%s</p>" % (heads, "".join(rows), count, shown)
        )


def _decode_blob(hexed):
    return bytes.fromhex(hexed["hex"])


def _read_rows(lines, kind):
    """Read LINES, the output of `dyntrace sql --arrays`, as Rows. Each row is a KIND; if KIND is
    None, a named tuple with the names of the columns. Returns None if there is no output.
    """
    import json
    from collections import namedtuple
    from itertools import islice, repeat

    head = lines.readline()
    if not head:
        return None
    columns = json.loads(head)
    kind = kind or namedtuple("Row", columns, rename=True)
    parse = json.JSONDecoder(object_hook=_decode_blob).decode
    rows = []
    while batch := list(islice(lines, _BATCH)):
        rows += map(tuple.__new__, repeat(kind), parse("[%s]" % ",".join(batch)))
    return Rows(rows, columns)


# ---- traces --------------------------------------------------------------------------------------


class Trace(str):
    """A trace that can be queried. dyntrace.open() returns one, and dyntrace.record() yields one.

    It is also a str, the path of its file, and can be used as a path: open(trace), print(trace).

    Parameters
    ----------
    path
        The file. It is not read before the first query.
    """

    def __new__(cls, path: str | os.PathLike[str]) -> Trace:
        return super().__new__(cls, os.fsdecode(path))

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # store the absolute path, because the current directory may change
        self._file = os.path.abspath(self)
        self._finish = None  # a function that removes the temporary file, or None
        self._is_closed = False

    def __dir__(self) -> list[str]:
        return sorted(vars(Trace))  # only the methods of Trace, without those of str

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Make later queries raise TraceError. Also remove the temporary file of %%dyntrace.
        """
        self._is_closed = True
        if self._finish:
            self._finish()

    def _check_file(self):
        """Raise TraceError if the file cannot be queried."""
        why = None
        if self._is_closed:
            why = "this Trace was closed"
        elif os.path.isdir(self._file):
            why = "is a directory: open one trace in it; `dyntrace merge` makes one of several"
        elif not os.path.exists(self._file):
            why = "there is no such file: dyntrace.record() and `dyntrace run` make traces"
        if why:
            raise TraceError("%s: %s" % (self, why))

    def _run_dyntrace(self, command, text, read):
        """Run the program `dyntrace` with the arguments COMMAND and the trace, and with TEXT as its
        input. Returns (READ(output), what the program printed on standard error).
        """
        import subprocess

        from .record import _find_program

        self._check_file()
        program = _find_program()
        try:
            child = subprocess.Popen(
                [program, *command, self._file],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="backslashreplace",
            )
        except OSError as error:  # e.g. because parameters are too long for a command line
            raise TraceError("%s: %s" % (program, error.strerror)) from None
        with child as asked:
            try:
                try:
                    asked.stdin.write(text)
                    # close the input now, because the program reads all of it before it prints
                    asked.stdin.close()
                except BrokenPipeError:
                    pass  # the program has ended with an error and not read its input
                answer = read(asked.stdout)
                said = asked.stderr.read()
            except BaseException:
                asked.kill()
                raise
        said = "\n".join(line.removeprefix("dyntrace: ") for line in said.splitlines())
        if asked.returncode:
            raise TraceError(
                said or "`dyntrace %s` ended with status %d" % (command[0], asked.returncode)
            )
        return answer, said

    def _query_rows(self, kind, text, parameters):
        import json

        values = json.dumps(parameters, default=_to_python_number, allow_nan=False)
        command = ["sql", "--arrays", "--bind", values]
        rows, said = self._run_dyntrace(command, text, lambda lines: _read_rows(lines, kind))
        if rows is None:
            raise TraceError(said or "%r: not a query: it has no columns" % text[:100])
        return rows

    def sql(self, text: str, *parameters: object) -> Rows[Any]:
        """Run an SQL query on the tables and views of the trace.

        Parameters
        ----------
        text
            A query, or the name of a query that `dyntrace sql --list` lists. docs/answers.md and
            schemas/ describe the tables and views.
        parameters
            The values of ?1, ?2, ... in the query: numbers, texts or None.

        Raises
        ------
        TraceError
            SQLite refuses the query, or the trace cannot be read.
        TypeError
            A parameter is of another type.
        """
        return self._query_rows(None, text, parameters)

    def functions(self) -> Rows[Function]:
        """Return the functions that were called, from the view hot_functions, sorted by self_ns,
        the largest first. is_own is 1 for functions of the program itself.
        """
        columns = ", ".join(Function._fields)
        return self._query_rows(Function, "SELECT %s FROM hot_functions" % columns, ())

    def recompiles(self) -> Rows[Recompile]:
        """Return the recompiles, each with the guard that caused it, from the view recompiles."""
        columns = ", ".join(Recompile._fields)
        return self._query_rows(Recompile, "SELECT %s FROM recompiles" % columns, ())

    def calls(self, function: str | None = None, limit: int | None = None) -> Rows[Call]:
        """Return the recorded calls of all threads, from the view frames. The calls of one thread
        are in the order in which they began. For calls that a compiler decided, the view
        call_ledger has more columns. Calls are stored at the end of the recording; until then only
        functions() counts them.

        Parameters
        ----------
        function
            Return only calls of functions with this qualified name, or with this last part of it.
        limit
            Return at most this number of calls. Without a limit, more than a million are an error.

        Raises
        ------
        TraceError
            There are more than a million calls and no limit, or the recording has not ended.
        """
        most = _CALLS_MOST + 1 if limit is None else limit
        text = """SELECT %s FROM frames WHERE kind = 'call' AND (?1 IS NULL OR code_id IN (
                      SELECT code_id FROM code
                      WHERE qualname = ?1 OR substr(qualname, -length(?1) - 1) = '.' || ?1))
                  LIMIT ?2"""
        state = self.sql("SELECT value FROM meta WHERE key = 'state'")
        if state and state[0].value == "recording":
            raise TraceError(
                "%s: is still being recorded, and calls are stored at its end: functions() counts "
                "them until then" % self
            )
        rows = self._query_rows(Call, text % ", ".join(Call._fields), (function, most))
        if limit is None and len(rows) > _CALLS_MOST:
            raise TraceError(
                "%s: more than %s calls: name a function, or give a limit"
                % (self, format(_CALLS_MOST, ","))
            )
        return rows

    def why(self, function: str | None = None) -> str:
        """Return the page that `dyntrace why` prints: about a function, or what to look at first.

        Parameters
        ----------
        function
            A qualified name, its last part, FILE:LINE, or another name that `dyntrace why` accepts.

        Raises
        ------
        TraceError
            No function or several functions have this name, or the trace cannot be read.
        """
        command = ["why"] if function is None else ["why", "--", function]
        page, notes = self._run_dyntrace(command, "", lambda lines: lines.read())
        return "%s\n\n%s" % (notes, page) if notes else page

    def _make_first_page(self):
        """Return the page of why() that says what to look at first. In case of an error return its
        message, because a __repr__ must not raise.
        """
        try:
            return self.why().rstrip("\n")
        except (TraceError, OSError) as error:
            return str(error)

    def _make_html(self, first):
        from html import escape

        style = "white-space: pre-wrap; margin: 0.5em 0"
        texts = escape(_escape_undecodable(self)), style, escape(_escape_undecodable(first))
        return '<div><b>dyntrace</b> %s<pre style="%s">%s</pre></div>' % texts

    def _make_text(self, first):
        return "%s\n%s" % (self, first)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows for the trace."""
        return self._make_html(self._make_first_page())


def _to_python_number(value):
    """Convert a number of numpy, or of a similar library, to a number of Python."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError("a parameter is a %s, not a number, a str or None" % type(value).__name__)


def _open_trace(path):
    """Implement dyntrace.open()."""
    trace = Trace(path)
    trace.sql("SELECT key FROM meta")
    return trace
