#!/usr/bin/env python3
"""Code of the program's that runs while a call is watched, and puts other values where some were: a function does what it does uncaptured.

    PYTHONPATH=build/lib/python python3 capture/tests/changed.py [NAME]...

An array of the class Own calls the case's hook with the frame of the function that adds to it. The hook writes that frame's variables and cells,
finds lists, dicts, objects and functions of the call by the garbage collector, and changes them. Prints a line for each case that differs,
and the number of cases.
"""
import gc
import sys
import types

import dyntrace

CASES = []


class Own:
    shape, dtype, hook = (4,), "f8", None

    def __add__(self, other):
        if Own.hook:
            Own.hook(sys._getframe(1))
        return Own()

    def __eq__(self, other):
        return type(other) is Own


dyntrace.register_array(Own)


def case(hook):
    """Decorates a function of an array, while which adds the HOOK is called."""
    def add(function):
        CASES.append((function, hook))
        return function
    return add


def found(kind, holds):
    return [thing for thing in gc.get_objects(0) + gc.get_objects(1) if type(thing) is kind and holds(thing)]


def functions(name):
    return found(types.FunctionType, lambda function: function.__qualname__.endswith(".<locals>." + name))


def write_locals(frame):
    if sys.version_info >= (3, 13) and frame.f_code.co_filename == __file__:
        frame.f_locals["t"] = 5


@case(write_locals)
def variable_unpacked(x):
    t = (1, 2)
    x = x + x
    a, b = t
    return a, b


@case(write_locals)
def variable_items(x):
    t = (1, 2)
    x = x + x
    return t[0], len(t)


@case(write_locals)
def variable_list(x):
    t = [(1, 2)]
    x + x
    t.append(3)
    return [*t], x


@case(write_locals)
def variable_dict(x):
    t = {"a": (1, 2)}
    x + x
    t["b"] = 3
    return t["a"][0], x


@case(write_locals)
def variable_slice(x):
    t = slice(1, 2)
    x + x
    return [1, 2, 3][t]


@case(write_locals)
def variable_returned(x):
    t = (1, 2)
    x = x + x
    return t


@case(write_locals)
def variable_iterator(x):
    t = iter([1, 2])
    x + x
    return next(t)


@case(write_locals)
def variable_argument(x, t=(1, 2)):
    x + x
    return t[1]


@case(write_locals)
def variable_function(x):
    def t(a):
        return a
    x + x
    return t(x)


@case(lambda frame: [function(5) for function in functions("put")])
def cell_unpacked(x):
    t = (1, 2)

    def put(value):
        nonlocal t
        t = value

    def get():
        a, b = t
        return a, b
    x + x
    return get(), put


@case(lambda frame: [function(5) for function in functions("put")])
def cell_item(x):
    t = {"a": 1}

    def put(value):
        nonlocal t
        t = value
    x + x
    return t["a"], put


@case(lambda frame: [function(5) for function in functions("put")])
def cell_returned(x):
    t = 3

    def put(value):
        nonlocal t
        t = value
    x + x
    return t, len([put])


@case(lambda frame: [one.__setitem__(0, 5) for one in found(list, lambda one: len(one) == 2 and one[0] == (1, 2, 77881))])
def list_item(x):
    t = [(1, 2, 77881), (3, 4)]
    x + x
    return t[0][0]


@case(lambda frame: [one.clear() for one in found(list, lambda one: one and one[0] == (1, 2, 77882))])
def list_cleared(x):
    t = [(1, 2, 77882), (3, 4)]
    x = x + x
    a, b = t
    return a, b


@case(lambda frame: [one.clear() for one in found(list, lambda one: one and one[0] == (1, 2, 77883))])
def list_looped(x):
    t = [(1, 2, 77883), (3, 4)]
    for a, *b in t:
        x + x
    t.reverse()
    return a, b, t, t[-1:]


@case(lambda frame: [one.update(a=5, c=6) for one in found(dict, lambda one: one.get("a") == (1, 77884))])
def dict_item(x):
    t = {"a": (1, 77884)}
    x + x
    return [*t], t["a"][0]


class A:
    def __init__(self):
        self.t = (1, 2)

    def method(self):
        return self.t


class B:
    def method(self):
        return 3


def turn(frame):
    for one in found(A, lambda one: True):
        one.__class__ = B
        one.t = 7


@case(turn)
def class_of_object(x):
    a = A()
    x + x
    return a.method(), a.t[0]


def set_code(frame):
    for function in functions("inner"):
        function.__code__ = (lambda a, b, c=1, d=2, e=3, f=3: [a, b, c, d, e, f]).__code__
        function.__defaults__ = (1, 2, 3, 4)


@case(set_code)
def code_of_function(x):
    def inner(a, b):
        return a
    x + x
    return inner(1, 2)


@case(lambda frame: [setattr(function, "__defaults__", (7,)) for function in functions("inner")])
def defaults_of_function(x):
    def inner(a, b=(1, 2)):
        return b[0]
    x + x
    return inner(x)


def step(frame):
    for generator in found(types.GeneratorType, lambda one: one.gi_code.co_name == "values"):
        if not generator.gi_running:
            [next(generator, None) for _ in range(2)]


@case(step)
def generator_stepped(x):
    def values():
        yield (1, 2)
        t = (3, 4)
        yield x
        yield t
        t = 5
        yield t
    values = values()
    a, b = next(values)
    x + x
    return a, next(values)


class Key(str):
    """Takes the attribute that it is compared with away from its class."""
    __hash__ = str.__hash__

    def __eq__(self, other):
        for kind in (Taken, Own):
            if other in kind.__dict__ and other in ("static", "method", "value", "cls"):
                delattr(kind, other)
        gc.collect()
        return False


class Taken:
    pass


def with_key(name, value):
    setattr(Taken, name, value)
    one = Taken()
    one.__dict__[Key(name)] = 1
    return one


@case(None)
def attribute_taken_away(x, name=None):
    x + x
    found = []
    for name, value in (("static", staticmethod(lambda: 2)), ("method", lambda self: 1), ("value", 3), ("cls", classmethod(lambda cls: 4))):
        one = with_key(name, value)
        try:
            found.append(getattr(one, name))
        except AttributeError:
            found.append(None)
    return [type(one).__name__ for one in found]


@case(None)
def static_taken_away(x):
    one = with_key("static", staticmethod(lambda: 2))
    x + x
    return one.static()


@case(None)
def method_taken_away(x):
    one = with_key("method", lambda self: 1)
    x + x
    return one.method()


class Variable:
    """Special methods that take their arguments as a tuple."""
    def __add__(*args):
        return len(args)

    def __setitem__(*args):
        pass

    def __len__(*args):
        return 3


@case(None)
def variable_arguments(x):
    one = Variable()
    x + x
    one[1] = 2
    return one + 1, len(one)


def outcome(function, hook):
    Own.hook = hook
    try:
        result = function(Own())
    except Exception as error:
        result = type(error).__name__, str(error)
    finally:
        Own.hook = None
    return "function" if callable(result) else [one for one in result if not callable(one)] if type(result) is tuple else result


def main():
    differ = 0
    for function, hook in CASES:
        if sys.argv[1:] and function.__name__ not in sys.argv[1:]:
            continue
        expected = outcome(function, hook)
        captured = dyntrace.compile(function, backend="eager")
        actual = [outcome(captured, hook) for _ in range(3)]
        if any(one != expected for one in actual):
            differ += 1
            print("%s differs: %r, captured %r" % (function.__name__, expected, actual))
    print("%d cases, %d differ" % (len(CASES), differ))
    return differ


if __name__ == "__main__":
    sys.exit(bool(main()))
