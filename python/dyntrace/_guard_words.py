"""Describes guards, and their expected and actual values, for explain() and the trace.

Runs in: the traced process, when an entry is made and before a compile. While the process is
recorded, this code is hidden from the program's trace functions.

src/tracer/guards/ reads values, compares them and finds the guards that do not hold. This module
has a row of KINDS for each kind of guard: its expression, its aspect, the arguments that the
extension needs, and the text for an actual value.

A value of the program may be a list of a million items, a tensor that would be computed in order to
be printed, or an object whose __repr__ raises. So containers are cut before they are printed,
arrays are summarised, and only other values are passed to repr(). If repr() fails, the text says
so. The texts keep no guarded object alive.

The option --values can forbid values in the trace. No text is made for a forbidden value, so the
value never gets into shared memory. The text in its place names the option, so that a reader cannot
mistake this text for a value:

    all     L['x'] == 'abc'
    types   L['x'] == str: value not recorded (--values types)
    off     L['x'] == value not recorded (--values off)

Names in the program's source (variables, attributes, functions, classes, files) are not values.
Keys and indices in a guard's source are values: L['d']['abc'] becomes L['d'][<str>].
_torch_private.py does the same for torch's guards.
"""

from __future__ import annotations

import itertools
import sys
import types
import weakref
from collections import namedtuple
from operator import index

from ._native import native

ALL, TYPES, OFF = range(3)  # the values of enum session_values in src/ring.h
MOST = 120  # the most characters of a text
# The most items, and the most levels of nesting, that the text for a container shows.
ITEMS, DEPTH = 6, 3


# ---- texts that describe values ----------------------------------------------


def clip(text):
    return text if len(text) <= MOST else text[: MOST - 3] + "..."


def type_name(kind):
    # call type.__repr__, because a metaclass may have a __repr__ of its own
    return clip(type.__repr__(kind)[8:-2])


def _to_plain_str(text):
    return str.__str__(text)  # the program may have defined a subclass of str


def exception_text(error, whole):
    """Describe the exception ERROR: its type and, if WHOLE, its message."""
    try:
        said = _to_plain_str(str(error))[:100] if whole else ""
    except Exception:
        said = ""
    return clip(type_name(type(error)) + (": " + said if said else ""))


def _get_own_name(value, kind):
    """Return the name that VALUE itself has, if it is a function, module or code object, else
    None."""
    if kind is types.FunctionType:
        return value.__qualname__
    if kind is types.CodeType:
        return value.co_qualname
    if issubclass(kind, types.ModuleType):
        name = (types.ModuleType.__dict__["__dict__"].__get__(value) or {}).get("__name__")
        return _to_plain_str(name) if issubclass(type(name), str) else None
    return None


def object_text(value):
    """Describe VALUE with its address, so that two equal objects get different texts. Runs no code
    of the program."""
    kind = type(value)
    if value is None or kind is bool or kind is int:
        return text(value)
    if issubclass(kind, type):
        return "class %s at %#x" % (type_name(value), id(value))
    if issubclass(kind, types.BuiltinFunctionType):
        return "builtin %s at %#x" % (value.__name__, id(value))
    return "%s %s at %#x" % (
        type_name(kind),
        (_get_own_name(value, kind) or "object")[:100],
        id(value),
    )


def _describe_container(value, kind, depth):
    left, right = "{}" if kind is dict else "[]" if kind is list else "()"
    size = len(value)
    if depth == DEPTH and size:
        return left + "..." + right
    if kind is dict:  # copy the items, because a __repr__ may change the dict
        shown = [
            "%s: %s" % (_describe(key, depth + 1), _describe(item, depth + 1))
            for key, item in list(itertools.islice(value.items(), ITEMS))
        ]
    else:
        shown = [_describe(item, depth + 1) for item in value[:ITEMS]]
    return (
        left
        + ", ".join(shown)
        + (", ..." if size > ITEMS else "," if size == 1 and kind is tuple else "")
        + right
    )


