"""Short programs with a compiler of their own, each under settings that its command line gives: whatif_cases.py CASE KEY=VALUE...

Keys: recompile_limit, accumulated_limit; dynamic=NAME[DIM] and drop=KIND, which this compiler obeys."""
import array
import os
import re
import sys
import threading
from types import FunctionType

import dyntrace
import dyntrace.config
from dyntrace.eval_frame import _debug_get_cache_entry_list, reset_code, set_eval_frame
from dyntrace.guards import EQUALS_MATCH, GuardTree, ID_MATCH, L, LIST_LENGTH, TENSOR_MATCH, TYPE_MATCH, WEAKREF_ALIVE
from dyntrace.types import GuardedCode

SETTINGS = dict(word.split("=", 1) for word in sys.argv[2:])
DYNAMIC = {}
for name, dimension in re.findall(r"(\w+)\[(\d+)\]", SETTINGS.get("dynamic", "")):
    DYNAMIC.setdefault(name, []).append(int(dimension))
dyntrace.config.recompile_limit = int(SETTINGS.get("recompile_limit", 8))
dyntrace.config.accumulated_recompile_limit = int(SETTINGS.get("accumulated_limit", 256))


def numbers(*sizes):
    size = 1
    for one in sizes:
        size *= one
    flat = memoryview(bytearray(8 * size)).cast("d")
    return flat if len(sizes) == 1 else flat.cast("b").cast("d", sizes)


def guards_of(frame, kinds):
    for name, value in frame.f_locals.items():
        kind = kinds.get(name)
        if kind == "ignore":
            continue
        if kind == "id":
            yield ID_MATCH(L[name])
            yield WEAKREF_ALIVE(L[name])
        elif isinstance(value, memoryview):
            yield TENSOR_MATCH(L[name], dynamic_sizes=DYNAMIC.get(name))
        elif isinstance(value, list):
            yield LIST_LENGTH(L[name])
        elif isinstance(value, (int, float, str)) and SETTINGS.get("drop") != "EQUALS_MATCH":
            yield EQUALS_MATCH(L[name])
        else:
            yield TYPE_MATCH(L[name])


def compile_all(*functions, **kinds):
    """Compile each call of FUNCTIONS, guarded on all of its arguments, each as strictly as its value or KINDS say."""
    codes = {function.__code__ for function in functions}

    def compiler(frame, entry, state):
        if frame.f_code not in codes:
            return None
        return GuardedCode(frame.f_code.replace(), GuardTree(list(guards_of(frame, kinds)), example=frame.f_locals))
    return compiler


def f(x, n=1):
    return len(x) * n


def g(n, name="a"):
    return n, name


def sizes():
    set_eval_frame(compile_all(f))
    for size in (4, 5, 6, 4, 5, 7, 7, 8, 8, 4, 9, 6, 9, 8):
        f(numbers(size))


def two_dimensions():
    set_eval_frame(compile_all(f))
    for shape in ((2, 3), (2, 4), (3, 3), (2, 3), (3, 4), (2, 5), (3, 5), (2, 3), (3, 4)):
        f(numbers(*shape))


def size_and_number():
    set_eval_frame(compile_all(f))
    for size, n in ((4, 1), (5, 1), (5, 2), (4, 2), (6, 2), (6, 1), (4, 1), (5, 2), (7, 3), (7, 3)):
        f(numbers(size), n)


def values():
    set_eval_frame(compile_all(g))
    for n in (1, 2, 3, 1, 2, 4, 4, 5, 1, 3, 5, 6, 6, 6):
        g(n)


def types():
    set_eval_frame(compile_all(g))
    for n in (1, 1.5, "x", 1, None, 1.5, None, "x", "y", "y", 2, None):
        g(n)


def one_qualname():
    """Three classes of one name, which no signature and no guard's words tell apart."""
    def make():
        class Thing:
            pass
        return Thing
    a, b, c = make(), make(), make()
    set_eval_frame(compile_all(g))
    for one in (1, a, b, c, a, a, b, b, c, c, 1):
        g(one if one == 1 else one())


def unguarded():
    """What no guard looks at does not make a call another one."""
    set_eval_frame(compile_all(g, name="ignore"))
    for i, n in enumerate((1, 2, 3, 1, 4, 4, 2, 5, 5)):
        g(n, f"call {i}")


def lengths():
    def h(items):
        return len(items)
    set_eval_frame(compile_all(h))
    for length in (1, 2, 3, 3, 1, 4, 4, 2, 5, 4):
        h([0] * length)


