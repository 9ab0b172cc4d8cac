"""What runs a graph and makes again what is behind it: the function of a plan (capture/src/plan.c).

Runs in: the traced process.

    def forward(a, b):
        weight = a.weight                           what is read, as the guards have just done
        sin = np_sin(weight)                        the graph; or a call of what the backend made
        add = sin + b
        made = [add, b]                             what is made again
        made_1 = setattr(a, 'last', add)            what is changed that was there before, in order:
                                                    before the operations that came behind it
        return (made, ...)                          the variables, then the stack from its top;
                                                    or the result

Its frames look like the program's: _framed.py.
"""

import functools
import operator
import sys
from types import CellType, FunctionType, TracebackType

from ._framed import EARLY, Frame, Framed, Statement, line_of
from ._native import native
from .graph import Node, _Source, _uses
from .resume import _variables

_EARLY, _LATE, _LAST = range(3)  # before the graph runs; behind it; once something has been changed
_HERE = (lambda: get()).__code__  # noqa: F821
_NO_COLUMNS = b"\xef\0"  # of a table of lines: the next eight units are in the line of those before


class Unknown(Exception):
    """What cannot be made again, in words."""


class Plan:
    """What a plan's function has to do. RECORD is that of finish() in capture.py, and has besides

    taken: parts (told() in plan.c) of the inputs of the graph. effects: parts.
    returned: the part of the result, or False: unknown.
    state: of variables, stack and cells; None: it returns, and its variables die quietly.
    places: of each node ((code, unit, part of the globals or True: the function's own, name of the
    module), ...) from the innermost frame outwards.
    again: where the graph raises, the plan returns itself, and the function's own code runs.

    A Plan has arguments: names of variables, numbers of variables whose cell is meant, None for the
    globals. stores, deletes: numbers of variables. slots: which slots of the stack have a value, or
    None. outputs: nodes of the graph.
    """

    def __init__(self, record):
        self.code, self.places, self.again = record["code"], record["places"], record["again"]
        self.parts, self.when, self.at, self.made, self.outputs = ([], [], []), {}, {}, {}, {}
        self.arguments, self.parameters, self.stores, self.deletes = [], [], [], []
        self.slots, why, variables, returns = (
            None,
            "what it reads or changes cannot be made again",
            _variables(self.code),
            record["state"] is None,
        )
        self.first_free = len(variables) - len(self.code.co_freevars)
        try:
            self.taken = list(map(self.of, record["taken"] if record["nodes"] else ()))
            for effect in record["effects"]:
                self.of(effect)
            for _, _, globals, _ in sum(self.places, ()):
                if globals is not True:
                    self.of(globals)
            if returns:
                why = (
                    "what it returns is not known"
                    if record["returned"] is False
                    else "what it returns cannot be made again"
                )
                self.result = self.of(record["returned"])
            else:
                now, stack, cells = record["state"]
                self.slots, given = list(map(bool, stack)), []
                for number, *part in now:
                    (self.stores if part else self.deletes).append(number)
                    if part:
                        why = "its variable %.60s has a %.60s there that cannot be made again" % (
                            variables[number],
                            type(part[1]).__name__,
                        )
                        given.append((self.of(part[0]), part[1]))
                why = "a value on its stack there cannot be made again"
                given += [(self.of(part), value) for part, value in filter(None, reversed(stack))]
                self.result = tuple(node for node, value in given)
                record["values"] = tuple(value for node, value in given), cells
        except (Unknown, RecursionError):
            broken = record["break"]
            raise Unknown("%s; %s" % (broken[1], why) if broken else why) from None

    # ---- nodes ----

    def node(self, target, args, op="made"):
        """A node that gives TARGET(*ARGS); without a target, ARGS."""
        node, uses = Node(op, None, target, args, {}), []
        _uses(args, uses)
        when = (
            _LAST
            if target is operator.call
            else max((self.when.get(id(used), _LATE) for used in uses), default=_EARLY)
        )
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

    def make(
        self,
        what,
        step,
        number,
        thing=None,
        keys=(),
        items=(),
        parent=False,
        named=False,
        scope=False,
    ):
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
        """PLAN gets its function, for RUN, what the backend has made of NODES; None: they are part
        of it, as MODULE has written them."""
        self.name, self.module, self.inline, source = plan.name, module, run is None, _Source()
        source.names.used.update(node.name for node in placeholders + nodes)
        if self.inline and nodes:
            source.globals.update(module.scope)
            source.names.used.update(module.scope)
        early = []
        for node, placeholder in zip(self.taken, placeholders):
            if node.name:
                node = self.node(None, node)
            node.name = placeholder.name
        for node in [*self.parameters, *sum(self.parts, [])]:
            node.name = node.name or source.names.name("made")
        early = [self.statement(source, node, EARLY) for node in self.parts[_EARLY]]
        behind = self.parts[_LATE] + self.parts[_LAST]
        if self.inline and nodes:
            graph = module.statements(self.frames)
        elif nodes:
            graph = [self.call_of(run, source, placeholders)]
        else:
            graph = []
        if self.inline and not self.again:
            ordered = early + self.merged(source, graph, behind)
        else:  # the graph may be left, or is the backend's: all that is changed comes behind it
            behind = [self.statement(source, node, len(nodes)) for node in behind]
            ordered = early + graph + behind
        kept = []
        _uses(self.result, kept)
        self.count = len(nodes)
        self.framed = Framed(
            self.code,
            module.file if module else "<%s>" % self.name,
            [node.name for node in self.parameters],
            ordered,
            source.written(self.result),
            {node.name for node in kept},
            source.globals,
            source.names,
            {},
        )
        plan.raised, plan.run = self.raised, self.framed.function

    def statement(self, source, node, number):
        uses = []
        _uses(node.args, uses)
        return Statement(_line(source, node), number, (), node.name, {used.name for used in uses})

    def call_of(self, run, source, placeholders):
        """The statement that calls what the backend made."""
        count = len(self.outputs)
        # not a method: the function would keep itself alive until a collection
        checked = functools.partial(_checked, self.name, count)
        scope = dict(run=run, checked=checked, type=type, tuple=tuple, len=len)
        words = {name: source.of_global(value, name) for name, value in scope.items()}
        inputs = [node.name for node in placeholders]
        outputs = "".join(node.name + ", " for node in self.outputs.values())
        text = (
            "{given} = {run}({inputs}); ({outputs}) = {given} if {type}({given}) is {tuple} "
            "and {len}({given}) == {count} else {checked}({given})"
        ).format(
            given=source.names.name("given"),
            inputs=", ".join(inputs),
            count=count,
            outputs=outputs,
            **words,
        )
        return Statement(text, 0, (), None, inputs)

    def merged(self, source, graph, behind):
        """The statements of GRAPH with those for the nodes BEHIND it, each as soon as it may be."""
        ready, made = {one.gives: number + 1 for number, one in enumerate(graph)}, []
        before = 0
        for node in behind:
            one = self.statement(source, node, 0)
            at = max([ready.get(name, 0) for name in one.uses], default=0)
            if node.target is operator.call:
                at = before = max(at, before, self.at.get(id(node), 0))
            elif self.when[id(node)] == _LAST:
                at = before = max(at, before)
            ready[node.name] = at
            made.append((at, one))
        found = []
        for number in range(len(graph) + 1):
            for at, one in made:
                if at == number:
                    one.number = number
                    found.append(one)
            found += graph[number : number + 1]
        return found

    def frames(self, number):
        """Where node NUMBER was made, from the captured function on."""
        found = []
        for code, unit, globals, name in reversed(self.places[number]):
            found.append(Frame(code, unit, None if globals is True else self.of(globals).name))
        return found

    # ---- it has raised ----

    def raised(self, trace, frame):
        """What the exception's traceback is to be, whose own is TRACE, for FRAME, which has called
        the plan, and how many of its frames were made here; or True: the function's own code is to
        run from its beginning."""
        number, known, trace = (trace and self.framed.reached(trace)) or (self.count, {}, trace)
        if 0 <= number < self.count or (number < 0 and self.count):
            if self.again:
                return True
            if not self.inline:
                number, known = self.reached_by_backend(trace, known)
                if number is not None and self.at:
                    self.change(number, known)
        if number is None or number >= self.count or not self.count:
            place = [(self.code, 0)]
        else:
            place = self.places[max(number, 0)]
        for code, unit, *rest in place[:-1]:
            trace = _told(code, unit, trace)
        code, unit, *rest = place[-1]
        line = line_of(code, unit) or code.co_firstlineno
        return TracebackType(trace, frame, -1, line), len(place)

    def reached_by_backend(self, trace, known):
        """(number, names and values) of where the module's own function has come to, which what the
        backend made has called; or None."""
        while trace:
            found = self.module.framed and self.module.framed.reached(trace)
            if found:
                return found[0], {**known, **found[1]}
            trace = trace.tb_next
        return None, known

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


def _checked(name, count, given):
    """GIVEN, what the backend's function for the graph NAME gave, if it may be in place of a tuple
    of COUNT values."""
    if type(given) is not list or len(given) != count:
        text = (
            "the backend's function for %s gave a %s, not the %d values that the graph gives: "
            "return a tuple of them"
        )
        raise TypeError(text % (name, type(given).__name__, count))
    return given


def _line(source, node):
    return "%s = %s" % (node.name, source.node(node))


def _told(code, unit, trace):
    """TRACE, below a frame of CODE at UNIT, whose function has returned: nothing records it."""
    line = line_of(code, unit) or code.co_firstlineno
    here = _HERE.replace(
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=line,
        co_linetable=_NO_COLUMNS * len(_HERE.co_code),
    )
    frame = FunctionType(here, {"get": sys._getframe})()
    return TracebackType(trace, frame, frame.f_lasti, line)