def _describe_array(value, kind):
    """Describe an array or tensor without its elements. Returns None if VALUE has no shape."""
    try:
        if kind is memoryview or hasattr(kind, "dtype") or hasattr(kind, "requires_grad"):
            shape = value.shape
            if issubclass(type(shape), tuple):  # torch.Size is a subclass of tuple
                return "%s of shape %s" % (
                    type_name(kind),
                    _describe_container(tuple.__getitem__(shape, slice(None)), tuple, 0),
                )
    except Exception:
        pass
    return None


def _describe(value, depth):
    kind = type(value)
    if kind is str:
        return repr(value[:MOST])
    if (
        (kind is bytes or kind is bytearray)
        and len(value) > MOST
        or (kind is set or kind is frozenset)
        and len(value) > ITEMS
    ):
        return "%s of length %d" % (kind.__name__, len(value))
    # do not print a large int: converting it to decimal is slow, and CPython may refuse it
    if kind is int and value.bit_length() > 512:
        return "an int of %d bits" % value.bit_length()
    if kind is tuple or kind is list or kind is dict:
        return _describe_container(value, kind, depth)
    if (
        _get_own_name(value, kind)
        or issubclass(kind, (type, types.BuiltinFunctionType))
        or type.__getattribute__(kind, "__repr__") is object.__repr__
    ):
        return object_text(value)
    array = _describe_array(value, kind)
    if array:
        return array
    try:
        return _to_plain_str(repr(value))
    except Exception as error:
        return "%s object whose repr raised %s" % (type_name(kind), exception_text(error, True))


def text(value):
    """Return a short text for VALUE. Calls a __repr__ of the program. If the __repr__ raises an
    Exception, the text says so; other exceptions, such as KeyboardInterrupt, are raised."""
    return clip(_describe(value, 0))


def _sort_keys(keys):
    """Return KEYS sorted by their texts. Equal sets of keys then get the same text."""
    return tuple(sorted(keys, key=text))


def hidden_value_text(keep, name=None):
    """Return the text to record in place of a value that --values forbids. NAME is the name of the
    value's type."""
    if keep == OFF:
        return "value not recorded (--values off)"
    return "%s: value not recorded (--values types)" % (name or "object")


# ---- the extension's arguments for a guard -----------------------------------
#
# Each function below sets the texts of LEAF, such as leaf.expected, and returns a tuple of five:
#
#     may checking the guard run the program's code?
#     the objects that the guard names: for each the object, and the reason to give when its death
#     invalidates the entry
#     the object to compare with or to call, or None
#     two numbers, which only some kinds use: a length, or a lower and an upper bound

_SIMPLE = frozenset(map(id, (str, int, float, bool, bytes, complex, type(None))))


def _is_simple(value, depth=100):
    """Can this value be compared without running code of the program?"""
    if type(value) is tuple:
        return all(depth and _is_simple(item, depth - 1) for item in value)
    return id(type(value)) in _SIMPLE


def _prepare_value(leaf, value):
    leaf.expected, leaf.type = text(value), type_name(type(value))
    return not _is_simple(value), (), value, 0, 0


def _prepare_not_value(leaf, value):
    taken = _prepare_value(leaf, value)
    leaf.expected = "not " + leaf.expected
    return taken


def _prepare_keys(leaf, keys):
    taken = _prepare_value(leaf, keys)
    leaf.expected = text(_sort_keys(keys))
    return taken


def _prepare_key(leaf, key):
    hash(key)
    return _prepare_value(leaf, key)


def _prepare_name(leaf, name):
    if not issubclass(type(name), str):
        raise TypeError("%s: expected a str, got %s" % (leaf.name, type(name).__name__))
    return _prepare_value(leaf, _to_plain_str(name))


def _prepare_object(leaf, value):
    leaf.expected, leaf.type = object_text(value), type_name(type(value))
    return False, (leaf.with_death_reason(value),), None, 0, 0


