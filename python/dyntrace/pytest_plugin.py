"""A pytest plugin: tests can limit how often their code is compiled.

Runs in: the traced process.

    `pip install dyntrace` installs the plugin. Otherwise use pytest -p dyntrace.pytest_plugin, or
    in conftest.py: pytest_plugins = ["dyntrace.pytest_plugin"]

    @pytest.mark.dyntrace(max_recompiles=0, after_warmup=1, require_compiled="Net.forward")
    def test_step():
        ...

    def test_parts(dyntrace_record):
        warm_up()
        with dyntrace_record(max_recompiles=0, max_graph_breaks=0) as path:
            train()

The test is recorded (dyntrace.record), and `dyntrace check` compares its trace with the limits. If
the trace exceeds a limit the test fails, and the report shows the offending rows and the path of
the trace. The limits are those of `dyntrace check`, with underscores: max_recompiles, max_compiles,
max_graph_breaks, max_guard_us, max_eager_share, require_compiled, function, after_warmup.
`require_compiled` and `function` may be lists. reset=True drops all cache entries before the test.

If the process is being recorded already (`dyntrace run -m pytest`), there is no second recording.
The limits then apply to the events of that recording between the begin and the end of the test, in
this process and in processes that it started. Without reset=True, a compile counts as a recompile
if an earlier test has compiled the same function. A limit that cannot be checked before that
recording ends is not checked, and a warning says so. --no-dyntrace turns the plugin off.

`pytest --dyntrace` also records tests without the mark, and keeps the traces of those that fail. If
nothing is to be recorded, the plugin uses neither the extension nor the program `dyntrace`. So if
an installation lacks them, only marked tests fail.

If no compiler decided about any call in a marked test, the limits are not checked, and a warning
says so. This is no failure, because a mark on a module also marks tests that compile nothing. With
require_compiled the test fails.

A mark on a class or module applies to its tests. A mark on a test or class overrides single limits
of the outer mark; None removes a limit.
"""

import contextlib
import json
import os
import re
import sys
import time
import warnings

import pytest

from . import _native
from . import reset as _reset
from .record import _find_program, record

_LIMITS = (
    "max_recompiles",
    "max_compiles",
    "max_graph_breaks",
    "max_guard_us",
    "max_eager_share",
    "after_warmup",
)
_LISTS = ("require_compiled", "function")
_values = "all"  # --dyntrace-values
_args = []  # --dyntrace-args
_SHOWN = 20  # the most rows that the report of a failure shows; the trace has all rows
_WAIT = 20  # the most seconds to wait until the trace has all events of a test
_LEFT_OUT = "--no-dyntrace runs marked tests without any of this"


class LimitsExceeded(AssertionError):
    """A recording exceeds its limits. `rows` has the offending rows, in the form of `dyntrace check
    --json`."""

    def __init__(self, text, rows=()):
        super().__init__(text)
        self.rows = rows


def pytest_addoption(parser):
    group = parser.getgroup("dyntrace", "recording tests")
    group.addoption(
        "--dyntrace-dir",
        metavar="DIR",
        help="keep the trace of every recorded test as DIR/TEST.db; else only of those that fail",
    )
    group.addoption(
        "--dyntrace-values",
        metavar="WHICH",
        choices=("all", "types", "off"),
        default="all",
        help="what traces keep of arguments and of what guards compare: all, types or off",
    )
    group.addoption(
        "--dyntrace-args",
        metavar="GLOB",
        action="append",
        default=[],
        help="keep arguments and return values of functions whose file or qualified name matches; "
        "may be repeated",
    )
    group.addoption(
        "--dyntrace",
        action="store_true",
        help="record tests without the mark, too, and keep the traces of those that fail",
    )
    group.addoption(
        "--no-dyntrace",
        action="store_true",
        help="run tests that are marked `dyntrace` without recording them",
    )


def pytest_configure(config):
    global _values, _args
    _values = config.getoption("dyntrace_values")
    _args = config.getoption("dyntrace_args")
    config.addinivalue_line(
        "markers",
        "dyntrace(max_recompiles=N, max_compiles=N, max_graph_breaks=N, max_guard_us=T, "
        "max_eager_share=P, "
        "require_compiled=FUNC, function=GLOB, after_warmup=N, reset=False): record the test and "
        "hold it against limits",
    )


# ---- comparing a trace with limits ---------------------------------------------------------------


