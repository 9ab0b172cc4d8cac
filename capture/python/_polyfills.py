"""Polyfills: Python functions that do what a builtin does; and tables about builtins and array
functions.

Runs in: the traced process.

A capture cannot step through a C function such as sum(). It steps through `_sum` instead
(step_through_polyfill() in capture/src/inline.c). A polyfill does what the builtin does, and raises
the same exceptions. Tracebacks and sys._getframe() skip its frame. A polyfill uses no globals: each
object that it needs is the default of an extra parameter. No call passes an argument for such a
parameter, because the tables limit the arguments of a call.

The tables at the end list, by name, what builtins, methods, and functions of numpy and torch do. C
reads these tables.
"""

import abc
import enum
import functools
import itertools
import operator
import os

_missing = object()


class End:
    pass


# the value of an iterator that has no next item; the program never gets this object
end = End()


def order(keys, reverse):
    """Return the order in which list.sort() would put KEYS, as a list of indices."""
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)


def _sum(iterable, /, start=0, type=type, int=int, float=float, bool=bool, total=sum):
    numbers = [] if type(start) is int or type(start) is float or type(start) is bool else None
    for item in iterable:
        if numbers is not None:
            kind = type(item)
            # let sum() add these numbers, because `+` would round floats differently
            if kind is int or kind is float or kind is bool:
                numbers.append(item)
                continue
            start = total(numbers, start)
            numbers = None
        start = start + item
    return start if numbers is None else total(numbers, start)


def _any(iterable, /):
    for item in iterable:
        if item:
            return True
    return False


def _bool(value, /):
    return True if value else False


def _all(iterable, /):
    for item in iterable:
        if not item:
            return False
    return True


def _min(iterable, /, key=None, default=_missing, missing=_missing, empty=min):
    first = True
    for item in iterable:
        value = item if key is None else key(item)
        if first or value < least:
            first, least, result = False, value, item
    return result if not first else empty(()) if default is missing else default


def _max(iterable, /, key=None, default=_missing, missing=_missing, empty=max):
    first = True
    for item in iterable:
        value = item if key is None else key(item)
        if first or value > most:
            first, most, result = False, value, item
    return result if not first else empty(()) if default is missing else default


def _sorted(iterable, /, key=None, reverse=False, list=list, order=order):
    items = list(iterable)
    keys = items
    if key is not None:
        keys = []
        for item in items:
            keys.append(key(item))
    result = []
    for i in order(keys, reverse):
        result.append(items[i])
    return result


def _reduce(function, iterable, /, initial=_missing, missing=_missing, empty=functools.reduce):
    for item in iterable:
        initial = item if initial is missing else function(initial, item)
    return empty(function, ()) if initial is missing else initial


def _list(iterable):
    items = []
    for item in iterable:
        items.append(item)
    return items


def _tuple(iterable, list=list):
    return (*list(iterable),)


def _extend(items, iterable):
    for item in iterable:
        items.append(item)


def _unpack(iterable, before, behind, whole, len=len, list=list, error=ValueError):
    """Unpack ITERABLE into a list of values, one for each target.

    BEHIND None: `a, b = iterable`, with BEFORE targets. Otherwise `a, *b, c = iterable`, with
    BEFORE targets before the starred one and BEHIND targets after it. WHOLE: ITERABLE is a list or
    tuple.
    """
    items = list(iterable) if whole else []
    for item in () if whole else iterable:
        items.append(item)
        if behind is None and len(items) > before:
            raise error("too many values to unpack (expected %d)" % before)
    least = before if behind is None else before + behind
    if len(items) < least:
        raise error(
            "not enough values to unpack (expected %s%d, got %d)"
            % ("" if behind is None else "at least ", least, len(items))
        )
    return (
        items
        if behind is None
        else [*items[:before], items[before : len(items) - behind], *items[len(items) - behind :]]
    )


# ---- polyfills that compute the next item of map(), filter() and zip() ----

# The argument ITERATORS has the iterators over which map(), filter() or zip() iterates. The
# functions below return `end` if there is no next item.


def _next_map(function, iterators, next=next, end=end):
    items = []
    for iterator in iterators:
        item = next(iterator, end)
        if item is end:
            return end
        items.append(item)
    return (*items,) if function is None else function(*(*items,))  # zip(), map()


def _next_filter(function, iterators, end=end):
    for item in iterators[0]:
        if item if function is None else function(item):
            return item
    return end


def _iadd(items, iterable, /):
    for item in iterable:
        items.append(item)
    return items


def _contains(items, value, /):
    for item in items:
        if item is value or item == value:
            return True
    return False


def _eq(a, b, /, type=type, list=list, range=range, len=len, min=min):
    if type(a) is list and len(a) != len(b):
        return False
    for i in range(min(len(a), len(b))):
        if not (a[i] is b[i] or a[i] == b[i]):
            return False
    return len(a) == len(b)


