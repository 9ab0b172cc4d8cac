"""Make the function of a graph so that its frames look like the program's.

Runs in: the traced process.

An operation of a graph may inspect the frames of its callers. For example, a warning takes its
file, line and module from them. The operation must find the same frames as during the capture. So
the generated function has the file name and the lines of the captured function. Operations that ran
in an inner call are put into an inner function, with the file name, lines and globals of the
function that was called:

    def forward(a):                         lines of f()
        mul = a * 2
        def part(mul):                      lines of g(), which f() called
            div = mul / 0
            return (div,)
        (div,) = part(mul)
        return div

While the generated function runs, capture/src/plan.c hides the frame of the captured function, and
the generated function has the globals of the captured one.
"""

from array import array
from itertools import groupby, islice
from types import FunctionType

# the `number` of statements before the first node (EARLY) and after the last node (LAST)
EARLY, LAST = -1, 1 << 30
_NO_COLUMNS = 13 << 3 | 0x80  # an entry of a line table (co_linetable) without columns


def get_line(code, unit):
    """Return the line of the instruction at UNIT; None if CODE has no line table."""
    return next(islice(code.co_positions(), unit, None), (None,))[0]


class Frame:
    """A frame of the call stack in which a node was made. CODE was at instruction UNIT. GLOBALS is
    the name of the variable that holds the frame's globals; None for those of the captured
    function."""

    __slots__ = "code", "unit", "globals"

    def __init__(self, code, unit, globals):
        self.code, self.unit, self.globals = code, unit, globals

    def is_same_place(self, other):
        return (self.code, self.unit, self.globals) == (other.code, other.unit, other.globals)


class Statement:
    """A line of the generated function.

    NUMBER is the number of the graph node that the line runs, or of the next node. FRAMES is the
    call stack in which the node was made: a list of Frames, the captured function first; () for a
    line without a node. GIVES is the name that the line sets, or None. USES are the names that the
    line reads.
    """

    __slots__ = "text", "number", "frames", "gives", "uses"

    def __init__(self, text, number, frames=(), gives=None, uses=()):
        self.text, self.number, self.frames = text, number, frames
        self.gives, self.uses = gives, frozenset(uses)


class _Group:
    """Consecutive statements of the generated function that belong together. If CALL is None, this
    is a single statement that a frame ran itself. Otherwise these are the statements of one inner
    call, and CALL is (Frame of the caller, Frame of the called function)."""

    def __init__(self, call, statement):
        self.call, self.statements = call, [statement]
        self.uses = statement.uses

    def add_if_same_call(self, call, statement):
        """If CALL, the inner call of STATEMENT, is the call of this group, add STATEMENT and return
        True. Otherwise return False."""
        same = call and self.call and self.call[0].is_same_place(call[0])
        if not same or self.call[1].code is not call[1].code:
            return False
        self.statements.append(statement)
        self.uses |= statement.uses
        return True


