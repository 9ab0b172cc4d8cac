"""dyntrace.compile: capture/tests/ with numpy, the functions and backends of capture/README.md, and seed 003 as it is printed.

with_torch/test_capture_torch.py has torch's arrays.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from shared import ROOT, golden, holds, one_line, query

CAPTURE = Path(__file__).resolve().parent
TOY = ROOT / "examples" / "toy_example.py"


@pytest.fixture
def alone(dyntrace, python, tmp_path):
    """alone(text or path, *words) -> what subprocess.run returns: a program that imports dyntrace, without a recording."""
    if subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode:
        pytest.skip("no numpy there")

    def run(program, *words, status=0):
        if isinstance(program, str):
            (tmp_path / "program.py").write_text(program)
            program = tmp_path / "program.py"
        done = subprocess.run([python, program, *words], capture_output=True, text=True, timeout=600,
                              env=dict(os.environ, PYTHONPATH=str(Path(dyntrace).parent / "lib" / "python")))
        assert done.returncode == status, done.stdout[-4000:] + done.stderr[-4000:]
        return done
    return run


# ---- what is captured does the same --------------------------------------------

@pytest.mark.slow
def test_captured_corpus_functions_behave_like_uncaptured_ones(alone):
    """Each function of the corpus gives the same captured as uncaptured; corpus.py counts the graphs in its last line."""
    last = alone(CAPTURE / "corpus.py").stdout.splitlines()[-1]
    functions, differ, graphs, nodes = map(int, re.findall(r"\d+", last))
    assert functions > 500 and differ == 0 and graphs > 500, last


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--plain",), ("--hypothesis",)])
def test_captured_random_functions_behave_like_uncaptured_ones(alone, python, words):
    if "--hypothesis" in words and subprocess.run([python, "-c", "import hypothesis"], capture_output=True).returncode:
        pytest.skip("no hypothesis there")
    assert alone(CAPTURE / "random_functions.py", "--count", "150", *words).stdout.startswith("150 functions, 0 differ")


@pytest.mark.slow
def test_captured_functions_keep_object_lifetimes_and_warnings(alone, record, python):
    """Objects die, and warnings come, as without capture. Checked alone and under `dyntrace run`."""
    assert alone(CAPTURE / "lifetimes.py", "0", "80").stdout == "0 of 80 differ\n"
    assert record([CAPTURE / "lifetimes.py", "1000", "30"], python=python).out == "0 of 30 differ\n"


KEPT = """
import weakref, numpy as np, dyntrace
seen = []
class Thing:
    def __init__(self, v):
        self.v, self.big = v, np.zeros(10); print(end="")
def f(x):
    out = []
    out.append(Thing(x))
    seen.append(weakref.ref(out[0]))
    return x + len(out)
class Layer:
    def run(self, x): return x * 2
def g(x):
    return Layer().run(x + len([print(end="")])) + x
def h(x):
    return (x * 2).sum(len([print(end="")]) - 1)
for function in f, g, h:
    captured = dyntrace.compile(function)
    for _ in range(12):
        assert (captured(np.arange(2.0)) == function(np.arange(2.0))).all()
        assert not any(ref() for ref in seen), "alive"
"""


@pytest.mark.slow
def test_capture_keeps_no_dropped_object_alive(alone, record, python, tmp_path):
    """Objects that a captured function makes and drops die with the call. A new bound method on the stack at each call causes no recompile."""
    (tmp_path / "kept.py").write_text(KEPT)
    trace = record(["kept.py"], python=python)
    assert trace.rows("SELECT c.qualname, count(*) FROM compile m JOIN code c USING (code_id) GROUP BY c.qualname HAVING count(*) > 2") == []


GARBAGE = """
import contextlib, gc, inspect, numpy as np, dyntrace
gc.disable()
class Thing:
    def __init__(self, v): self.v = v
def whole(x): return x * 2 + np.cos(x)
def called(x): return whole(x) * 2
def breaks(x):
    with contextlib.nullcontext():
        y = Thing(x * 2)
        print(end="")
        return y.v + 1
def cells(x):
    z = x
    def inner(q):
        nonlocal z
        z = q
        return q + x
    return inner(x * 2) + z