def _prepare_type(leaf, kind):
    if not issubclass(type(kind), type):
        raise TypeError("%s: expected a type, got %s" % (leaf.name, type(kind).__name__))
    taken = _prepare_object(leaf, kind)
    leaf.exact, leaf.expected = leaf.expected, type_name(kind)
    return taken


def _prepare_function(leaf, function):
    """Guard a function or a bound method. Each access makes a new bound method. So for a method the
    guard names the underlying function (or the definition of a builtin) and the object that the
    method is bound to."""
    kind = type(function)
    if kind is types.MethodType:
        owner, name, objects = (
            function.__self__,
            object_text(function.__func__),
            (leaf.with_death_reason(function.__func__),),
        )
    elif issubclass(kind, types.BuiltinFunctionType) and not issubclass(
        type(function.__self__), types.ModuleType
    ):
        owner, name, objects = function.__self__, "builtin " + function.__name__, (None,)
    else:
        owner = None
    if owner is None:
        return _prepare_object(leaf, function)
    leaf.expected, leaf.type = "%s of %s" % (name, object_text(owner)), type_name(kind)
    return (
        False,
        (*objects, leaf.with_death_reason(owner)),
        function if objects[0] is None else None,
        0,
        0,
    )


def _prepare_builtin(leaf, function):
    if not callable(function):
        raise TypeError("%s: expected a callable, got %s" % (leaf.name, type(function).__name__))
    return _prepare_function(leaf, function)


def _prepare_alive(leaf, value=None):
    """Guard a weak reference, or the object to which a weak reference refers."""
    if issubclass(type(value), weakref.ref):
        value = weakref.ref.__call__(value)
    return False, () if value is None else (leaf.with_death_reason(value),), None, 0, 0


def _prepare_length(leaf, length):
    leaf.expected = "%d" % index(length)
    return False, (), None, index(length), 0


def _prepare_bound(leaf, low, high):
    leaf.expected = (
        "at least %d" % low
        if high is None
        else (
            "at most %d" % high
            if low is None
            else "%d" % low if low == high else "%d to %d" % (low, high)
        )
    )
    return (
        False,
        (),
        None,
        -sys.maxsize - 1 if low is None else low,
        sys.maxsize if high is None else high,
    )


def _prepare_divisible(leaf, by):
    if index(by) < 1:
        raise ValueError("%s: %d is no divisor: give 1 or more" % (leaf.name, by))
    leaf.expected = "a multiple of %d" % by
    return False, (), None, by, 0


def _prepare_nothing(leaf):
    return False, (), None, 0, 0


def _prepare_call(leaf, check, expression):
    leaf.expected, leaf.type = expression, type_name(type(check))
    return False, (), check, 0, 0


def _prepare_tensor(leaf, value, wanted, check, words):
    """Guard a tensor by the example VALUE. WANTED has the example's properties, a tuple of

        (name, value) of its attributes, dtype first; empty for a plain buffer
        the format and the itemsize of the buffer
        sizes
        strides, or None
        the dispatch keys with torch's functions that return them, or None

    CHECK is a function that compares all these properties, or None. WORDS describes the
    properties."""
    leaf.expected, leaf.exact = "%s %s" % (type_name(type(value)), words), object_text(type(value))
    leaf.tensor = weakref.ref(type(value)), wanted
    return False, (leaf.with_death_reason(type(value)),), (value, *wanted[:5], check), 0, 0


# ---- texts for actual values -------------------------------------------------
#
# Each function below describes a value for which the guard failed. It returns a text. If it knows
# more than the guard does, it returns a tuple: the text, the expected value, and perhaps aspect and
# dimension.


def _actual_type(leaf, value):
    actual = type_name(type(value))
    # add the addresses, because two classes may have the same name, e.g. if a function defines a
    # class
    return (object_text(type(value)), leaf.exact) if actual == leaf.expected else actual


def _actual_object(leaf, value):
    return object_text(value)


