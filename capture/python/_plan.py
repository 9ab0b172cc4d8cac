"""Write the function of a plan, which runs a graph and makes the values after it.

Runs in: the traced process. A plan is a constant of the compiled code (capture/src/plan.c). Example
of a function, with the purpose of each line:

    def forward(a, b):
        weight = a.weight                       read a value, as the guards did just before
        sin = np_sin(weight)                    run the graph, or call the backend's function
        add = sin + b
        made = [add, b]                         make a value
        made_1 = setattr(a, 'last', add)        repeat an effect: in the order of the watched call,
                                                before the operations that came after the effect
        return (made, ...)                      the values of variables, then those of the stack
                                                from its top; or the captured function's result

_framed.py makes the function so that its frames look like those of the program.
"""

import functools
import operator
import sys
from types import CellType, FunctionType, TracebackType

from ._framed import EARLY, Frame, Framed, Statement, get_line
from ._native import native
from .graph import Node, _Source, _collect_nodes
from .resume import _list_variables

# when a statement of the plan runs: _EARLY before the graph; _LATE after the graph; _LAST after the
# graph and in the order of effects, because the statement is an effect or uses the result of an
# effect
_EARLY, _LATE, _LAST = range(3)
# the code of a function that returns its own frame: see _add_frame()
_HERE = (lambda: get()).__code__  # noqa: F821
_NO_COLUMNS = b"\xef\0"  # line table entry: eight code units on one line, without columns


class Unknown(Exception):
    """Raised for a value that the plan cannot make again. The text tells which value."""


