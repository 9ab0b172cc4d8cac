"""What dyntrace.compile is made of, with an array type of the program's own: no numpy, no torch. test_capture.py has those."""
import os
import subprocess
from pathlib import Path

import pytest

COMMON = '''
import sys, warnings
from dyntrace._capture_native import native as captures
from dyntrace._native import native
from dyntrace.capture import Compiled
from dyntrace.graph import Node
from dyntrace._capture import make_guards

class Array:
    def __init__(self, *items): self.items = items
    dtype = "any"
    shape = property(lambda self: (len(self.items),))
    strides = property(lambda self: (1,))
    def _with(self, other, do):
        others = other.items if isinstance(other, Array) else (other,) * len(self.items)
        return Array(*map(do, self.items, others))
    def __add__(self, other): log("+"); return self._with(other, lambda a, b: a + b)
    def __mul__(self, other): log("*"); return self._with(other, lambda a, b: a * b)
    def __lt__(self, other): return self._with(other, lambda a, b: a < b)
    def __neg__(self): return Array(*[-a for a in self.items])
    def __getitem__(self, key): return Array(self.items[key])
    def __bool__(self): log("bool"); return all(self.items)
    def total(self): return Array(sum(self.items))
    def first(self): return self.items[0]
    def __repr__(self): return repr(self.items)

captures._register_array(Array)
logged = []
log = logged.append
runs, breaks = [], []

def finish(record):
    nodes = record["nodes"]
    if not hasattr(Array, record["code"].co_name):
        breaks.append(record["break"] and record["break"][:2])
    def run(*inputs):
        runs.append(len(nodes))
        values, given = {}, iter(inputs)
        def of(one):
            if isinstance(one, Node): return values[one]
            if isinstance(one, (tuple, list)): return type(one)(map(of, one))
            return one
        for node in nodes:
            if node.op == "placeholder": values[node] = next(given)
            elif node.op == "output": return of(node.args[0])
            elif node.op == "call_method": values[node] = getattr(of(node.args[0]), node.target)(*of(node.args[1:]))
            else: values[node] = node.target(*of(node.args))
    return run, make_guards(record)

def compile(function):
    return Compiled(native._call_under, function, captures.Capture((finish, "eager", None, False, False)))

def entries(function):
    return [entry.hits for entry in native._debug_get_cache_entry_list(function.__code__)]
'''

