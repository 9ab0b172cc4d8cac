"""Describes a call's values by short texts, and reads them as torch's accessors do.

Runs in: the traced process. This code keeps no value alive. To make a text, it runs no code of the
program: no __repr__, __str__, __eq__ or __hash__, no property, no __torch_function__. To read the
value of a source, it may run such code (properties, __getattr__, __getitem__), as torch does at
every check.

    describe(value)                         "Tensor float32[4, 8] cpu requires_grad",
                                            "Linear(training)", "[1, 'a']"
    read(accessor, source, value, scope)    read a child's value from its parent's, as torch's
                                            accessor does
    evaluate(text, scope)                   evaluate an expression of torch's that only reads
"""

import ast
import contextlib
import enum
import itertools
import os
import re
import sys
import types
import weakref

from ._native import native

MAX_VALUE = 240  # the most characters of the text for a value
MAX_ITEMS = 8  # the most items of a container that its text shows
MAX_DIMENSIONS = 16  # the most dimensions of a tensor that its text shows
MAX_CODE = 4000  # the most characters of an expression that is evaluated
MAX_CACHE = 1024  # the most items of each cache in this module


# ---- texts that describe values ------------------------------------------------------------------

# Functions that read an attribute of a class as `type` does, because a metaclass of the program may
# define properties of the same names.
qualname = type.__dict__["__qualname__"].__get__
_mro = type.__dict__["__mro__"].__get__


def type_name(kind):
    """Return the name of a class as type.__repr__ prints it: "int", "collections.OrderedDict"."""
    return type.__repr__(kind)[8:-2]


def clip(text, most):
    return text if len(text) <= most else text[: most - 3] + "..."