def _get(items, key, default=None, /):
    return items[key] if key in items else default


def _hasattr(owner, name, /, getattr=getattr, end=end, type=type, kind=End):
    return type(getattr(owner, name, end)) is not kind


def _getitem(a, b, /):
    return a[b]


def _dict(items=(), /):
    made = {}
    for key, value in items:
        made[key] = value
    return made


# ---- objects that a plan can make again, and calls of these objects ----

ABCMeta, EnumType, enum_value, enum_name = (
    abc.ABCMeta,
    enum.EnumType,
    vars(enum.Enum)["value"],
    vars(enum.Enum)["name"],
)
partial, itemgetter, methodcaller, fspath = (
    functools.partial,
    operator.itemgetter,
    operator.methodcaller,
    os.fspath,
)
# Classes of iterators that only move items. Capture makes a second iterator of the class, over
# capsules in place of the items. The order of the capsules tells where each item came from (mirrors
# in capture/src/build.c).
moving = (
    itertools.chain,
    itertools.count,
    itertools.cycle,
    itertools.islice,
    itertools.product,
    itertools.permutations,
    itertools.combinations,
    itertools.pairwise,
    itertools.zip_longest,
)


def made_partial(function, args, keywords):
    return partial(function, *args, **keywords)


def _make_partial(
    function,
    /,
    *args,
    dyntrace_made=made_partial,
    dyntrace_type=type,
    dyntrace_partial=partial,
    **keywords,
):
    if dyntrace_type(function) is dyntrace_partial:
        return dyntrace_made(
            function.func, (*function.args, *args), {**function.keywords, **keywords}
        )
    return dyntrace_made(function, args, keywords)


def _partial(function, args, keywords, /, *more, **named):
    return function(*args, *more, **{**keywords, **named})


def _itemgetter(key, item, /):
    return item[key]


def _methodcaller(name, item, /, getattr=getattr):
    return getattr(item, name)()


# Maps a class to the polyfill that replaces a call of an instance, such as partial(f, 1)(2). The
# polyfill gets the arguments with which the instance was made, then the arguments of the call.
called = {partial: "_partial", itemgetter: "_itemgetter", methodcaller: "_methodcaller"}
partial_parts = "func", "args", "keywords"  # attributes with the arguments of functools.partial


# ---- tables: functions of numpy and torch, by name ----

# Functions whose result has a shape that follows from the shapes of the arguments:
# `elementwise`: always;
# `of_three`: with three arguments;
# `shaped`: if no argument but the first is an array;
# `made_of_shape`: if no argument is an array.
elementwise = frozenset("""
    abs absolute fabs add sub subtract mul multiply div divide true_divide floor_divide
    remainder mod fmod pow power float_power exp exp2 expm1 log log2 log10 log1p sqrt rsqrt
    square sin cos tan asin acos atan arcsin arccos arctan sinh cosh tanh asinh acosh atanh
    sigmoid relu relu6 gelu silu elu selu celu leaky_relu softplus softsign mish hardtanh
    hardswish floor ceil round trunc rint sign sgn neg negative positive reciprocal clamp
    clip minimum maximum fmin fmax eq ne lt le gt ge not_equal less greater less_equal
    greater_equal logical_and logical_or logical_not logical_xor bitwise_and bitwise_or
    bitwise_xor bitwise_not invert isnan isinf isfinite signbit matmul mm bmm mv dot inner
    outer addmm linear zeros_like ones_like empty_like full_like rand_like randn_like clone
    detach contiguous float double half bfloat16 int long atan2 arctan2 hypot lerp erf erfc
    masked_fill nan_to_num conj lshift rshift and_ or_ xor stack cat concatenate
    """.split())
shaped = frozenset("""
    sum mean std var prod any all argmax argmin amax amin max min cumsum cumprod sort
    argsort norm logsumexp softmax log_softmax reshape view expand broadcast_to narrow
    select roll flip transpose permute t swapaxes moveaxis squeeze unsqueeze expand_dims
    flatten ravel copy astype to type tril triu trace diagonal repeat tile expand_as view_as
    type_as dropout requires_grad_ asarray array tensor as_tensor from_numpy chunk split
    unbind median layer_norm conv1d conv2d conv3d max_pool2d avg_pool2d
    """.split())
of_three = frozenset(["where"])
made_of_shape = frozenset("zeros ones empty full rand randn arange linspace eye".split())
# Functions whose result depends only on shapes and types.
fact = frozenset("""
    size dim ndim numel nelement stride ndimension shape is_floating_point is_complex
    is_tensor is_contiguous element_size result_type promote_types can_cast iscomplexobj
    isrealobj issubdtype
    """.split())
