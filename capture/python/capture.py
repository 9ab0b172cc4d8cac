"""dyntrace.compile and related functions: capture functions as graphs of array operations.

Runs in: the traced process. capture/README.md has the rules. C watches a call and makes a record of
the call. finish() makes a graph module from this record, passes the module to the backend, and
writes graph, break and bytecode into the trace.
"""

from __future__ import annotations

import dis
import functools
import itertools
import sys
import time
import types

from . import _assemble  # C imports this module by its name
from . import _notes as notes
from ._capture import make_guards, make_source
from ._capture_native import native as captures
from ._native import native
from .graph import GraphModule, make_row
from .guards import _get_path as steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, ParamSpec, TypeVar, overload

    _Function = TypeVar("_Function", bound=Callable[..., Any])
    _Class = TypeVar("_Class", bound=type)
    _P = ParamSpec("_P")
    _Backend = Callable[[GraphModule, Sequence[Any]], Callable[..., Any]]

__all__ = [
    "Explanation",
    "GraphBreak",
    "backends",
    "compile",
    "disable",
    "explain",
    "graph_break",
    "register_array",
]

backends: dict[str, _Backend] = {"eager": lambda module, example_inputs: module}
"""Backends by name. Each takes a GraphModule and its example inputs, and returns a callable."""

graph_break = captures.graph_break
_names = itertools.count()


class GraphBreak(RuntimeError):
    """Raised if fullgraph=True and the graph breaks. The message says what could not be captured,
    and where."""


def register_array(kind: _Class) -> _Class:
    """Treat objects of a class as arrays: from now on operations on them go into graphs.

    Parameters
    ----------
    kind
        The class. It is returned, so that this is a decorator.
    """
    if not isinstance(kind, type):
        raise TypeError("register_array() takes a class, not %s" % _describe_kind(kind))
    captures._register_array(kind)
    return kind


class Compiled(functools.partial):
    """A function that calls `fn` while `callback` is the thread's callback for captures. If
    `callback` is None, nothing is captured during this call."""

    fn = property(lambda self: self.args[0], doc="The original function.")
    callback = property(lambda self: self.args[1], doc="The callback during the call, or None.")

    def __get__(self, owner, kind=None):
        return self if owner is None else types.MethodType(self, owner)

    def __repr__(self):
        return "<%r, %s>" % (self.fn, "not compiled" if self.callback is None else "compiled")


if TYPE_CHECKING:

    @overload
    def compile(
        fn: _Function,
        *,
        backend: str | _Backend = "eager",
        dynamic: bool | None = None,
        fullgraph: bool = False,
    ) -> _Function: ...
    @overload
    def compile(
        fn: None = None,
        *,
        backend: str | _Backend = "eager",
        dynamic: bool | None = None,
        fullgraph: bool = False,
    ) -> Callable[[_Function], _Function]: ...


def compile(
    fn: Any = None,
    *,
    backend: str | _Backend = "eager",
    dynamic: bool | None = None,
    fullgraph: bool = False,
) -> Any:
    """Return a function that runs its operations on arrays as graphs of a backend.

    The graphs are captured at the first call, and again when a guard fails.

        @dyntrace.compile
        def f(a, b):
            return (a + b).sum()

    Parameters
    ----------
    fn
        A function, a method, or another object that can be called. Without it, compile() returns a
        decorator.
    backend
        "eager", which runs the graph as it is; or backend(graph_module, example_inputs), which
        returns a callable.
    dynamic
        Which sizes are guarded. None: each until it changes. True: none. False: all.
    fullgraph
        Raise GraphBreak where a graph would break.

    Raises
    ------
    TypeError
        fn cannot be called, or is a class; backend is neither a name nor a function.
    ValueError
        No backend has this name.
    """
    if fn is None:
        return functools.partial(compile, backend=backend, dynamic=dynamic, fullgraph=fullgraph)
    make = _find_backend(backend)
    if dynamic not in (None, True, False):
        raise TypeError("dynamic is %r: None, True or False" % (dynamic,))
    dynamic = None if dynamic is None else bool(dynamic)
    return _wrap_function(
        fn,
        captures.Capture(
            (
                functools.partial(finish, make, None, bool(fullgraph)),
                backend,
                dynamic,
                bool(fullgraph),
                False,
            )
        ),
        "compile",
    )


def disable(fn: _Function) -> _Function:
    """Return a function that is never captured. Functions that it calls are not captured either.

    A call of this function from captured code breaks the graph.
    """
    return _wrap_function(fn, None, "disable")


