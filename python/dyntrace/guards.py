"""Native guards: conditions on a call's values, built here and checked in C.

Runs in: the traced process.

    from dyntrace import guards
    from dyntrace.guards import L, G, GuardTree

    tree = GuardTree([
        guards.TENSOR_MATCH(L["x"], dynamic_sizes=[0]),
        guards.EQUALS_MATCH(G["cfg"].mode, "fast"),
        guards.SHAPE_DIVISIBLE(L["x"].shape[0], 8),
        guards.LAMBDA(lambda x, y: len(x) < len(y), "len(x) < len(y)", L["x"], L["y"]),
    ], example=frame.f_locals, globals=frame.f_globals)
    return GuardedCode(code, tree)

A source is a Python expression: L are the call's variables, G the globals of its function, B the
builtins. The attributes, items and calls (without arguments) of a source are read once at every
check. If a source has no value (an unbound variable, a missing attribute or item), its guards fail;
any other exception while reading or comparing is raised in the call.

A guard without a value takes it from the example: EQUALS_MATCH(L["n"]) expects the example's
L["n"].

Objects that a guard names (ID_MATCH, FUNCTION_MATCH, the classes of TYPE_MATCH and TENSOR_MATCH,
...) are held weakly where that is possible. When one dies, the cache entries that named it are
invalidated at once.
"""

from __future__ import annotations

import sys as _sys
from functools import partial as _partial
from operator import index as _index

from . import _guard_words as _words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

__all__ = [
    "L",
    "G",
    "B",
    "Source",
    "attribute",
    "Guard",
    "GuardTree",
    "register_global_state",
    "global_state",
    "TYPE_MATCH",
    "ID_MATCH",
    "EQUALS_MATCH",
    "CONSTANT_MATCH",
    "NONE_MATCH",
    "NOT_NONE",
    "TRUE_MATCH",
    "FALSE_MATCH",
    "HASATTR",
    "NO_HASATTR",
    "DICT_LENGTH",
    "LIST_LENGTH",
    "TUPLE_LENGTH",
    "SEQUENCE_LENGTH",
    "DICT_KEYS",
    "DICT_CONTAINS",
    "DICT_NOT_CONTAINS",
    "FUNCTION_MATCH",
    "CLOSURE_MATCH",
    "BUILTIN_MATCH",
    "MODULE_MATCH",
    "WEAKREF_ALIVE",
    "GLOBAL_STATE",
    "TENSOR_MATCH",
    "SHAPE_EQUAL",
    "SHAPE_BOUND",
    "SHAPE_DIVISIBLE",
    "NO_ALIASING",
    "LAMBDA",
]


# ---- sources ---------------------------------------------------------------


class Source:
    """A path to a value, such as L['x'].size()[0]. An attribute of a source is a source, too; so is
    an item of a source, and a call of a source without arguments.

    Names that every object has (__class__, __doc__, __eq__, ...) need attribute(source, name).
    """

    __slots__ = ("_Source__path",)
    __iter__ = None  # without this, `for` and `in` would call __getitem__ without end
    __contains__ = None

    def __init__(self, path: tuple[Any, ...]) -> None:
        self.__path = path

    def __getattr__(self, name: str) -> Source:
        return attribute(self, name)

    def __getitem__(self, key: object) -> Source:
        text = _describe_key(key)
        return Source(self.__path + (("[", key, "%s[%s]" % (self.__path[-1][2], text)),))

    def __call__(self) -> Source:
        return Source(self.__path + (("(", None, "%s()" % self.__path[-1][2]),))

    def __repr__(self) -> str:
        return self.__path[-1][2]

    def __reduce__(self) -> str:
        raise TypeError("a source cannot be pickled or copied")


_path = Source._Source__path.__get__


def _describe_key(key, most=80):
    try:
        text = repr(key)
    except Exception as error:
        text = "<%s whose repr raised %s>" % (type(key).__name__, type(error).__name__)
    return text if len(text) <= most else text[: most - 3] + "..."