def divides(x): return 1 / np.zeros(4) + x
def generator(x):
    yield x * 2
def changes(x):
    y = x * 2
    y[0] = 1
    return {"a": [y, x]}
def raises(x):
    return called(x + np.ones(17))
def warns(x):
    return np.log(x - x)
def fails(module, inputs): raise RuntimeError("no")
def other(module, inputs): return lambda *args: module.forward(*args)
def a_list(module, inputs): return lambda *args: list(module.forward(*args))
def found(make):
    gc.collect()
    function = make()
    for x in np.ones(4), np.ones(5), np.arange(4), np.ones((2, 2)):
        with contextlib.suppress(ValueError, RuntimeError):
            made = function(x)
            if inspect.isgenerator(made):
                list(made)
    made = x = function = None
    before = gc.collect()
    dyntrace.reset()
    return before, gc.collect()
for f in whole, called, breaks, cells, divides, generator, changes, raises, warns:
    plain = found(lambda: f)
    for options in {}, {"dynamic": True}, *({"backend": one} for one in (fails, other, a_list)):
        captured = found(lambda: dyntrace.compile(f, **options))
        assert captured == plain, (f, options, plain, captured)
    captured = found(lambda: dyntrace.explain(f))
    assert captured == plain, (f, "explain", plain, captured)
"""


def test_captures_leave_no_reference_cycles(alone):
    """The garbage collector finds no more objects than without capture: reference counts alone free what a capture drops."""
    alone(GARBAGE)


METADATA = """
import numpy as np, dyntrace
kinds = [np.dtype("f8", metadata={"x": 1}), np.dtype("f8", metadata={"x": 2}), np.dtype("f8")]
kinds += [np.dtype([("a", kind)]) for kind in kinds] + [np.dtype((kind, (2,))) for kind in kinds]
def f(a): return a.dtype.metadata, a.dtype.fields and a.dtype.fields["a"][0].metadata, a[:1]
def g(a, kind): return kind.metadata, kind.fields and kind.fields["a"][0].metadata, kind.subdtype and kind.subdtype[0].metadata, a + 1
for function in f, g:
    captured = dyntrace.compile(function)
    for kind in kinds + kinds:
        args = (np.zeros(2, kind),) if function is f else (np.ones(2), kind)
        assert str(function(*args)) == str(captured(*args)), (function(*args), captured(*args))
"""


def test_guards_compare_the_metadata_of_dtypes(alone):
    alone(METADATA)


ATTEMPTS = """
import warnings, numpy as np, dyntrace
def inside(x, at):
    try:
        y = np.log(-x)
        return y[at]
    except IndexError:
        return None
def leaves(x, at):
    try:
        return (x / (x - x))[at]
    finally:
        x = None
def manager(x, at):
    with np.errstate(divide="warn"):
        y = x / (x - x)
        return y[at]
def called(x, at):
    return np.sqrt(-x)[at]
def caller(x, at):
    try:
        return called(x, at)
    except IndexError:
        return x
def before(x, at):
    y = np.log(-x)
    try:
        return y[at]
    except IndexError:
        return x
def numbers(x, at):
    try:
        y = np.log(-1.0)
        return x[at] + y
    except IndexError:
        return x
def warned(function):
    found = []
    for at in 0, 0, 99, 0:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                function(np.arange(1.0, 5.0), np.zeros(2, int) + at)
            except IndexError:
                found.append("raised")
            found.append([(str(w.message), w.lineno) for w in caught])
    return found
for function in inside, leaves, manager, caller, before, numbers:
    plain, captured = warned(function), warned(dyntrace.compile(function))
    assert plain == captured and plain[0], (function.__name__, plain, captured)
"""


INVERTED = """
import warnings, numpy as np, dyntrace
def inverted(x, flag):
    return x + ~flag
def attempted(x, flag):
    try:
        return x[3 + ~flag]
    except IndexError:
        return ~flag
def warned(function):
    found = []
    for flag in True, False, True, True:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found.append(np.array(function(np.arange(4.0), flag)).tolist())
            found.append([(str(w.message), w.lineno) for w in caught])
    return found
