"""Assemble the compiled code that runs in place of a captured function.

Runs in: the traced process.

    MAKE_CELL, COPY_FREE_VARS, RESUME    as in the function
    a call of the plan                   with the variables that the plan needs
    UNPACK_SEQUENCE, STORE_FAST ...      set variables and stack to their state at the graph break
    the instruction at the break         as in the function, with its exception handlers and jumps
    leave                                continue in a resume function (resume.py)

The compiled code is the bytecode of the captured function with instructions inserted. Instructions
that can no longer be reached are left out. Below, a *step* is the index of an instruction of the
captured function.
"""

from inspect import CO_VARARGS, CO_VARKEYWORDS
from opcode import opmap as _opcodes

from ._capture import make_source as _make_source
from ._capture_native import native as _captures
from ._framed import get_line
from ._native import native as _native
from ._plan import Plan, Unknown
from .graph import Node, name_nodes
from .resume import TEMPORARY, _make_drops, _split_without_prefix, _make_stores, _list_variables
from .types import GuardedCode

_MOST_LEAVES = 64
_RESUME, _HANDLER, _TO_BOOL = _opcodes["RESUME"], _opcodes["PUSH_EXC_INFO"], _opcodes.get("TO_BOOL")
_JUMP_IF_TRUE = next(
    name for name in ("POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_IF_TRUE") if name in _opcodes
)