def _actual_code(leaf, value):
    return object_text(value.__code__ if type(value) is types.FunctionType else value)


def _actual_value(leaf, value):
    return text(value)


def _actual_unequal(leaf, value):
    actual, name = text(value), type_name(type(value))
    if actual != leaf.expected or name == leaf.type:
        return actual
    return "%s (%s)" % (actual, name), "%s (%s)" % (leaf.expected, leaf.type)


def _actual_without_attribute(leaf, value):
    return type_name(type(value)) + " without it", "an attribute " + leaf.expected


def _actual_with_attribute(leaf, value):
    return type_name(type(value)) + " with it", "no attribute " + leaf.expected


def _actual_length(leaf, value):
    try:
        length = "%d" % len(value)
    except Exception:
        length = leaf.expected
    return length if length != leaf.expected else "a " + type_name(type(value))


def _actual_keys(leaf, value):
    return (
        text(_sort_keys(dict.keys(value)))
        if issubclass(type(value), dict)
        else type_name(type(value))
    )


def _actual_key(leaf, value):
    if not issubclass(type(value), dict):
        return type_name(type(value))
    if leaf.name == "DICT_CONTAINS":
        return "no such key among %d" % dict.__len__(value), "key " + leaf.expected
    return "there, one of %d" % dict.__len__(value), "no key " + leaf.expected


def _actual_same_objects(leaf, *values):
    for second in range(len(values)):
        for first in range(second):
            if values[first] is values[second]:
                return (
                    "number %d and number %d are the same object" % (first + 1, second + 1),
                    "%d different objects" % len(values),
                )
    return "different objects by now", "%d different objects" % len(values)


def strides_of(value):
    """Return the result of VALUE.stride(), or VALUE.strides, or None if VALUE has neither."""
    stride = getattr(value, "stride", None)
    return stride() if callable(stride) else getattr(value, "strides", None)


def _describe_difference(what, wanted, got, dimension=-1):
    at = what if dimension < 0 else "%s[%d] =" % (what, dimension)
    return "%s %s" % (at, got), "%s %s" % (at, wanted), what, dimension


def _actual_tensor(leaf, value):
    of, wanted = leaf.tensor
    if type(value) is not of():
        return "class " + type_name(type(value)), leaf.exact, "type", -1
    return find_tensor_difference(wanted, value) or "the same by now"


def is_same_tensor(wanted, value):
    return not find_tensor_difference(wanted, value)


def find_tensor_difference(wanted, value):
    """Find the first property of the tensor VALUE that differs from WANTED (see _prepare_tensor).
    Returns (actual, expected, aspect, dimension), or None if no property differs."""
    attributes, format, itemsize, sizes, strides, keys = wanted
    for name, wanted in attributes:
        try:
            got = getattr(value, name)
        except AttributeError:
            return name + " missing", "%s %s" % (name, text(wanted)), name, -1
        if got is not wanted and not wanted == got:
            return _describe_difference(name, text(wanted), text(got))
    if attributes:
        got = keys and (keys[1](value) | keys[2]()) - keys[3]()
        if keys and keys[0] != got:
            return _describe_difference("dispatch_keys", text(keys[0]), text(got))
        found = [("size", sizes, value.shape), ("stride", strides, strides and strides_of(value))]
    else:
        try:
            view = memoryview(value)
            found = [("size", sizes, view.shape), ("stride", strides, view.strides)]
        except (BufferError, ValueError):
            return "no buffer", None, "type", -1
        if (view.format, view.itemsize) != (format, itemsize):
            return _describe_difference("dtype", text(format), text(view.format))
    for what, wanted, got in found:
        if wanted is None:
            continue
        if got is None:
            return "no strides", None, what, -1
        if len(got) != len(wanted):
            return _describe_difference("ndim", len(wanted), len(got))
        for i, number in enumerate(wanted):
            if number is not None and number != index(got[i]):
                return _describe_difference(what, number, index(got[i]), i)
    for name, wanted in attributes:
        got = getattr(value, name)
        any_metadata = getattr(got, "metadata", None) or getattr(wanted, "metadata", None)
        if got is not wanted and any_metadata:
            return _describe_difference(name, text(wanted), text(got) + " with other metadata")
    return None


