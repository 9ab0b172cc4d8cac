"""Splits a function in two at an instruction: a prefix, and a resume function for the rest.

    prefix    the original up to the offset. There it stores the items of the stack in variables and
              calls leave() (src/tracer/resume/links.c). In newer versions of CPython the stack has
              indexes of iterations, which are no objects. They stay on the stack, because f_locals
              would take an index in a variable for a pointer
    resume    a prologue, then the original. The prologue pushes the items of the stack, calls
              enter() and jumps to the offset. Cells are passed as free variables. enter() also puts
              them into the original's cell variables, because the error that CPython raises for an
              unbound variable depends on the kind of variable

A resume function can be split, too. Its resume function is the one that the original has when it is
split at the same instruction. A code object's splits are kept in its state until a reset. They hold
no reference to the code object.

Runs in: the traced process. docs/resume.md has the rules.
"""

from __future__ import annotations

import bisect
import inspect
import itertools
import operator
import types
import weakref
from opcode import opmap as _opcodes, opname as _opnames

from ._native import native as _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Split", "UNBOUND", "call_resume", "points", "split", "why_not"]

UNBOUND = _native.UNBOUND

TEMPORARY = "___stack%d"
_SHADOWED = "a comprehension has a variable of its own in the place of one in a cell"
_numbers = itertools.count()


class Split:
    """The two halves of a function that was split at an instruction.

    Attributes
    ----------
    prefix
        Code with the arguments of the original. It runs up to the offset, then returns the result
        of the resume function.
    resume
        Code that begins at the offset. Its arguments are variables, then slots of the stack.
    stack
        For each slot of the stack, from the bottom, "value", "NULL" or "value or NULL".
    locals
        The names of the variables that the prefix passes to the resume function, without those in
        cells.
    offset
        Where the original is split, in bytes.
    """

    __slots__ = "prefix", "resume", "stack", "locals", "offset", "_origin", "_leave", "_indexes"

    if TYPE_CHECKING:
        prefix: types.CodeType
        resume: types.CodeType
        stack: tuple[str, ...]
        locals: tuple[str, ...]
        offset: int

    def __init__(self, *values: Any) -> None:
        for name, value in zip(self.__slots__, values):
            object.__setattr__(self, name, value)

    def __setattr__(self, name, value):
        raise AttributeError("a split cannot be changed")

    def __repr__(self):
        return "<split of %s() at offset %d>" % (self.prefix.co_qualname, self.offset)

    @property
    def origin(self) -> types.CodeType | None:
        """The original code object. For a resume function that was split again, this is the code of
        the whole function. None if the code object is gone."""
        return self._origin()


def split(code: types.CodeType, offset: int) -> Split:
    """Split a function before an instruction.

    Parameters
    ----------
    code
        The function's code, or that of a resume function.
    offset
        Where the instruction is, in bytes.

    Returns
    -------
    Split
        The same object for the same code and offset, until a reset.

    Raises
    ------
    ValueError
        The function cannot be split there; the message says why.
    """
    program = _Program(code)
    why = program.why_not(offset)
    if why:
        raise ValueError("%s() cannot be split at offset %d: %s" % (code.co_qualname, offset, why))
    made = program.split(offset)
    if not made.prefix:
        object.__setattr__(made, "prefix", program.make_prefix(program.find_step(offset), made))
    return made


def points(code: types.CodeType) -> tuple[int, ...]:
    """Return the offsets at which a function with this code can be split."""
    program = _Program(code)
    steps = enumerate(program.places)
    return tuple(place[0] for step, place in steps if not program.find_obstacle(step))


def why_not(code: types.CodeType, offset: int) -> str | None:
    """Return why the code cannot be split at the offset, or None if it can be."""
    return _Program(code).why_not(offset)


def call_resume(split: Split) -> list[tuple[str, Any]]:
    """Return the instructions that call the resume function and return its result.

    They are for code of your own that has the original's stack, variables and cells.

    Parameters
    ----------
    split
        What split() returned.

    Returns
    -------
    list
        (name, argument) of each instruction. The argument of STORE_FAST is the name of a variable
        to be added, that of LOAD_CONST the constant. Others have their number, or none.
    """
    if not isinstance(split, Split):
        raise TypeError("expected what split() returns, got %s" % type(split).__name__)
    return _make_leaving_code(split)