for function in inverted, attempted:
    plain, captured = warned(function), warned(dyntrace.compile(function))
    assert plain == captured, (function.__name__, plain, captured)
"""


def test_an_operation_on_known_values_warns_at_each_call(alone):
    """CPython 3.12 and later warn of ~ of a bool each time that the operation runs."""
    alone(INVERTED)


def test_captured_operations_inside_try_warn_like_uncaptured_ones(alone):
    """If an operation of a graph raises inside `try`, no operation that has warned runs a second time."""
    alone(ATTEMPTS)


@pytest.mark.slow
def test_program_code_may_change_values_during_a_watched_call(alone):
    """Code of the program changes variables, cells, containers and classes of a watched call. Capture notices this and does not crash."""
    assert alone(CAPTURE / "changed.py").stdout == "24 cases, 0 differ\n"


@pytest.mark.slow
@pytest.mark.parametrize("ways", [(), ("trace",), ("read",), ("trace", "read")], ids="-".join)
def test_threads_capture_functions_with_cells_while_frames_are_read(python, dyntrace, ways):
    """Threads capture, split and call functions with cells while trace functions, or another thread, read their frames."""
    done = subprocess.run([python, "-X", "faulthandler", CAPTURE / "threads.py", "2", *ways], capture_output=True, text=True, timeout=300,
                          env=dict(os.environ, PYTHONPATH=str(Path(dyntrace).parent / "lib" / "python")))
    assert done.returncode == 0 and done.stdout.endswith(" calls, 0 wrong\n"), done.stdout + done.stderr


@pytest.mark.slow
def test_the_corpus_and_random_functions_reveal_a_wrong_compiler(alone):
    """Tests the comparison itself: it finds no difference without a compiler, and finds each compiler that makes one kind of mistake."""
    assert ", 0 differ" in alone(CAPTURE / "corpus.py", "--compile", "identity").stdout
    for wrong, where in {"repeats": "operators", "twice": "effects", "swallows": "exceptions", "copies": "aliasing", "silent": "effects", "late": "exceptions"}.items():
        assert "differs" in alone(CAPTURE / "corpus.py", "--compile", wrong, where, status=1).stdout
        assert wrong in ("silent", "late") or "differs" in alone(CAPTURE / "random_functions.py", "--compile", wrong, "--count", "60", status=1).stdout


# ---- graphs ----------------------------------------------------------------------

GRAPHS = """
import numpy as np, dyntrace
def backend(module, inputs):
    print(module.name, [node.op for node in module.graph.nodes], len(inputs))
    module.print_tabular()
    print(module.code)
    assert str(module(*inputs)) == str(module.forward(*inputs))
    return module
@dyntrace.compile(backend=backend)
def f(a, b=2, *, flip=False):
    '''Its words.'''
    c = np.maximum(a, 0.5)[1:3]
    c = np.add(c, 1, dtype="f8") + -c * b - c.T
    return c if flip else c.reshape((2, -1))
assert f.__name__ == "f" and f.__doc__ == "Its words." and f.__wrapped__
for _ in range(3):
    f(np.arange(4.0))
"""


def test_a_backend_gets_a_graph(alone):
    out = alone(GRAPHS).stdout
    assert out == """__compiled_fn_0 ['placeholder', 'call_function', 'call_function', 'call_function', 'call_function', 'call_function', 'call_function', 'call_function', 'call_function', 'call_method', 'output'] 1
opcode         name       target                       args                          kwargs
-------------  ---------  ---------------------------  ----------------------------  ---------------
placeholder    a          a                            ()                            {}
call_function  maximum    <ufunc 'maximum'>            (a, 0.5)                      {}
call_function  getitem    <built-in function getitem>  (maximum, slice(1, 3, None))  {}
call_function  add        <ufunc 'add'>                (getitem, 1)                  {'dtype': 'f8'}
call_function  neg        <built-in function neg>      (getitem,)                    {}
call_function  mul        <built-in function mul>      (neg, 2)                      {}
call_function  add_1      <built-in function add>      (add, mul)                    {}
call_function  getattr_1  <built-in function getattr>  (getitem, 'T')                {}
call_function  sub        <built-in function sub>      (add_1, getattr_1)            {}
call_method    reshape    reshape                      (sub, (2, -1))                {}
output         output     output                       ((reshape,),)                 {}
def forward(a):
    maximum = numpy_maximum(a, 0.5)
    getitem = maximum[slice(1, 3, None)];  maximum = None
    add = numpy_add(getitem, 1, dtype='f8')
    neg = -getitem
    mul = neg * 2;  neg = None
    add_1 = add + mul;  add = mul = None
    getattr_1 = getitem.T;  getitem = None
    sub = add_1 - getattr_1;  add_1 = getattr_1 = None
    reshape = sub.reshape((2, (-1),));  sub = None
    return (reshape,)

