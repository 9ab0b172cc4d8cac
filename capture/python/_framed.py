"""The function of a graph, whose frames look like the program's.

Runs in: the traced process.

An operation of a graph may look at the frames that call it (warnings do, for file, line, module and
stacklevel). It must find the frames that it had when it was captured. So the function has
the file and the lines of the captured function, and operations of a function that was stepped run
in an inner function, with that one's file, lines and globals:

    def forward(a):                         lines of f()
        mul = a * 2
        def part(mul):                      lines of g(), which f() called
            div = mul / 0
            return (div,)
        (div,) = part(mul)
        return div

capture/src/plan.c hides the captured function's own frame meanwhile, and lends the function
its globals.
"""

from array import array
from itertools import groupby, islice
from types import FunctionType

EARLY, LAST = -1, 1 << 30  # numbers of statements before the first node, and behind the last
_NO_COLUMNS = 13 << 3 | 0x80  # an entry of a table of lines that has no columns


def line_of(code, unit):
    """The line of the instruction at UNIT, or None: code without a table of lines."""
    return next(islice(code.co_positions(), unit, None), (None,))[0]


class Frame:
    """Where a node was made: CODE at UNIT. GLOBALS: the name that stands for the globals; None:
    they are the captured function's."""

    __slots__ = "code", "unit", "globals"

    def __init__(self, code, unit, globals):
        self.code, self.unit, self.globals = code, unit, globals

    def is_at(self, other):
        return (self.code, self.unit, self.globals) == (other.code, other.unit, other.globals)


class Statement:
    """A line of the function. NUMBER: of the node that it runs, or of the one before which it runs.
    FRAMES: from the captured function to where the node was made; of other statements: (). GIVES:
    the name that it sets, or None. USES: names."""

    __slots__ = "text", "number", "frames", "gives", "uses"

    def __init__(self, text, number, frames=(), gives=None, uses=()):
        self.text, self.number, self.frames = text, number, frames
        self.gives, self.uses = gives, frozenset(uses)


class _Group:
    """Statements behind one another that the frame above ran itself (CALL is None), or that one
    call of its has run: CALL is (where it called, where the first was made)."""

    def __init__(self, call, statement):
        self.call, self.statements = call, [statement]
        self.uses = statement.uses

    def takes(self, call, statement):
        """Does STATEMENT, which CALL has run, belong to it?"""
        same = call and self.call and self.call[0].is_at(call[0])
        if not same or self.call[1].code is not call[1].code:
            return False
        self.statements.append(statement)
        self.uses |= statement.uses
        return True