def _split_without_prefix(code, offset):
    """Return the split of CODE at OFFSET without a prefix, or None if CODE cannot be split there.
    Used by dyntrace.compile, which makes a prefix of its own."""
    program = _Program(code)
    return None if program.why_not(offset) else program.split(offset)


def _make_leaving_code(split):
    stores = [
        (name, TEMPORARY % argument if name == "STORE_FAST" else argument)
        for name, argument in _make_stores(split)
    ]
    return stores + _make_call(split._leave) + _make_drops(split) + [("RETURN_VALUE", None)]


def _make_stores(split):
    """Return the instructions that store the items of the stack in variables. Indexes of iterations
    stay on the stack. The argument of a STORE_FAST is the number of the slot.
    """
    made, above = [], 0
    for slot in reversed(range(len(split.stack))):
        if slot in split._indexes:
            above += 1
        else:
            if above:
                made.append(("SWAP", above + 1))
            made.append(("STORE_FAST", slot))
    return made


def _make_drops(split):
    """Return the instructions that remove indexes of iterations from the stack, where they lie
    below the result."""
    return [("SWAP", 2), ("POP_TOP", 0)] * len(split._indexes)


def _find_index_places(slots):
    """Return a tuple with a number for each slot that _make_stores() stores. If an iteration index
    belongs to the slot, this is the index's position among the indexes that stay on the stack,
    counted from the bottom; otherwise it is -1. SLOTS are the kinds of the stack's slots.
    """
    indexes = []
    for slot in reversed(range(len(slots))):
        if slots[slot] & _native.SLOT_INDEX:
            indexes.insert(0, slot)
        elif indexes:  # a SWAP has moved the topmost index to the position of the value
            indexes.insert(0, indexes.pop())
    # at the end of a loop a result may lie in the iterable's slot, below the iteration index
    iterated = [bool(slot & _native.SLOT_ITERATED) for slot in slots]
    return tuple(
        indexes.index(slot + 1) if iterated[slot] and slot + 1 in indexes else -1
        for slot in range(len(slots))
        if _describe_slot(slots[slot]) != "NULL"
    )


def _describe_slot(slot):
    """Describe what SLOT of the stack may hold."""
    if not slot & (_native.SLOT_VALUE | _native.SLOT_CELL):
        return "NULL"
    return "value or NULL" if slot & _native.SLOT_NULL else "value"


def _make_call(constant):
    return [
        (name, constant if name == "LOAD_CONST" else 0)
        for name in map(_opnames.__getitem__, _native._call)
    ]


def _list_variables(code):
    """Return the names of all variables of CODE in the order in which CPython numbers them."""
    return (
        code.co_varnames
        + tuple(name for name in code.co_cellvars if name not in code.co_varnames)
        + code.co_freevars
    )


def _find_refusal(code):
    """Return why a function with CODE cannot be split at all, or None."""
    if code is None:
        return "the code object that it was made from is gone"
    if any(name.startswith("___stack") for name in _list_variables(code)):
        return (
            "it has a variable whose name begins with ___stack, as those have that are added here"
        )
    if set(code.co_cellvars) & set(code.co_freevars):
        return "a comprehension in it has a variable of its own in the place of a free variable"
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return "it is a coroutine, which a call cannot carry on"
    if code.co_flags & inspect.CO_GENERATOR:
        return "it is a generator, which a call cannot carry on"
    if ~code.co_flags & (inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS):
        return "its variables lie in a mapping: it is a module, a class body or the like"