def explain(fn: Callable[_P, object], *, dynamic: bool | None = None) -> Callable[_P, Explanation]:
    """Return a function that calls fn and returns an Explanation of the capture.

        print(dyntrace.explain(f)(a, b))

    Earlier captures of fn stay in the cache and are not used here.

    Parameters
    ----------
    fn
        As for compile().
    dynamic
        As for compile().
    """

    def explained(*args: _P.args, **kwargs: _P.kwargs) -> Explanation:
        explanation = Explanation()
        # a new backend, so that explain() does not use the cache entries of other backends
        backend = lambda module, example_inputs: module  # noqa: E731
        capture = captures.Capture(
            (functools.partial(finish, backend, explanation, False), backend, dynamic, False, False)
        )
        explanation.result = _wrap_function(fn, capture, "explain")(*args, **kwargs)
        return explanation

    return explained


def _describe_kind(value):
    return "a " + type(value).__name__


def _find_backend(backend):
    if callable(backend):
        return backend
    if not isinstance(backend, str):
        raise TypeError(
            "a backend is a name or a function (graph_module, example_inputs) -> callable, not %s"
            % _describe_kind(backend)
        )
    if backend not in backends:
        raise ValueError(
            "no backend is called %r: %s, or give a function "
            "(graph_module, example_inputs) -> callable" % (backend, ", ".join(backends))
        )
    return backends[backend]


def _wrap_function(fn, callback, what):
    if isinstance(fn, Compiled) and fn.callback is not None:
        fn = fn.fn
    if isinstance(fn, type) or not callable(fn):
        raise TypeError(
            "%s() takes a function, a method or an object that can be called, not %s"
            % (what, "a class" if isinstance(fn, type) else _describe_kind(fn))
        )
    is_function = isinstance(fn, (types.FunctionType, types.MethodType, types.BuiltinFunctionType))
    return functools.update_wrapper(
        Compiled(native._call_under, fn, callback), fn, updated=("__dict__",) if is_function else ()
    )


# ---- what happens at the end of a capture ---------------------------------------


def finish(backend, explanation, fullgraph, record):
    """Pass a captured graph to the backend. Returns (callable, GuardTree). If the callable is None,
    the plan runs the graph itself, without a call.

    C calls this at the end of each capture, during the compile. BACKEND is a function or a name.
    EXPLANATION is the Explanation to which the capture is added, or None. RECORD has:
        code      the captured code object
        nodes     the nodes of the graph
        inputs    the values of the placeholders
        guards    (kind, path, value) of each guard
        break     None, or (kind, reason, offset, line, stack)
        resume    a list of the places where the compiled code leaves for a resume function
        modified  the compiled code
        plan      the constant of the compiled code that runs the graph
        began     when the capture began, by time.monotonic_ns()
    """
    broken, nodes = record["break"], record["nodes"]
    if fullgraph and broken:
        raise GraphBreak("%s\n%s" % (broken[1], _format_stack(broken[4])))
    module = run = None
    compiling = native._compiling()
    if compiling:
        now = time.time_ns()
        notes.phase(compiling[0], "capture", now - (time.monotonic_ns() - record["began"]), now, "")
    if nodes:
        record["plan"].name = name = "__compiled_fn_%d" % next(_names)
        record["module"] = module = GraphModule(nodes, name, record["places"])
        start = time.time_ns()
        run = _find_backend(backend)(module, record["inputs"])
        if module.is_as_written(run):
            run = None
        elif not callable(run):
            raise TypeError(
                "the backend returned %s for %s, which cannot be called"
                % (_describe_kind(run), name)
            )
        if compiling:
            notes.phase(compiling[0], "backend", start, time.time_ns(), "")
    if explanation is not None:
        explanation.add(record, module)
    if compiling:
        _record_capture(compiling[0], record, module)
    return run, make_guards(record)


def reset_names() -> None:
    global _names
    _names = itertools.count()


def _format_stack(stack):
    return "\n".join('  File "%s", line %d, in %s' % place for place in stack)


