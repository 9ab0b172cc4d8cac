"""Record from inside a program or a notebook.

Runs in: the traced process. Another process, `dyntrace collect`, writes the trace. This module
starts that process.
"""

from __future__ import annotations

import contextlib
import os

from . import _native  # import nothing else here, because `import dyntrace` must be cheap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

    from .trace import Trace

__all__ = ["record", "snapshot"]

_said = False  # has the warning about joining another recording been given?


def _program():
    """Return the path of the program `dyntrace` that belongs to this package: in bin/ (installed,
    by pip, too), beside the library (in place), or on PATH.

    Raises RuntimeError if there is none.
    """
    folder = os.path.dirname(os.path.realpath(os.path.dirname(__file__)))
    library = os.path.dirname(folder)
    for path in (
        os.path.join(library, os.pardir, os.pardir, "bin", "dyntrace"),
        os.path.join(library, os.pardir, "dyntrace"),
        os.path.join(folder, "bin", "dyntrace"),
    ):  # the third path is that of pip install --target
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    import shutil

    path = shutil.which("dyntrace")
    if not path:
        raise RuntimeError(
            "the program `dyntrace` is neither beside this package nor on PATH: " + _native.remedy()
        )
    return path


def _in_python(errors):
    """Translate the program's options in ERRORS to arguments of record()."""
    said = (
        os.fsdecode(errors)
        .strip()
        .replace(
            "use --force to replace it, or -o for another name",
            "force=True replaces it, or give another path",
        )
    )
    return said.replace("use -o to record to another place", "give another path")


def _joined(path, trace, strict):
    """Warn, once, that the process is recorded into TRACE already. The warning cannot become an
    error."""
    global _said
    if strict:
        raise RuntimeError(
            "this process is being recorded already, into %s (by `dyntrace run`, or by "
            "another record())" % trace
        )
    if _said:
        return
    _said = True
    import warnings

    with contextlib.suppress(Exception):  # -W error
        warnings.warn(
            "dyntrace.record(%r) joins the recording that goes on: what it would record is "
            "in %s" % (os.fspath(path), trace),
            stacklevel=4,
        )


@contextlib.contextmanager
def record(
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    values: Literal["all", "types", "off"] = "all",
    argv: bool = True,
    args: Sequence[str] = (),
    redact: bool | Sequence[str] = True,
    strict: bool = False,
) -> Iterator[Trace]:
    """Record every frame that this process evaluates inside the `with` block.

        with dyntrace.record("trace.db") as trace:
            work()
        print(trace.why())

    All threads of the main interpreter are recorded, and forked children. Programs that the process
    starts and sub-interpreters are not recorded: `dyntrace run` records both. Frames that were
    already running when the block began are not in the trace.

    Parameters
    ----------
    path
        The trace to write.
    force
        Replace an existing file.
    values
        How much of arguments and of compared values to keep: "all"; "types", that is types, shapes
        and dtypes; or "off".
    argv
        Keep command lines.
    args
        Record arguments and return values of functions whose file or qualified name matches one of
        these patterns, such as ["Order.*"], as `dyntrace run --args` does.
    redact
        Keep no values whose names look secret, such as password or api_key: `<redacted>` stands for
        them. Patterns of names, such as ["iban*"], add to these names. False keeps all values.
    strict
        Raise if the process is being recorded already. By default the block then joins that
        recording, which goes on after the block: path is not written, the other arguments have no
        effect, and a warning says so the first time.

    Yields
    ------
    dyntrace.trace.Trace
        The trace at path, or that of the recording that the block has joined. It can be queried
        after the block. Within the block it has what was recorded until then. It is also a str, its
        path. If path is a directory, that is ends in "/", or has a placeholder such as %p, the
        trace has the full path of the file, which is there after the block.

    Raises
    ------
    RuntimeError
        No trace could be made, or strict is true and the process is being recorded already. The
        message has the reason.
    """
    active = _native.native._active()
    from .trace import Trace  # before the block, which has no frame of ours

    if active:
        _joined(path, active, strict)
        yield Trace(active)
        return
    import subprocess

    program = _program()
    trace = Trace(path)
    command = [
        program,
        "collect",
        "-o",
        os.fspath(path),
        "--pid",
        str(os.getpid()),
        "--values",
        values,
    ]
    command += (["--force"] if force else []) + ([] if argv else ["--no-argv"])
    for pattern in [args] if isinstance(args, str) else args:
        command += ["--args", pattern]
    if redact is False:
        command.append("--no-redact")
    elif redact is not True:
        for pattern in [redact] if isinstance(redact, str) else redact:
            command += ["--redact", pattern]
    # A session of its own, so that Ctrl-C in a terminal reaches only the program.
    collector = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    session = os.fsdecode(collector.stdout.readline()).rstrip("\n")
    why = _native.native._start(session, os.path.dirname(os.__file__)) if session else "gone"
    if why is not None:
        _, errors = collector.communicate()
        reasons = {
            "elsewhere": "record() is for the main interpreter",
            "another": "%s is of another version of dyntrace than this package: %s"
            % (program, _native.remedy()),
        }
        raise RuntimeError(
            reasons.get(why) or _in_python(errors) or "the recording could not be started"
        )
    try:
        yield trace
    finally:
        _native.native._stop()
        said, errors = collector.communicate()
        if collector.returncode and not said.startswith(b"done"):
            raise RuntimeError(_in_python(errors) or "the recording could not be finished")


def snapshot(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a complete trace of what has been recorded so far. The recording goes on.

        dyntrace.snapshot("now.db")

    With `dyntrace run --keep` the trace has only the last seconds or bytes of the recording. Frames
    that are still open have no end in it. The function returns when the file is complete; before
    that, PATH does not exist or is unchanged.

    Parameters
    ----------
    path
        The trace to write.
    force
        Replace an existing file.

    Raises
    ------
    RuntimeError
        The process is not being recorded, or the file cannot be written.
    """
    import subprocess

    command = [_program(), "snapshot", str(os.getpid()), "-o", os.fspath(path)]
    done = subprocess.run(
        command + (["--force"] if force else []), stdin=subprocess.DEVNULL, capture_output=True
    )
    if done.returncode:
        raise RuntimeError(_in_python(done.stderr) or "no snapshot was taken")