def attribute(source: Source, name: str) -> Source:
    """Return the source `source.name`, for any NAME."""
    if type(name) is not str:
        raise TypeError("an attribute's name must be a str, not %s" % type(name).__name__)
    return Source(_get_path(source) + ((".", name, "%s.%s" % (_get_path(source)[-1][2], name)),))


def _get_path(source):
    """Return the steps of SOURCE, a tuple of (what, key, text). Raises TypeError if it is no
    Source."""
    if type(source) is not Source:
        raise TypeError("expected a source such as L['x'], got %s" % type(source).__name__)
    return _path(source)


L = Source((("L", None, "L"),))
G = Source((("G", None, "G"),))
B = Source((("B", None, "B"),))


def _read_path(path, example, globals):
    """Return the value to which PATH leads now."""
    what, key, text = path[0]
    if what == "L":
        if example is None:
            raise ValueError("%s: give the guard a value, or GuardTree an example" % path[-1][2])
        value = example
    elif what == "G":
        if globals is None:
            raise ValueError("%s: give the guard a value, or GuardTree the globals" % path[-1][2])
        value = globals
    elif what == "B":
        value = vars(__import__("builtins"))
    else:
        value = key()
    for what, key, text in path[1:]:
        value = getattr(value, key) if what == "." else value[key] if what == "[" else value()
    return value


_SHAPES = {
    "size": "size",
    "shape": "size",
    "stride": "stride",
    "strides": "stride",
    "ndim": "ndim",
    "dim": "ndim",
}


def _find_shape(path):
    """Return ("size", "stride" or "ndim", dimension or -1) if PATH ends in a tensor's size, stride
    or number of dimensions; otherwise (None, -1)."""
    at, dimension = len(path) - 1, -1
    if path[at][0] == "[":
        key = path[at][1]
        dimension = key if type(key) is int and 0 <= key < 64 else -1
        at -= 1
    if path[at][0] == "(":
        at -= 1
    return _SHAPES.get(path[at][1]) if at > 0 and path[at][0] == "." else None, dimension


def _remove_keys(path):
    """Return PATH as text without its keys, because keys are values of the program. This text is
    recorded if --values forbids values."""
    text = path[0][2]
    for at, (what, key, _) in enumerate(path[1:], 1):
        if what == "(":
            text += "()"
        elif what == ".":
            text += "." + (key if key.isidentifier() else "<name>")
        elif at == 1 and path[0][0] != "S" and type(key) is str and key.isidentifier():
            text += "['%s']" % key
        elif type(key) is int and abs(key) < 64 and _find_shape(path[max(at - 4, 0) : at])[0]:
            text += "[%d]" % key
        else:
            text += "[<%s>]" % _words.type_name(type(key))
    return text


# ---- registered states of the program --------------------------------------

_states = {}


def register_global_state(name: str, read: Callable[[], object]) -> None:
    """Make a state of the program, such as grad mode or a device, a source for guards.

    Parameters
    ----------
    name
        The name for global_state() and GLOBAL_STATE().
    read
        read() returns the state as it is now.
    """
    if not callable(read):
        raise TypeError("register_global_state: expected a callable, got %s" % type(read).__name__)
    _states[str(name)] = read


def global_state(name: str) -> Source:
    """Return the source of a state that register_global_state() has made."""
    if name not in _states:
        raise KeyError(
            "no global state called %r: register_global_state(name, read) makes one" % (name,)
        )
    return Source((("S", _states[name], "global_state(%r)" % (name,)),))


# ---- guards ----------------------------------------------------------------

_type_of = type
_EXAMPLE = type("_Example", (), {"__repr__": lambda self: "<from the example>"})()