def _check_options(limits):
    """Return the options of `dyntrace check` for LIMITS, which are the keywords of a mark."""
    unknown = set(limits) - set(_LIMITS) - set(_LISTS) - {"reset"}
    if unknown:
        raise pytest.UsageError(
            f"dyntrace: no such limit: {', '.join(sorted(unknown))}; there are "
            f"{', '.join((*_LIMITS, *_LISTS, 'reset'))}"
        )
    made = []
    for name in _LIMITS:
        if limits.get(name) is not None:
            made += ["--" + name.replace("_", "-"), str(limits[name])]
    for name in _LISTS:
        values = limits.get(name) or ()
        for value in [values] if isinstance(values, str) else values:
            made += ["--" + name.replace("_", "-"), value]
    return made


def _format_row(row):
    """Return an offending row as a line of text."""
    place = " ".join(str(row[key]) for key in ("function", "where") if row.get(key))
    again = f" [{row['compile']}]" if row.get("compile") else ""
    found = "" if row["found"] is None else f" ({row['found']}, allowed {row['allowed']})"
    return f"  {row['check']}{found}: {place}{again}: {row.get('why') or ''}".rstrip(": ")


def check(path, limits, part=()):
    """Compare the trace PATH with LIMITS, a dict of a mark's keywords. Raises LimitsExceeded if the
    trace exceeds one.

    If LIMITS has no limit, nothing is checked. PART has options of `dyntrace check` that select a
    part of the trace.
    """
    arguments = _check_options(limits)
    if not any(a.startswith(("--max", "--require")) for a in arguments):
        return
    import subprocess

    done = subprocess.run(
        [_find_program(), "check", os.fspath(path), "--json", "--limit", "0", *arguments, *part],
        capture_output=True,
        text=True,
    )
    if not done.returncode:
        return
    unknown = [
        line
        for line in done.stderr.splitlines()
        if "nothing can be checked" in line or part and "while this is recorded" in line
    ]
    if unknown:
        raise _Unknown(unknown[0].removeprefix("dyntrace: "))
    try:
        rows = json.loads(done.stdout)["rows"]
    except (ValueError, KeyError):
        raise LimitsExceeded(
            f"dyntrace check: {done.stderr.strip() or 'exit %d' % done.returncode}\ntrace: {path}"
        ) from None
    lines = [_format_row(row) for row in rows[:_SHOWN]]
    if len(rows) > _SHOWN:
        lines.append(f"  ... and {len(rows) - _SHOWN} more")
    doubts = done.stderr.strip()
    function = next((row["function"] for row in rows if row.get("function")), None)
    lines += [doubts] if doubts else []
    lines.append(f"trace: {path}" + (f"   (dyntrace why '{function}' {path})" if function else ""))
    raise LimitsExceeded("not within the limits of this test:\n" + "\n".join(lines), rows)


@contextlib.contextmanager
def recorded(path, limits):
    """Record into PATH what runs in the block, then compare the trace with LIMITS. If the block
    raises, there is no comparison, because the exception is the better message."""
    joined = _native.native._active()
    with _begin_recording(path, limits):
        yield _native.native._recording()[0] if joined and _native.native._recording() else path
    if not joined:
        _check_or_warn(path, limits)


def _begin_recording(path, limits):
    _check_options(limits)
    if limits.get("reset"):
        _reset()
        dynamo = sys.modules.get("torch._dynamo")
        if dynamo is not None:
            dynamo.reset()
    if _native.native._active():
        return _join_recording(limits)
    return record(path, force=True, values=_values, args=_args, strict=True)


# ---- tests in a process that is being recorded already -------------------------------------------


class _Unknown(Exception):
    """Raised if the limits cannot be checked. The message has the reason, for example that no
    compiler decided about any call, or that the recording ended during the test."""


