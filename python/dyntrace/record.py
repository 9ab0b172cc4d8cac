"""Record from inside a program or a notebook.

Runs in: the traced process. Another process, `dyntrace collect`, writes the trace. This module
starts that process.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import time

from . import _native  # import nothing else here, because `import dyntrace` must be cheap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

    from .trace import Trace

__all__ = ["record", "snapshot"]

_starting = _thread.RLock()  # held while a recording is being started
os.register_at_fork(after_in_child=_starting._at_fork_reinit)

_said = False  # has this process already warned that record() joins another recording?


def _find_program():
    """Return the path of the program `dyntrace` that belongs to this package. It is in bin/ (after
    an installation, also by pip), beside build/lib (after `make`), or on PATH.

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


def _translate_options(errors):
    """Return ERRORS, messages of the program `dyntrace`, with options of the program replaced by
    the arguments of record() that have the same effect."""
    said = (
        os.fsdecode(errors)
        .strip()
        .replace(
            "use --force to replace it, or -o for another name",
            "force=True replaces it, or give another path",
        )
    )
    return said.replace("use -o to record to another place", "give another path")


def _warn_joined(path, trace, strict):
    """Warn once that the process is being recorded into TRACE already, so that record(PATH) joins
    this recording. Raise RuntimeError if STRICT. `-W error` cannot turn the warning into an
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


class _Collector:
    """The process `dyntrace collect` that writes the trace. It is no child of this process. A
    socket connects the two processes, and the collector ends when the socket is closed.

    Forked children inherit the socket, but only the process that started the collector ends it. The
    program may close the socket, and open a file that gets the socket's descriptor number.
    """

    def __init__(self):
        self.owner = os.getpid()
        # the result of _collect(); empty before the start of the collector and after its end
        self.started = []
        self.heard = b""  # all bytes that the collector has written so far

    def __del__(self):
        self._close_socket()

    def _is_socket_open(self):
        """Does the socket's descriptor still belong to the socket?"""
        socket, device, inode = self.started[0][:3]
        try:
            status = os.fstat(socket)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == (device, inode)

    def _close_socket(self):
        if self.started and self._is_socket_open():
            os.close(self.started[0][0])
        self.started.clear()

    def _read_texts(self, texts):
        """Read until the collector has written TEXTS texts. Returns False if it ended before that,
        if it is of an older version, or if the socket is closed."""
        while self.heard.count(b"\0") < texts and not self._is_older_version():
            try:
                got = self._is_socket_open() and os.read(self.started[0][0], 4096)
            except OSError:
                got = b""
            if not got:
                return False
            self.heard += got
        return not self._is_older_version()

    def _is_older_version(self):
        """Is the collector of an older version? Such a collector writes a text that ends in NUL, in
        place of a line with its session's directory."""
        return self.heard.startswith(b"/") and b"\n" in self.heard.partition(b"\0")[0]

    def start_and_join(self, command):
        """Start COMMAND, the command line of a collector, and join its session. Returns the path of
        the trace if it differs from the path in COMMAND, otherwise "".

        Raises RuntimeError if nothing is recorded.
        """
        native = _native.native
        try:
            native._collect([os.fsencode(word) for word in command], self.started)
        except OSError as error:
            raise RuntimeError("%s: cannot be started: %s" % (command[0], error.strerror)) from None
        why = "gone"
        if self._read_texts(2):
            session, path = map(os.fsdecode, self.heard.split(b"\0")[:2])
            why = native._start(session, os.path.dirname(os.__file__))
        if why is None:
            return path
        if self._is_older_version():
            why = "another"
        said = self.end_recording()
        if why == "interpreters":
            said = (
                "sub-interpreters ran while `dyntrace run` recorded this process, and that "
                "recording has ended: another one cannot begin"
            )
        if why == "another":
            said = "%s is of another version of dyntrace than this package: %s" % (
                command[0],
                _native.remedy(),
            )
        raise RuntimeError(said or "the recording could not be started")

    def end_recording(self):
        """End the collector, and wait until the trace is complete. This process has left the
        session before. Returns why the trace could not be finished, or None. A forked child only
        closes the socket."""
        why = None
        if self.started and os.getpid() == self.owner:
            socket, _, _, pid, is_child = self.started[0]
            is_open = self._is_socket_open()
            if is_open:
                _native.native._hang_up(socket)
            if not self._read_texts(3) and is_open:
                why = _translate_options(self.heard.split(b"\0")[-1])
                why = why or "the recording could not be finished"
            if not is_open:
                self._wait_until_removed(pid)
            if is_child:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
        self._close_socket()
        return why

    def _wait_until_removed(self, pid):
        """Wait until the collector PID has removed its session. Used if the collector cannot
        answer, because the socket is closed."""
        session = os.fsdecode(self.heard.partition(b"\0")[0])
        with contextlib.suppress(ProcessLookupError):
            while session and os.path.exists(session):
                # the program has changed its user, so it may not signal the collector
                with contextlib.suppress(PermissionError):
                    os.kill(pid, 0)
                time.sleep(0.005)


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
        path. If path ends in "/" (a directory) or has a placeholder such as %p, the str is
        the full path of the file that the recording made.

    Raises
    ------
    RuntimeError
        No trace could be made, or strict is true and the process is being recorded already. The
        message has the reason.
    """
    native = _native.native
    # import this before recording begins, so that the import is not recorded
    from .trace import Trace

    collector = _Collector()
    try:
        with _starting:
            active = native._active()
            if not active and not native._can_record():
                raise RuntimeError("record() is for the main interpreter")
            if not active:
                command = [_find_program(), "collect", "-o", path, "--pid", str(collector.owner)]
                command += ["--values", values]
                command += (["--force"] if force else []) + ([] if argv else ["--no-argv"])
                for pattern in [args] if isinstance(args, str) else args:
                    command += ["--args", pattern]
                if redact is False:
                    command.append("--no-redact")
                elif redact is not True:
                    for pattern in [redact] if isinstance(redact, str) else redact:
                        command += ["--redact", pattern]
                trace = Trace(path)
                real = collector.start_and_join(command)
                # Call Trace(), which is recorded, only if it is necessary.
                trace = Trace(real) if real else trace
        if active:
            _warn_joined(path, active, strict)
        yield Trace(active) if active else trace
    finally:
        # Nothing may come before _stop(), not even a call, because a signal handler could raise
        # there.
        try:
            if collector.started:
                native._stop()
        finally:
            why = collector.end_recording()
        if why:
            raise RuntimeError(why)


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

    command = [_find_program(), "snapshot", str(os.getpid()), "-o", os.fspath(path)]
    done = subprocess.run(
        command + (["--force"] if force else []), stdin=subprocess.DEVNULL, capture_output=True
    )
    if done.returncode:
        raise RuntimeError(_translate_options(done.stderr) or "no snapshot was taken")
