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


def torch_here():
    """Return the module torch, or None if it is not imported as far as we need it."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "Tensor") and hasattr(torch, "nn") else None


def quiet():
    """Return a context in which reading a tensor's attributes runs no __torch_function__ of the
    program."""
    torch = torch_here()
    return torch._C.DisableTorchFunction() if torch is not None else contextlib.nullcontext()


def describe(value):
    """Return a short text for VALUE: a tensor's type, shape and device; a small builtin object's
    literal; for other objects their type or name."""
    try:
        simple = SIMPLE.get(id(type(value)))
        if simple is not None:
            return simple(value)
        with quiet():
            return clip(_describe(value, 0), MAX_VALUE)
    except Exception:
        return type_name(type(value))


def _int(value):
    bits = value.bit_length()
    return int.__repr__(value) if bits <= 256 else "int of %d bits" % bits


def _str(value):
    return repr(value) if len(value) <= 80 else "%r... of %d" % (value[:77], len(value))


# The keys are ids of classes: a lookup with the class itself as the key might run a metaclass's
# __hash__ and __eq__.
SIMPLE = {
    id(kind): f
    for kind, f in (
        (type(None), repr),
        (bool, repr),
        (int, _int),
        (float, repr),
        (complex, repr),
        (str, _str),
        (bytes, _str),
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
        return _container(value, kind, depth)
    torch = torch_here()
    if torch is not None:
        if issubclass(kind, torch.Tensor):
            return _tensor(torch, value, kind)
        if any(kind is k for k in (torch.dtype, torch.device, torch.layout, torch.memory_format)):
            return repr(value)
        if kind is torch.Size:
            return "torch.Size(%s)" % _container(list(value), list, depth)
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
    return name_of(value, kind)


def name_of(value, kind):
    """Describe an object that is compared by identity: functions, classes and modules by name,
    others by type."""
    if issubclass(kind, type):
        return "class " + type_name(value)
    if kind is types.FunctionType:
        return "function %s (%s)" % (value.__qualname__, _line(value.__code__))
    if kind is types.MethodType:
        inner = value.__func__
        return "method " + (
            inner.__qualname__ if type(inner) is types.FunctionType else type_name(type(inner))
        )
    if kind is types.BuiltinFunctionType:
        return "builtin " + value.__name__
    if kind is types.CodeType:
        return "code %s (%s)" % (value.co_qualname, _line(value))
    if issubclass(kind, enum.Enum):
        return _enum(value, kind)
    if issubclass(kind, types.ModuleType):
        name = types.ModuleType.__dict__["__dict__"].__get__(value).get("__name__")
        return "module " + name if type(name) is str else "module"
    return type_name(kind)


def _line(code):
    return "%s:%d" % (os.path.basename(code.co_filename), code.co_firstlineno)


def _enum(value, kind):
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


def _container(value, kind, depth):
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


def _tensor(torch, value, kind):
    """Describe a tensor: "Tensor float32[4, 8] cpu requires_grad". An unusual layout, or unusual
    strides, are added."""
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
        _sizes(value.shape),
        value.device,
    )
    if value.layout is not torch.strided:
        text += " " + str(value.layout).replace("torch.", "")
    elif not value.is_contiguous():
        text += " stride(%s)" % _sizes(value.stride())
    return text + " requires_grad" if value.requires_grad else text


def _sizes(numbers):
    return ", ".join(_int(n) if type(n) is int else "?" for n in numbers[:MAX_DIMENSIONS])


# ---- reading the values of a call ----------------------------------------------------------------


class Missing(Exception):
    """Raised if a value does not exist: torch would not find it, either."""


class Unreadable(Exception):
    """Raised if we do not know how to read a value."""


_LAST = re.compile(r"(?:\.([A-Za-z_]\w*)|\['([^'\\\]]*)'\]|\[(-?\d+)\])$")
_NO_KEY = object()
_keys = {}  # source -> the last attribute, key or index in it
_parsed = {}  # expression -> (tree, code); None if its evaluation may have side effects


def _last_key(source):
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


def _key(source):
    key = _last_key(source)
    if key is _NO_KEY:
        raise Unreadable
    return key


def attribute_of(accessor):
    """Return the name that a GetAttrGuardAccessor reads."""
    if hasattr(accessor, "get_attr_name"):
        return accessor.get_attr_name()
    return accessor.repr()[len("GetAttrGuardAccessor(") : -1]


def _function(value):
    return value.__func__ if type(value) is types.MethodType else value


def need(value, kind):
    if not issubclass(type(value), kind):
        raise Missing
    return value


def _read_dict(value, source, accessor, scope):
    if _last_key(source) is _NO_KEY:
        return evaluate(source, scope)
    if type(value) is types.MappingProxyType:  # the dict of a class, see TypeDictGuardAccessor
        return value[_last_key(source)]
    return dict.__getitem__(need(value, dict), _last_key(source))


def _read_weak(value):
    return need(value, weakref.ref)()


# Maps the class of an accessor to a function that reads the accessor's value from the parent's
# value, in the same way as torch does.
_READ = {
    "FrameLocalsGuardAccessor": _read_dict,
    "DictGetItemGuardAccessor": _read_dict,
    "GlobalsGuardAccessor": lambda value, source, accessor, scope: scope.globals,
    "GetAttrGuardAccessor": lambda value, source, accessor, scope: getattr(
        value, attribute_of(accessor)
    ),
    "GenericGetAttrGuardAccessor": lambda value, source, accessor, scope: object.__getattribute__(
        value, _key(source)
    ),
    "GetGenericDictGuardAccessor": lambda value, source, accessor, scope: object.__getattribute__(
        value, "__dict__"
    ),
    "ListGetItemGuardAccessor": lambda value, source, accessor, scope: list.__getitem__(
        need(value, list), _key(source)
    ),
    "TupleGetItemGuardAccessor": lambda value, source, accessor, scope: tuple.__getitem__(
        need(value, tuple), _key(source)
    ),
    "GetItemGuardAccessor": lambda value, source, accessor, scope: value[_key(source)],
    "TypeGuardAccessor": lambda value, source, accessor, scope: type(value),
    "TypeDictGuardAccessor": lambda value, source, accessor, scope: type.__dict__[
        "__dict__"
    ].__get__(need(value, type)),
    "TypeMROGuardAccessor": lambda value, source, accessor, scope: _mro(need(value, type)),
    "FuncDefaultsGuardAccessor": lambda value, source, accessor, scope: _function(
        value
    ).__defaults__,
    "FuncKwDefaultsGuardAccessor": lambda value, source, accessor, scope: _function(
        value
    ).__kwdefaults__,
    "CodeGuardAccessor": lambda value, source, accessor, scope: _function(value).__code__,
    "ClosureGuardAccessor": lambda value, source, accessor, scope: _function(value).__closure__,
    "GlobalWeakRefGuardAccessor": lambda value, source, accessor, scope: _read_weak(
        dict.__getitem__(need(value, dict), _key(source))
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

    def names(self):
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


def _harmless(tree):
    """Does an expression only read? Its text is torch's, but may contain reprs of the program's
    keys."""
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


def parse(text):
    """Return (tree, code) of an expression that only reads; otherwise None."""
    found = _parsed.get(text, _parsed)
    if found is _parsed:
        if len(_parsed) >= MAX_CACHE:
            _parsed.clear()
        found = None
        if len(text) < MAX_CODE:
            try:
                tree = ast.parse(text, mode="eval")
                if _harmless(tree):
                    found = tree, compile(tree, "<guard>", "eval")
            except Exception:
                pass
        _parsed[text] = found
    return found


def evaluate(text, scope):
    """Return the value of an expression of torch's. Raises Unreadable if we cannot evaluate it."""
    found = parse(text)
    if found is None:
        raise Unreadable
    try:
        return eval(found[1], scope.names())
    except Exception:
        raise Unreadable from None


