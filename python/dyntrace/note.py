"""Records facts about a compile of your own compiler: graphs, graph breaks, texts, phases and
inputs.

The callback that you give dyntrace.eval_frame calls these functions while it compiles, on the
thread on which it was called. The facts become rows of that compile, like those of torch's
compiles, so `report`, `why`, `show`, `check` and the TUI print them. Outside a recording or a
compile the functions do nothing. They raise nothing but TypeError, for an argument of a wrong type.
"""

from __future__ import annotations

import contextlib
import time
import types

from . import _notes as notes
from ._native import native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from .resume import Split

__all__ = ["graph", "graph_break", "input", "listing", "phase"]


def _check_str(value, what):
    if not isinstance(value, str):
        raise TypeError("%s is a %s, not a str" % (what, type(value).__name__))
    return value


def _to_text(value):
    """Return a member of a node as text: a str is unchanged, a callable gives its name, anything
    else its repr()."""
    if isinstance(value, str):
        return value
    if callable(value) and isinstance(getattr(value, "__qualname__", None), str):
        module = getattr(value, "__module__", None)
        return (
            value.__qualname__
            if module in (None, "builtins")
            else "%s.%s" % (module, value.__qualname__)
        )
    return repr(value)


def graph(name: str, nodes: Iterable[Any]) -> None:
    """Record a graph that the compile made.

    Parameters
    ----------
    name
        The graph's name, such as "__compiled_fn_0".
    nodes
        For each node (op, name, target, args, kwargs), or an object with these attributes.
    """
    _check_str(name, "name")
    compiling = native._compiling()
    if compiling:
        members = [
            (
                node
                if isinstance(node, (tuple, list))
                else (node.op, node.name, node.target, node.args, node.kwargs)
            )
            for node in nodes
        ]
        if any(len(node) != 5 for node in members):
            raise TypeError("a node is (op, name, target, args, kwargs)")
        notes.graph(compiling[0], name, [tuple(map(_to_text, node)) for node in members])


def graph_break(
    reason: str,
    line: int | None = None,
    offset: int | None = None,
    hint: str | None = None,
    resume: types.FunctionType | types.CodeType | Split | None = None,
) -> None:
    """Record a graph break: where the compiled code leaves the graph, and why.

    Parameters
    ----------
    reason
        Why, in words.
    line
        The line of the instruction. Default: the line at the offset.
    offset
        Where in the code the instruction is, in bytes.
    hint
        How to avoid the break, in words.
    resume
        The resume function: a function, its code, or the result of dyntrace.resume.split().
    """
    _check_str(reason, "reason")
    if hint is not None:
        reason += "\n  Hint: " + _check_str(hint, "hint")
    compiling = native._compiling()
    if not compiling:
        return
    from .resume import Split  # import late, because many programs never compile

    compile, code = compiling
    split = isinstance(resume, Split)
    resume = resume.resume if split else getattr(resume, "__code__", resume)
    if resume is not None and not isinstance(resume, types.CodeType):
        raise TypeError("resume is a %s, not a function or a code object" % type(resume).__name__)
    if line is None and offset is not None:
        line = next((line for start, end, line in code.co_lines() if start <= offset < end), None)
    # the recorder already knows the origin of a resume function that a Split made
    if resume is not None and not split:
        notes.origin(resume, code, "resume")
    stack = 'File "%s", line %d, in %s' % (
        code.co_filename,
        line or code.co_firstlineno,
        code.co_name,
    )
    notes.graph_break(
        compile,
        code,
        -1 if line is None else line,
        -1 if offset is None else offset,
        reason,
        stack,
        resume,
    )


def listing(kind: str, text: str) -> None:
    """Record a text that the compile made or read.

    Parameters
    ----------
    kind
        Your word for the kind of text, such as "modified_bytecode".
    text
        The text.
    """
    _check_str(kind, "kind")
    _check_str(text, "text")
    compiling = native._compiling()
    if compiling:
        notes.listing(compiling[0], kind, text)


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """Record how long a part of the compile takes: `with phase("lowering"):`.

    Parameters
    ----------
    name
        Your word for the part.
    """
    _check_str(name, "name")
    compiling = native._compiling()
    start = time.time_ns()
    try:
        yield
    finally:
        if compiling:
            notes.phase(compiling[0], name, start, time.time_ns(), "")


def input(name: str, text: str) -> None:
    """Record an input of the compile. `--values types` and `--values off` leave it out.

    Parameters
    ----------
    name
        The input's name, such as "x".
    text
        The input's description, such as "float32[4, 3]".
    """
    _check_str(name, "name")
    _check_str(text, "text")
    compiling = native._compiling()
    if compiling and native._values() == "all":
        notes.listing(compiling[0], "input " + name, text)