class _Assembly:
    """Assembles the compiled code for RECORD. MADE is the Plan of RECORD.

    RECORD has the items that finish() in capture.py lists, and also:
        unit       the instruction at the break
        group      the first instruction of the call to which `unit` belongs, else `unit`
        begun      the code is a resume function, and has restored its variables and stack
        handled    the graph broke because the function has a handler for the operation's exception
        make_bool  the result of a comparison, on top of the stack, must still become a bool
    """

    def __init__(self, record, made):
        self.record, self.code, self.plan = record, record["code"], made
        self.ops, self.jumps, self.handlers, self.units, self.ends = zip(*_native._read(self.code))
        self.begun, units, count = self.ops.index(_RESUME), self.units, len(self.units)
        self.broken = last = units.index(record["group"])
        while last + 1 < count and units[last] != units[last + 1] <= record["unit"]:
            last += 1
        if self.ops[last] == _TO_BOOL and last + 1 < count and self.jumps[last + 1] >= 0:
            last += 1  # keep the jump after TO_BOOL, too, because it uses the bool
        self.last, self.constants, self.splits, self.parts = last, list(self.code.co_consts), {}, []

    # ---- where the compiled code leaves for a resume function ----

    def is_break_in_loop(self):
        """Is the graph break in a loop: can the code after the break jump back to the break or to
        an instruction before it?"""
        if not self.record["break"] or self.plan.slots is None:
            return False
        return any(0 <= to <= self.broken for to in self.jumps[self.broken :])

    def leaves_at(self, step):
        """Does the compiled code leave for a resume function at STEP?

        Normally it leaves after the instruction at the break, and at the target of this
        instruction's jump. If the break is inside `try` or `with` (`handled`), it leaves at the
        first steps outside. It does not leave where the function cannot be split. It never leaves
        before the break. Only a call whose graph raised runs the code before the break, and a
        resume function that left there, at its own start, would call itself for ever.
        """
        if step <= max(self.begun, self.broken):
            return False
        if self.record["handled"]:
            handler = self.handlers[step]
            if handler >= 0 and self.ops[handler] == _HANDLER:
                return False
        elif step != self.jumps[self.last] and (step != self.last + 1 or self.ends[self.last]):
            return False
        if (
            step not in self.splits
            and len(self.splits) < _MOST_LEAVES
            and self.units[step - 1] != self.units[step]
        ):
            split = _split_without_prefix(self.code, 2 * self.units[step])
            if split:
                self.splits[step] = split
        return step in self.splits

    def find_reachable_steps(self):
        """Return the steps that can be reached from the start of the code and from the break."""
        reached, record = set(), self.record
        queue = (
            [0] + [self.broken] * (self.plan.slots is not None) + [self.begun + 1] * self.plan.again
        )
        while queue:
            step = queue.pop()
            if step in reached or self.leaves_at(step):
                continue
            reached.add(step)
            behind = -1 if self.ends[step] or step == self.begun else step + 1
            queue += [
                to
                for to in (self.handlers[step], self.jumps[step], behind)
                if 0 <= to < len(self.ops)
            ]
        return reached

    # ---- instructions that are inserted ----

    def append_op(self, op, arg=0, to=-1):
        """Append instruction OP, with the source position of the current step."""
        self.parts.append((_opcodes.get(op, op), arg, to, self.unit))

    def append_variable_instruction(self, op, variable):
        """Append an instruction OP_FAST or OP_DEREF, where OP is LOAD, STORE or DELETE, for the
        variable that has the index VARIABLE in the original code."""
        cell = (
            variable >= self.code.co_nlocals
            or self.code.co_varnames[variable] in self.code.co_cellvars
        )
        self.append_op(op + ("_DEREF" if cell else "_FAST"), self.moved[variable])

    def append_call(self, constant, arguments=()):
        """Append a call of CONSTANT. ARGUMENTS has the form of Plan.arguments."""
        self.constants.append(constant)
        for op in _native._call[:2]:
            self.append_op(op, len(self.constants) - 1 if op == _opcodes["LOAD_CONST"] else 0)
        for argument in arguments:
            if argument is None:
                self.append_call(_captures._globals)
            elif isinstance(argument, int):
                self.append_op("LOAD_FAST", self.moved[argument])
            else:
                self.append_variable_instruction("LOAD", self.find_variable(argument))
        for op in _native._call[2:]:
            self.append_op(op, len(arguments))

    def find_variable(self, name):
        """Return the index of the variable NAME that guards read. In a resume function a local and
        a free variable may have the same name. In that case the argument of this name is returned
        or, if there is none, the last variable of this name."""
        first, code = self.variables.index(name), self.code
        arguments = (
            code.co_argcount
            + code.co_kwonlyargcount
            + bool(code.co_flags & CO_VARARGS)
            + bool(code.co_flags & CO_VARKEYWORDS)
        )
        return (
            first
            if first < arguments
            else len(self.variables) - 1 - self.variables[::-1].index(name)
        )

    def append_prologue(self, aside):
        """Append the instructions that follow RESUME. ASIDE is the label of the code that runs if
        the graph has raised: a number that no step has."""
        record, plan, slots, link = (
            self.record,
            self.plan,
            self.plan.slots,
            _native._link(self.code),
        )
        at = len(self.constants)
        self.append_call(record["plan"], plan.arguments)
        if plan.again:
            self.append_op("COPY", 1)
            self.append_op("LOAD_CONST", at)
            self.append_op("IS_OP")
            self.append_op(_JUMP_IF_TRUE, 0, aside)
        if record["begun"]:
            self.append_call(
                next(
                    constant
                    for constant in reversed(self.code.co_consts)
                    if getattr(constant, "__self__", None) is link
                )
            )
            self.append_op("POP_TOP")
        if slots is None:
            self.append_op("RETURN_VALUE")
        else:
            filled = [slot for slot, has in enumerate(slots) if has]
            gives = len(filled) + len(plan.stores)
            self.append_op("UNPACK_SEQUENCE" if gives else "POP_TOP", gives)
            for variable in plan.stores:
                self.append_variable_instruction("STORE", variable)
            for variable in plan.deletes:
                self.append_variable_instruction("DELETE", variable)
            # the plan cannot return NULLs, so push here the NULLs that the stack had between values
            if len(filled) < len(slots):
                for slot in reversed(filled):
                    self.append_op("STORE_FAST", self.where[slot])
                for slot, has in enumerate(slots):
                    self.append_op(
                        "LOAD_FAST" if has else "PUSH_NULL", self.where[slot] if has else 0
                    )
                for slot in filled:
                    self.append_op("DELETE_FAST", self.where[slot])
            if record["make_bool"] and _TO_BOOL:
                self.append_op("TO_BOOL")
            self.append_op("JUMP_FORWARD", 0, self.broken)
        if plan.again:
            self.parts.append(~aside)
            self.append_op("POP_TOP")
            self.append_op("JUMP_FORWARD", 0, self.begun + 1)

    def append_leave_call(self, split):
        for op, argument in _make_stores(split):
            self.append_op(op, self.where[argument] if op == "STORE_FAST" else argument)
        self.append_call(split._leave)
        for op, argument in _make_drops(split):
            self.append_op(op, argument)
        self.append_op("RETURN_VALUE")

    def assemble(self):
        code, record, reached = self.code, self.record, self.find_reachable_steps()
        depths = [len(self.plan.slots or ())] + [len(split.stack) for split in self.splits.values()]
        temporaries = [TEMPORARY % slot for slot in range(max(depths))]
        # In a resume function an argument may already have the name of a variable that is added
        # here. The function unbinds this argument when it begins, so the name can be used again.
        # Refuse the code if any other variable has such a name: the variable may belong to the
        # program.
        arguments = code.co_argcount + code.co_kwonlyargcount if record["begun"] else 0
        if not set(temporaries).isdisjoint(code.co_varnames[arguments:]):
            raise Unknown(
                "it has a variable whose name begins with ___stack, as those that are added have"
            )
        names = code.co_varnames + tuple(
            name for name in temporaries if name not in code.co_varnames
        )
        self.where, self.variables, more = (
            list(map(names.index, temporaries)),
            _list_variables(code),
            len(names) - code.co_nlocals,
        )
        self.moved = [
            at if at < code.co_nlocals else at + more for at in range(len(self.variables))
        ]
        for step in sorted(reached | self.splits.keys()):
            if step == self.broken and self.parts[-1] == (
                _opcodes["JUMP_FORWARD"],
                0,
                step,
                self.units[self.begun],
            ):
                self.parts.pop()  # drop the jump, because it leads to the next instruction
            self.unit = self.units[step]
            self.parts.append(~step)
            if step in self.splits:
                self.append_leave_call(self.splits[step])
            if step in reached:
                self.parts.append(step)
            if step == self.begun:
                self.append_prologue(len(self.units))
        needed = max(len(self.plan.arguments) + 4, len(self.plan.stores) + depths[0], 1) + 4
        made = _native._make(
            code,
            tuple(self.parts),
            tuple(self.moved),
            dict(
                co_varnames=names,
                co_nlocals=len(names),
                co_consts=tuple(self.constants),
                co_stacksize=max(code.co_stacksize, needed),
            ),
        )
        return made, list(self.splits.values())


