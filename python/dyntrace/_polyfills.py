"""What builtins do that go through an iterator or call functions, as a capture steps into it (src/tracer/capture/known.c).

Runs in: the traced process, in place of the builtin while a call of it is watched. Each does exactly what the builtin does, exceptions
included; tracebacks and sys._getframe() pass over these functions. They use no globals: what they need is the default of a
parameter, which no program gives a value to (known.c says how many arguments a call may have).
"""
import functools
import itertools
import operator
import os

_missing = object()
end = object()  # in place of an item: the iterator has come to its end. No program gets it


def order(keys, reverse):
    """The numbers of KEYS, sorted by them as list.sort() does."""
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)


def _sum(iterable, /, start=0, type=type, int=int, float=float, bool=bool, total=sum):
    numbers = [] if type(start) is int or type(start) is float or type(start) is bool else None
    for item in iterable:
        if numbers is not None:
            kind = type(item)
            if kind is int or kind is float or kind is bool:  # their sum is rounded in a way of its own
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


def _tuple(iterable):
    items = []
    for item in iterable:
        items.append(item)
    return (*items,)


def _extend(items, iterable):
    for item in iterable:
        items.append(item)


def _take(iterable, most, len=len):
    """A list of the first MOST items."""
    items = []
    for item in iterable:
        items.append(item)
        if len(items) == most:
            break
    return items


# ---- the next item of map(), filter() and zip(), from the iterators that they have, or `end` ----

def _next_zip(iterators, next=next, end=end):
    items = []
    for iterator in iterators:
        item = next(iterator, end)
        if item is end:
            return end
        items.append(item)
    return (*items,)


def _next_map(function, iterators, next=next, end=end):
    items = []
    for iterator in iterators:
        item = next(iterator, end)
        if item is end:
            return end
        items.append(item)
    return function(*(*items,))


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


def _getitem(a, b, /):
    return a[b]


def _dict(items, /):
    return {**items}


def _dict_of_pairs(items=(), /):
    made = {}
    for key, value in items:
        made[key] = value
    return made


# ---- objects that are made again behind the graph, and calls of them ----

partial, itemgetter, methodcaller, fspath = functools.partial, operator.itemgetter, operator.methodcaller, os.fspath
# Iterators that only move what they go through: what they give of capsules says where each item comes from.
moving = (itertools.chain, itertools.count, itertools.cycle, itertools.islice, itertools.product, itertools.permutations,
          itertools.combinations, itertools.pairwise, itertools.zip_longest)


def _partial(function, args, keywords, /, *more, **named):
    return function(*args, *more, **{**keywords, **named})


def _itemgetter(key, item, /):
    return item[key]


def _methodcaller(name, item, /, getattr=getattr):
    return getattr(item, name)()