class Guard:
    """A condition on one source, or on several. GuardTree fills in the expected value."""

    __slots__ = ("kind", "sources", "value", "arguments")

    def __init__(
        self,
        kind: str,
        sources: Iterable[Source],
        value: Any = _EXAMPLE,
        arguments: Callable[[Any], tuple[Any, ...]] = lambda value: (value,),
    ) -> None:
        self.kind = kind
        self.sources = tuple(map(_get_path, sources))
        self.value = value
        self.arguments = arguments

    @property
    def source(self) -> str:
        """The sources as text, separated by commas."""
        return ", ".join(path[-1][2] for path in self.sources)

    def __repr__(self) -> str:
        return "%s(%s)" % (self.kind, self.source)

    def _make_leaf(self, ordinal, example, globals):
        """Return the guard's description (a Leaf) and the arguments with which the extension makes
        the guard."""
        value = (
            _read_path(self.sources[0], example, globals) if self.value is _EXAMPLE else self.value
        )
        shapes = [_find_shape(path) for path in self.sources] or [(None, -1)]
        bare, are_shapes = ", ".join(map(_remove_keys, self.sources)), all(
            name for name, _ in shapes
        )
        leaf = _words.Leaf(
            ordinal, self.kind, self.sources, self.source, bare, are_shapes, *shapes[-1]
        )
        return leaf, leaf.native_arguments(self.arguments(value))


def _make_no_arguments(value):
    return ()


def _copy_containers(value):
    """Return a copy of VALUE. Also copies the containers in it that the program may change."""
    kind = type(value)
    if kind in (list, tuple):
        return kind(map(_copy_containers, value))
    if kind is dict:
        return {key: _copy_containers(item) for key, item in value.items()}
    if kind in (set, bytearray):
        return kind(value)
    return value


def _require_type(kind, what, value, type):
    """Return VALUE. Raises TypeError if VALUE is not of TYPE; the message describes TYPE by
    WHAT."""
    if not issubclass(_type_of(value), type):
        raise TypeError("%s: expected %s, got %s" % (kind, what, _type_of(value).__name__))
    return value


def TYPE_MATCH(source: Source, type: Any = _EXAMPLE) -> Guard:
    """The type of the source is exactly this type, not a subclass."""
    if type is _EXAMPLE:
        return Guard("TYPE_MATCH", [source], type, lambda value: (_type_of(value),))
    return Guard("TYPE_MATCH", [source], type)


def ID_MATCH(source: Source, value: Any = _EXAMPLE) -> Guard:
    """The source is this very object."""
    return Guard("ID_MATCH", [source], value)


def EQUALS_MATCH(source: Source, value: Any = _EXAMPLE) -> Guard:
    """The source equals the value and has its type. The same holds for the items of tuples and
    lists. All nans are equal.
    """
    return Guard("EQUALS_MATCH", [source], value, lambda value: (_copy_containers(value),))


def NONE_MATCH(source: Source) -> Guard:
    """The source is None."""
    return Guard("NONE_MATCH", [source], None)


def NOT_NONE(source: Source) -> Guard:
    """The source is not None."""
    return Guard("NOT_NONE", [source], None)


def TRUE_MATCH(source: Source) -> Guard:
    """The source is True."""
    return Guard("TRUE_MATCH", [source], True)


def FALSE_MATCH(source: Source) -> Guard:
    """The source is False."""
    return Guard("FALSE_MATCH", [source], False)


def CONSTANT_MATCH(source: Source, value: object) -> Guard:
    """Return NONE_MATCH, TRUE_MATCH, FALSE_MATCH or EQUALS_MATCH, depending on the value."""
    if value is None:
        return NONE_MATCH(source)
    if value is True:
        return TRUE_MATCH(source)
    return FALSE_MATCH(source) if value is False else EQUALS_MATCH(source, value)


def HASATTR(source: Source, name: str) -> Guard:
    """The source has an attribute of this name."""
    return Guard("HASATTR", [source], name)


def NO_HASATTR(source: Source, name: str) -> Guard:
    """The source has no attribute of this name."""
    return Guard("NO_HASATTR", [source], name)


def _make_length_guard(kind, source, length):
    if length is _EXAMPLE:
        return Guard(kind, [source], length, lambda value: (len(value),))
    return Guard(kind, [source], length)


def DICT_LENGTH(source: Source, length: Any = _EXAMPLE) -> Guard:
    """The source is a dict with this number of items."""
    return _make_length_guard("DICT_LENGTH", source, length)


