"""Globals: read, written, changed between calls."""
import math

factor = 2
weights = None
table = {"a": 1}
log_of = []


class Settings:
    scale = 2


settings = Settings()


def read(x):
    return x * factor


def written(x):
    global factor
    factor = factor + 1
    return x * factor


def written_after_work(x):
    global counted
    y = x + 1
    counted = globals().get("counted", 0) + 1
    return y * counted


def change(name, value):
    """Between two calls."""
    globals()[name] = value
    return value


@calls("A(3)", "(change('factor', 5), A(3))[1]", "(change('factor', 5.0), A(3))[1]", "(change('factor', 2), A(3))[1]")
def changed_between(x):
    return x * factor


@calls("A(3)", "(change('weights', A(3)), A(3))[1]", "(change('weights', A(1)), A(3))[1]")
def array_or_none(x):
    return x if weights is None else x * weights


@calls("A(3)", "(table.update(a=2), A(3))[1]", "(table.update(b=2), A(3))[1]", "(table.clear(), A(3))[1]")
def of_dict(x):
    return x * table["a"]


@calls("A(3)", "(setattr(settings, 'scale', 3), A(3))[1]", "(setattr(Settings, 'scale', 4), A(3))[1]", "(delattr(settings, 'scale'), A(3))[1]")
def of_object(x):
    return x * settings.scale


def helper(x):
    return x + 1


@calls("A(3)", "(change('helper', lambda v: v + 2), A(3))[1]", "(change('helper', None), A(3))[1]")
def function_changed(x):
    return helper(x) * 2


@calls("A(3)", "(setattr(helper2, '__code__', (lambda x: x - 5).__code__), A(3))[1]")
def code_changed(x):
    return helper2(x) * 2


def helper2(x):
    return x + 1


@calls("A(3)", "(setattr(helper3, '__defaults__', (9,)), A(3))[1]")
def defaults_changed(x):
    return helper3(x) * 2


def helper3(x, n=1):
    return x + n


def missing(x):
    return x + no_such_name


@calls("A(3)", "(change('appears', 4), A(3))[1]")
def appears_later(x):
    try:
        return x * appears
    except NameError:
        return x


@calls("A(3)", "(change('len', lambda v: 100), A(3))[1]", "(globals().pop('len'), A(3))[1]")
def builtin_shadowed(x):
    return x * len(x)


def of_module(x):
    return x * math.pi + math.sqrt(4)


@calls("A(3)", "(setattr(math, 'no_such', 3), A(3))[1]", "(delattr(math, 'no_such'), A(3))[1]")
def module_attribute(x):
    return x * getattr(math, "no_such", 1)


def list_appended(x):
    log_of.append(len(log_of))
    return x * len(log_of)


def dict_counted(x):
    table["calls"] = table.get("calls", 0) + 1
    return x * table["calls"]


def deleted(x):
    global temporary
    temporary = x + 1
    y = temporary * 2
    del temporary
    return y


def by_globals(x):
    return x * globals()["factor"]


def name_of_module(x):
    return x, __name__


def imported_here(x):
    import math as m
    from math import floor
    return x * floor(m.e)


def set_attribute_of_module(x):
    math.dyntrace_test = x.shape[0]
    try:
        return x * math.dyntrace_test
    finally:
        del math.dyntrace_test


def change_module(name, value):
    import sys
    before = sys.modules.get(name)
    sys.modules[name] = value
    return before


import types
first, second = types.ModuleType("dyntrace_corpus"), types.ModuleType("dyntrace_corpus")
first.n, second.n = 2, 3


@calls("(change_module('dyntrace_corpus', first), A(3))[1]", "(change_module('dyntrace_corpus', second), A(3))[1]",
       "(change_module('dyntrace_corpus', first), A(3))[1]", "(change_module('dyntrace_corpus', None), A(3))[1]")
def imported_module_changed(x):
    import dyntrace_corpus
    from dyntrace_corpus import n
    return x * n + dyntrace_corpus.n


def imported_by_path(x):
    import os.path
    import os.path as p
    from os import path, sep
    return x + len(sep), os is not None, p is path, p.join("a", "b")


@calls("A(3)", "(change('__builtins__', __builtins__), A(3))[1]", "A(3)")
def imported_missing(x):
    y = x + 1
    try:
        import dyntrace_no_such
    except ImportError as error:
        return y, type(error).__name__
    from math import no_such