def _reached(node, scope):
    """Return the value that names, items and attributes lead to. Raises Unreadable if reading it
    could run code of the program."""
    if isinstance(node, ast.Name):
        return scope.names()[node.id]
    value = (
        _reached(node.value, scope) if isinstance(node, (ast.Attribute, ast.Subscript)) else None
    )
    if isinstance(node, ast.Subscript) and type(value) in (dict, list, tuple):
        return value[ast.literal_eval(node.slice)]
    if isinstance(node, ast.Attribute) and native.GuardTree._is_quiet(value, node.attr):
        return getattr(value, node.attr)
    raise Unreadable


def _asks_torch(kind, name):
    """Is a missing attribute NAME of a KIND object looked up by torch.nn.Module's __getattr__, and
    not by code of the program?"""
    classes = [vars(each) for each in type.__getattribute__(kind, "__mro__")]
    hook = next((each["__getattr__"] for each in classes if "__getattr__" in each), None)
    return hook is sys.modules["torch"].nn.Module.__getattr__ and not any(
        name in each for each in classes
    )


def runs_program(text, scope):
    """Would the call `hasattr(object, name)` in TEXT, the expression of a guard, run code of the
    program? Returns False if `object` does not exist."""
    try:
        called = next(node for node in ast.walk(parse(text)[0]) if isinstance(node, ast.Call))
        value, name = _reached(called.args[0], scope), called.args[1].value
        return not native.GuardTree._is_quiet(value, name) and not _asks_torch(type(value), name)
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