"""


def test_functions_are_captured_near_the_recursion_limit(alone):
    """The Python calls with which dyntrace makes code and graphs do not count against the recursion limit of the program."""
    done = alone("""
import inspect, sys, numpy as np, dyntrace
x = np.ones(3)
for room in range(6, 31):
    def f(x):
        return x * 2 + 1
    g = dyntrace.compile(f)
    sys.setrecursionlimit(len(inspect.stack(0)) + room)
    try:
        y = g(x)
    finally:
        sys.setrecursionlimit(1000)
    graphs = []
    dyntrace.compile(f, backend=lambda module, inputs: graphs.append(module) or module.forward)(x)
    print(y.tolist(), len(graphs))
    dyntrace.reset()
""").stdout.splitlines()
    assert done == ["[3.0, 3.0, 3.0] 1"] * 25


@pytest.mark.slow
def test_graph_memory_is_bounded_and_nodes_are_named_as_by_torch_fx(alone):
    """1,000 nodes in at most 1 MB; names as torch.fx makes them."""
    done = alone("""
import gc, tracemalloc, types, numpy as np, dyntrace
scope = {"np": np}
exec("def f(x):\\n" + "    x = np.sin(x) + 1.5\\n" * 500 + "    return x", scope)
kept = []
def backend(module, inputs):
    kept.append(module)
    return module.forward
first, x = scope["f"], np.ones(3)
f = dyntrace.compile(types.FunctionType(first.__code__.replace(co_name="second"), scope), backend=backend)
dyntrace.compile(first, backend=backend)(x)  # its names are interned, for which CPython makes a table of 400 kB at some number of them
tracemalloc.start()
before = tracemalloc.get_traced_memory()[0]
f(x)
gc.collect()  # empties the free lists
print(tracemalloc.get_traced_memory()[0] - before)
print(*[node.name for node in kept[-1].graph.nodes][:5], kept[-1].graph.nodes[-2].name, len(kept[-1].graph.nodes))
""").stdout.splitlines()
    assert int(done[0]) <= 1 << 20
    assert done[1] == "x sin add sin_1 add_1 add_499 1002"


# ---- the front -------------------------------------------------------------------

def test_compile_disable_and_explain_check_their_arguments(alone):
    """compile(), disable(), graph_break() and explain() work; wrong arguments raise an exception with a clear message."""
    out = alone("""
import numpy as np, dyntrace
counts = []
def counting(module, inputs):
    counts.append(len(module.graph.nodes))
    return module.forward
def said(call):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, error)
x = np.ones(3)
class Layer:
    def __call__(self, v): return v * 2
    def method(self, v): return v + self.n
    n = 3
    @dyntrace.compile(backend=counting)
    def inside(self, v): return v - self.n
layer = Layer()
print(dyntrace.compile(layer, backend=counting)(x), dyntrace.compile(layer.method, backend=counting)(x), layer.inside(x), Layer.inside(layer, x), len(counts))
@dyntrace.disable
def apart(v): return v + 1
@dyntrace.compile(backend=counting)
def broken(v):
    v = v * 2
    dyntrace.graph_break()
    v = apart(v)
    return v * 3
