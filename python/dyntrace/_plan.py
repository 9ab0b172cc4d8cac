"""What runs a graph and makes again what is behind it: the function of a plan (src/tracer/capture/plan.c).

Runs in: the traced process.

    def forward(a, b):
        weight = a.weight; sin = np_sin(weight)     what is read, as the guards have just done; the first line of the graph
        add = sin + b                               its others; or the first line calls what the backend made
        made = [add, b]                             what is made again
        made_1 = setattr(a, 'last', add)            what is changed that was there before, in order
        return (made, ...)                          what is stored, then the stack from its top; or what is returned
"""
import operator
import sys
from itertools import islice
from types import CellType, FunctionType, TracebackType

from ._native import native
from .graph import Node, _Source, _uses
from .resume import _variables

_EARLY, _LATE, _LAST = range(3)  # before the graph runs; behind it; once something has been changed
_HERE = (lambda: get()).__code__  # noqa: F821
_NO_COLUMNS = b"\xef\0"  # of a table of lines: the next eight units are in the line of those before


class Unknown(Exception):
    """What cannot be made again, in words."""


class Plan:
    """RECORD is that of finish() in capture.py. Besides, parts as told() in plan.c has them: taken, inputs of the graph; effects; returned, False: it is
    not known; state: of variables, stack and cells; None: it returns. places, of each node: code and unit, and so on
    outwards. again: where the graph raises, the plan gives itself, and the function's own code runs.

    arguments: names of variables, numbers of those whose cell is meant, None: the globals. stores, deletes: numbers of variables. slots: which
    of the stack have a value, or None. outputs: nodes of the graph."""

    def __init__(self, record):
        self.code, self.places, self.again = record["code"], record["places"], record["again"]
        self.parts, self.when, self.at, self.made, self.outputs = ([], [], []), {}, {}, {}, {}
        self.arguments, self.parameters, self.stores, self.deletes = [], [], [], []
        self.slots, why, variables, returns = None, "what it reads or changes cannot be made again", _variables(self.code), record["state"] is None
        self.first_free = len(variables) - len(self.code.co_freevars)
        try:
            self.taken = list(map(self.of, record["taken"] if record["nodes"] else ()))
            for effect in record["effects"]:
                self.of(effect)
            if returns:
                why = "what it returns is not known" if record["returned"] is False else "what it returns cannot be made again"
                self.result = self.of(record["returned"])
            else:
                now, stack, cells = record["state"]
                self.slots, given = list(map(bool, stack)), []
                for number, *part in now:
                    (self.stores if part else self.deletes).append(number)
                    if part:
                        why = "its variable %.60s has a %.60s there that cannot be made again" % (variables[number], type(part[1]).__name__)
                        given.append((self.of(part[0]), part[1]))
                why = "a value on its stack there cannot be made again"
                given += [(self.of(part), value) for part, value in filter(None, reversed(stack))]
                self.result = tuple(node for node, value in given)
                record["values"] = tuple(value for node, value in given), cells
        except (Unknown, RecursionError):
            raise Unknown(why if returns else "%s; %s" % (record["break"][1], why)) from None

    # ---- nodes ----

    def node(self, target, args, op="made"):
        """A node that gives TARGET(*ARGS); without a target, ARGS."""
        node, uses = Node(op, None, target, args, {}), []
        _uses(args, uses)
        when = _LAST if target is operator.call else max((self.when.get(id(used), _LATE) for used in uses), default=_EARLY)
        self.when[id(node)] = when
        self.parts[when].append(node)
        return node

    def argument(self, what):
        node = Node("placeholder", None, None, (), {})
        self.when[id(node)] = _EARLY
        self.arguments.append(what)
        self.parameters.append(node)
        return node

    def of(self, part):
        """The node that gives PART."""
        if not part:
            raise Unknown
        if id(part) not in self.made:
            self.made[id(part)] = self.make(*part)
        return self.made[id(part)]

    def make(self, what, step, number, thing=None, keys=(), items=(), parent=False, named=False, scope=False):
        if what == "constant":
            return self.node(thing, (), "get_attr")
        if what == "node":
            return self.outputs.setdefault(id(thing), thing)
        if what == "source" and step == "C":
            return self.argument(self.first_free + number)
        if what == "source" and step == "l" and parent:
            return self.argument(thing)
        if what == "source" and not parent:
            if step != "G":
                raise Unknown
            return self.argument(None)
        if what in ("source", "method"):
            return self.node(operator.getitem if step == "[" else getattr, (self.of(parent), thing))
        if what == "own":
            if native._link(self.code):  # a resume function's are another's
                raise Unknown
            return self.argument(number)
        items = tuple(map(self.of, items))
        if what in ("tuple", "list"):
            return self.node(None, items if what == "tuple" else list(items))
        if what == "dict":
            return self.node(None, dict(zip(keys, items)))
        if what in ("slice", "super", "cell"):
            return self.node({"slice": slice, "super": super, "cell": CellType}[what], items)
        if what == "call":
            made = self.node(operator.call, items)
            self.at[id(made)] = number
        elif what == "object":
            made = self.node(object.__new__, (self.of(parent),))
            for key, item in zip(keys, items):
                self.node(object.__setattr__, (made, key, item))
        else:
            defaults = None if parent is False else self.of(parent)
            made = self.node(FunctionType, (thing, self.of(scope), None, defaults, items or None))
            if named is not False:
                self.node(setattr, (made, "__kwdefaults__", self.of(named)))
        return made

    # ---- the function ----

    def write(self, plan, run, module, placeholders, nodes):
        """PLAN gets its function, for RUN, what the backend has made of NODES; None: they are part of it, as MODULE has written them."""
        self.name, self.module, self.inline, source = plan.name, module, run is None, _Source()
        source.names.used.update(node.name for node in placeholders + nodes)
        if self.inline and nodes:
            source.globals.update(module.scope)
            source.names.used.update(module.scope)
        for node, placeholder in zip(self.taken, placeholders):
            if node.name:
                node = self.node(None, node)
            node.name = placeholder.name
        for node in [*self.parameters, *sum(self.parts, [])]:
            node.name = node.name or source.names.name("made")
        early, *behind = [[_line(source, node) for node in part] for part in self.parts]
        graph = []
        if self.inline and nodes:
            graph = [line.strip() for line in module.code.split("\n")[1:-2]]
        elif nodes:
            words = {name: source.of_global(value, name) for name, value in dict(run=run, checked=self.checked, type=type, tuple=tuple, len=len).items()}
            graph = ["{given} = {run}({inputs}); ({outputs}) = {given} if {type}({given}) is {tuple} and {len}({given}) == {count} else {checked}({given})".format(
                given=source.names.name("given"), inputs=", ".join(node.name for node in placeholders), count=len(self.outputs),
                outputs="".join(node.name + ", " for node in self.outputs.values()), **words)]
        lines = ["def forward(%s):" % ", ".join(node.name for node in self.parameters), "; ".join(early + graph[:1]), *graph[1:], *sum(behind, []),
                 "return " + source.written(self.result)]
        scope, self.lines = source.globals, len(graph)
        exec(compile("\n    ".join(lines), module.file if self.inline and nodes else "<%s>" % self.name, "exec"), scope)
        plan.raised, plan.run = self.raised, scope.pop("forward")

    def checked(self, given):
        if type(given) is not list or len(given) != len(self.outputs):
            raise TypeError("the backend's function for %s gave a %s, not the %d values that the graph gives: return a tuple of them"
                            % (self.name, type(given).__name__, len(self.outputs)))
        return given

    # ---- it has raised ----

    def raised(self, trace):
        """What the exception's traceback is to be, whose own is TRACE, for the frame that has called the plan; or True: the function's own code is to
        run from its beginning."""
        reached, line, known = -1, trace.tb_lineno - 2 if trace else -1, {}
        if line < self.lines:
            if self.again:
                return True
            known = dict(trace.tb_frame.f_locals) if trace else {}
            if self.inline:
                reached = line
            else:
                at = trace = trace and trace.tb_next
                forward = self.module and self.module.forward.__code__
                while at and at.tb_frame.f_code is not forward:
                    at = at.tb_next
                if at:
                    reached = at.tb_lineno - 2
                    known.update(at.tb_frame.f_locals)
        elif trace:
            trace = trace.tb_next
        if not -1 < reached < len(self.places):
            return _told(self.code, 0, trace)
        if self.at:
            self.change(reached, known)
        for code, unit in zip(*[iter(self.places[reached])] * 2):
            trace = _told(code, unit, trace)
        return trace

    def change(self, reached, known):
        """What has been changed before the graph came to node REACHED, where KNOWN was, by name."""
        source, lines, names = _Source(), [], set(known)
        source.names.used.update(known, (node.name for part in self.parts for node in part))
        for node in self.parts[_LATE] + self.parts[_LAST]:
            uses = []
            _uses(node.args, uses)
            if names.issuperset(used.name for used in uses) and self.at.get(id(node), 0) <= reached:
                lines.append(_line(source, node))
                names.add(node.name)
        exec("\n".join(lines), {**source.globals, **known})


def _line(source, node):
    return "%s = %s" % (node.name, source.node(node))


def line_of(code, unit):
    """The line of the instruction at UNIT, or None: code without a table of lines."""
    return next(islice(code.co_positions(), unit, None), (None,))[0]


def _told(code, unit, trace):
    """TRACE, behind UNIT of CODE. The frame is that of a function that has returned: what runs here is not recorded."""
    line = line_of(code, unit) or code.co_firstlineno
    here = _HERE.replace(co_name=code.co_name, co_qualname=code.co_qualname, co_filename=code.co_filename, co_firstlineno=line,
                         co_linetable=_NO_COLUMNS * len(_HERE.co_code))
    frame = FunctionType(here, {"get": sys._getframe})()
    return TracebackType(trace, frame, frame.f_lasti, line)