class Framed:
    """Makes the generated function, the attribute `function`.

    The function has PARAMETERS, runs STATEMENTS, and returns the expression RESULT, which reads the
    names KEPT. SCOPE maps other names to their values; NAMES makes new names. CODE is the captured
    function's code. WHAT is the generated function's qualified name. GLOBALS are its globals.
    """

    def __init__(self, code, what, parameters, statements, result, kept, scope, names, globals):
        self.what, self.names, self.lines = what, names, []
        # two arrays, indexed by line of the generated source: `numbers` has the number of the
        # statement, `at` the line in the program
        self.numbers, self.at = array("l", [EARLY]), array("l", [code.co_firstlineno])
        # maps the name of a generated function to the program's code object whose file name the
        # function gets
        self.of = {"forward": code}
        # maps the id of a generated code object to the line table and first line that the object
        # had before replace_positions() changed them
        self.tables = {}
        self.make, self.is_foreign = names.make_unique("function"), False
        self.known = {}  # maps the id of a code object to the line of each of its code units
        own = (self.get_frame_line(one.frames[0]) for one in statements if one.frames)
        first = next(own, code.co_firstlineno)
        body = self.make_body_rows(statements, 0, first, frozenset(kept))
        scope = dict(scope)
        if self.is_foreign:
            scope[self.make] = FunctionType
        self.put_line(0, "def outer(%s):" % ", ".join(scope), EARLY, first)
        self.put_line(1, "def forward(%s):" % ", ".join(parameters), EARLY, first)
        for depth, *row in body:
            self.put_line(depth + 2, *row)
        self.put_line(2, "return " + result, LAST, body[-1][-1] if body else first)
        self.put_line(1, "return forward", EARLY, first)
        made = {}
        exec(compile("\n".join(self.lines), "<%s>" % what, "exec"), made)
        # remove outer() from its own globals, because this is a reference cycle
        function = made.pop("outer")(*scope.values())
        code = self.replace_positions(function.__code__)
        self.function = FunctionType(code, globals, "forward", None, function.__closure__)
        del self.lines, self.names, self.of, self.known

    # ---- the source of the generated function ----

    def get_frame_line(self, frame):
        """Return the line that FRAME runs. Caches the lines of each code object, because
        co_positions() can only be read from its start."""
        lines = self.known.get(id(frame.code))
        if lines is None:
            lines = self.known[id(frame.code)] = [at for at, *_ in frame.code.co_positions()]
        return lines[frame.unit] or frame.code.co_firstlineno

    def put_line(self, depth, text, number, line):
        self.lines.append("    " * depth + text)
        self.numbers.append(number)
        self.at.append(line)

    def make_body_rows(self, statements, level, line, kept):
        """Return rows (depth, text, number, line) for STATEMENTS.

        STATEMENTS ran in one frame, or in calls that this frame made. LEVEL is the index of this
        frame in the call stack. LINE is the line for statements that have no line of their own.
        KEPT are the names that are read later.
        """
        rows, groups = [], []
        for one in statements:
            call = one.frames[level : level + 2] if len(one.frames) > level + 1 else None
            if not (groups and groups[-1].add_if_same_call(call, one)):
                groups.append(_Group(call, one))
        later = [kept]
        for group in reversed(groups):
            later.append(later[-1] | group.uses)
        for group, needed in zip(groups, later[-2::-1]):
            if group.call:
                line = self.get_frame_line(group.call[0])
                rows += self.make_inner_function_rows(group, level, line, needed)
            else:
                one = group.statements[0]
                line = self.get_frame_line(one.frames[level]) if one.frames else line
                rows.append((0, one.text, one.number, line))
        return rows

    def make_inner_function_rows(self, group, level, line, needed):
        """Return the rows for GROUP, an inner call at line LINE of its caller: the definition of
        an inner function and a call of it. NEEDED are the names that are read later."""
        statements, inner = group.statements, group.call[1]
        name, first, last = (
            self.names.make_unique("part"),
            statements[0].number,
            statements[-1].number,
        )
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
        inside = self.get_frame_line(inner)
        below = self.make_body_rows(statements, level + 1, inside, frozenset(gives))
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

    # ---- the code object of the generated function ----

    def replace_positions(self, code):
        """Return a copy of CODE, and of the code objects in it, with the file name and lines of the
        program."""
        lines = [self.at[at or 1] for at, *_ in code.co_positions()]
        constants = [
            self.replace_positions(one) if isinstance(one, type(code)) else one
            for one in code.co_consts
        ]
        made = code.replace(
            co_filename=self.of[code.co_name].co_filename,
            co_name="forward",
            co_qualname=self.what,
            co_firstlineno=lines[0],
            co_consts=tuple(constants),
            co_linetable=_encode_line_table(lines),
        )
        self.tables[id(made)] = dict(
            co_linetable=code.co_linetable, co_firstlineno=code.co_firstlineno
        )
        return made

    def get_statement_number(self, frame, offset):
        """Return the number of the statement that FRAME runs at OFFSET; None if FRAME does not run
        the generated function."""
        table = self.tables.get(id(frame.f_code))
        if table is None:
            return None
        return self.numbers[get_line(frame.f_code.replace(**table), offset // 2) or 1]

    def find_progress(self, trace):
        """Find out how far the generated function came before the exception with traceback TRACE.

        Returns (number of the statement that raised, variables by name, TRACE without the frames of
        the generated function); None if TRACE does not begin in the generated function.
        """
        number, known = None, {}
        while trace:
            now = self.get_statement_number(trace.tb_frame, trace.tb_lasti)
            if now is None:
                break
            number = now
            known.update(trace.tb_frame.f_locals)
            trace = trace.tb_next
        return None if number is None else (number, known, trace)


def _encode_line_table(lines):
    """Encode a co_linetable without columns. LINES has the line of each code unit; the first line
    is co_firstlineno."""
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
