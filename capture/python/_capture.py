"""Make the guards of a capture from the record that C makes (capture/src/).

Runs in: the traced process.
"""

import operator

from . import guards as _guards
from ._guard_words import text
from ._native import native
from .graph import BINARY, UNARY
from .guards import Guard, GuardTree, Source, attribute


def make_source(path):
    """Return the Source for PATH: (path of its parent or None, step, key), as source_make_path()
    in value.c makes it."""
    before, step, key = path
    if before is not None:
        return attribute(make_source(before), key) if step == "." else make_source(before)[key]
    if step == "C":
        return Source((("c", key, "cell(%s)" % key),))
    return (
        Source((("S", key, "sys.modules"),))
        if step == "S"
        else Source(((step.upper(), None, step.upper()),))
    )


def _update_dynamic_sizes(record, path, value):
    """Return the indexes of the dimensions of the array VALUE whose size gets no guard, because it
    has differed between compiles; None if there are none. Updates the sizes in the frame state.

    The guards accept any size of at least 2 in such a dimension. A size of 0 or 1 always has a
    guard: a backend may compile other code where an array is broadcast.
    """
    # if "dynamic" is None, a size becomes dynamic when it differs between compiles
    dynamic = record["dynamic"]
    shape = getattr(value, "shape", None)
    if dynamic is False or not isinstance(shape, tuple):
        return None
    seen = record["frame_state"].setdefault("sizes", {})
    before = seen.get(path)
    now = tuple(map(int, shape))
    if before is None or len(before) != len(now):
        seen[path] = now if dynamic is None else tuple(None if size > 1 else size for size in now)
    else:
        seen[path] = tuple(old if old == new else None for old, new in zip(before, now))
    found = [i for i, size in enumerate(seen[path]) if size is None and now[i] > 1]
    return None if record["shapes_read"] else found or None


def _has_shape(value):
    """Has the array VALUE a dtype and a shape that a guard can compare? An array of a class that
    the program has registered may lack both."""
    try:
        return hasattr(value, "dtype") and hasattr(value, "shape") or memoryview(value) is not None
    except TypeError:
        return False


_SIGNS = {**BINARY, **UNARY}


def _write_number(number, paths):
    """Write NUMBER, an expression that make_expression() in node.c made, as Python source. Appends
    the paths of the expression's inputs to PATHS."""
    if not isinstance(number, tuple):
        return text(number)
    if len(number) == 1:
        if number[0] not in paths:
            paths.append(number[0])
        return repr(make_source(number[0]))
    sign, words = _SIGNS[number[0]], [_write_number(one, paths) for one in number[1:]]
    return (
        "(%s %s %s)" % (words[0], sign, words[1]) if len(words) > 1 else "(%s%s)" % (sign, words[0])
    )


def _replace_paths(number, paths):
    """Copy NUMBER, with each path replaced by its index in PATHS."""
    if not isinstance(number, tuple):
        return number
    return (
        (paths.index(number[0]),)
        if len(number) == 1
        else (number[0], *(_replace_paths(one, paths) for one in number[1:]))
    )


def _make_comparison_guard(comparison, result):
    """Make a guard which checks that COMPARISON, an expression of integers, gives RESULT."""
    paths = []
    shown = _write_number(comparison, paths)[1:-1]
    return _guards.LAMBDA(
        native._check((_replace_paths(comparison, paths), result)),
        shown if result else "not (%s)" % shown,
        *map(make_source, paths),
    )


def make_guards(record):
    """Make the GuardTree from the guards in RECORD."""
    made = []
    for kind, path, value in record["guards"]:
        source = make_source(path)
        if kind == "TENSOR_MATCH" and not _has_shape(value):
            made.append(_guards.TYPE_MATCH(source, type(value)))
        elif kind == "TENSOR_MATCH":
            sizes = _update_dynamic_sizes(record, path, value)
            made.append(_guards.TENSOR_MATCH(source, sizes, value=value))
            made += [_guards.SHAPE_BOUND(source.shape[i], 2) for i in sizes or ()]
        elif kind == "NO_ALIASING":
            made.append(_guards.NO_ALIASING([source, make_source(value)]))
        elif kind == "COMPARISON":
            made.append(_make_comparison_guard(*value))
        elif kind == "ALIASING":
            made.append(
                _guards.LAMBDA(
                    operator.is_,
                    "%r is %r" % (source, make_source(value)),
                    source,
                    make_source(value),
                )
            )
        elif kind == "DICT_ORDER":
            made.append(
                _guards.LAMBDA(native._check(value), "tuple(%r) == %r" % (source, value), source)
            )
        elif kind == "CONSTANT_MATCH":
            made.append(_guards.CONSTANT_MATCH(source, value))
        else:
            made.append(getattr(_guards, kind)(source, value))
    return GuardTree(made)