def _record_capture(compile, record, module):
    code, broken = record["code"], record["break"]
    if module:
        notes.graph(compile, module.name, list(map(make_row, module.graph.nodes)))
        if native._values() == "all":
            inputs = (node.name for node in module.graph.nodes if node.op == "placeholder")
            for name, value in zip(inputs, record["inputs"]):
                notes.listing(compile, "input " + name, _describe_input(value))
    if broken:
        kind, reason, offset, line, stack = broken
        resume = record["resume"][0].resume if record["resume"] else None
        notes.graph_break(compile, code, line, offset, reason, _format_stack(stack), resume)
    notes.listing(compile, "original_bytecode", _disassemble(code))
    notes.listing(compile, "modified_bytecode", _disassemble(record["modified"]))


def _describe_input(value):
    try:
        return "%s[%s]" % (str(value.dtype).rpartition(".")[2], ", ".join(map(str, value.shape)))
    except Exception:
        return type(value).__name__


class _Shown:
    """Stands for a constant of the compiled code in a bytecode listing: its repr() is WORD."""

    def __init__(self, word):
        self.word = word

    def __repr__(self):
        return self.word


def _show_constant(constant):
    """Return the object that stands for CONSTANT in a bytecode listing.

    A plan is shown as the name of its graph. The builtin that calls a resume function is shown as
    the name of this resume function. The builtin that restores the variables and the stack at the
    start of a resume function is shown as "restore".
    """
    if type(constant) is type(captures._globals):
        return _Shown(constant.name)
    if type(constant) is not types.BuiltinFunctionType or constant.__name__ not in (
        "leave",
        "enter",
    ):
        return constant
    to = constant.__self__
    return _Shown(to.co_name if isinstance(to, types.CodeType) else "restore")


def _disassemble(code):
    try:
        return (
            dis.Bytecode(code.replace(co_consts=tuple(map(_show_constant, code.co_consts)))).dis()
            if code
            else ""
        )
    except Exception as error:  # for example, code without a line table
        return "cannot be shown: %r" % error


# ---- explain -------------------------------------------------------------------

_SCOPES = {"L": "local", "G": "global", "B": "builtin"}


def _write_guard(guard):
    """Return a line of text that describes GUARD, e.g. " - local 'a' TENSOR_MATCH"."""
    kind, path = guard[0], steps(make_source(guard[1]))
    if len(path) == 1:
        return " - %s %s" % (path[0][2], kind)
    return " - %s %r%s %s" % (
        _SCOPES.get(path[0][0], path[0][0]),
        path[1][1],
        path[-1][2][len(path[1][2]) :],
        kind,
    )


class Explanation:
    """The captures that were made during one call.

    str() gives for each capture its graph, original and modified bytecode, and guards.

    Attributes
    ----------
    graphs
        A list of GraphModules.
    breaks
        (kind, reason, line, stack) of each graph break.
    result
        What the call returned.
    """

    def __init__(self) -> None:
        self.captures: list[tuple[Any, ...]] = []
        self.graphs: list[GraphModule] = []
        self.breaks: list[tuple[str, str, int | None, Any]] = []
        self.result: Any = None

    def add(self, record: dict[str, Any], module: GraphModule | None) -> None:
        """Add a capture: RECORD is its record (see finish()), MODULE its graph."""
        self.captures.append(
            (record["code"], module, record["modified"], record["guards"], record["break"])
        )
        if module:
            self.graphs.append(module)
        if record["break"]:
            kind, reason, offset, line, stack = record["break"]
            self.breaks.append((kind, reason, line, stack))

    @property
    def graph_count(self) -> int:
        """The number of captured graphs."""
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        """The number of graph breaks."""
        return len(self.breaks)

    @property
    def op_count(self) -> int:
        """The number of operations in all graphs."""
        return sum(
            node.op.startswith("call") for module in self.graphs for node in module.graph.nodes
        )

    def __str__(self) -> str:
        texts = []
        for code, module, modified, guards, broken in self.captures:
            if module:
                texts.append("%s %s\n%s\n" % (module.name, module.file, module.graph.table()))
            texts.append(
                "ORIGINAL BYTECODE %s %s %d\n%s"
                % (code.co_name, code.co_filename, code.co_firstlineno, _disassemble(code))
            )
            texts.append("MODIFIED BYTECODE\n" + _disassemble(modified))
            if broken:
                kind, reason, offset, line, stack = broken
                texts.append("GRAPH BREAK at %d, line %s: %s\n" % (offset, line, reason))
            texts.append("GUARDS:\n%s\n" % "\n".join(dict.fromkeys(map(_write_guard, guards))))
        return "\n".join(texts)

    def __repr__(self) -> str:
        return "<%d graphs, %d breaks, %d operations>" % (
            self.graph_count,
            self.graph_break_count,
            self.op_count,
        )