del counts[:]
print(broken(x), broken(x), len(counts))
e = dyntrace.explain(broken)(x)
print(repr(e), e.graph_count, e.graph_break_count, e.op_count, e.result)
said(lambda: dyntrace.compile(lambda v: broken(v), fullgraph=True)(x))
said(lambda: dyntrace.compile(3))
said(lambda: dyntrace.compile(Layer))
said(lambda: dyntrace.compile(apart, backend="inductor"))
said(lambda: dyntrace.compile(apart, backend=3))
said(lambda: dyntrace.compile(apart, dynamic=3))
said(lambda: dyntrace.compile(lambda v: v + 1, backend=lambda module, inputs: 3)(x))
said(lambda: dyntrace.compile(lambda v: v + 1, backend=lambda module, inputs: 1 / 0)(x))
said(lambda: dyntrace.register_array(3))
dyntrace.reset()
print(dyntrace.explain(lambda v: v + 1)(x).graphs)
""").stdout.splitlines()
    assert out[0] == "[2. 2. 2.] [4. 4. 4.] [-2. -2. -2.] [-2. -2. -2.] 3"
    assert out[1] == "[9. 9. 9.] [9. 9. 9.] 2"
    assert out[2].endswith(" [9. 9. 9.]") and out[2].startswith("<2 graphs, 2 breaks, 2 operations> 2 2 2")
    assert out[3].startswith("GraphBreak ")
    text = "\n".join(out)
    assert "TypeError compile() takes a function, a method or an object that can be called, not a int" in text
    assert "TypeError compile() takes a function, a method or an object that can be called, not a class" in text
    assert "ValueError no backend is called 'inductor': eager, or give a function (graph_module, example_inputs) -> callable" in text
    assert "TypeError a backend is a name or a function (graph_module, example_inputs) -> callable, not a int" in text
    assert "TypeError dynamic is 3: None, True or False" in text
    assert "TypeError the backend returned a int for __compiled_fn_" in text and "ZeroDivisionError division by zero" in text
    assert "TypeError register_array() takes a class, not a int" in text
    assert out[-1] == "[GraphModule(__compiled_fn_0, 3 nodes)]"


def test_keyboard_interrupt_and_memory_error_during_a_split_are_raised(alone):
    """KeyboardInterrupt from a signal handler leaves the call at once; after another exception the function runs as Python."""
    out = alone("""
import numpy as np, dyntrace
from dyntrace import resume
def fails(code, offset):
    raise error
resume._split_without_prefix = fails
for error in KeyboardInterrupt("a handler's"), MemoryError():
    @dyntrace.compile
    def f(v):
        v = v * 2
        print("a break")
        return v + 1
    for _ in range(2):
        try:
            print(f(np.ones(2)))
        except BaseException as raised:
            print(repr(raised))
""").stdout.splitlines()
    assert out == ["KeyboardInterrupt(\"a handler's\")"] * 2 + ["a break", "[3. 3.]"] * 2


def test_program_variables_named_like_generated_ones_keep_their_values(alone):
    """The code for a break keeps stack values in variables ___stack0, ___stack1 and so on. The program may have variables of these names,
    and may call the first part of a split function, which uses them."""
    out = alone("""
import types
import numpy as np, dyntrace
from dyntrace import eval_frame, resume
def named(x):
    ___stack0 = x * 2
    ___stack1 = x * 3
    ___stack2 = x * 4
    print("a break")
    return ___stack0 + ___stack1 + ___stack2
kept = []
def appends(x):
    kept.append(x)
    return x + 1
x = np.ones(2)
compiled = dyntrace.compile(named)
for _ in range(3):
    print(compiled(x))
splits = [resume.split(appends.__code__, offset) for offset in resume.points(appends.__code__)]
for split in splits:
    first = dyntrace.compile(types.FunctionType(split.prefix, globals()))
    for _ in range(3):
        print(first(x), end=" ")
print(len(kept) == 3 * len(splits))
""").stdout.splitlines()
    assert out[:6] == ["a break", "[9. 9.]"] * 3
    assert out[6].replace("[2. 2.] ", "") == "True"


def test_a_break_reason_may_truncate_a_long_name(alone):
    """The reason of a break has only the start of a long name, which may end in the middle of a character. The call still returns its result."""
    assert alone("""
import numpy as np, dyntrace
exec("def f(x, c):\\n    y = x + 1\\n    z = c.a%s\\n    return y * z\\n" % ("\u00e9" * 70))
class C:
    def __getattr__(self, name):
        return len(name)
