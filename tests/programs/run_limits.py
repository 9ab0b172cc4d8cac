"""How deep each kind of recursion gets before RecursionError, at the default limit. KIND... or all."""
import copy
import functools
import json
import operator
import sys

depth = 0


def counted(function):
    """How often FUNCTION's body began before the limit ended it."""
    global depth
    depth = 0
    try:
        function()
    except RecursionError as error:
        return "%d %s" % (depth, str(error).split(" in ")[0].split(" while ")[0].split(" (used ")[0])
    return "%d no error" % depth


def plain():
    global depth
    depth += 1
    plain()


def with_arguments(*args, **named):
    global depth
    depth += 1
    with_arguments(*args, **named)


class Method:
    def method(self):
        global depth
        depth += 1
        self.method()

    @property
    def attribute(self):
        global depth
        depth += 1
        return self.attribute

    def __getattr__(self, name):
        global depth
        depth += 1
        return getattr(self, name + "")


class Init:
    def __init__(self):
        global depth
        depth += 1
        Init()


class New:
    def __new__(cls):
        global depth
        depth += 1
        return cls()


class Call:
    def __call__(self):
        global depth
        depth += 1
        self()


class Text:
    def __repr__(self):
        global depth
        depth += 1
        return repr([self])


class Equal:
    def __eq__(self, other):
        global depth
        depth += 1
        return self == other

    __hash__ = None


def generator():
    global depth
    depth += 1
    yield from generator()


def by_for():
    global depth
    depth += 1
    for x in by_for():
        yield x


async def coroutine():
    global depth
    depth += 1
    await coroutine()


def run_coroutine():
    c = coroutine()
    c.send(None)


def by_map():
    global depth
    depth += 1
    list(map(lambda _: by_map(), [1]))


def by_sorted():
    global depth
    depth += 1
    sorted([1], key=lambda _: by_sorted())


def by_partial():
    global depth
    depth += 1
    functools.partial(by_partial)()


def by_reduce():
    global depth
    depth += 1
    functools.reduce(lambda a, b: by_reduce(), [1, 2])


def by_exec():
    global depth
    depth += 1
    exec("by_exec()")


def by_comprehension():
    global depth
    depth += 1
    return [by_comprehension() for _ in [1]]


@functools.lru_cache(None)
def cached(n):
    global depth
    depth += 1
    return cached(n + 1)


def by_class_body():
    global depth
    depth += 1

    class Body:
        by_class_body()


def nested_json():
    value = []
    for _ in range(100000):
        value = [value]
    json.dumps(value)


def nested_copy():
    value = []
    for _ in range(100000):
        value = [value]
    copy.deepcopy(value)


def by_attrgetter():
    operator.attrgetter("missing")(Method())


KINDS = {
    "plain": plain, "arguments": functools.partial(with_arguments, 1, 2, x=3), "method": lambda: Method().method(),
    "property": lambda: Method().attribute, "init": Init, "new": New, "call": lambda: Call()(), "repr": lambda: repr(Text()),
    "eq": lambda: Equal() == 1, "generator": lambda: list(generator()), "for": lambda: list(by_for()),
    "coroutine": run_coroutine, "map": by_map, "sorted": by_sorted, "partial": by_partial, "reduce": by_reduce,
    "exec": by_exec, "comprehension": by_comprehension, "cached": functools.partial(cached, 0), "class": by_class_body,
    "json": nested_json, "deepcopy": nested_copy, "getattr": lambda: Method().missing, "attrgetter": by_attrgetter,
}
if sys.version_info[:2] == (3, 15):  # has no limit where f(*args, **named) is specialised (gh-155151)
    del KINDS["arguments"]
for name in sys.argv[1:] or KINDS:
    print(name, counted(KINDS[name]), flush=True)