# `fact_attribute`: attributes of arrays that depend only on shape and type. `sizeless`: those of
# them that do not depend on a size. `same_shape`: attributes of arrays that are arrays, too.
fact_attribute = frozenset("""
    shape size ndim dtype device itemsize nbytes strides requires_grad is_cuda layout
    is_sparse is_quantized is_meta
    """.split())
sizeless = frozenset("dtype device ndim requires_grad is_cuda".split())
same_shape = frozenset("T mT real imag data H mH".split())
# Methods of arrays that capture does not call: the result depends on the data, or they do more than
# compute a result.
data = frozenset("item tolist tobytes tofile dump dumps backward register_hook".split())
# Keyword arguments that influence only the result of a function.
harmless = frozenset("dim axis keepdim keepdims dtype device".split())
# Functions that change an argument, or the state of a random number generator.
impure = frozenset("requires_grad_ rand randn rand_like randn_like dropout".split())
# Functions and attributes for which torch may warn:
# `warns`: in any call, e.g. because of a size or a copy;
# `of_dimension`: in a call without a dimension;
# `turned`: attributes, for an array that is not two-dimensional;
# `padded`: in a call with a string, which is the kind of padding;
# `masks`: in a call with an array of uint8, which is a mask;
# `casts`: in a call with a complex array, which may become real.
warns = frozenset("std var asarray array tensor as_tensor from_numpy".split())
of_dimension = frozenset("softmax log_softmax".split())
turned = frozenset("T H".split())
padded = frozenset("conv1d conv2d conv3d".split())
masks = frozenset("getitem where masked_fill".split())
casts = frozenset("float double half bfloat16 int long to type type_as view_as".split())

# ---- tables: builtins, operators and methods, by name ----

# `pure`: builtins that capture calls if all arguments are known. `on_arrays`: builtins that accept
# arrays.
pure = frozenset("""
    range int float bool str abs min max sum round divmod pow ord chr repr complex slice all
    any bin hex oct sorted
    """.split())
on_arrays = frozenset("abs pow round divmod sum".split())
# Methods, and functions of `operator`, that only move items of a list, tuple or dict. The first
# character tells what happens to the container: "=" it does not change; "+" it changes but releases
# no item; "-" it may release items. Then comes a letter for each further argument: k a known value;
# e an item; s a list, tuple or dict of items.
moves = {
    "list": {
        "append": "+e",
        "extend": "+s",
        "insert": "+ke",
        "pop": "+k",
        "reverse": "+",
        "clear": "-",
        "copy": "=",
        "delitem": "-k",
        "setitem": "-ks",
        "getitem": "=k",
        "add": "=s",
        "iadd": "+s",
        "mul": "=k",
        "list": "=",
        "tuple": "=",
    },
    "tuple": {"getitem": "=k", "add": "=s", "iadd": "=s", "mul": "=k", "list": "=", "tuple": "="},
    "dict": {
        "clear": "-",
        "copy": "=",
        "get": "=ke",
        "pop": "-ke",
        "setdefault": "-ke",
        "update": "-s",
        "items": "=",
        "keys": "=",
        "values": "=",
        "delitem": "-k",
        "list": "=",
        "tuple": "=",
        "dict": "=",
    },
}
# Builtins that have a polyfill, whose name is the builtin's name after a `_`: minimum and maximum
# number of positional arguments, keywords, and a condition on the arguments
# (do_arguments_fulfil_condition() in known.c).
instead = {
    "list": (1, 1, (), "no array"),
    "tuple": (1, 1, (), "no array"),
    "dict": (0, 1, (), "pairs"),
    "hasattr": (2, 2, (), ""),
    "iadd": (2, 2, (), "list"),
    "getitem": (2, 2, (), ""),
    "sum": (1, 2, ("start",), "number second"),
    "min": (1, 1, ("key", "default"), ""),
    "max": (1, 1, ("key", "default"), ""),
    "any": (1, 1, (), ""),
    "all": (1, 1, (), ""),
    "sorted": (1, 1, ("key", "reverse"), ""),
    "reduce": (2, 3, (), ""),
    "bool": (1, 1, (), ""),
}
# Builtins that have a function of their own in known.c (enum builtin): minimum and maximum number
# of arguments.
builtins = {
    "len": (1, 1),
    "super": (0, 2),
    "isinstance": (2, 2),
    "issubclass": (2, 2),
    "type": (1, 1),
    "zip": (1, 16),
    "enumerate": (1, 2),
    "map": (2, 16),
    "filter": (2, 2),
    "iter": (1, 1),
    "reversed": (1, 1),
    "next": (1, 2),
    "getattr": (2, 3),
}
# Maps a polyfill to the index of the argument that it iterates over. If this argument is not
# iterable, capture does not step through the polyfill: its `for` loop would raise with another
# message than the builtin.
iterated = {"_unpack": 0, "_extend": 1, "_reduce": 1}
# Functions of `operator` that compare objects by identity.
identity = frozenset("is_ is_not is_none is_not_none".split())