def LIST_LENGTH(source: Source, length: Any = _EXAMPLE) -> Guard:
    """The source is a list with this number of items."""
    return _make_length_guard("LIST_LENGTH", source, length)


def TUPLE_LENGTH(source: Source, length: Any = _EXAMPLE) -> Guard:
    """The source is a tuple with this number of items."""
    return _make_length_guard("TUPLE_LENGTH", source, length)


def SEQUENCE_LENGTH(source: Source, length: Any = _EXAMPLE) -> Guard:
    """len() of the source is this number."""
    return _make_length_guard("SEQUENCE_LENGTH", source, length)


def DICT_KEYS(source: Source, keys: Any = _EXAMPLE) -> Guard:
    """The source is a dict with exactly these keys, in any order."""
    return Guard("DICT_KEYS", [source], keys, lambda value: (tuple(dict.fromkeys(value)),))


def DICT_CONTAINS(source: Source, key: object) -> Guard:
    """The source is a dict that has this key."""
    return Guard("DICT_CONTAINS", [source], key)


def DICT_NOT_CONTAINS(source: Source, key: object) -> Guard:
    """The source is a dict that does not have this key."""
    return Guard("DICT_NOT_CONTAINS", [source], key)


def FUNCTION_MATCH(source: Source, function: Any = _EXAMPLE) -> Guard:
    """The source is this very function, class or callable. A bound method must have the same
    function and the same object."""
    return Guard("FUNCTION_MATCH", [source], function)


def CLOSURE_MATCH(source: Source, function: Any = _EXAMPLE) -> Guard:
    """The source is a function made by the same def or lambda: it has the function's code
    object."""
    return Guard(
        "CLOSURE_MATCH",
        [source],
        function,
        lambda value: (
            _require_type(
                "CLOSURE_MATCH", "a Python function", value, _type_of(_copy_containers)
            ).__code__,
        ),
    )


def BUILTIN_MATCH(source: Source, function: Any = _EXAMPLE) -> Guard:
    """The source is this very builtin. A builtin method, such as [].append, must be the same method
    of the same object."""
    return Guard("BUILTIN_MATCH", [source], function)


def MODULE_MATCH(source: Source, module: Any = _EXAMPLE) -> Guard:
    """The source is this very module."""
    return Guard(
        "MODULE_MATCH",
        [source],
        module,
        lambda value: (_require_type("MODULE_MATCH", "a module", value, _type_of(_sys)),),
    )


def WEAKREF_ALIVE(source: Source, referent: Any = _EXAMPLE) -> Guard:
    """The source is a weak reference whose referent is alive; or it is the result of calling a weak
    reference, and not None.

    referent is the object to which the weak reference refers now. The object's death invalidates
    the entry.
    """
    return Guard("WEAKREF_ALIVE", [source], referent)


def GLOBAL_STATE(name: str, value: Any = _EXAMPLE) -> Guard:
    """A registered state has this value. Default: the value that the state has when the tree is
    built."""
    return Guard(
        "GLOBAL_STATE", [global_state(name)], value, lambda value: (_copy_containers(value),)
    )


def TENSOR_MATCH(
    source: Source,
    dynamic_sizes: Sequence[int] | bool | None = None,
    dynamic_strides: Sequence[int] | bool | None = None,
    *,
    value: Any = _EXAMPLE,
) -> Guard:
    """A tensor with the value's class, dtype, device, requires_grad, dispatch key, ndim, sizes and
    strides.

    Parameters
    ----------
    source
        Where the tensor is.
    dynamic_sizes
        The dimensions that may have any size: a list of indices, or True for all.
    dynamic_strides
        The dimensions that may have any stride. Default: those whose stride depends on a dynamic
        size.
    value
        A torch.Tensor, a numpy.ndarray, or anything with dtype and shape or with the buffer
        protocol.
    """
    return Guard(
        "TENSOR_MATCH",
        [source],
        value,
        lambda value: _read_example_tensor(value, dynamic_sizes, dynamic_strides),
    )