PROGRAMS = {
    "comparisons of numbers and orders of keys are checked in C": ('''
from operator import floordiv, lt, mul, neg, pow
less = native._check(((lt, (floordiv, (0,), (1,)), 10 ** 30), True))
print(less(5, 2), less(-7, 2), less(10 ** 30, 1), less(10 ** 60, 10 ** 40), less(1, 0))
print(less(True, 1), less(1.0, 1), less("a", 1), less(type("Int", (int,), {})(3), 1))
print(native._check(((lt, (neg, (0,)), (mul, (0,), -(10 ** 25))), False))(-2), native._check(((lt, (pow, (0,), 70), 2 ** 70), False))(2))
order = native._check(("a", "b"))
print(order({"a": 1, "b": 2}), order({"b": 1, "a": 2}), order({"a": 1}), order({"a": 1, 2: 2}), order([("a", "b")]), native._check(())({}))
''', ["True True False True False", "False False False False", "False True", "True False False False False True"]),
    "seed": ('''
def toy(a, b):
    x = a * (a + 1)
    if b.total() < 0:
        b = b * -1
    return x * b

run = compile(toy)
for b in (Array(1, 2), Array(-1, -2), Array(1, 3), Array(-1, 1)):
    print(run(Array(2, 3), b))
print(entries(toy), breaks[0])
''', ["(6, 24)", "(6, 24)", "(6, 36)", "(-6, 12)",
      "[4] ('data', 'whether a Array is true decides what runs')"]),
    "effects once, in order": ('''
def f(a):
    b = a + 1
    print("between")
    return b * 2

run = compile(f)
for i in range(3):
    print(run(Array(i)), "".join(logged))
''', ["between", "(2,) +*", "between", "(4,) +*+*", "between", "(6,) +*+*+*"]),
    "exceptions are handled where they are": ('''
def f(a, n):
    try:
        b = a + 1
        c = b[n]
    except IndexError as error:
        return str(error)
    return c * 2

run = compile(f)
print(run(Array(1, 2), 0), run(Array(1, 2), 5), run(Array(1, 2), 1))
''', ["(4,) tuple index out of range (6,)"]),
    "containers, loops and calls": ('''
def double(v, by=2):
    return v * by

class Model:
    def __init__(self): self.w, self.n = Array(3, 4), 2
    def forward(self, x):
        out = []
        for i in range(self.n):
            x = double(x) + self.w
            out.append(x)
        return {"last": out[-1], "all": [v + 1 for v in out]}

model, model2 = Model(), Model()
run = compile(Model.forward)
print(run(model, Array(1, 1)))
model2.n = 1
print(run(model2, Array(1, 1)))
print(breaks, runs)
''', ["{'last': (13, 16), 'all': [(6, 7), (14, 17)]}", "{'last': (5, 6), 'all': [(6, 7)]}", "[None, None] []"]),
    "guards": ('''
def f(a, how, many):
    return a + many[0] if how == "add" else a * many[1]

run = compile(f)
print(run(Array(5), "add", [1, 2]), run(Array(5), "mul", [1, 2]), run(Array(5), "add", [3, 2]), run(Array(5), "add", [1, 2]))
print(run(Array(5), "mul", (1, 4)), run(Array(1, 2), "add", [1, 1]), entries(f))
''', ["(6,) (10,) (8,) (6,)", "(20,) (2, 3) [1, 1, 2, 1, 1]"]),
    "a manager that is another each time": ('''
class Manager:
    def __enter__(self): return 1
    def __exit__(self, *error): pass

def f(a):
    with Manager() as n:
        b = a + n
    return b * 2

run = compile(f)
said = [run(Array(i)) for i in range(4)]
once = [broke[1] for broke in breaks if broke and ("Manager" in broke[1] or "dies" in broke[1])]
print(said, len(once) == len(set(once)))  # since 3.14 __exit__ is a function, which is stepped
''', ["[(2,), (4,), (6,), (8,)] True"]),
    "a value decides": ('''
def f(a):
    b = a + 1
    n = b.first()
    return b * n

run = compile(f)
print(run(Array(1)), run(Array(2)), run(Array(3)), breaks[0])
''', ["(4,) (9,) (16,) ('data', 'first gives a int')"]),
    "handed over in the midst": ('''
def inner(a):
    b = a * 2
    print("inner", b)
    return b + 1

def f(a):
    return inner(a + 1) * 2

run = compile(f)
print(run(Array(1)), run(Array(1)), run(Array(2)))
print("".join(logged))
''', ["inner (4,)", "inner (4,)", "inner (6,)", "(10,) (10,) (14,)", "+*+*+*+*+*+*"]),
    "a backend that raises": ('''
def bad(record):
    raise ValueError("no")

def f(a):
    return a + 1

try:
    Compiled(native._call_under, f, captures.Capture((bad, "eager", None, False, False)))(Array(1))
except ValueError as error:
    print(error)
print(Compiled(native._call_under, f, captures.Capture((bad, "eager", None, False, True)))(Array(1)))
print(Compiled(native._call_under, f, captures.Capture((lambda record: None, "eager", None, False, False)))(Array(1)))
''', ["no", "(2,)", "(2,)"]),
    "a backend that gives the graph another function": ('''
import dyntrace

def another(module, inputs):
    module.forward = lambda a: (Array(0),)
    return module

def f(a):
    return a + 1

run = dyntrace.compile(f, backend=another)
print(run(Array(1)), run(Array(1)))
''', ["(2,) (0,)"]),
    "what operations may do": ('''
import gc, signal, threading

class Evil(Array):
    mode = None
    def __add__(self, other):
        m = Evil.mode
        if m == "reset": native.reset()
        if m == "code": h.__code__ = (lambda a: a).__code__
        if m == "callback": native.set_eval_frame(None)
        if m == "callback2": native.set_eval_frame(lambda *a: None)
        if m == "raise": raise KeyError("evil")
        if m == "gc": gc.collect()
        if m == "list": del shared[:]
        if m == "frame": sys._getframe(1).f_locals; sys._getframe(1).f_lineno
        if m == "recurse" and len(self.items) < 4: return h(Evil(*self.items, 1))
        if m == "trace": sys.settrace(lambda *a: None); sys.settrace(None)
        if m == "global": globals()["GLOBAL"] = 5 if GLOBAL == 1 else 1
        if m == "thread":
            th = threading.Thread(target=lambda: h(Evil(1))); Evil.mode = None; th.start(); th.join()
        return Evil(*[i + 1 for i in self.items])
GLOBAL = 1
shared = []
def make():
    def h(a):
        many = [a, 1, 2]
        shared.append(many)
        c = many[0] + many[1]
        try:
            d = c + GLOBAL
        except KeyError:
            d = c
        e = d + GLOBAL
        return [e, len(many), c.items]
    return h
for mode in ("reset", "code", "callback", "callback2", "raise", "gc", "list", "frame", "recurse", "trace", "global", "thread"):
    for rounds in range(4):
        said = []
        for compiled in False, True:
            GLOBAL = 1
            del shared[:]
            h = make()
            run = compile(h) if compiled else h
            for call in range(3):
                Evil.mode = mode
                try: said.append(repr(run(Evil(1, 2))))
                except Exception as error: said.append(repr(error))
                native.set_eval_frame(None)
        if said[:3] != said[3:]: print(mode, said)
hits = []
signal.signal(signal.SIGALRM, lambda *a: hits.append(h(Evil(1))))
Evil.mode = None
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
h = make(); run = compile(h)
for i in range(3000):
    if i % 50 == 0: native.reset()
    assert repr(run(Evil(i))[0]) == repr((i + 3,)), run(Evil(i))
    del shared[:]
signal.setitimer(signal.ITIMER_REAL, 0)
print("signals", len(hits) > 0)
errors = []
def work():
    run = compile(h)
    for i in range(500):
        if repr(run(Evil(i))[0]) != repr((i + 3,)): errors.append(i)
        if i % 100 == 0: native.reset()
ths = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in ths]; [t.join() for t in ths]
print("threads", errors[:3])
''', ["signals True", "threads []"]),
    "generators and endless recursion": ('''
def gen(a):
    yield a + 1
    yield a * 2

def endless(a):
    return endless(a + 1)

print(list(compile(gen)(Array(1))))
try:
    compile(endless)(Array(0))
except RecursionError:
    print("RecursionError")
''', ["[(2,), (2,)]", "RecursionError"]),
    "the recursion limit": ('''
import sys
depth = [0]

def deeper(a, n):
    depth[0] = n
    return deeper(a + 1, n + 1)

def reached(callback, room):
    limit = sys.getrecursionlimit()
    at = 1
    while True:
        try:
            sys.setrecursionlimit(at)
            break
        except RecursionError:
            at += 1
    sys.setrecursionlimit(at + room)
    try:
        native._call_under(deeper, callback, Array(1), 0)
    except RecursionError:
        pass
    sys.setrecursionlimit(limit)
    return depth[0]

for room in 12, 30, 60:
    plain = reached(None, room)
    print(reached(captures.Capture((finish, "eager", None, False, False)), room) - plain, end=" ")
    native.reset()
''', ["0 0 0 "]),
    "code without lines": ('''
def f(a):
    b = a + 1
    print("x", end=" ")
    return b * 2

f.__code__ = f.__code__.replace(co_linetable=b"", co_filename="", co_name="")
for i in range(3): print(compile(f)(Array(i)), end=" ")
''', ["x (2,) x (4,) x (6,) "]),
    "deep and hostile": ('''
class Rude:
    def __getattr__(self, name): raise ZeroDivisionError(name)
    def __eq__(self, other): native.reset(); return True
    __hash__ = None
    def __bool__(self): raise KeyError

def recursive(a, n):
    return a if n == 0 else recursive(a + 1, n - 1)

def rude(a, r):
    b = a + 1
    if r == b: b = b * 2
    try:
        r.x
    except ZeroDivisionError:
        b = b + 1
    return b

print(compile(recursive)(Array(1), 200), compile(rude)(Array(1), Rude()), compile(rude)(Array(1), Rude()))
source = "def long(a):\\n" + "    a = a + 1\\n" * 3000 + "    return a"
exec(source)
print(compile(long)(Array(1)), compile(long)(Array(2)))
def loops(a):
    for i in range(100000): a = a * 1
    return a
print(compile(loops)(Array(1)))
exec("def wide(a, %s): return a + b99999" % ", ".join("b%d" % i for i in range(100000)))
print(compile(wide)(Array(1), *range(100000)))
''', ["(201,) (5,) (5,)", "(3001,) (3002,)", "(1,)", "(100000,)"]),
    "imports, done and lazy": ('''
try:
    exec("lazy import colorsys")
except SyntaxError:
    import colorsys

def f(a):
    b = a + 1
    return b * int(colorsys.ONE_THIRD * 6)

def g(a):
    import string
    from os import path
    b = a + 1
    return b * len(string.digits + path.sep)

for function in f, g:
    run = compile(function)
    print(run(Array(1)), run(Array(1)), run(Array(2)), end=" ")
''', ["(4,) (4,) (6,) (22,) (22,) (33,) "]),
    "rude objects": ('''
def space(how):
    """Four functions, each with an operation before and behind a method of r's that does HOW."""
    def act():
        if how == "raise": raise ZeroDivisionError
        if how == "reset": native.reset()
        if how == "change":
            for name in names: made[name].__code__ = other[name].__code__
        if how == "set": made["by"] += 1
        return True
    class Rude:
        def __getattr__(self, name): return act()
        def __eq__(self, other): return act()
        def __bool__(self): return act()
        def __hash__(self): return int(act())
    made = {"Array": Array, "by": 2}
    exec(SOURCE, made)
    other = {"by": 5}
    exec(SOURCE.replace("a + 1", "a + 100"), other)
    return made, Rude()

SOURCE = """
def attribute(a, r):
    b = a + 1
    c = r.x
    return b * by, c
def equal(a, r):
    b = a + 1
    if r == 1: b = b * 2
    return b * by
def truth(a, r):
    b = a + 1
    if not r: b = b * 2
    return b * by
def key(a, r):
    b = a + 1
    d = {r: b}
    return d[r] * by
def inside(a, r):
    return equal(a, r) + 1, attribute(a + 2, r)
"""
names = "attribute", "equal", "truth", "key", "inside"

def outcome(run, *args):
    try: return repr(run(*args))
    except Exception as error: return repr(error)

def once(how, name, compiled):
    made, rude = space(how)
    native.reset()
    run = compile(made[name]) if compiled else made[name]
    return [(outcome(run, Array(i), rude), made["by"]) for i in (1, 2, 1, 1)]

differ = [(how, name) for how in ("raise", "reset", "change", "set", "nothing") for name in names if once(how, name, False) != once(how, name, True)]
print(differ, len(runs) > 20)
''', ["[] True"]),
    "large functions": ('''
def made(body):
    scope = {}
    exec("def f(a):\\n" + body + "    return a", scope)
    return scope["f"]

for body in ("    a = a + 1\\n" * 25000, "".join("    a = a + %d.5\\n" % i for i in range(10000)), "    a = a + 1\\n" * 41000,
             "    n = 0\\n    for i in range(10**9):\\n        n += 1\\n        if n > 10**5: break\\n    a = a + n\\n",
             "    x = 1\\n    if a is None: print(x)\\n" * 6000 + "    print('y', end=' ')\\n    a = a + 1\\n"):
    run = compile(made(body))
    print(run(Array(1)), run(Array(1)), end=" ")
print(max(runs), [broke for broke in breaks if broke and broke[0] == "limit"])
''', ["(25001,) (25001,) (50000001.0,) (50000001.0,) (41001,) (41001,) (100002,) (100002,) y y (2,) (2,) "
             "40003 [('limit', 'a graph of more than 40000 operations')]"]),
    "containers within containers": ('''
def nested(depth, inner):
    for _ in range(depth): inner = [inner]
    return inner

def reader(depth):
    scope = {"one": Array(1)}
    exec("def f(x):\\n    y = x" + "[0]" * depth + "\\n    return one + y", scope)
    return compile(scope["f"])

for depth in 49, 50, 197, 198, 199, 900:
    run = reader(depth)
    print(*[run(nested(depth, Array(n))) for n in (1, 2, 2)], end=" ")
print(runs)
''', ["(2,) (3,) (3,) " * 6 + "[" + ", ".join(["4"] * 12) + "]"]),
    "containers that share what is in them": ('''
def takes(self, many): return self + len(many)
Array.takes = takes

def lists(a):
    many = [a]
    for i in range(60): many = [many, many]
    a = a.takes(many)
    a = a.takes({"many": (many, many)})
    return a

def tuples(a, given):
    types, one = (Array,), (a,)
    for i in range(60): types, one = (types, types), (one, one)
    print(isinstance(a, types), given is one, given == 1)
    a = a.takes(given)
    try: a[one]
    except TypeError: print("TypeError")
    try: [a][types]
    except TypeError: print("TypeError")
    return a

given = [1]
for i in range(60): given = (given, given)
print(compile(lists)(Array(1)), compile(tuples)(Array(1), given))
simple = (1,)
for i in range(60): simple = (simple, simple)
print(compile(tuples)(Array(1), simple))
''', ["True False False", "TypeError", "TypeError", "(4,) (3,)", "True False False", "TypeError", "TypeError", "(3,)"]),
}


SLOW = {"deep and hostile", "large functions", "what operations may do"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in PROGRAMS])
def test_programs_print_the_expected_results_graphs_and_breaks(dyntrace, python, name, tmp_path):
    """A program prints the results of its functions, and the graphs, breaks and cache entries that PROGRAMS lists."""
    program, said = PROGRAMS[name]
    (tmp_path / "program.py").write_text(COMMON + program)
    done = subprocess.run([python, "-X", "faulthandler", tmp_path / "program.py"], capture_output=True, text=True, timeout=300,
                          env=dict(os.environ, PYTHONPATH=str(Path(dyntrace).parent / "lib" / "python")))
    assert (done.returncode, done.stderr, done.stdout.splitlines()) == (0, "", said)