# ---- the kinds of guards -----------------------------------------------------

# What the texts of a kind of guard reveal. The option --values decides by this whether to record
# them.
#
#     VALUE     a value of the program
#     KIND      the actual value; the expected value follows from the kind itself (None, True)
#     TYPE      a type, or the length of a container
#     SIZE      a number, which may be a tensor's size
#     TENSOR    how a tensor differs
#     NOTHING   no value
VALUE, KIND, TYPE, SIZE, TENSOR, NOTHING = range(6)

# The members of a kind of guard:
#
#     words     the guard's expression, with {s} for the source and {e} for the expected value
#     aspect    the value for the column recompile_cause.aspect, or None
#     reveals   what the texts reveal: VALUE, KIND, ...
#     take      a function _prepare_...() that makes the extension's arguments
#     actual    a function that describes an actual value
#     check     the kind's name in src/tracer/guards/kinds.c, if that name differs
#     stays     True: the guard may run the program's code, so it is never moved before other guards
Kind = namedtuple("Kind", "words aspect reveals take actual check stays", defaults=(None, False))

KINDS = {
    "TYPE_MATCH": Kind("type({s}) is {e}", "type", TYPE, _prepare_type, _actual_type),
    "ID_MATCH": Kind("{s} is {e}", "identity", VALUE, _prepare_object, _actual_object),
    "EQUALS_MATCH": Kind("{s} == {e}", "value", VALUE, _prepare_value, _actual_unequal),
    "NONE_MATCH": Kind("{s} is {e}", "value", KIND, _prepare_value, _actual_value),
    "NOT_NONE": Kind("{s} is {e}", "value", KIND, _prepare_not_value, _actual_value),
    "TRUE_MATCH": Kind("{s} is {e}", "value", KIND, _prepare_value, _actual_value, "NONE_MATCH"),
    "FALSE_MATCH": Kind("{s} is {e}", "value", KIND, _prepare_value, _actual_value, "NONE_MATCH"),
    "HASATTR": Kind(
        "hasattr({s}, {e})",
        "attribute",
        VALUE,
        _prepare_name,
        _actual_without_attribute,
        stays=True,
    ),
    "NO_HASATTR": Kind(
        "not hasattr({s}, {e})",
        "attribute",
        VALUE,
        _prepare_name,
        _actual_with_attribute,
        stays=True,
    ),
    "DICT_LENGTH": Kind("len({s}) == {e}", "length", TYPE, _prepare_length, _actual_length),
    "LIST_LENGTH": Kind("len({s}) == {e}", "length", TYPE, _prepare_length, _actual_length),
    "TUPLE_LENGTH": Kind("len({s}) == {e}", "length", TYPE, _prepare_length, _actual_length),
    "SEQUENCE_LENGTH": Kind(
        "len({s}) == {e}", "length", SIZE, _prepare_length, _actual_length, stays=True
    ),
    "DICT_KEYS": Kind("{s}.keys() == set({e})", "keys", VALUE, _prepare_keys, _actual_keys),
    "DICT_CONTAINS": Kind("{e} in {s}", "keys", VALUE, _prepare_key, _actual_key),
    "DICT_NOT_CONTAINS": Kind("{e} not in {s}", "keys", VALUE, _prepare_key, _actual_key),
    "FUNCTION_MATCH": Kind("{s} is {e}", "identity", VALUE, _prepare_function, _actual_object),
    "CLOSURE_MATCH": Kind("{s}.__code__ is {e}", "identity", VALUE, _prepare_object, _actual_code),
    "BUILTIN_MATCH": Kind(
        "{s} is {e}", "identity", VALUE, _prepare_builtin, _actual_object, "FUNCTION_MATCH"
    ),
    "MODULE_MATCH": Kind(
        "{s} is {e}", "identity", VALUE, _prepare_object, _actual_object, "ID_MATCH"
    ),
    "WEAKREF_ALIVE": Kind(
        "{s} is alive", "alive", NOTHING, _prepare_alive, lambda leaf, value: ("dead", "alive")
    ),
    "GLOBAL_STATE": Kind(
        "{s} == {e}", "state", VALUE, _prepare_value, _actual_unequal, "EQUALS_MATCH"
    ),
    "TENSOR_MATCH": Kind("{s} is {e}", None, TENSOR, _prepare_tensor, _actual_tensor),
    "SHAPE_BOUND": Kind("{s} is {e}", "value", SIZE, _prepare_bound, _actual_value, stays=True),
    "SHAPE_DIVISIBLE": Kind(
        "{s} is {e}", "value", SIZE, _prepare_divisible, _actual_value, stays=True
    ),
    # guards that compare several sources, or that are checked last
    "SHAPE_EQUAL": Kind(
        "{s} are equal",
        "relation",
        SIZE,
        _prepare_nothing,
        lambda leaf, *values: text(values),
        stays=True,
    ),
    "NO_ALIASING": Kind(
        "{s} are different objects", "relation", NOTHING, _prepare_nothing, _actual_same_objects
    ),
    "LAMBDA": Kind(
        "{e}", None, VALUE, _prepare_call, lambda leaf, *values: ("False", "True"), stays=True
    ),
}
RELATIONS = {"SHAPE_EQUAL", "NO_ALIASING", "LAMBDA"}