def _read_example_tensor(value, dynamic_sizes, dynamic_strides):
    """Read those properties of the example VALUE which TENSOR_MATCH compares. Returns the arguments
    of _guard_words._prepare_tensor()."""
    attributes, format, itemsize, keys = (), None, 0, None
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        found = [
            (name, getattr(value, name, _EXAMPLE)) for name in ("dtype", "device", "requires_grad")
        ]
        attributes = tuple(pair for pair in found if pair[1] is not _EXAMPLE)
        sizes, strides, keys = (
            tuple(map(_index, value.shape)),
            _read_strides(value),
            _read_dispatch_keys(value),
        )
        if strides is not None and len(strides) != len(sizes):
            strides = None
    else:
        try:
            view = memoryview(value)
        except TypeError:
            raise TypeError(
                "TENSOR_MATCH: the example, a %s, has neither dtype and shape nor the buffer "
                "protocol" % type(value).__name__
            ) from None
        with view:
            format, itemsize, sizes, strides = view.format, view.itemsize, view.shape, view.strides
    count = len(sizes)
    any_size = _mark_dimensions(dynamic_sizes, count)
    if strides is None or dynamic_strides is not None:
        any_stride = _mark_dimensions(dynamic_strides, count)
    else:
        any_stride = _find_depending_strides(strides, any_size)
    words = [_describe_key(attributes[0][1], 120) if attributes else format]
    for name, wanted in attributes[1:]:
        # leave out "cpu", which numpy 2 has for all arrays
        if not (type(wanted) is str and wanted == "cpu"):
            words.append(("on " if name == "device" else name + "=") + _describe_key(wanted, 120))
    words.append("size " + _print_numbers(sizes, any_size))
    if strides is not None:
        words.append("stride " + _print_numbers(strides, any_stride))
    if keys:
        words.append(_describe_key(keys[0], 120))
    sizes, strides = _blank_dynamic(sizes, any_size), (
        strides if strides is None else _blank_dynamic(strides, any_stride)
    )
    wanted = attributes, format, itemsize, sizes, strides, keys
    return value, wanted, keys and _choose_check(value, wanted), " ".join(words)


def _read_strides(value):
    try:
        strides = _words.strides_of(value)
        return None if strides is None else tuple(map(_index, strides))
    except Exception:  # e.g. a sparse tensor, which has no strides
        return None


def _mark_dimensions(which, count):
    """Return a list of COUNT bools: does WHICH select the dimension? WHICH is None or False for no
    dimension, True for all, or a sequence of indices."""
    marks = [which is True] * count
    for i in () if which is None or which is False or which is True else map(_index, which):
        if not -count <= i < count:
            raise IndexError("TENSOR_MATCH: dimension %d is dynamic, and there are %d" % (i, count))
        marks[i] = True
    return marks


def _find_depending_strides(strides, any_size):
    """Return a list of bools, one for each dimension: does its stride depend on a dynamic size?
    This is so for strides that are larger than the stride of the innermost dynamic dimension."""
    sizes = [(abs(strides[i]), -i) for i, any_ in enumerate(any_size) if any_]
    return [bool(sizes) and (abs(stride), -i) > min(sizes) for i, stride in enumerate(strides)]


def _blank_dynamic(numbers, any_):
    """Return NUMBERS with None in place of each number for which ANY_ is true."""
    return tuple(None if wild else number for number, wild in zip(numbers, any_))


def _print_numbers(numbers, any_):
    """Return a text such as "(4, *, 3)", where * stands for any number."""
    words = ", ".join("*" if wild else str(number) for number, wild in zip(numbers, any_))
    return "(%s,)" % words if len(numbers) == 1 else "(%s)" % words


def _read_dispatch_keys(value):
    """Return a tuple: the set of torch's dispatch keys for VALUE, which selects the kernels to
    call, and the three functions of torch that return parts of this set. Returns None if VALUE is
    no tensor of torch."""
    try:
        torch = _sys.modules.get("torch")
        if not torch or not issubclass(type(value), torch.Tensor):
            return None
        of, include, exclude = (
            getattr(torch._C, name)
            for name in (
                "_dispatch_keys",
                "_dispatch_tls_local_include_set",
                "_dispatch_tls_local_exclude_set",
            )
        )
        return (of(value) | include()) - exclude(), of, include, exclude
    except Exception:
        return None