def _warn_unchecked(error):
    """Add a warning to pytest's summary. It never fails the test, even if warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(f"dyntrace: limits of this test are not checked: {error}; {_LEFT_OUT}")


def _check_or_warn(path, limits, part=()):
    """Call check(), but only warn if the limits cannot be checked."""
    try:
        check(path, limits, part)
    except _Unknown as error:
        _warn_unchecked(error)


@contextlib.contextmanager
def _join_recording(limits):
    """Compare LIMITS with the events that the running recording gets during the block."""
    import sqlite3

    begin = _native.native._recording()
    yield
    end = _native.native._recording()
    try:
        if not begin or not end or begin[0] != end[0]:
            raise _Unknown("the recording began or ended within the test")
        check(
            end[0],
            limits,
            ["--time", f"{begin[1] / 1e3:.3f}us..{end[1] / 1e3:.3f}us", *_wait_for_events(end)],
        )
    except (_Unknown, sqlite3.Error) as error:
        _warn_unchecked(error)


def _wait_for_events(end):
    """Wait until the trace has all events up to END, the result of _recording() at the end of the
    test. Returns options of `dyntrace check` that select this process and its child processes.

    The collector runs in a loop: it reads the rings of all threads, then commits. Once it has read
    this thread's ring up to END, the second commit from then on has the events of all threads.
    """
    import sqlite3

    until = time.monotonic() + _WAIT
    with contextlib.closing(
        sqlite3.connect(
            f"file:{end[0].replace('%', '%25').replace('?', '%3f').replace('#', '%23')}?mode=ro",
            uri=True,
        )
    ) as trace:
        version, commits = None, -1
        while commits < 2:
            if time.monotonic() > until:
                raise _Unknown(f"the recording did not follow within {_WAIT} s")
            time.sleep(0.005)
            now = _native.native._recording()
            if now and now[3] >= end[2]:
                before, version = version, trace.execute("PRAGMA data_version").fetchone()
                commits += version != before
        # The query uses `?`, because some versions of sqlite3 warn about `?1`.
        pids = trace.execute(
            "WITH RECURSIVE own(id) AS"
            " (SELECT MAX(process_id) FROM process WHERE pid = ? UNION"
            " SELECT p.process_id FROM own JOIN process p ON p.parent_process_id = own.id)"
            " SELECT pid FROM own JOIN process ON process_id = id",
            (os.getpid(),),
        ).fetchall()
    return [f"--process={pid}" for pid, in pids]


# ---- recording tests -----------------------------------------------------------------------------


def _choose_path(config, factory, nodeid):
    name = re.sub(r"[^\w.-]+", "-", nodeid).strip("-")[-120:] + ".db"
    kept = config.getoption("dyntrace_dir")
    if kept:
        os.makedirs(kept, exist_ok=True)
        return os.path.join(os.path.abspath(kept), name)
    return os.fspath(factory.mktemp("dyntrace") / name)


def _discard_trace(config, path):
    if not config.getoption("dyntrace_dir"):
        with contextlib.suppress(OSError):
            os.unlink(path)


@pytest.fixture
def dyntrace_record(request, tmp_path_factory):
    """dyntrace_record(**limits): a context manager that records its block and compares the trace
    with the limits."""
    count = 0

    @contextlib.contextmanager
    def record_block(**limits):
        nonlocal count
        count += 1
        path = _choose_path(request.config, tmp_path_factory, f"{request.node.nodeid}-{count}")
        if request.config.getoption("no_dyntrace"):
            yield path
            return
        with recorded(path, limits) as trace:
            yield trace
        _discard_trace(request.config, path)

    return record_block


def _merge_limits(item):
    """Return the limits of all marks of a test, merged; None if the test is not recorded."""
    marks = list(item.iter_markers("dyntrace"))
    if item.config.getoption("no_dyntrace") or not (marks or item.config.getoption("dyntrace")):
        return None
    limits = {}
    for mark in reversed(marks):  # iter_markers() begins with the innermost mark
        if mark.args:
            raise pytest.UsageError(f"{item.nodeid}: pytest.mark.dyntrace takes keywords only")
        limits.update(mark.kwargs)
    return limits


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    limits = _merge_limits(item)
    if limits is None:
        yield
        return
    wrong = path = joined = None
    stack = contextlib.ExitStack()
    try:
        joined = _native.native._active()
        path = _choose_path(
            item.config, item._request.getfixturevalue("tmp_path_factory"), item.nodeid
        )
        stack.enter_context(_begin_recording(path, limits))
    except Exception as error:  # a test that has limits must not pass if it cannot be recorded
        wrong = error
    outcome = yield
    try:
        stack.close()
        if not wrong and not joined:
            _check_or_warn(path, limits)
            if outcome.excinfo is None:
                _discard_trace(item.config, path)
            else:
                item.add_report_section("call", "dyntrace", f"trace: {path}")
    except Exception as error:
        wrong = error
    if wrong is None:
        return
    if outcome.excinfo is not None:  # report the test's own failure rather than this one
        item.add_report_section("call", "dyntrace", str(wrong))
    else:
        _fail_test(outcome, wrong)


def _fail_test(outcome, error):
    """Make the test fail with ERROR, without a traceback, because no line of the test caused the
    failure."""
    kind = pytest.fail.Exception
    wrong = kind(f"dyntrace: {error}", pytrace=False)
    if hasattr(outcome, "force_exception"):
        outcome.force_exception(wrong)
    else:  # pluggy before 1.1
        outcome._excinfo = (kind, wrong, None)
