"""Graphs as a backend of dyntrace.compile gets them: nodes, and a module that runs them.

Runs in: the traced process. Classes, attributes and nodes have the names that torch.fx gives them.

    def backend(module, example_inputs):
        module.print_tabular()
        for node in module.graph.nodes:
            print(node.op, node.name, node.target, node.args, node.kwargs)
        return module.forward

The nodes are written as the source of one function, `module.code`, which Python compiles. So
running a graph costs about as much as running its operations, and making a graph takes time and
memory in proportion to the number of nodes. The function releases each value after the last use.
"""

from __future__ import annotations

import builtins
import functools
import keyword
import operator
import re
import sys
import types

from ._framed import Frame, Framed, Statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = ["Graph", "GraphModule", "Node"]


class Node:
    """One step of a graph, as torch.fx has it.

    Parameters
    ----------
    op
        "placeholder", "call_function", "call_method", "get_attr" or "output".
    name
        The name of the node's value.
    target
        The function, the method's name, or the input's name.
    args
        Positional arguments: values, nodes, or containers of them.
    kwargs
        Arguments by name.
    """

    __slots__ = "op", "name", "target", "args", "kwargs"

    def __init__(
        self, op: str, name: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.op, self.name, self.target, self.args, self.kwargs = op, name, target, args, kwargs

    def __repr__(self) -> str:
        return self.name if isinstance(self.name, str) else "<node at %#x>" % id(self)


BINARY = {
    getattr(operator, name): sign
    for name, sign in {
        "add": "+",
        "sub": "-",
        "mul": "*",
        "truediv": "/",
        "floordiv": "//",
        "mod": "%",
        "pow": "**",
        "matmul": "@",
        "and_": "&",
        "or_": "|",
        "xor": "^",
        "lshift": "<<",
        "rshift": ">>",
        "lt": "<",
        "le": "<=",
        "eq": "==",
        "ne": "!=",
        "gt": ">",
        "ge": ">=",
    }.items()
}
UNARY = {operator.neg: "-", operator.pos: "+", operator.invert: "~"}
# types of values whose repr() is Python source
_PLAIN = frozenset((bool, int, float, str, bytes, type(None), type(Ellipsis)))
_SPLIT = re.compile(r"([a-zA-Z_0-9]*?)(?:_(\d+))?$")
_TAKEN = frozenset(keyword.kwlist) | frozenset(vars(builtins))


# ---- names -----------------------------------------------------------------


class _Names:
    """Makes names unique: add, add_1, add_2."""

    def __init__(self):
        self.used, self.counts = set(), {}

    def make_unique(self, candidate):
        if not (candidate.isidentifier() and candidate.isascii()):
            candidate = re.sub(r"\W", "_", candidate, flags=re.ASCII) or "_unnamed"
            candidate = "_" + candidate if candidate[0].isdigit() else candidate
        base, number = _SPLIT.match(candidate).groups()
        if number is None or candidate in self.used:
            number = self.counts.get(candidate, 0)
            if candidate in _TAKEN:
                number += 1
                candidate = "%s_%d" % (base, number)
        else:
            number = int(number)
        while candidate in self.used:
            number += 1
            candidate = "%s_%d" % (base, number)
        self.used.add(candidate)
        self.counts[base] = number
        return candidate


def _suggest_name(target):
    """Suggest a name for a node that calls TARGET."""
    word = target if isinstance(target, str) else getattr(target, "__name__", None)
    if not isinstance(word, str):
        word = type(target).__name__
    if len(word) > 4 and word.startswith("__") and word.endswith("__"):
        word = word[2:-2]
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", word).lower()


def _make_placeholder_name(text):
    """Make the name of a placeholder from its guard source TEXT: self_weight from
    L['self'].weight."""
    word = re.sub(r"_?\W+", "_", re.sub(r"^\W+", "", text[1:], flags=re.ASCII), flags=re.ASCII)[
        :79
    ].rstrip("_")
    return word if word and not word[0].isdigit() else "arg_" + word


def name_nodes(nodes):
    """Give each node of NODES a unique name. The name of a placeholder is made from its
    guard source."""
    names, known = _Names(), {}
    for node in nodes:
        if node.op == "placeholder":
            node.name = node.target = _make_placeholder_name(node.name)
        candidate = node.name or known.get(id(node.target))
        if candidate is None:
            candidate = known[id(node.target)] = _suggest_name(node.target)
        node.name = names.make_unique(candidate)


# ---- Python source ----


class _Source:
    """Writes the source of a graph's function. `globals` maps names in the source to their
    values."""

    def __init__(self):
        self.globals, self.names, self.known = {}, _Names(), {}
        self.names.used.update(_TAKEN)

    def name_global(self, value, candidate):
        """Return the name of the global variable that holds VALUE. The same object always has the
        same name."""
        name = self.known.get(id(value))
        if name is None:
            name = self.known[id(value)] = self.names.make_unique(candidate)
            self.globals[name] = value
        return name

    def write_value(self, value):
        kind = type(value)
        if kind is Node:
            return value.name
        # an integer may have too many digits, so that its repr() raises
        if kind is int and value.bit_length() > 2000:
            return self.name_global(value, "_constant")
        if kind in _PLAIN:
            text = repr(value)
            if kind is float and text.lstrip("-") in ("inf", "nan"):
                return self.name_global(value, text.lstrip("-"))
            return "(%s)" % text if text[0] == "-" else text
        if kind is tuple:
            return "(%s,)" % ", ".join(map(self.write_value, value)) if value else "()"
        if kind is list:
            return "[%s]" % ", ".join(map(self.write_value, value))
        if kind is dict:
            return "{%s}" % ", ".join(
                "%s: %s" % (self.write_value(key), self.write_value(item))
                for key, item in value.items()
            )
        if kind is slice:
            return "slice(%s, %s, %s)" % tuple(
                map(self.write_value, (value.start, value.stop, value.step))
            )
        return self.name_global(
            value, getattr(value, "__name__", None) if isinstance(value, type) else "_constant"
        )

    def write_call(self, function, args, kwargs):
        words = [self.write_value(value) for value in args]
        if all(name.isidentifier() and not keyword.iskeyword(name) for name in kwargs):
            words += ["%s=%s" % (name, self.write_value(value)) for name, value in kwargs.items()]
        else:
            words.append("**" + self.write_value(kwargs))
        return "%s(%s)" % (function, ", ".join(words))

    def write_node(self, node):
        """Return the Python expression that computes NODE."""
        target, args, kwargs = node.target, node.args, node.kwargs
        # a node of a plan that calls nothing: its value is its arguments
        if node.op == "made" and target is None:
            return self.write_value(args)
        if target is operator.call:
            return self.write_call(self.write_value(args[0]), args[1:], kwargs)
        if node.op == "call_method":
            return self.write_call("%s.%s" % (self.write_value(args[0]), target), args[1:], kwargs)
        if node.op == "get_attr":
            return self.name_global(target, "_constant")
        name = self.known.get(id(target))
        if name:
            return self.write_call(name, args, kwargs)
        if not kwargs and len(args) == 2:
            if target in BINARY:
                return "%s %s %s" % (
                    self.write_value(args[0]),
                    BINARY[target],
                    self.write_value(args[1]),
                )
            if target is operator.getitem:
                return "%s[%s]" % tuple(map(self.write_value, args))
            if (
                target is getattr
                and type(args[1]) is str
                and args[1].isidentifier()
                and not keyword.iskeyword(args[1])
            ):
                return "%s.%s" % (self.write_value(args[0]), args[1])
        if not kwargs and len(args) == 1 and target in UNARY:
            return UNARY[target] + self.write_value(args[0])
        module = getattr(target, "__module__", None)
        module = (
            ""
            if module in ("builtins", None) or not isinstance(module, str)
            else module.lstrip("_") + "_"
        )
        return self.write_call(
            self.name_global(target, module + _suggest_name(target)), args, kwargs
        )


def _collect_nodes(value, found):
    """Append all nodes in VALUE, also those in its containers, to the list FOUND."""
    kind = type(value)
    if kind is Node:
        found.append(value)
    elif kind is tuple or kind is list:
        for item in value:
            _collect_nodes(item, found)
    elif kind is dict:
        for item in value.values():
            _collect_nodes(item, found)
    elif kind is slice:
        _collect_nodes((value.start, value.stop, value.step), found)


def _write_function(nodes):
    """Write the function that runs NODES. Returns (statements, result, source): a statement is
    (text, node, names that the text reads); `result` is the expression that the function returns;
    `source` is the _Source that wrote both."""
    source, last = _Source(), {}
    source.names.used.update(node.name for node in nodes)
    uses = {}
    for node in nodes:
        found = uses[id(node)] = []
        _collect_nodes(node.args, found)
        _collect_nodes(node.kwargs, found)
        for used in found:
            last[id(used)] = node
    dies = {}
    for node in nodes:
        if node.op not in ("placeholder", "output") and id(node) in last:
            dies.setdefault(id(last[id(node)]), []).append(node.name)
    statements, result = [], "()"
    for node in nodes:
        gone = "".join("%s = " % name for name in dies.get(id(node), ()))
        if node.op == "output":
            result = source.write_value(node.args[0])
        elif node.op != "placeholder":
            text = "%s = %s%s" % (node.name, source.write_node(node), gone and ";  %sNone" % gone)
            statements.append((text, node, [used.name for used in uses[id(node)]]))
    return statements, result, source


# ---- graphs ----------------------------------------------------------------


class Graph:
    """The operations of a function in the order in which they ran.

    Parameters
    ----------
    nodes
        The nodes; the attribute `nodes` is a list of them.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = list(nodes)

    def print_tabular(self) -> None:
        """Print a table of the nodes."""
        print(self.table())

    def table(self) -> str:
        """Return the text that print_tabular() prints."""
        return format_table(map(make_row, self.nodes))

    def __str__(self) -> str:
        return "\n".join(
            "%%%s = %s[target=%s](args = %s, kwargs = %s)" % (name, op, *rest)
            for op, name, *rest in map(make_row, self.nodes)
        )


def make_row(node):
    return (node.op, node.name, *map(_to_text, (node.target, node.args, node.kwargs)))


def _to_text(value):
    try:
        return str(value)
    except Exception as error:
        # a __str__ of the program raised, or the value has an integer with too many digits
        return "(cannot be shown: %s)" % type(error).__name__


def format_table(rows):
    rows = [("opcode", "name", "target", "args", "kwargs"), *rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _make_globals_like(name):
    """Make globals for a function so that a warning in it counts as a warning in module NAME. They
    have this module's __name__ and __warningregistry__."""
    module = sys.modules.get(name) if isinstance(name, str) else None
    globals = {"__name__": name}
    if type(module) is types.ModuleType:
        globals["__warningregistry__"] = vars(module).setdefault("__warningregistry__", {})
    return globals


class GraphModule:
    """A graph that runs: module(*inputs) returns the tuple of its outputs.

    Attributes
    ----------
    graph
        The Graph.
    name
        "__compiled_fn_0", for example.
    code
        The graph as Python source.
    scope
        The globals that `code` uses, by name.
    forward
        The function that `code` defines.
    """

    _count = 0

    def __init__(self, nodes: Iterable[Node], name: str = "graph", places: Any = None) -> None:
        self.graph, self.name, self._places = Graph(nodes), name, places
        self._own = self.framed = None
        written, self._result, source = _write_function(self.graph.nodes)
        self._inputs = [node.name for node in self.graph.nodes if node.op == "placeholder"]
        lines = ["def forward(%s):" % ", ".join(self._inputs)]
        lines += ["    " + text for text, *_ in written]
        self.code = "\n".join(lines + ["    return " + self._result]) + "\n"
        self.scope, self._names = source.globals, source.names
        GraphModule._count += 1
        self.file = "<eval_with_key>.%d" % GraphModule._count

    def statements(self, frames: Callable[[int], Any]) -> list[Any]:
        """Return the lines of `forward` as Statements, without the `def` and `return` lines.
        FRAMES(number) returns the call stack of node number NUMBER."""
        return [
            Statement(text, number, frames(number), node.name, uses)
            for number, (text, node, uses) in enumerate(_write_function(self.graph.nodes)[0])
        ]

    @functools.cached_property
    def forward(self) -> Callable[..., tuple[Any, ...]]:
        """The function that `code` defines. It is compiled when it is first read."""
        scope = dict(self.scope)
        if self._places:
            self._own = self._make_framed(scope)
        else:
            exec(compile(self.code, self.file, "exec"), scope)
            self._own = scope.pop("forward")
        return self._own

    def _make_framed(self, scope):
        """Make the function `forward`. Its frames look like those of the captured call."""
        names, like = self._names, {}

        def name_globals_of(module):
            if module not in like:
                like[module] = names.make_unique("globals")
                scope[like[module]] = _make_globals_like(module)
            return like[module]

        def list_frames(number):
            return [
                Frame(code, unit, None if globals is True else name_globals_of(module))
                for code, unit, globals, module in reversed(self._places[number])
            ]

        statements = self.statements(list_frames)
        code, _, _, module = self._places[0][-1]
        kept = []
        _collect_nodes(self.graph.nodes[-1].args, kept)
        self.framed = Framed(
            code,
            self.file,
            self._inputs,
            statements,
            self._result,
            {node.name for node in kept},
            scope,
            names,
            _make_globals_like(module),
        )
        return self.framed.function

    def is_as_written(self, run: object) -> bool:
        """Does RUN, which the backend returned, do what this module does: is it the module or its
        `forward`, and has the backend left `forward` unchanged?"""
        forward = self.__dict__.get("forward")
        own = forward is self._own
        return own and (run is self or (forward is not None and run is forward))

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        return self.forward(*inputs)

    def print_tabular(self) -> None:
        """Print a table of the nodes."""
        self.graph.print_tabular()

    def __repr__(self) -> str:
        return "GraphModule(%s, %d nodes)" % (self.name, len(self.graph.nodes))