def finish(function, every, record):
    """Make the compiled code for RECORD.

    Returns (GuardedCode, values of the first run), or a str, the reason why there is no code.
    FUNCTION(RECORD) returns (callable, GuardTree), as finish() in capture.py does. EVERY is True
    under `run --capture`: then an exception of FUNCTION is not raised, and there is no code.
    """
    try:
        # add the line to the description of the graph break, and convert the call stack of the
        # break to (file, line, name), the outermost frame first
        if record["break"]:
            *broken, places = record["break"]
            stack = [
                (code.co_filename, get_line(code, unit) or -1, code.co_name)
                for code, unit in zip(places[::2], places[1::2])
            ]
            record["break"] = *broken, get_line(record["code"], broken[2] // 2) or -1, stack[::-1]
        plan = Plan(record)
        assembly = _Assembly(record, plan)
        if assembly.is_break_in_loop():
            return "a break in a loop: " + record["break"][1]
        record["modified"], record["resume"] = assembly.assemble()
        placeholders, nodes, outputs = (
            record["placeholders"],
            record["nodes"],
            (tuple(plan.outputs.values()),),
        )
        for node in placeholders:
            node.name = repr(_make_source(node.name))
        record["nodes"] = (
            [*placeholders, *nodes, Node("output", "output", "output", outputs, {})]
            if nodes
            else []
        )
        name_nodes(record["nodes"])
    except Unknown as why:
        return str(why)
    except Exception:
        return "code for it could not be made"
    try:
        made = function(record)
    except Exception:
        if every is not True:
            raise
        made = None
    if made is None:
        return "it was declined"
    if type(made) is not tuple or len(made) != 2:
        raise TypeError("finish() of a capture gave no (callable, GuardTree)")
    try:
        plan.write(record["plan"], made[0], record.get("module"), placeholders, nodes)
    except Exception:
        return "code for it could not be made"
    return GuardedCode(record["modified"], made[1]), record.get("values")