f = dyntrace.compile(f)
print(f(np.ones(2), C()), f(np.zeros(2), C()))
""").stdout == "[142. 142.] [71. 71.]\n"


def test_a_function_without_builtins_is_captured(alone):
    """Capture imports the modules that it needs before it watches the function, which may lack __import__."""
    assert alone("""
import itertools, types, numpy as np, dyntrace
def f(x, l):
    x = np.sin(x) * 0 + total(l, start=2) + most(l) + other(l)[0]
    for a in chain(l, l):
        x = x + a
    return x
f = dyntrace.compile(types.FunctionType(f.__code__, {"__builtins__": {}, "np": np, "total": sum, "most": max, "other": sorted, "chain": itertools.chain}))
print(f(np.ones(2), [1, 2, 3]), f(np.ones(2), [1, 2, 3]))
""").stdout == "[24. 24.] [24. 24.]\n"


def test_operations_on_a_registered_class_go_into_graphs(alone):
    out = alone("""
import dyntrace
@dyntrace.register_array
class Array:
    def __init__(self, values): self.values = list(values)
    def __add__(self, n): return Array(v + n for v in self.values)
    def total(self): return sum(self.values)
e = dyntrace.explain(lambda a: (a + 1).total())(Array([1, 2]))
print(e.result, *[node.name for node in e.graphs[0].graph.nodes])
""").stdout
    assert out == "5 a add output\n"  # what total() gives is no array


def test_a_graph_with_an_integer_too_long_to_print_works(record, python):
    """A graph may have an integer with so many digits that Python refuses to convert it to a string."""
    trace = record(["-c", """
import dyntrace
@dyntrace.register_array
class Array:
    def __init__(self, value): self.value = value
    def __add__(self, n): return Array(self.value + n)
    def plus(self, numbers): return self + numbers[0]
big = 10 ** 5000
def added(x):
    return (x + big).plus([-2 * big])