class Plan:
    """The contents of a plan's function, made from RECORD.

    RECORD has the items that finish() in capture.py lists, and the items below. C makes it. A
    *part* is a tuple that make_part() in plan.c makes: it describes how to make a value.
        taken     the parts of the graph's inputs
        effects   the parts of the effects, in order
        returned  the part of the result, or False if the result is unknown
        state     (variables, stack, cells) as describe_plan_state() in plan.c makes it;
                  None if the function returns and the program cannot observe the death of its
                  variables
        places    the call stack of each node, innermost frame first: (code, unit, globals,
                  name of the module). `globals` is a part; True for the captured function's globals
        again     true: if the graph raises, the plan returns itself, and the compiled code then
                  runs the function's original code

    Attributes of a Plan for the assembler:
        arguments        the arguments that the compiled code passes to the plan: the name of a
                         variable, for its value; the number of a variable, for its cell; None, for
                         the globals
        stores, deletes  numbers of the variables that the compiled code sets and deletes
        slots            for each stack slot whether it has a value; None if the function returns
        outputs          the nodes whose results are needed after the graph
    """

    def __init__(self, record):
        self.code, self.places, self.again = record["code"], record["places"], record["again"]
        self.parts, self.when, self.at, self.made, self.outputs = ([], [], []), {}, {}, {}, {}
        self.arguments, self.parameters, self.stores, self.deletes = [], [], [], []
        self.slots, why, variables, returns = (
            None,
            "what it reads or changes cannot be made again",
            _list_variables(self.code),
            record["state"] is None,
        )
        self.first_free = len(variables) - len(self.code.co_freevars)
        try:
            self.taken = list(map(self.get_node, record["taken"] if record["nodes"] else ()))
            for effect in record["effects"]:
                self.get_node(effect)
            for _, _, globals, _ in sum(self.places, ()):
                if globals is not True:
                    self.get_node(globals)
            if returns:
                why = (
                    "what it returns is not known"
                    if record["returned"] is False
                    else "what it returns cannot be made again"
                )
                self.result = self.get_node(record["returned"])
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
                        given.append((self.get_node(part[0]), part[1]))
                why = "a value on its stack there cannot be made again"
                given += [
                    (self.get_node(part), value) for part, value in filter(None, reversed(stack))
                ]
                self.result = tuple(node for node, value in given)
                record["values"] = tuple(value for node, value in given), cells
        except (Unknown, RecursionError):
            broken = record["break"]
            raise Unknown("%s; %s" % (broken[1], why) if broken else why) from None

    # ---- nodes ----

    def add_node(self, target, args, op="made"):
        """Add and return a node for TARGET(*ARGS). If TARGET is None, the value of the node is
        ARGS."""
        node, uses = Node(op, None, target, args, {}), []
        _collect_nodes(args, uses)
        when = (
            _LAST
            if target is operator.call
            else max((self.when.get(id(used), _LATE) for used in uses), default=_EARLY)
        )
        self.when[id(node)] = when
        self.parts[when].append(node)
        return node

    def add_argument(self, what):
        node = Node("placeholder", None, None, (), {})
        self.when[id(node)] = _EARLY
        self.arguments.append(what)
        self.parameters.append(node)
        return node

    def get_node(self, part):
        """Return the node that makes the value described by PART."""
        if not part:
            raise Unknown
        if id(part) not in self.made:
            self.made[id(part)] = self.make_node(*part)
        return self.made[id(part)]

    def make_node(
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
            return self.add_node(thing, (), "get_attr")
        if what == "node":
            return self.outputs.setdefault(id(thing), thing)
        if what == "source" and step == "C":
            return self.add_argument(self.first_free + number)
        if what == "source" and step == "l" and parent:
            return self.add_argument(thing)
        if what == "source" and not parent:
            if step != "G":
                raise Unknown
            return self.add_argument(None)
        if what in ("source", "method"):
            return self.add_node(
                operator.getitem if step == "[" else getattr, (self.get_node(parent), thing)
            )
        if what == "own":
            # refuse a resume function, because other functions made its cells
            if native._link(self.code):
                raise Unknown
            return self.add_argument(number)
        items = tuple(map(self.get_node, items))
        if what in ("tuple", "list"):
            return self.add_node(None, items if what == "tuple" else list(items))
        if what == "dict":
            return self.add_node(None, dict(zip(keys, items)))
        if what in ("slice", "super", "cell"):
            return self.add_node({"slice": slice, "super": super, "cell": CellType}[what], items)
        if what == "call":
            made = self.add_node(operator.call, items)
            self.at[id(made)] = number
        elif what == "object":
            made = self.add_node(object.__new__, (self.get_node(parent),))
            for key, item in zip(keys, items):
                self.add_node(object.__setattr__, (made, key, item))
        else:
            defaults = None if parent is False else self.get_node(parent)
            made = self.add_node(
                FunctionType, (thing, self.get_node(scope), None, defaults, items or None)
            )
            if named is not False:
                self.add_node(setattr, (made, "__kwdefaults__", self.get_node(named)))
        return made

    # ---- the plan's function ----

    def write(self, plan, run, module, placeholders, nodes):
        """Write the function of PLAN. RUN is the function that the backend made from NODES. If RUN
        is None, the statements of MODULE become part of the plan's function."""
        self.name, self.module, self.inline, source = plan.name, module, run is None, _Source()
        source.names.used.update(node.name for node in placeholders + nodes)
        if self.inline and nodes:
            source.globals.update(module.scope)
            source.names.used.update(module.scope)
        early = []
        for node, placeholder in zip(self.taken, placeholders):
            if node.name:
                node = self.add_node(None, node)
            node.name = placeholder.name
        for node in [*self.parameters, *sum(self.parts, [])]:
            node.name = node.name or source.names.make_unique("made")
        early = [self.make_statement(source, node, EARLY) for node in self.parts[_EARLY]]
        behind = self.parts[_LATE] + self.parts[_LAST]
        if self.inline and nodes:
            graph = module.statements(self.list_frames)
        elif nodes:
            graph = [self.make_backend_call(run, source, placeholders)]
        else:
            graph = []
        if self.inline and not self.again:
            ordered = early + self.merge_statements(source, graph, behind)
        else:
            # run all effects after the graph: if the graph can be abandoned, no effect may have
            # happened before; and no effect can run in the middle of a backend's function
            behind = [self.make_statement(source, node, len(nodes)) for node in behind]
            ordered = early + graph + behind
        kept = []
        _collect_nodes(self.result, kept)
        self.count = len(nodes)
        self.framed = Framed(
            self.code,
            module.file if module else "<%s>" % self.name,
            [node.name for node in self.parameters],
            ordered,
            source.write_value(self.result),
            {node.name for node in kept},
            source.globals,
            source.names,
            {},
        )
        plan.raised, plan.run = self.raised, self.framed.function

    def make_statement(self, source, node, number):
        uses = []
        _collect_nodes(node.args, uses)
        return Statement(
            _write_line(source, node), number, (), node.name, {used.name for used in uses}
        )

    def make_backend_call(self, run, source, placeholders):
        """Return the statement that calls the backend's function and checks its result."""
        count = len(self.outputs)
        # do not use a bound method, because a plan that its function refers to would be a reference
        # cycle
        checked = functools.partial(_check_result, self.name, count)
        scope = dict(run=run, checked=checked, type=type, tuple=tuple, len=len)
        words = {name: source.name_global(value, name) for name, value in scope.items()}
        inputs = [node.name for node in placeholders]
        outputs = "".join(node.name + ", " for node in self.outputs.values())
        text = (
            "{given} = {run}({inputs}); ({outputs}) = {given} if {type}({given}) is {tuple} "
            "and {len}({given}) == {count} else {checked}({given})"
        ).format(
            given=source.names.make_unique("given"),
            inputs=", ".join(inputs),
            count=count,
            outputs=outputs,
            **words,
        )
        return Statement(text, 0, (), None, inputs)

    def merge_statements(self, source, graph, behind):
        """Merge the statements of GRAPH with new statements for the nodes in BEHIND. Each new
        statement comes as early as the operands of its node and the order of effects allow."""
        ready, made = {one.gives: number + 1 for number, one in enumerate(graph)}, []
        before = 0
        for node in behind:
            one = self.make_statement(source, node, 0)
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

    def list_frames(self, number):
        """Return the call stack of graph node NUMBER as Frames, the captured function first."""
        found = []
        for code, unit, globals, name in reversed(self.places[number]):
            found.append(
                Frame(code, unit, None if globals is True else self.get_node(globals).name)
            )
        return found

    # ---- exceptions ----

    def raised(self, trace, frame):
        """Correct the traceback TRACE of an exception that the plan's function raised.

        FRAME called the plan. Returns (new traceback, number of frames that replace the frames of
        the plan's function); or True if the captured function's original code must run instead.
        """
        number, known, trace = (trace and self.framed.find_progress(trace)) or (
            self.count,
            {},
            trace,
        )
        if 0 <= number < self.count or (number < 0 and self.count):
            if self.again:
                return True
            if not self.inline:
                number, known = self.find_backend_progress(trace, known)
                if number is not None and self.at:
                    self.make_effects_before(number, known)
        if number is None or number >= self.count or not self.count:
            place = [(self.code, 0)]
        else:
            place = self.places[max(number, 0)]
        for code, unit, *rest in place[:-1]:
            trace = _add_frame(code, unit, trace)
        code, unit, *rest = place[-1]
        line = get_line(code, unit) or code.co_firstlineno
        return TracebackType(trace, frame, -1, line), len(place)

    def find_backend_progress(self, trace, known):
        """If the backend's function called module.forward, find out at which statement this call
        raised.

        TRACE is the traceback of an exception in the backend's function; KNOWN has variables by
        name. Returns (number of the statement that module.forward was running, KNOWN together with
        the variables of module.forward). The number is None if module.forward was not running.
        """
        while trace:
            found = self.module.framed and self.module.framed.find_progress(trace)
            if found:
                return found[0], {**known, **found[1]}
            trace = trace.tb_next
        return None, known

    def make_effects_before(self, reached, known):
        """Make the effects that come before the graph node number REACHED, which raised. KNOWN has
        the values that the graph has computed so far, by name."""
        source, lines, names = _Source(), [], set(known)
        source.names.used.update(known, (node.name for part in self.parts for node in part))
        for node in self.parts[_LATE] + self.parts[_LAST]:
            uses = []
            _collect_nodes(node.args, uses)
            if names.issuperset(used.name for used in uses) and self.at.get(id(node), 0) <= reached:
                lines.append(_write_line(source, node))
                names.add(node.name)
        exec("\n".join(lines), {**source.globals, **known})


def _check_result(name, count, given):
    """Check GIVEN, which the backend's function returned for graph NAME in place of a tuple of
    COUNT values. Returns GIVEN if it is a list of COUNT values; otherwise raises TypeError."""
    if type(given) is not list or len(given) != count:
        text = (
            "the backend's function for %s gave a %s, not the %d values that the graph gives: "
            "return a tuple of them"
        )
        raise TypeError(text % (name, type(given).__name__, count))
    return given


def _write_line(source, node):
    return "%s = %s" % (node.name, source.write_node(node))


def _add_frame(code, unit, trace):
    """Put a frame in front of the traceback TRACE, as if CODE, at instruction UNIT, had called the
    first frame of TRACE. The real frame of CODE is gone, so this makes a new frame with the name,
    file and line of CODE."""
    line = get_line(code, unit) or code.co_firstlineno
    here = _HERE.replace(
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=line,
        co_linetable=_NO_COLUMNS * len(_HERE.co_code),
    )
    frame = FunctionType(here, {"get": sys._getframe})()
    return TracebackType(trace, frame, frame.f_lasti, line)