def get_torch():
    """Return the module torch; None if it is not imported, or not yet imported completely."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "Tensor") and hasattr(torch, "nn") else None


def disable_torch_function():
    """Return a context manager inside which reading a tensor's attributes runs no
    __torch_function__ of the program."""
    torch = get_torch()
    return torch._C.DisableTorchFunction() if torch is not None else contextlib.nullcontext()


def describe(value):
    """Return a short text for VALUE: a tensor's type, shape and device; a small builtin object's
    literal; for other objects their type or name."""
    try:
        simple = SIMPLE.get(id(type(value)))
        if simple is not None:
            return simple(value)
        with disable_torch_function():
            return clip(_describe(value, 0), MAX_VALUE)
    except Exception:
        return type_name(type(value))


def _describe_int(value):
    bits = value.bit_length()
    return int.__repr__(value) if bits <= 256 else "int of %d bits" % bits


def _describe_str(value):
    return repr(value) if len(value) <= 80 else "%r... of %d" % (value[:77], len(value))


# The keys are ids of classes: a lookup with the class itself as the key might run a metaclass's
# __hash__ and __eq__.
SIMPLE = {
    id(kind): f
    for kind, f in (
        (type(None), repr),
        (bool, repr),
        (int, _describe_int),
        (float, repr),
        (complex, repr),
        (str, _describe_str),
        (bytes, _describe_str),
        (type(...), repr),
        (type(NotImplemented), repr),
        (range, repr),
    )
}


def _describe(value, depth):
    kind = type(value)
    simple = SIMPLE.get(id(kind))
    if simple is not None:
        return simple(value)
    if id(kind) in _BRACKETS:
        return _describe_container(value, kind, depth)
    torch = get_torch()
    if torch is not None:
        if issubclass(kind, torch.Tensor):
            return _describe_tensor(torch, value, kind)
        if any(kind is k for k in (torch.dtype, torch.device, torch.layout, torch.memory_format)):
            return repr(value)
        if kind is torch.Size:
            return "torch.Size(%s)" % _describe_container(list(value), list, depth)
        if issubclass(kind, torch.nn.Module):
            training = object.__getattribute__(value, "__dict__").get("training")
            if type(training) is not bool:
                return qualname(kind)
            return qualname(kind) + ("(training)" if training else "(eval)")
    if kind is slice:
        return "slice(%s, %s, %s)" % tuple(
            _describe(v, depth + 1) for v in (value.start, value.stop, value.step)
        )
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if kind is getattr(numpy, "ndarray", None):
            return "ndarray %s%s" % (value.dtype, list(value.shape[:MAX_DIMENSIONS]))
        # compare the class, because the program may define subclasses of numpy's scalar types
        if issubclass(kind, getattr(numpy, "generic", ())) and kind is getattr(
            numpy, kind.__name__, None
        ):
            return clip(repr(value), 80)
    for base in (dict, list, tuple, set, frozenset):
        if issubclass(kind, base):
            return "%s of %d" % (type_name(kind), base.__len__(value))
    return describe_by_name(value, kind)


def describe_by_name(value, kind):
    """Describe an object that guards compare by identity: a function, class or module by its name,
    another object by its type."""
    if issubclass(kind, type):
        return "class " + type_name(value)
    if kind is types.FunctionType:
        return "function %s (%s)" % (value.__qualname__, _format_place(value.__code__))
    if kind is types.MethodType:
        inner = value.__func__
        return "method " + (
            inner.__qualname__ if type(inner) is types.FunctionType else type_name(type(inner))
        )
    if kind is types.BuiltinFunctionType:
        return "builtin " + value.__name__
    if kind is types.CodeType:
        return "code %s (%s)" % (value.co_qualname, _format_place(value))
    if issubclass(kind, enum.Enum):
        return _describe_enum(value, kind)
    if issubclass(kind, types.ModuleType):
        name = types.ModuleType.__dict__["__dict__"].__get__(value).get("__name__")
        return "module " + name if type(name) is str else "module"
    return type_name(kind)


def _format_place(code):
    return "%s:%d" % (os.path.basename(code.co_filename), code.co_firstlineno)


def _describe_enum(value, kind):
    """Describe an enum member like enum itself, "<Color.RED: 1>", if its parts are simple."""
    fields = object.__getattribute__(value, "__dict__")
    name, inner = fields.get("_name_"), fields.get("_value_")
    inside = SIMPLE.get(id(type(inner)), lambda _: "...")(inner)
    return "<%s.%s: %s>" % (qualname(kind), name if type(name) is str else "?", inside)


_BRACKETS = {
    id(kind): pair
    for kind, pair in (
        (list, ("[", "]")),
        (tuple, ("(", ")")),
        (set, ("{", "}")),
        (frozenset, ("frozenset({", "})")),
        (dict, ("{", "}")),
    )
}


def _describe_container(value, kind, depth):
    """Describe a container by its first items, or by its length if it is deeply nested."""
    if depth >= 2:
        return "%s of %d" % (kind.__name__, len(value))
    if not value and (kind is set or kind is frozenset):
        return kind.__name__ + "()"
    left, right = _BRACKETS[id(kind)]
    if kind is dict:
        shown = [
            "%s: %s" % (_describe(k, depth + 1), _describe(v, depth + 1))
            for k, v in itertools.islice(value.items(), MAX_ITEMS)
        ]
    else:
        shown = [_describe(v, depth + 1) for v in itertools.islice(value, MAX_ITEMS)]
    if len(value) > MAX_ITEMS:
        shown.append("... of %d" % len(value))
    elif kind is tuple and len(value) == 1:
        right = ",)"
    return left + ", ".join(shown) + right


def _describe_tensor(torch, value, kind):
    """Describe a tensor: "Tensor float32[4, 8] cpu requires_grad". Layout and strides are added
    only if they are unusual."""
    name = qualname(kind)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        # Read nothing of a tensor whose class defines __torch_dispatch__: even reading the sizes
        # may run code of the program.
        fields = (type.__dict__["__dict__"].__get__(base) for base in _mro(kind))
        dispatch = next(
            (names["__torch_dispatch__"] for names in fields if "__torch_dispatch__" in names), None
        )
        if dispatch is not torch.Tensor.__dict__.get("__torch_dispatch__"):
            return name + " (tensor)"
    text = "%s %s[%s] %s" % (
        name,
        str(value.dtype).replace("torch.", ""),
        _join_sizes(value.shape),
        value.device,
    )
    if value.layout is not torch.strided:
        text += " " + str(value.layout).replace("torch.", "")
    elif not value.is_contiguous():
        text += " stride(%s)" % _join_sizes(value.stride())
    return text + " requires_grad" if value.requires_grad else text


def _join_sizes(numbers):
    return ", ".join(_describe_int(n) if type(n) is int else "?" for n in numbers[:MAX_DIMENSIONS])


# ---- reading the values of a call ----------------------------------------------------------------


class Missing(Exception):
    """Raised if a value does not exist: torch would not find it, either."""


class Unreadable(Exception):
    """Raised if we do not know how to read a value."""


_LAST = re.compile(r"(?:\.([A-Za-z_]\w*)|\['([^'\\\]]*)'\]|\[(-?\d+)\])$")
_NO_KEY = object()
_keys = {}  # source -> the last attribute, key or index in it
_parsed = {}  # expression -> (tree, code); None if its evaluation may have side effects


def _find_last_key(source):
    """Return the last key of a source: 'b' for "L['a']['b']", "L['a'].b" and "L['a']['b']()"."""
    key = _keys.get(source, _keys)
    if key is _keys:
        if len(_keys) >= MAX_CACHE:
            _keys.clear()
        found = _LAST.search(source)
        if found:
            attribute, text, number = found.groups()
            key = attribute if attribute is not None else text if text is not None else int(number)
        else:
            key = _NO_KEY
            try:
                tree = ast.parse(source[:MAX_CODE], mode="eval").body
                if isinstance(tree, ast.Call) and not tree.args:
                    tree = tree.func
                if isinstance(tree, ast.Subscript):
                    key = ast.literal_eval(tree.slice)
            except Exception:
                pass
        _keys[source] = key
    return key


def _require_key(source):
    key = _find_last_key(source)
    if key is _NO_KEY:
        raise Unreadable
    return key


def read_attribute_name(accessor):
    """Return the name of the attribute that ACCESSOR, a GetAttrGuardAccessor, reads."""
    if hasattr(accessor, "get_attr_name"):
        return accessor.get_attr_name()
    return accessor.repr()[len("GetAttrGuardAccessor(") : -1]


def _get_function(value):
    return value.__func__ if type(value) is types.MethodType else value


def require_type(value, kind):
    if not issubclass(type(value), kind):
        raise Missing
    return value


def _read_dict(value, source, accessor, scope):
    if _find_last_key(source) is _NO_KEY:
        return evaluate(source, scope)
    if type(value) is types.MappingProxyType:  # the __dict__ of a class, see TypeDictGuardAccessor
        return value[_find_last_key(source)]
    return dict.__getitem__(require_type(value, dict), _find_last_key(source))


def _read_weak(value):
    return require_type(value, weakref.ref)()


# Maps the class of an accessor to a function that reads the accessor's value from the parent's
# value, in the same way as torch does.
_READ = {
    "FrameLocalsGuardAccessor": _read_dict,
    "DictGetItemGuardAccessor": _read_dict,
    "GlobalsGuardAccessor": lambda value, source, accessor, scope: scope.globals,
    "GetAttrGuardAccessor": lambda value, source, accessor, scope: getattr(
        value, read_attribute_name(accessor)
    ),
    "GenericGetAttrGuardAccessor": lambda value, source, accessor, scope: object.__getattribute__(
        value, _require_key(source)
    ),
    "GetGenericDictGuardAccessor": lambda value, source, accessor, scope: object.__getattribute__(
        value, "__dict__"
    ),
    "ListGetItemGuardAccessor": lambda value, source, accessor, scope: list.__getitem__(
        require_type(value, list), _require_key(source)
    ),
    "TupleGetItemGuardAccessor": lambda value, source, accessor, scope: tuple.__getitem__(
        require_type(value, tuple), _require_key(source)
    ),
    "GetItemGuardAccessor": lambda value, source, accessor, scope: value[_require_key(source)],
    "TypeGuardAccessor": lambda value, source, accessor, scope: type(value),
    "TypeDictGuardAccessor": lambda value, source, accessor, scope: type.__dict__[
        "__dict__"
    ].__get__(require_type(value, type)),
    "TypeMROGuardAccessor": lambda value, source, accessor, scope: _mro(require_type(value, type)),
    "FuncDefaultsGuardAccessor": lambda value, source, accessor, scope: _get_function(
        value
    ).__defaults__,
    "FuncKwDefaultsGuardAccessor": lambda value, source, accessor, scope: _get_function(
        value
    ).__kwdefaults__,
    "CodeGuardAccessor": lambda value, source, accessor, scope: _get_function(value).__code__,
    "ClosureGuardAccessor": lambda value, source, accessor, scope: _get_function(value).__closure__,
    "GlobalWeakRefGuardAccessor": lambda value, source, accessor, scope: _read_weak(
        dict.__getitem__(require_type(value, dict), _require_key(source))
    ),
    "WeakRefCallGuardAccessor": lambda value, source, accessor, scope: _read_weak(value),
}


class Scope:
    """The names that may occur in a source or in the expression of a guard, with their values."""

    def __init__(self, manager, f_locals, f_globals):
        self.locals = f_locals
        if f_globals is None:
            f_globals = (getattr(manager, "global_scope", None) or {}).get("G", {})
        self.globals = f_globals
        self.helpers = getattr(manager, "closure_vars", None) or {}
        self._names = None

    def list_names(self):
        if self._names is None:
            self._names = dict(self.helpers)
            self._names.update(_BUILTINS, L=self.locals, G=self.globals, __builtins__={})
            self._names.update(
                dict.fromkeys(("__load_module", "__import__"), sys.modules.__getitem__)
            )
        return self._names


_BUILTINS = {
    f.__name__: f
    for f in (
        list,
        dict,
        tuple,
        set,
        len,
        type,
        isinstance,
        getattr,
        hasattr,
        int,
        float,
        bool,
        min,
        max,
        abs,
    )
}
_METHODS = frozenset(
    ("size", "stride", "storage_offset", "dim", "ndimension", "keys", "issubset", "raw_repr")
)
_NODES = (
    ast.Expression,
    ast.Name,
    ast.Load,
    ast.Attribute,
    ast.Subscript,
    ast.Constant,
    ast.Slice,
    ast.Tuple,
    ast.List,
    ast.Set,
    ast.Compare,
    ast.cmpop,
    ast.BoolOp,
    ast.boolop,
    ast.UnaryOp,
    ast.unaryop,
    ast.BinOp,
    ast.operator,
    ast.IfExp,
    ast.Call,
)


def _does_only_read(tree):
    """Does the expression only read values? torch wrote the expression, but it may contain the repr
    of a key of the program, which may be any text."""
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            return False
        if isinstance(node, ast.Call):
            f = node.func
            if isinstance(f, ast.Name):
                # torch's helper functions begin with "__"; do not call those for streams, which may
                # initialize a device
                good = (
                    f.id in _BUILTINS
                    or f.id == "IsNonOverlappingAndDenseIndicator"
                    or f.id.startswith("__")
                    and "stream" not in f.id
                )
            elif isinstance(f, ast.Attribute):
                module = f.value.id if isinstance(f.value, ast.Name) else None
                good = (
                    f.attr in _METHODS
                    or module == "math"
                    or module == "torch"
                    and f.attr.startswith(("sym_", "_sym"))
                    or module == "set"
                    and f.attr == "__contains__"
                )
            else:
                good = False
            if not good or node.keywords:
                return False
        elif isinstance(node, ast.BinOp):
            if isinstance(node.op, (ast.LShift, ast.MatMult)):
                return False
            if isinstance(node.op, ast.Pow) and not (
                isinstance(node.right, ast.Constant)
                and type(node.right.value) is int
                and node.right.value <= 16
            ):
                return False
            if any(
                isinstance(side, (ast.List, ast.Tuple))
                or isinstance(side, ast.Constant)
                and type(side.value) in (str, bytes)
                for side in (node.left, node.right)
            ):
                return False
    return True


def parse_expression(text):
    """Return (tree, code) of the expression TEXT; None if it does more than read values."""
    found = _parsed.get(text, _parsed)
    if found is _parsed:
        if len(_parsed) >= MAX_CACHE:
            _parsed.clear()
        found = None
        if len(text) < MAX_CODE:
            try:
                tree = ast.parse(text, mode="eval")
                if _does_only_read(tree):
                    found = tree, compile(tree, "<guard>", "eval")
            except Exception:
                pass
        _parsed[text] = found
    return found


def evaluate(text, scope):
    """Return the value of TEXT, an expression that torch wrote. Raises Unreadable if we cannot
    evaluate it."""
    found = parse_expression(text)
    if found is None:
        raise Unreadable
    try:
        return eval(found[1], scope.list_names())
    except Exception:
        raise Unreadable from None


def _read_quietly(node, scope):
    """Return the value of NODE, an expression of names, items and attributes. Raises Unreadable if
    reading the value could run code of the program."""
    if isinstance(node, ast.Name):
        return scope.list_names()[node.id]
    value = (
        _read_quietly(node.value, scope)
        if isinstance(node, (ast.Attribute, ast.Subscript))
        else None
    )
    if isinstance(node, ast.Subscript) and type(value) in (dict, list, tuple):
        return value[ast.literal_eval(node.slice)]
    if isinstance(node, ast.Attribute) and native.GuardTree._is_quiet(value, node.attr):
        return getattr(value, node.attr)
    raise Unreadable


def _is_found_by_torch(kind, name):
    """If an object of class KIND has no attribute NAME, does only torch.nn.Module.__getattr__ look
    the attribute up, and no code of the program?"""
    classes = [vars(each) for each in type.__getattribute__(kind, "__mro__")]
    hook = next((each["__getattr__"] for each in classes if "__getattr__" in each), None)
    return hook is sys.modules["torch"].nn.Module.__getattr__ and not any(
        name in each for each in classes
    )


def runs_program(text, scope):
    """Would the call `hasattr(object, name)` in TEXT, the expression of a guard, run code of the
    program? Returns False if `object` does not exist."""
    try:
        tree, _ = parse_expression(text)
        called = next(node for node in ast.walk(tree) if isinstance(node, ast.Call))
        value, name = _read_quietly(called.args[0], scope), called.args[1].value
        return not native.GuardTree._is_quiet(value, name) and not _is_found_by_torch(
            type(value), name
        )
    except LookupError:
        return False
    except Exception:
        return True


def read(accessor, source, value, scope):
    """Return the value of SOURCE. ACCESSOR reads this value from VALUE, the parent's value."""
    reader = _READ.get(type(accessor).__name__)
    try:
        return reader(value, source, accessor, scope) if reader else evaluate(source, scope)
    except Unreadable:
        raise
    except Exception:
        raise Missing from None