captured, explained = dyntrace.compile(added), dyntrace.explain(added)(Array(1))
assert captured(Array(1)).value == captured(Array(1)).value == explained.result.value == 1 - big
assert explained.graph_count == 1 and str(explained).count("cannot be shown") == 2, str(explained)
"""], python=python)
    assert trace.rows("SELECT count(*) FROM graph_node WHERE args LIKE '%cannot be shown: ValueError%'") == [(4,)]


def test_import_dyntrace_does_not_import_capture(alone):
    """`import dyntrace` does not import dyntrace.capture and its modules."""
    out = alone("import sys, dyntrace\nprint(sorted(name for name in sys.modules if 'dyntrace' in name))").stdout
    assert out == "['dyntrace', 'dyntrace._native', 'dyntrace.config', 'dyntrace.record']\n"


# ---- seed 003 --------------------------------------------------------------------

TABLE = """opcode         name      target                       args              kwargs
-------------  --------  ---------------------------  ----------------  ------
placeholder    a         a                            ()                {}
placeholder    b         b                            ()                {}
call_function  absolute  <ufunc 'absolute'>           (a,)              {}
call_function  add       <built-in function add>      (absolute, 1)     {}
call_function  truediv   <built-in function truediv>  (a, add)          {}
call_method    sum_1     sum                          (b,)              {}
call_function  lt        <built-in function lt>       (sum_1, 0)        {}
output         output    output                       ((truediv, lt),)  {}
"""


def sections(text):
    """What an Explanation prints, by its headings."""
    return re.findall(r"^((?:__compiled_fn_\d+ <|ORIGINAL BYTECODE|MODIFIED BYTECODE|GRAPH BREAK|GUARDS:)[^\n]*)\n(.*?)(?=^__compiled_fn_\d+ <|^ORIGINAL|^MODIFIED|^GRAPH BREAK|^GUARDS|\Z)", text, re.M | re.S)


def test_explain_prints_graphs_bytecode_and_guards_of_toy_example(alone, tmp_path):
    """explain() prints the graph, the original and modified bytecode and the guards; then the same for the resume function."""
    assert alone(TOY).stdout.startswith(TABLE)
    text = TOY.read_text().partition("for step")[0] + "print(dyntrace.explain(toy_example)(np.ones(10), np.full(10, -1.0)))"
    found = sections(alone(text).stdout)
    heads = [head.partition(" <")[0].partition(str(tmp_path))[0] for head, _ in found]
    name = heads[6 - 1].partition("__resume")[0]
    assert heads[:2] + heads[2:3] == ["__compiled_fn_0", "ORIGINAL BYTECODE toy_example ", "MODIFIED BYTECODE"], (heads, name)
    assert found[0][1] == TABLE + "\n"
    assert found[1][0].endswith("program.py %d" % (1 + text[:text.index("@dyntrace.compile")].count("\n")))
    modified = found[2][1]
    assert "__compiled_fn_0" in modified and len(set(re.findall(r"__resume_at_\d+_\d+", modified))) == 2, modified
    assert found[3][0].startswith("GRAPH BREAK at ") and ": whether a numpy.bool is true decides what runs" in found[3][0]
    assert sorted(found[4][1].split("\n")) == ["", "", " - global 'np'.abs FUNCTION_MATCH", " - local 'a' TENSOR_MATCH", " - local 'b' TENSOR_MATCH"]
    resume = found[5:]
    assert resume[0][0].startswith("__compiled_fn_1 <") and re.search(r"mul_1 .*\(x, mul\)", resume[0][1])
    assert re.match(r"ORIGINAL BYTECODE __resume_at_\d+_\d+ ", resume[1][0]) and [head.split()[0] for head, _ in resume[2:]] == ["MODIFIED", "GUARDS:"]


@pytest.fixture(scope="module")
def toy(dyntrace, python, tmp_path_factory):
    if subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode:
        pytest.skip("no numpy there")
    trace = tmp_path_factory.mktemp("toy") / "toy.db"
    done = subprocess.run([dyntrace, "run", "-o", trace, "--python", python, TOY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return holds(trace)


def test_show_and_why_report_the_graph_and_break_of_toy_example(toy, dyntrace):
    """`show`, `why` and the views report graph, bytecode before and after, guards, the break and its resume functions."""
    shown = subprocess.run([dyntrace, "show", "toy_example", toy], capture_output=True, text=True).stdout
    assert "graph __compiled_fn_0, 8 nodes" in shown and "call_method    sum_1     sum" in shown
    assert "bytecode before" in shown and "bytecode after" in shown and re.search(r"TENSOR_MATCH +a\b", shown)
    page = subprocess.run([dyntrace, "why", "toy_example", toy], capture_output=True, text=True).stdout
    assert "line 18" in page and "whether a numpy.bool is true decides what runs" in page, page
    (line, reason), = set(query(toy, "SELECT line, reason FROM graph_breaks WHERE qualname = 'toy_example'"))
    assert line == 18 and reason
    names = query(toy, "SELECT DISTINCT qualname FROM code WHERE kind = 'resume'")
    assert len(names) == 2 and all(re.fullmatch(r"__resume_at_\d+_\d+", name) for name, in names)


# ---- run --capture ---------------------------------------------------------------

SCRIPT = """
import sys, threading, numpy as np
def work(x):
    y = np.sin(x) + 1
    print("half")
    return y * 2
class Model:
    def __init__(self, n): self.n = n
    def __call__(self, x): return work(x * self.n)
total = Model(3)(np.ones(4)).sum() + Model(3)(np.zeros(4)).sum()
t = threading.Thread(target=lambda: print(work(np.ones(2)).sum()))
t.start(); t.join()
print(total, sys.argv, [name for name in sys.modules if name == "dyntrace.capture"])
sys.exit(3)
"""


def test_run_capture_captures_an_unchanged_script(alone, dyntrace, python, record, tmp_path):
    plain = alone(SCRIPT, status=3)
    trace = record([tmp_path / "program.py"], "--capture", python=python, status=3)
    assert plain.stdout.replace("[]", "['dyntrace.capture']") == trace.out and trace.err == ""
    holds(trace)
    graphs = trace.rows("SELECT qualname, count(*) FROM graph JOIN compiles USING (compile_id) GROUP BY 1 ORDER BY 1")
    assert "work" in dict(graphs), graphs
    assert trace.rows("SELECT count(*) FROM graph_breaks WHERE qualname = 'work'")[0][0] >= 1
    assert trace.rows("SELECT count(*) FROM compiles WHERE filename NOT LIKE '%program.py'") == [(0,)]
    module = record(["-m", "program"], "--capture", python=python, status=3, cwd=tmp_path)
    assert module.out.splitlines()[:4] == trace.out.splitlines()[:4]
    assert dict(module.rows("SELECT qualname, count(*) FROM graph JOIN compiles USING (compile_id) GROUP BY 1"))["work"]


LOOKED_AT = """
import gc
import numpy