class Framed:
    """.function: the function of STATEMENTS, with PARAMETERS, which returns RESULT, a text with the
    names KEPT. SCOPE: what other names stand for. NAMES gives new ones. CODE: the captured
    function's. WHAT: how a trace calls the function."""

    def __init__(self, code, what, parameters, statements, result, kept, scope, names, globals):
        self.what, self.names, self.lines = what, names, []
        # by line of the source: the number of its statement, and its line
        self.numbers, self.at = array("l", [EARLY]), array("l", [code.co_firstlineno])
        self.of = {"forward": code}  # by name: whose file an inner function has
        self.tables = {}  # by id of a code object: its table of lines as Python made it
        self.make, self.is_foreign = names.name("function"), False
        self.known = {}  # by id of a code object: the line of each unit
        own = (self.line(one.frames[0]) for one in statements if one.frames)
        first = next(own, code.co_firstlineno)
        body = self.body(statements, 0, first, frozenset(kept))
        scope = dict(scope)
        if self.is_foreign:
            scope[self.make] = FunctionType
        self.put(0, "def outer(%s):" % ", ".join(scope), EARLY, first)
        self.put(1, "def forward(%s):" % ", ".join(parameters), EARLY, first)
        for depth, *row in body:
            self.put(depth + 2, *row)
        self.put(2, "return " + result, LAST, body[-1][-1] if body else first)
        self.put(1, "return forward", EARLY, first)
        made = {}
        exec(compile("\n".join(self.lines), "<%s>" % what, "exec"), made)
        # taken out: with its globals, it would be garbage that only a collection frees
        function = made.pop("outer")(*scope.values())
        code = self.replaced(function.__code__)
        self.function = FunctionType(code, globals, "forward", None, function.__closure__)
        del self.lines, self.names, self.of, self.known

    # ---- the source ----

    def line(self, frame):
        """The line of FRAME. By a table: looking for each from the start is quadratic."""
        lines = self.known.get(id(frame.code))
        if lines is None:
            lines = self.known[id(frame.code)] = [at for at, *_ in frame.code.co_positions()]
        return lines[frame.unit] or frame.code.co_firstlineno

    def put(self, depth, text, number, line):
        self.lines.append("    " * depth + text)
        self.numbers.append(number)
        self.at.append(line)

    def body(self, statements, level, line, kept):
        """Rows (depth, text, number, line) of STATEMENTS, which frame LEVEL and what it called have
        run. KEPT: names that are needed behind them."""
        rows, groups = [], []
        for one in statements:
            call = one.frames[level : level + 2] if len(one.frames) > level + 1 else None
            if not (groups and groups[-1].takes(call, one)):
                groups.append(_Group(call, one))
        later = [kept]
        for group in reversed(groups):
            later.append(later[-1] | group.uses)
        for group, needed in zip(groups, later[-2::-1]):
            if group.call:
                line = self.line(group.call[0])
                rows += self.part(group, level, line, needed)
            else:
                one = group.statements[0]
                line = self.line(one.frames[level]) if one.frames else line
                rows.append((0, one.text, one.number, line))
        return rows

    def part(self, group, level, line, needed):
        """The rows of GROUP, a call in LINE. NEEDED: names behind it."""
        statements, inner = group.statements, group.call[1]
        name, first, last = self.names.name("part"), statements[0].number, statements[-1].number
        given = {one.gives for one in statements if one.gives}
        takes, gives = sorted(group.uses - given), sorted(given & needed)
        words = dict(
            name=name,
            make=self.make,
            takes=", ".join(takes),
            globals=inner.globals,
            gives="".join(one + ", " for one in gives),
        )
        self.of[name] = inner.code
        below = self.body(statements, level + 1, self.line(inner), frozenset(gives))
        rows = [(0, "def {name}({takes}):".format(**words), first, line)]
        rows += [(depth + 1, *row) for depth, *row in below]
        rows.append((1, "return ({gives})".format(**words), last, below[-1][-1]))
        if inner.globals is not None:
            self.is_foreign = True
            text = "{name} = {make}({name}.__code__, {globals}, None, None, {name}.__closure__)"
            rows.append((0, text.format(**words), first, line))
        text = "({gives}) = {name}({takes})" if gives else "{name}({takes})"
        rows.append((0, text.format(**words), first, line))
        dead = [one for one in takes if one not in needed] + [name]
        rows.append((0, "".join(one + " = " for one in dead) + "None", first, line))
        return rows

    # ---- the code ----

    def replaced(self, code):
        """CODE with the file and the lines that it is to have."""
        lines = [self.at[at or 1] for at, *_ in code.co_positions()]
        constants = [
            self.replaced(one) if isinstance(one, type(code)) else one for one in code.co_consts
        ]
        made = code.replace(
            co_filename=self.of[code.co_name].co_filename,
            co_name="forward",
            co_qualname=self.what,
            co_firstlineno=lines[0],
            co_consts=tuple(constants),
            co_linetable=_line_table(lines),
        )
        self.tables[id(made)] = dict(
            co_linetable=code.co_linetable, co_firstlineno=code.co_firstlineno
        )
        return made

    def number_at(self, frame, offset):
        """The number of the statement that FRAME has come to at OFFSET; None: it is not of ours."""
        table = self.tables.get(id(frame.f_code))
        if table is None:
            return None
        return self.numbers[line_of(frame.f_code.replace(**table), offset // 2) or 1]

    def reached(self, trace):
        """(number, names and values, traceback behind) of where TRACE, an exception's, which begins
        in this function, has come to; or None."""
        number, known = None, {}
        while trace:
            now = self.number_at(trace.tb_frame, trace.tb_lasti)
            if now is None:
                break
            number = now
            known.update(trace.tb_frame.f_locals)
            trace = trace.tb_next
        return None if number is None else (number, known, trace)


def _line_table(lines):
    """co_linetable for the LINES of each code unit, which has no columns; the first is
    co_firstlineno."""
    table, before = bytearray(), lines[0]
    for line, group in groupby(lines):
        count, more = len(list(group)), abs(line - before) << 1 | (line < before)
        before = line
        while count:
            table.append(_NO_COLUMNS | min(count, 8) - 1)
            while more >= 64:
                table.append(more & 63 | 64)
                more >>= 6
            table.append(more)
            count, more = max(count - 8, 0), 0
    return bytes(table)