class _Program:
    """The instructions of CODE, which is to be split.

    origin      the original's code if CODE is a resume function, else CODE itself
    steps       the instructions of `origin`
    places      where CODE has these instructions
    prologue    the number of instructions before them in CODE; 0 unless CODE is a resume function
    why         why CODE cannot be split at all, or None
    """

    def __init__(self, code):
        if not isinstance(code, types.CodeType):
            raise TypeError("argument 1 must be code, not %s" % type(code).__name__)
        link = _native._link(code)
        # CODE is the resume function itself, not a copy of it
        if link and link[-1] and link[-1][0]() is code:
            self.origin, self.first = link[0](), link[1]
        else:
            self.origin, self.first = code, 0
        self.code, self.steps, self.places, self.prologue = code, (), (), 0
        self.why = _find_refusal(self.origin)
        if not self.why:
            names = _list_variables(self.origin)
            self.count, cells = len(names), set(self.origin.co_cellvars)
            self.cells = [at for at, name in enumerate(names) if name in cells]
            try:
                self.steps = self.places = _native._steps(self.origin, self.first)
                if self.origin is not code:
                    self.places = _native._steps(code, 0)
                    self.prologue = len(self.places) - len(self.steps)
                    del self.places[: self.prologue]
                elif not _native.FREE_MAY_BE_NULL and any(
                    map(self.is_shadowed, self.steps_after_setup())
                ):
                    raise ValueError(_SHADOWED)
            except ValueError as error:
                self.why, self.steps, self.places = str(error), (), ()

    def steps_after_setup(self):
        """Return the steps behind the first ones, which only set up the variables."""
        first = self.steps[0][2]
        return itertools.dropwhile(lambda step: step[2] == first, self.steps)

    def is_shadowed(self, step):
        """Does a cell variable of the function hold something other than its cell at STEP, because
        an inlined comprehension has a variable of the same name? In a resume function, f_locals
        could write both.
        """
        slots = step[3]
        there = map(slots.__getitem__, self.cells) if slots else ()
        return not {_native.SLOT_CELL}.issuperset(there)

    def find_step(self, offset):
        """Return the step whose instruction, or one of its EXTENDED_ARGs, is at OFFSET; None if
        there is no such step."""
        at = bisect.bisect_right(self.places, offset, key=operator.itemgetter(0))
        # only even offsets begin instructions; two steps may have the same offset
        if offset % 2 == 0:
            return next(
                (
                    step
                    for step in (at - 1, at - 2)
                    if step >= 0 and self.places[step][0] <= offset < self.places[step][1]
                ),
                None,
            )

    def why_not(self, offset):
        step = self.find_step(operator.index(offset))
        why = "no instruction begins there" if step is None else self.find_obstacle(step)
        return self.why or why

    def find_obstacle(self, step):
        begin, end, why, slots = self.steps[step]
        if begin == end:
            return "it is in the middle of an instruction"
        if slots is None:
            return "it is never reached"
        variables, stack = set(slots[: self.count]), set(slots[self.count :])
        if any(slot & _native.SLOT_HANDLER for slot in stack):
            return "it is inside an except handler, where CPython keeps the exception on the stack"
        if any(slot & _native.SLOT_INDEX and slot != _native.SLOT_INDEX for slot in stack):
            return "CPython's compiler makes no such stack"
        if any(slot & _native.SLOT_CELL and slot != _native.SLOT_CELL for slot in variables):
            return "a comprehension's variable is being set up there, or not"
        return why or (_SHADOWED if self.is_shadowed(self.steps[step]) else None)

    def split(self, offset):
        """Return the split at OFFSET, which has no prefix yet."""
        step = self.find_step(offset)
        made = _native._splits(self.code)
        if step not in made:
            made.setdefault(
                step, self.make_split(step) if self.origin is self.code else self.derive_split(step)
            )
        return made[step]

    def derive_split(self, step):
        """Return a split of CODE, which is a resume function, without a prefix. It has the parts of
        the split of the original function at the same instruction."""
        other = _Program(self.origin).split(self.steps[step][0])
        return Split(None, *(getattr(other, name) for name in Split.__slots__[1:]))

    def make_split(self, step):
        """Split CODE, an original function. The new resume function has these variables, in this
        order: variables that are passed as arguments, slots of the stack, other variables,
        variables that are only in cells, free variables."""
        code, itself, origin = self.code, [], weakref.ref(self.code)
        begin, _, _, slots = self.steps[step]
        names, cells = _list_variables(code), set(code.co_cellvars)
        free, takes_super = len(names) - len(code.co_freevars), "super" in code.co_names
        # keep the frame's first argument: super() without arguments reads it, and raises if there
        # is none
        known = [
            at
            for at in range(free)
            if slots[at] & _native.SLOT_VALUE or at == 0 < code.co_argcount and takes_super
        ]
        rest = sorted(set(range(free)).difference(known))
        others, in_cells = [at for at in rest if names[at] not in cells], [
            at for at in rest if names[at] in cells
        ]
        stack, places = tuple(map(_describe_slot, slots[self.count :])), _find_index_places(
            slots[self.count :]
        )
        indexes = tuple(
            slot for slot, kind in enumerate(slots[self.count :]) if kind & _native.SLOT_INDEX
        )
        handed = [TEMPORARY % slot for slot, word in enumerate(stack) if word != "NULL"]
        locals_ = tuple(names[at] for at in known)
        arguments, closure = len(known) + len(handed), code.co_cellvars + code.co_freevars
        bare = not code.co_argcount and takes_super
        moves = (
            known
            + [None] * len(handed)
            + others
            + in_cells
            + [None] * len(code.co_cellvars)
            + list(range(free, len(names)))
        )
        # old number of a variable -> its new number; a cell variable becomes a free variable
        moved = {old: new for new, old in enumerate(moves)}

        filled = bytes(word == "value" for word in stack)
        enter = _native._enter(origin, step, len(known), len(stack), filled, places, itself)
        steps = [("COPY_FREE_VARS", len(closure))] if closure else []
        # Without a MAKE_CELL CPython does not regard a variable as a cell variable: f_locals would
        # show the cell itself, and a write would replace the cell. So cells are made here, and
        # enter() replaces them by the cells that were passed.
        steps += [("MAKE_CELL", moved[at]) for at in range(free) if names[at] in cells]
        steps.append(("RESUME", 0))
        steps += [
            ("PUSH_NULL", 0) if word == "NULL" else ("LOAD_FAST", TEMPORARY % slot)
            for slot, word in enumerate(stack)
        ]
        steps += _make_call(enter) + [("POP_TOP", 0), ("JUMP_FORWARD", step)]
        name = "__resume_at_%d_%d" % (begin, next(_numbers))
        made = _make_copy(
            code,
            len(self.steps),
            0,
            steps,
            locals_ + tuple(handed) + tuple(names[at] for at in others),
            [moved[at] for at in range(len(names))],
            co_name=name,
            co_qualname="".join(code.co_qualname.rpartition(".")[:2]) + name,
            co_freevars=closure,
            co_argcount=0 if bare else arguments,
            co_posonlyargcount=0,
            co_kwonlyargcount=arguments if bare else 0,
            co_flags=code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS),
        )
        itself.append(weakref.ref(made))
        return Split(None, made, stack, locals_, begin, origin, _native._leave(made), indexes)

    def make_prefix(self, step, split):
        """Make the prefix of SPLIT. If CODE is a resume function that begins at the same step, the
        jump of its prologue still leads to this step, and the prefix ends only when a loop reaches
        the step again."""
        code = self.code
        names = code.co_varnames + tuple(
            name
            for name in map(TEMPORARY.__mod__, range(len(split.stack)))
            if name not in code.co_varnames
        )
        more = len(names) - code.co_nlocals
        count = len(_list_variables(code))
        moved = [at if at < code.co_nlocals else at + more for at in range(count)]
        past = self.prologue - 1 if self.prologue and step == self.first else None
        return _make_copy(
            code,
            self.prologue + len(self.places),
            self.prologue + step,
            _make_leaving_code(split),
            names,
            moved,
            past,
        )