def resets():
    set_eval_frame(compile_all(f))
    for turn in range(3):
        for size in (4, 5, 6, 4, 6):
            f(numbers(size))
        reset_code(f.__code__)


def deaths():
    """Entries that go because what they name by identity is freed."""
    class Thing:
        pass

    def h(thing):
        return thing
    set_eval_frame(compile_all(h, thing="id"))
    things = [Thing(), Thing(), Thing()]
    for i in (0, 1, 2, 0, 1):
        h(things[i])
    for i in (0, 1):
        things[i] = None
        things[i] = Thing()
        for _ in range(2):
            h(things[i])
    h(things[2])


def two_functions():
    set_eval_frame(compile_all(f, g))
    for size, n in ((4, 1), (5, 2), (6, 3), (4, 1), (5, 2), (7, 4), (7, 4)):
        f(numbers(size))
        g(n)


def nested():
    def outer(x):
        return sum(g(n)[0] for n in range(x))
    set_eval_frame(compile_all(outer, g))
    for x in (1, 2, 3, 2, 4, 1, 4):
        outer(x)


def forks():
    set_eval_frame(compile_all(f))
    for size in (4, 5, 4):
        f(numbers(size))
    child = os.fork()
    if not child:
        for size in (5, 6, 4, 6, 7):
            f(numbers(size))
        os._exit(0)
    os.waitpid(child, 0)
    for size in (6, 4, 8, 5):
        f(numbers(size))


def threads():
    """One after the other: each thread has a callback of its own, and all share the cache."""
    compiler = compile_all(f)

    def work(sizes):
        set_eval_frame(compiler)
        for size in sizes:
            f(numbers(size))
        set_eval_frame(None)
    for sizes in ((4, 5), (5, 6, 4), (7, 4, 7)):
        one = threading.Thread(target=work, args=(sizes,))
        one.start()
        one.join()


def generators():
    def many(n):
        yield from range(n)
    set_eval_frame(compile_all(many))
    for n in (1, 2, 3, 1, 4, 4, 2):
        list(many(n))


def two_backends():
    """One function, compiled by two; backend_shared=no: each has a function of its own, which is what that means."""
    def compiler(frame, entry, state):
        return compile_it(frame, entry, state)

    def other(frame, entry, state):
        return compile_it(frame, entry, state)
    work = (f, FunctionType(f.__code__.replace(), globals(), "f", f.__defaults__) if SETTINGS.get("backend_shared") == "no" else f)
    compile_it = compile_all(*work)
    for size in (4, 5, 4, 6, 6, 5, 7, 7):
        for callback, function in zip((compiler, other), work):
            values = numbers(size)
            set_eval_frame(callback)
            function(values)
            set_eval_frame(None)


def namesakes():
    """Two backends that a trace cannot tell apart by their names."""
    two = compile_all(f), compile_all(f)
    for size in (4, 5, 4, 6, 5):
        for callback in two:
            values = numbers(size)
            set_eval_frame(callback)
            f(values)
            set_eval_frame(None)


def functions_as_guards():
    """A guard that is a Python function: what it would say of a call that it was not asked about is a guess."""
    def compiler(frame, entry, state):
        if frame.f_code is not g.__code__:
            return None
        big = frame.f_locals["n"] > 3
        return GuardedCode(frame.f_code.replace(), lambda f_locals: (f_locals["n"] > 3) == big)
    set_eval_frame(compiler)
    for n in (1, 2, 4, 5, 1, 6, 6, 3):
        g(n)