def _choose_check(value, wanted):
    """Return a function that compares a tensor with WANTED. torch's own check is the faster one,
    because it makes no Python objects. Our own check is returned if torch has no such check, or if
    torch's check fails for the example VALUE."""
    sizes, strides = wanted[3:5]
    try:
        from torch._C._dynamo.guards import TensorGuards

        check = TensorGuards(
            value,
            dynamic_dims_sizes=[list(sizes)],
            dynamic_dims_strides=[list(strides or [None] * len(sizes))],
        ).check
        if check(value) is True:
            return check
    except Exception:  # this torch has no TensorGuards, or another class of this name
        pass
    return _partial(_words.is_same_tensor, wanted)


def SHAPE_EQUAL(source: Source, *others: Source | int) -> Guard:
    """All these integers are equal. Give two or more sources, or one source and a number."""
    numbers = [other for other in others if isinstance(other, int)]
    if len(numbers) == 1 and len(others) == 1:
        return SHAPE_BOUND(source, numbers[0], numbers[0])
    if numbers or not others:
        raise TypeError("SHAPE_EQUAL: give two or more sources, or one source and one number")
    return Guard("SHAPE_EQUAL", [source, *others], None, _make_no_arguments)


def SHAPE_BOUND(source: Source, low: int | None = None, high: int | None = None) -> Guard:
    """low <= source <= high. None stands for no bound."""
    if low is None and high is None:
        raise TypeError("SHAPE_BOUND: give a bound, low or high")
    return Guard("SHAPE_BOUND", [source], None, lambda value: (low, high))


def SHAPE_DIVISIBLE(source: Source, by: int) -> Guard:
    """source % by == 0."""
    return Guard("SHAPE_DIVISIBLE", [source], by)


def NO_ALIASING(sources: Iterable[Source]) -> Guard:
    """The values of the sources are all different objects."""
    return Guard("NO_ALIASING", list(sources), None, _make_no_arguments)


def LAMBDA(check: Callable[..., object], expression: str | None = None, *sources: Source) -> Guard:
    """Your own function returns True.

    Parameters
    ----------
    check
        check(*values of the sources); without sources it gets the call's variables as a dict.
    expression
        What the function checks, in words. Default: its name.
    *sources
        Where the values are.
    """
    if not callable(check):
        raise TypeError("LAMBDA: expected a callable, got %s" % type(check).__name__)
    if expression is None:
        expression = getattr(check, "__qualname__", None) or type(check).__name__
    return Guard("LAMBDA", sources or [L], None, lambda value: (check, str(expression)))


# ---- the tree of guards ----------------------------------------------------


class GuardTree(_words.Tree):
    """Guards that must all hold: GuardedCode(code, GuardTree([...])).

    Guards have the numbers 0, 1, ... in the order given. They are checked source by source. A guard
    that fails is checked earlier in the next check, so order() changes. The numbers do not change.

    Parameters
    ----------
    guards
        Guards that the functions of this module return.
    globals
        Globals for check() when it is called with a dict. Otherwise G is read from the frame that
        is about to run.
    example
        Variables by name. A guard without a value takes its value from here.
    """

    __slots__ = ()

    def __new__(
        cls,
        guards: Iterable[Guard],
        globals: dict[str, Any] | None = None,
        example: Mapping[str, Any] | None = None,
    ) -> GuardTree:
        leaves = []
        for guard in guards:
            if not isinstance(guard, Guard):
                raise TypeError("GuardTree: expected guards, got %s" % type(guard).__name__)
            leaves.append(guard._make_leaf(len(leaves), example, globals))
        tree = super().__new__(cls, [taken for _, taken in leaves], globals)
        tree._leaves = tuple(leaf for leaf, _ in leaves)
        return tree

    def __repr__(self) -> str:
        lines = [
            "\n  %d %s: %s" % (number, kind, text)
            for number, (kind, _, text) in enumerate(self.guards())
        ]
        return "GuardTree of %d guards" % len(lines) + "".join(lines)