def _make_copy(code, count, at, steps, names, moved, past=None, **changes):
    """Return a copy of CODE with STEPS inserted before its step number AT.

    count    the number of steps of CODE
    steps    the new instructions, tuples (name, argument)
    names    the names of the copy's local variables
    moved    for each variable of CODE its number in the copy
    past     the number of a step whose jump leads to step AT itself; other jumps to AT lead to the
             new instructions

    CHANGES are further attributes of the copy.
    """
    encoded, constants, parts = [], code.co_consts, [*range(count)]
    for name, argument in steps:
        if name in ("LOAD_FAST", "STORE_FAST"):
            argument = names.index(argument)
        elif name == "LOAD_CONST":
            constants, argument = constants + (argument,), len(constants)
        encoded.append(
            (_opcodes[name], 0, argument)
            if name == "JUMP_FORWARD"
            else (_opcodes[name], argument or 0)
        )
    parts[at:at] = [~at, *encoded, ~count]
    if past is not None:
        parts[past] = _opcodes["JUMP_FORWARD"], 0, count
    return _native._make(
        code,
        tuple(parts),
        tuple(moved),
        dict(
            changes,
            co_varnames=names,
            co_nlocals=len(names),
            co_consts=constants,
            co_stacksize=code.co_stacksize + len(_native._call),
        ),
    )