class Plain:
    def __init__(self):
        self.number, self.array = 1, None

def read(o):
    return o.number

def add(o, x):
    return x + o.number

o = Plain()
print(read(o), add(o, numpy.ones(2)), [type(what).__name__ for what in gc.get_referents(o)])
"""


def test_capture_creates_no_dict_of_an_object(alone, python, record, tmp_path):
    """CPython creates the __dict__ of an object when code reads it, which the program can notice with gc. Capture creates no dict."""
    plain = alone(LOOKED_AT)
    assert "dict" not in plain.stdout
    assert record([tmp_path / "program.py"], "--capture", python=python).out == plain.stdout


RAISES = """
import dyntrace, numpy as np, sys, threading
@dyntrace.compile
def raises(x, i):
    return x[i] + 1
def call(i):
    try:
        raises(np.ones(3), np.array([i]))
    except IndexError:
        print("raised")
for i in (0, 0, 9, 9):
    call(i)
seen = []
sys.settrace(lambda frame, event, value: seen.append(frame.f_code.co_name))
call(9)
sys.settrace(None)
print([name for name in seen if name in ("raises", "raised")])
"""


def test_a_call_whose_graph_raises_is_recorded_once(alone, python, record, tmp_path):
    """The function that corrects the traceback is no call of the program: neither the recording nor a trace function gets it."""
    assert alone(RAISES).stdout == "raised\n" * 3 + "['raises']\n"
    trace = record([tmp_path / "program.py"], python=python)
    assert trace.rows("SELECT count(*) FROM frames WHERE qualname = 'raises' AND filename LIKE '%program.py'") == [(5,)]
    assert trace.rows("SELECT count(*) FROM frames WHERE qualname = 'Plan.raised'") == [(0,)]


LAST = """
import gc, numpy as np, os, sys
class Last:
    def __init__(self):
        self.itself, self.x = self, np.ones(3)
    def __del__(self, write=os.write, error=Exception):
        write(1, b"deleted\\n")
        y = self.x * 2
        try:
            import math
        except error:
            write(1, b"no modules\\n")
        return y
gc.disable()
Last()
gc.collect()      # compiled
sys.last = Last() # in a cycle: it goes when the modules have gone
"""


def test_destructors_at_interpreter_exit_run_under_run_capture(record, python, tmp_path):
    """At interpreter exit sys.modules is gone: capture watches no call, and no guard reads sys.modules."""
    (tmp_path / "program.py").write_text(LAST)
    plain = subprocess.run([python, tmp_path / "program.py"], capture_output=True, text=True)
    if "numpy" in plain.stderr:
        pytest.skip("no numpy there")
    assert plain.returncode == 0 and plain.stdout.endswith("no modules\n")
    assert record([tmp_path / "program.py"], "--capture", python=python).out == plain.stdout


@pytest.mark.one_python
@pytest.mark.parametrize("words, said", [
    (["--frames", "none"], "--capture needs the hook that --frames none leaves out: give one of the two"),
    (["--torch", "shim"], "--capture compiles, and --torch shim watches torch compile: give one of the two"),
    (["--torch", "observe"], "--capture compiles, and --torch observe watches torch compile: give one of the two")])
def test_run_capture_refuses_conflicting_options(run, tmp_path, words, said):
    done = run("run", "--capture", *words, "-o", tmp_path / "t.db", "-c", "1")
    assert (done.returncode, one_line(done.stderr)) == (2, f"dyntrace: run: {said}\n")
    assert not (tmp_path / "t.db").exists()