def _merge_steps(path):
    """Convert PATH to the steps that the extension executes. L['x'] becomes a single step, for
    which no dict of all locals is made. A method call becomes a single step, too."""
    steps, at = [], 0
    while at < len(path):
        (what, key, _), after = path[at], path[at + 1][:2] if at + 1 < len(path) else ("", None)
        if at == 0 and what == "L" and after[0] == "[" and type(after[1]) is str:
            what, key, at = "l", after[1], 1
        elif what == "." and after[0] == "(":
            what, at = "m", at + 1
        steps.append((what, key, at))
        at += 1
    return tuple(steps)


class Leaf:
    """One guard of a GuardTree, with the texts that describe it."""

    __slots__ = (
        "ordinal",
        "name",
        "kind",
        "paths",
        "source",
        "bare",
        "are_shapes",
        "aspect",
        "dimension",
        "expected",
        "exact",
        "type",
        "tensor",
    )

    def __init__(self, ordinal, name, paths, source, bare, are_shapes, shape, dimension):
        self.ordinal, self.name, self.kind, self.paths = ordinal, name, KINDS[name], paths
        self.source, self.bare, self.are_shapes = source, bare, are_shapes
        self.aspect, self.dimension = (
            (shape, dimension) if shape and self.kind.aspect == "value" else (self.kind.aspect, -1)
        )
        self.expected = self.exact = self.type = self.tensor = None

    def native_arguments(self, arguments):
        """Return the arguments for the C function that makes a guard
        (src/tracer/guards/build.c)."""
        stays, *rest = self.kind.take(self, *arguments)
        return (
            self.kind.check or self.name,
            tuple(map(_merge_steps, self.paths)),
            stays or self.kind.stays,
            *rest,
        )

    def with_death_reason(self, value):
        return value, "%s died, which guard %d named: %s of %s" % (
            object_text(value),
            self.ordinal,
            self.name,
            self.source,
        )

    def make_row(self, keep):
        """Return (kind, source, expression) of the guard, without the values that KEEP forbids to
        record."""
        source = self.source if keep == ALL else self.bare
        return self.name, source, self.kind.words.format(s=source, e=self.expected_text(keep))

    def may_record(self, keep, values=()):
        """May the guard's expected value be recorded? With VALUES, actual values for which the
        guard failed: may these be recorded as well?"""
        reveals = NOTHING if keep == ALL else self.kind.reveals
        if reveals == SIZE:
            return keep == TYPES and self.are_shapes and all(type(value) is int for value in values)
        return reveals == NOTHING or (
            not values if reveals == KIND else reveals != VALUE and keep == TYPES
        )

    def expected_text(self, keep):
        if not self.may_record(keep):
            return hidden_value_text(keep, self.type)
        return self.expected or self.kind.words.format(
            s=self.source if keep == ALL else self.bare, e=""
        )

    def describe_failure(self, step, error, values, keep):
        """Describe why the guard failed: return (expected, actual, aspect, dimension).

        VALUES are the values that the guard's sources had. ERROR is the exception that the check
        raised, or None. If VALUES is empty, a value could not be read: STEP is the step of the
        guard's source at which this failed or, if the guard has several sources, the number of the
        source.
        """
        expected, actual, aspect, dimension = None, None, self.aspect, self.dimension
        if error is None and values:
            try:
                actual, expected, aspect, dimension = self.describe_values(values, keep)
            except Exception as raised:
                error = raised
        elif error is None and self.name in RELATIONS:
            actual = "source %d of %d is not there" % (step + 1, len(self.paths))
        elif error is None:
            actual = self.describe_missing(step, keep)
        if error is not None:
            where = self.paths[0][step][2] + " " if not values and keep == ALL else ""
            actual = "%sraised %s" % (where, exception_text(error, keep == ALL))
        return expected or self.expected_text(keep), actual, aspect, dimension

    def describe_values(self, values, keep):
        """Describe VALUES, for which the guard failed. Returns (actual, expected or None, aspect,
        dimension)."""
        shows = self.may_record(keep, values)
        if shows or self.kind.reveals == TENSOR:
            found = self.kind.actual(self, *values)
            found = (found,) if type(found) is str else found
        else:
            found = (
                hidden_value_text(
                    keep, None if self.name in RELATIONS else type_name(type(values[0]))
                ),
            )
        actual, expected, aspect, dimension = (
            found + (None, self.aspect, self.dimension)[len(found) - 1 :]
        )
        # record which property differs, but not its values
        if not shows and self.kind.reveals == TENSOR:
            at = (
                ""
                if aspect is None
                else aspect + " " if dimension < 0 else "%s[%d] = " % (aspect, dimension)
            )
            actual = expected = at + hidden_value_text(keep)
        return actual, expected, aspect, dimension

    def describe_missing(self, step, keep):
        what, key, source = self.paths[0][step]
        if what == "." or what == "[":
            local = step == 1 and what == "[" and self.paths[0][0][0] == "L" and type(key) is str
            words = "not bound" if local else "no such attribute" if what == "." else "no such item"
            return words if keep != ALL else source + (" is " if local else ": ") + words
        return source + " cannot be called" if keep == ALL else "it cannot be called"


class Tree(native.GuardTree):
    """The base class of GuardTree (guards.py): methods that describe the tree's guards."""

    __slots__ = ("_leaves",)

    def guards(self) -> list[tuple[str, str, str]]:
        """Return (kind, source, expression) of each guard, by its number."""
        return self._rows(ALL)

    def explain(self, f_locals: dict[str, object]) -> list[tuple[int, str, str]]:
        """Return (number, expected, actual) of every guard that does not hold. Unlike a check, this
        does not change the order of the guards."""
        return [found[:3] for found in self._why(self._explain(f_locals), ALL)]

    # src/tracer/guards/check.c calls the methods below.

    def _rows(self, keep):
        return [leaf.make_row(keep) for leaf in self._leaves]

    def _why(self, found, keep):
        """Describe the failures FOUND, which the extension's _explain() returned. Returns a list of
        (ordinal, expected, actual, aspect or None, dimension or -1)."""
        return [
            (ordinal, *self._leaves[ordinal].describe_failure(step, error, values, keep))
            for ordinal, step, error, values in found
        ]
