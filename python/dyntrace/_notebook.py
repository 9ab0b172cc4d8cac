"""%%dyntrace, a cell magic of IPython: record a cell, then show what to look at first.

    %load_ext dyntrace          calls dyntrace.load_ipython_extension(), which calls load()

    %%dyntrace
    work()

IPython runs the cell: output, the last expression's value, magics and errors are the usual ones.

Runs in: the kernel.
"""

from __future__ import annotations

import os
import sys

from . import _native
from .record import record
from .trace import Trace

__all__ = ["load"]


def load(ipython):
    """Register the magic with IPYTHON."""
    from IPython.core import magic_arguments
    from IPython.core.error import UsageError
    from IPython.display import display

    argument = magic_arguments.argument

    @magic_arguments.magic_arguments()
    @argument("file", nargs="?", help="Keep the trace in this file. Default: a temporary one.")
    @argument("-o", "--output", default="_dyntrace", help="The variable for the trace.")
    @argument("-f", "--force", action="store_true", help="Replace an existing file.")
    @argument("--values", choices=["all", "types", "off"], default="all", help="As in record().")
    @argument("--no-argv", action="store_true", help="Keep no command lines.")
    def dyntrace(line, cell):
        """Record the frames of this cell, and show what to look at first.

        Afterwards the variable _dyntrace holds the trace, a dyntrace.trace.Trace. Query it:
        _dyntrace.functions().df, _dyntrace.why("f"), _dyntrace.sql("SELECT ...")
        """
        given = magic_arguments.parse_argstring(dyntrace, line)
        run = _make_runner(ipython, cell)
        active = _native.native._active()
        if not run:
            return
        if active:
            print("%%dyntrace: this process is being recorded already: the cell is in", active)
            ipython.user_ns[given.output] = Trace(active)
            run()
            return
        path, finish = (given.file, None) if given.file else _make_temporary()
        options = {"force": given.force, "values": given.values, "argv": not given.no_argv}
        try:
            with record(path, **options) as trace:
                run()
        # This is an error of the recording: IPython has already shown errors of the cell itself.
        except RuntimeError as error:
            raise UsageError(str(error).replace("force=True", "--force")) from None
        if finish:
            finish(trace)
        ipython.user_ns[given.output] = trace
        # compute the page once, because both the text and the HTML show it
        first = trace._make_first_page()
        display(
            {"text/plain": trace._make_text(first), "text/html": trace._make_html(first)}, raw=True
        )

    # A Trace is a str, so IPython would show its repr(). Show the trace's page instead; but if the
    # trace is an item of a container, e.g. of a list, show the repr().
    def show(trace, printer, cycle):
        is_whole = len(printer.stack) == 1
        printer.text(trace._make_text(trace._make_first_page()) if is_whole else repr(trace))

    ipython.register_magic_function(dyntrace, "cell")
    ipython.display_formatter.formatters["text/plain"].for_type(Trace, show)


def _make_runner(ipython, cell):
    """Return a function that runs CELL, the lines below %%dyntrace. IPYTHON uses the value or the
    error of these lines as that of the whole cell. Returns None if CELL has a syntax error, which
    has been shown.
    """
    from IPython.core.error import UsageError
    from IPython.core.interactiveshell import ExecutionResult

    result = ipython.displayhook.exec_result or ExecutionResult(None)
    try:
        text = ipython.transform_cell(cell)
        name = ipython.compile.cache(text, result.execution_count, raw_code=cell)
        tree = ipython.transform_ast(ipython.compile.ast_parse(text, filename=name))
    except SyntaxError as error:
        ipython.showsyntaxerror()
        result.error_before_exec = error
        return None
    waits = ipython.should_run_async(cell, transformed_cell=text)
    if waits and _is_loop_running():
        raise UsageError(
            "%%dyntrace cannot record a cell that awaits: write "
            "`with dyntrace.record('t.db') as trace:` around its lines"
        )

    def run():
        runner = ipython.loop_runner if waits else _run_at_once
        how = ipython.ast_node_interactivity
        nodes = tree.body
        runner(ipython.run_ast_nodes(nodes, name, how, compiler=ipython.compile, result=result))

    return run


def _run_at_once(coroutine):
    """Run COROUTINE, which awaits nothing."""
    try:
        coroutine.send(None)
    except StopIteration:
        pass


def _is_loop_running():
    """Does this thread already run an event loop, as a notebook kernel does?"""
    asyncio = sys.modules.get("asyncio")
    try:
        return bool(asyncio and asyncio.get_running_loop())
    except RuntimeError:
        return False


def _make_temporary():
    """Return a path for a temporary trace, and a function finish(trace) which makes the file
    disappear when the object TRACE is released."""
    import tempfile
    import weakref

    folder = tempfile.mkdtemp(prefix="dyntrace_cell_")

    def finish(trace):
        trace._finish = weakref.finalize(trace, _remove_folder, folder, os.getpid())

    return os.path.join(folder, "cell.db"), finish


def _remove_folder(folder, pid):
    if os.getpid() == pid:  # delete nothing in a forked child: the file belongs to the parent
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