def kinds():
    """Each argument is guarded by one kind of guard, kind=NAME, unless it is dropped; what CASES call has it differ."""
    import math

    from dyntrace import guards

    class Thing:
        pass

    class Other(Thing):
        extra = 1
    mode, twice, thing = [1], [0], Thing()
    guards.register_global_state("mode", lambda: mode[0])
    functions = [lambda: 1, *(lambda i=i: i for i in range(2))]
    two = numbers(2)
    cases = {  # kind: the values that it tells apart
        "TYPE_MATCH": (1, "a", 1.5), "ID_MATCH": (thing, Thing, len), "EQUALS_MATCH": (1, 2, "x", 2.5), "NONE_MATCH": (None, True, False),
        "NOT_NONE": (None, 1, None), "TRUE_MATCH": (None, True, False), "FALSE_MATCH": (None, True, False), "HASATTR": (Thing(), Other()),
        "NO_HASATTR": (Thing(), Other()), "DICT_LENGTH": ({}, {1: 1}, {2: 2}), "LIST_LENGTH": ([0], [0, 0], [1]), "TUPLE_LENGTH": ((), (1,), (2,)),
        "SEQUENCE_LENGTH": ("ab", [1, 2], (1,)), "DICT_KEYS": ({1: 1}, {1: 2, 2: 2}, {1: 3}), "DICT_CONTAINS": ({"p": 1}, {"q": 1}), "DICT_NOT_CONTAINS": ({"p": 1}, {"q": 1}),
        "FUNCTION_MATCH": functions, "CLOSURE_MATCH": functions, "BUILTIN_MATCH": (len, abs), "MODULE_MATCH": (math, re), "WEAKREF_ALIVE": (thing, Other()),
        "GLOBAL_STATE": (1, 2, 3), "TENSOR_MATCH": (numbers(2), numbers(3), numbers(2, 3)), "SHAPE_EQUAL": ((two, numbers(2)), (numbers(3), numbers(2)), (numbers(3), numbers(3))),
        "SHAPE_BOUND": (numbers(2), numbers(9)), "SHAPE_DIVISIBLE": (numbers(2), numbers(3), numbers(4)), "NO_ALIASING": ((two, numbers(2)), (two, two)), "LAMBDA": (0, 1, 2)}
    kind = SETTINGS["kind"]
    values = cases[kind]

    def guard(x, y):
        one, other = L["x"], L["y"]
        make = getattr(guards, kind)
        if kind in ("NONE_MATCH", "TRUE_MATCH", "FALSE_MATCH", "NOT_NONE"):
            return guards.CONSTANT_MATCH(one, x) if (x is None) == (kind != "NOT_NONE") or kind in ("TRUE_MATCH", "FALSE_MATCH") else make(one)
        if kind in ("HASATTR", "NO_HASATTR"):
            return (guards.HASATTR if hasattr(x, "extra") else guards.NO_HASATTR)(one, "extra")
        if kind in ("DICT_CONTAINS", "DICT_NOT_CONTAINS"):
            return (guards.DICT_CONTAINS if "p" in x else guards.DICT_NOT_CONTAINS)(one, "p")
        if kind in ("SHAPE_EQUAL", "NO_ALIASING"):
            same = x is y if kind == "NO_ALIASING" else len(x) == len(y)
            if kind == "NO_ALIASING":
                return ID_MATCH(one) if same else make([one, other])
            return make(one.shape[0], other.shape[0]) if same else guards.NOT_NONE(one)
        if kind == "SHAPE_BOUND":
            return make(one.shape[0], None, 5) if len(x) <= 5 else make(one.shape[0], 6, None)
        if kind == "SHAPE_DIVISIBLE":
            return make(one.shape[0], 2 - len(x) % 2)
        if kind == "GLOBAL_STATE":
            return make("mode")
        if kind == "LAMBDA":
            return make(lambda n: n == x, f"{x} is it", one)
        return make(one)

    def h(x, y):
        return x

    def compiler(frame, entry, state):
        if frame.f_code is not h.__code__:
            return None
        values = frame.f_locals
        made = [one for one in (guard(values["x"], values["y"]),) if one.kind != SETTINGS.get("drop")]
        return GuardedCode(frame.f_code.replace(), GuardTree(made, example=values, globals=globals()))
    for value in [*values, *values, values[0], *reversed(values)]:
        x, y = value if kind in ("SHAPE_EQUAL", "NO_ALIASING") else (value, None)
        mode[0] = x
        set_eval_frame(compiler)
        h(x, y)
        set_eval_frame(None)


def invalidate(*places):
    entries = [entry for entry in _debug_get_cache_entry_list(g.__code__) if entry.valid]
    for place in places:
        if place < len(entries):
            entries[place].invalidate("the program's choice")


def one_at_a_time():
    """Each entry is invalidated after its call: only the limit on all entries ever can be met."""
    set_eval_frame(compile_all(g))
    for n in range(6):
        g(n)
        invalidate(0)


def by_place():
    """The program invalidates whichever entry stands in front: under other settings that is another one."""
    set_eval_frame(compile_all(g))
    for n in (1, 2, 3, 1, 2, 3, 4, 1, 2, 3, 4, 5, 2, 1):
        g(n)
        if n == 3:
            invalidate(0)


def run_only():
    """Calls under the callback False, for which the entries of both backends count."""
    first, second = compile_all(g), compile_all(g)
    first._torchdynamo_orig_backend, second._torchdynamo_orig_backend = "a", "b"
    for callback in (first, second, False):
        for n in (1, 2):
            set_eval_frame(callback)
            g(n)
            set_eval_frame(None)


globals()[sys.argv[1]]()
set_eval_frame(None)
