"""Programs that are not kind to whoever watches torch: other evaluators, patches, odd objects, signals, fork, sudden death.

Each program runs alone and then recorded in each mode, and prints, ends and fails alike. A torch import takes seconds,
so a program holds many cases.
"""
import contextlib
import functools
import os
import sqlite3
import subprocess
import textwrap

import pytest

from torch_here import MODES
from test_programs import lines_of

pytestmark = pytest.mark.slow

HEAD = """
    import os, sys
    import torch
    ran, act = [], None
    def backend(graph, inputs):
        ran.append(1)
        if act:
            act()
        return graph.forward
    def C(function, **more):
        return torch.compile(function, backend=backend, **more)
    def out(*what):
        print(*what, flush=True)
    one = torch.ones(2)
"""

# An evaluator of somebody else's, who calls what was in the slot before.
EVALUATOR = """
#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
static _PyFrameEvalFunction before;
static long seen, depth;
static PyObject *evaluate(PyThreadState *ts, struct _PyInterpreterFrame *frame, int throwing)
{
    PyObject *result;
    seen++;
    if (++depth > 100000)
        Py_FatalError("evaluators call each other in a circle");
    result = before(ts, frame, throwing);
    depth--;
    return result;
}
#define INTERPRETER PyInterpreterState_Get()
static PyObject *install(PyObject *m, PyObject *none)
{
    before = _PyInterpreterState_GetEvalFrameFunc(INTERPRETER);
    _PyInterpreterState_SetEvalFrameFunc(INTERPRETER, evaluate);
    Py_RETURN_NONE;
}
static PyObject *take_out(PyObject *m, PyObject *none)
{
    int mine = _PyInterpreterState_GetEvalFrameFunc(INTERPRETER) == evaluate;
    if (mine)
        _PyInterpreterState_SetEvalFrameFunc(INTERPRETER, before);
    return PyBool_FromLong(mine);
}
static PyObject *has_seen(PyObject *m, PyObject *none)
{
    long count = seen;
    seen = 0;
    return PyBool_FromLong(count > 0);
}
static PyMethodDef methods[] = {
    {"install", install, METH_NOARGS, ""}, {"remove", take_out, METH_NOARGS, ""}, {"seen", has_seen, METH_NOARGS, ""}, {0},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "other", 0, -1, methods};
PyMODINIT_FUNC PyInit_other(void) { return PyModule_Create(&definition); }
"""

PROGRAMS = {}


def program(name, text, head=HEAD):
    PROGRAMS[name] = textwrap.dedent(head) + textwrap.dedent(text)


class Done:
    def __init__(self, done, path):
        self.status, self.out, self.err, self.path = done.returncode, done.stdout, done.stderr, path
        if self.status < 0:
            self.status = 128 - self.status

    def rows(self, sql, *values):
        with contextlib.closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as db:
            return db.execute(sql, values).fetchall()

    def compiles(self, name):
        return self.rows("SELECT m.outcome FROM compile m JOIN code USING (code_id) WHERE qualname = ? ORDER BY compile_id", name)

    def lost(self):
        return [cause for cause, in self.rows("SELECT cause FROM loss WHERE cause NOT LIKE 'stall%'")]


@pytest.fixture(scope="module")
def run(dyntrace, python, tmp_path_factory):
    """run(program, mode or "plain", *options) -> Done. Each once; one after the other."""
    folder = tmp_path_factory.mktemp("hostile")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "PYTHON"))}
    environment.update(PYTHONHASHSEED="0", OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")

    @functools.cache
    def other():
        ask = "import sysconfig; print(sysconfig.get_path('include'), sysconfig.get_config_var('EXT_SUFFIX'))"
        include, suffix = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.split()
        (folder / "other.c").write_text(EVALUATOR)
        built = subprocess.run(["gcc", "-O1", "-w", "-shared", "-fPIC", f"-I{include}", "-o", folder / f"other{suffix}",
                                folder / "other.c"], capture_output=True, text=True)
        if built.returncode:
            pytest.skip("no compiler or headers: " + built.stderr[-300:])

    @functools.cache
    def run(name, mode, *options):
        if "import other" in PROGRAMS[name]:
            other()
        script = folder / f"{name}.py"
        script.write_text(PROGRAMS[name])
        path = folder / f"{name}-{mode}-{'-'.join(options)}.db".replace("/", "_").replace("*", "_")
        command = [python, script]
        if mode != "plain":
            command = [dyntrace, "run", "--torch", mode, *(options or ("--frames", "user")), "-o", path, "--python", python, script]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=280, stdin=subprocess.DEVNULL)
        if mode != "plain":
            fsck = subprocess.run([dyntrace, "fsck", path], capture_output=True, text=True)
            assert fsck.returncode == 0, fsck.stdout + fsck.stderr
        return Done(done, path)
    return run


@pytest.fixture
def same(run):
    """same(program, mode) -> the recorded one, which did as alone."""
    def same(name, mode, *options):
        alone, traced = run(name, "plain"), run(name, mode, *options)
        assert alone.out, alone.err
        assert (traced.status, traced.out) == (alone.status, alone.out), traced.err[-4000:]
        assert lines_of(traced.err, False) == lines_of(alone.err, False)
        return traced
    return same


modes = pytest.mark.parametrize("mode", MODES)


# ---- others in the slot ----

WORK = """
    def g(x): return x * 2
    def f(x): return g(x) + 1
    def work(what, tell=True):
        torch._dynamo.reset()
        del ran[:]
        c = C(f)
        shapes = [tuple(c(torch.ones(n)).shape) for n in (2, 2, 3)]
        try:
            C(lambda x: (print("break"), x + 1), fullgraph=True)(one)
        except Exception as error:
            shapes.append(type(error).__name__)
        out(what, shapes, len(ran), tell and other.seen())
"""
program("evaluator_before", """
    import other
    other.install()
""" + HEAD + WORK + """
    work("it lies below")
    out(other.remove())
    work("it is gone or still below")
""", head="import sys; sys.path.insert(0, '.')\n")
program("evaluator_after", WORK + """
    sys.path.insert(0, ".")
    import other, torch._dynamo
    other.install()
    work("it lies above")
    other.remove()  # which it can where the evaluator of torch.compile is not put above it
    work("it is gone or lies below", False)
""")


@modes
def test_with_an_evaluator_set_before_torch_we_only_observe(same, mode):
    trace = same("evaluator_before", mode)
    note, = trace.rows("SELECT torch_mode, torch_note FROM process")
    assert note[0] == "observe" and (mode == "observe" or note[1])  # the canary has noticed


@modes
def test_an_evaluator_set_after_torch_works_as_without_us(same, mode):
    same("evaluator_after", mode)


@pytest.mark.parametrize("name", ["evaluator_before", "evaluator_after"])
def test_compiles_that_another_evaluator_hides_are_recorded_as_a_loss(same, name):
    trace = same(name, "observe")
    assert len(trace.compiles("f")) == 4 or trace.lost()


# ---- patches ----

program("patched_before", """
    module, calls = torch._C._dynamo.eval_frame, []
    real = module.set_eval_frame
    def wrapper(callback):
        calls.append(callback)
        return real(callback)
    module.set_eval_frame = wrapper
    f = C(lambda x: x + 1)
    out([tuple(f(torch.ones(n)).shape) for n in (2, 2, 3)], len(ran), len(calls))
""")
program("patched_after", """
    import torch._dynamo
    from torch._dynamo import convert_frame, eval_frame
    module, calls = torch._C._dynamo.eval_frame, []
    inner, ask = module.set_eval_frame, convert_frame.ConvertFrame.__call__
    real = getattr(eval_frame, "set_eval_frame", inner) # torch 2.6 takes it from the other module each time
    def asked(self, frame, *args, **named):
        calls.append(frame.f_code.co_name)
        return ask(self, frame, *args, **named)
    convert_frame.ConvertFrame.__call__ = asked
    eval_frame.set_eval_frame = lambda callback: (calls.append(1), real(callback))[1]
    module.set_eval_frame = lambda callback: (calls.append(2), inner(callback))[1]
    def g(x):
        print("in g")
        return x * 2
    @C
    def f(x): return g(x) + 1
    for n in 2, 2, 3:
        out(f(torch.ones(n)))
    out(calls, len(ran))
    # a callback of the program's own
    def h(x): return x
    def mine(frame, entry, state):
        calls.append("mine " + frame.f_code.co_name)
        return convert_frame.ConvertFrameReturn() if hasattr(convert_frame, "ConvertFrameReturn") else None
    old = inner(mine)
    h(1), h(2)
    out(inner(old) is mine, calls[-2:])
    # guards whose text is none, and functions that go away
    from torch._dynamo import guards
    wrapper, text = guards.GuardManagerWrapper, guards.GuardManagerWrapper.__str__
    for odd in (lambda self: "", lambda self: "\\ud800 ()[ +- Tree\\n" * 50, lambda self: 1 / 0, lambda self: None):
        wrapper.__str__ = odd
        torch._dynamo.reset()
        out([tuple(f(torch.ones(n, n)).shape) for n in (2, 2, 3)])
    wrapper.__str__ = text
    wrapper.__getattribute__ = lambda self, name: object.__getattribute__(self, name)
    for name in list(sys.modules):
        if name.split(".")[0] in ("dyntrace", "_dyntrace"):
            sys.modules[name] = None
    for name in "set_guard_error_hook", "_debug_get_cache_entry_list":
        delattr(module, name)
    torch._dynamo.reset()
    del calls[:]
    out(f(torch.ones(5)), calls)
""")


@modes
def test_a_program_that_patches_torch_first_works_as_without_us(same, mode):
    same("patched_before", mode)


@modes
def test_a_program_that_patches_torch_later_works_as_without_us(same, mode):
    trace = same("patched_after", mode)
    assert trace.rows("SELECT torch_mode FROM process") == [(mode,)]
    assert {outcome for outcome, in trace.compiles("f")} == {"compiled"}
    assert trace.compiles("h") == [("skipped",)]


# The functions that set what calls do, and those that ask, as far as this torch has them.
program("settings", """
    module = torch._C._dynamo.eval_frame
    def call(name, *values):
        if not hasattr(module, name):
            return
        try:
            got = getattr(module, name)(*values)
        except Exception as error:
            got = type(error).__name__, str(error)
        out(name, len(got) if isinstance(got, list) else got)
    def f(x): return x + 1
    c = C(f, dynamic=False)
    for n in 2, 3, 3:
        c(torch.ones(n))
    code = f.__code__
    call("_debug_get_cache_entry_list", code), call("_get_total_cache_entry_count", code), call("_debug_get_precompile_entries", code)
    for region in -1, 0, 7:
        call("_get_cache_entries_for_region", code, region)
    for name in "_get_total_cache_entry_count", "_debug_get_precompile_entries":
        call(name, C.__code__)
    if hasattr(module, "_load_precompile_entry"):
        entry = module._debug_get_cache_entry_list(code)[0]
        def other(x): return x + 2
        module._load_precompile_entry(other.__code__, entry.guard_manager, entry.code.replace())
        call("_debug_get_precompile_entries", other.__code__), call("_get_total_cache_entry_count", other.__code__)
        out(C(other)(torch.ones(3 if entry.guard_manager.check({"x": torch.ones(3)}) else 2)))
        call("_reset_precompile_entries", other.__code__), call("_debug_get_precompile_entries", other.__code__)
    for limit in 5000, 1, 0, -1, -2:
        call("set_c_recursion_limit", limit), call("get_c_recursion_limit")
    hits = []
    hook = lambda hit: (hits.append(hit), hit)[1]
    out(call("set_guard_complete_hook", hook))
    c(torch.ones(3)), c(torch.ones(4))
    if hasattr(module, "set_guard_complete_hook"):
        out(module.set_guard_complete_hook(None) is hook, module.set_guard_complete_hook(None), hits)
    seen = []
    debugger = lambda code: seen.append(code.co_name)
    if hasattr(module, "set_bytecode_debugger_callback"):
        out(module.get_bytecode_debugger_callback(), module.set_bytecode_debugger_callback(debugger))
        c(torch.ones(3))
        out(module.get_bytecode_debugger_callback() is debugger, module.set_bytecode_debugger_callback(None), seen)
        out(module.get_bytecode_debugger_callback(), module.register_breakpoint_code(C.__code__))
        c(torch.ones(3))
""")


@pytest.mark.parametrize("mode", MODES)
def test_torchs_internal_setters_and_getters_work_as_without_us(same, mode):
    same("settings", mode)


# A break in what was inlined, where this torch stays within it.
program("nested_breaks", """
    import torch._dynamo
    if hasattr(torch._dynamo.config, "nested_graph_breaks"):
        torch._dynamo.config.nested_graph_breaks = True
    def inner(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2
    def mid(x): return inner(x) + 3
    def last(x):
        y = x + 1
        return torch._dynamo.graph_break()
    def f(x):
        with torch.no_grad():
            y = mid(x)
        last(x)
        return mid(y) + y.sum().item()
    for function in f, last, lambda x: last(x):
        c = C(function)
        out(c(one), c(torch.ones(3)), len(ran))
""")


@modes
def test_graph_breaks_in_inlined_functions_are_recorded(same, mode):
    trace = same("nested_breaks", mode)
    assert trace.rows("SELECT COUNT(*) > 3 FROM graph_break") == [(1,)]


program("switched_off", """
    from torch._dynamo import types
    set_eval_frame = torch._C._dynamo.eval_frame.set_eval_frame
    skip = types.FrameExecStrategy(types.FrameAction.SKIP, types.FrameAction.DEFAULT) if hasattr(types, "FrameAction") else None
    asked = []
    def callback(frame, *rest):
        asked.append(frame.f_code.co_name)
        if frame.f_code.co_name == "bad":
            raise KeyError
        return skip and types.ConvertFrameReturn(frame_exec_strategy=skip)
    def leaf(): pass
    def off(): set_eval_frame(None)
    def bad(): pass
    def by_a_callee():
        leaf(), leaf(), off(), leaf()
    def by_an_error():
        leaf()
        try:
            bad()
        except KeyError:
            leaf()
        set_eval_frame(None)
    set_eval_frame(callback)
    off()
    for work in by_a_callee, by_an_error:
        set_eval_frame(callback)
        work()
    out(asked)
""")


@modes
def test_a_callback_removed_in_the_middle_of_a_frame_decides_no_later_call(same, mode):
    """A callee removes the callback, or an error in the callback does. Later calls are recorded as plain."""
    trace = same("switched_off", mode)
    assert trace.rows("SELECT e.name FROM frame f JOIN code c USING (code_id) JOIN enum e ON e.kind = 'outcome' AND e.value = f.outcome"
                      " WHERE c.qualname = 'leaf' ORDER BY f.frame_id") == [
        ("declined",), ("skip",), ("plain",), ("skip",), ("plain",)]


# ---- objects ----

program("objects", """
    import gc
    say = []
    def note(what, error=None):
        say.append(what)
        if error:
            raise error
    class Odd:
        v = 3
        def __repr__(self): note("repr", RuntimeError())
        def __eq__(self, other): note("eq", RuntimeError())
        def __hash__(self): note("hash"); return 1
        def __len__(self): note("len", RuntimeError())
        def __bool__(self): note("bool", SystemExit(3))
        def __iter__(self): note("iter", RuntimeError())
        def __del__(self): note("del")
    class OddClass:
        @property
        def __class__(self): return int
    class OddStr(str):
        def __str__(self): note("str", RuntimeError())
        __repr__ = __len__ = __eq__ = __str__
        __hash__ = str.__hash__
    class OddInt(int):
        def __repr__(self): note("int repr", SystemExit(3))
        __str__ = __repr__
    class OddDict(dict):
        def __len__(self): note("dict len", RuntimeError())
        def items(self): note("items", RuntimeError())
        def __iter__(self): note("dict iter", RuntimeError())
    class Meta(type):
        def __repr__(cls): note("meta repr", RuntimeError())
        def __instancecheck__(cls, o): note("instancecheck"); return True
        def __getattribute__(cls, name): note("meta " + name); return type.__getattribute__(cls, name)
    class M(metaclass=Meta):
        v = 6
    class Raises(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None): note("tf", RuntimeError("tf"))
    class Counts(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            note("tf " + getattr(function, "__name__", ""))
            return super().__torch_function__(function, types, args, kwargs or {})
    @C
    def attribute(x, o): return x + o.v
    @C
    def item(x, o): return x + o["a"]
    @C
    def many(x, *a, **b): return x + 1
    @C
    def unused(x, o): return x * 2
    def t(function, *args, **named):
        del say[:], ran[:]
        try:
            result = tuple(function(*args, **named).shape)
        except BaseException as error:
            result = type(error).__name__
        out(function.__name__, result, len(ran), len(say), say[:50])
    for n in 2, 3, 4:
        x = torch.ones(n)
        t(attribute, x, Odd())
        t(attribute, x, M())
        for value in (Odd(), OddClass(), OddStr("a"), OddInt(4), OddDict(a=1), M, Raises(), 10 ** 5000, "x" * 10 ** 6, "\\ud800",
                      {i: i for i in range(30000)}, [1] * 100000, float("nan"), b"\\xff", range(10 ** 9), sys, iter([]), Odd):
            t(unused, x, value)
        t(many, x, *range(300), **{f"a{i}": i for i in range(300)})
        t(item, x, {"a": 1, "b": Odd()})
        t(item, x, OddDict(a=1))
        t(unused, torch.ones(2).as_subclass(Counts), 1)
        t(unused, torch.ones(2).as_subclass(Raises), 1)
        gc.collect()
    class Asked:
        v = 5
        def __getattribute__(self, name): note(name); return object.__getattribute__(self, name)
    class AskedClass:
        @property
        def __class__(self): note("class"); return int
    out("--")
    t(attribute, one, Asked())
    t(attribute, one, AskedClass())
""")


@modes
def test_unusual_objects_in_guards_do_not_change_the_program(run, mode):
    alone, traced = run("objects", "plain"), run("objects", mode)
    assert traced.status == alone.status == 0
    assert traced.out.split("--")[0] == alone.out.split("--")[0]
    assert lines_of(traced.err, False) == lines_of(alone.err, False)
    assert not traced.lost()
    (version,), = traced.rows("SELECT torch_version FROM process")
    gives_up = {"2.6.": "skipped", "2.7.": "declined"}.get(version[:4], "error") # later ones raise
    assert {outcome for outcome, in traced.compiles("unused")} == {"compiled", gives_up}


@modes
def test_recording_runs_no_getattribute_or_class_property(same, mode):
    same("objects", mode)


program("hooks", """
    class Plain:
        def __init__(self, **fields): self.__dict__.update(fields)
    class Hooked:
        def __getattr__(self, name): out("asked for", name); raise AttributeError(name)
    class Own:
        @property
        def n(self): out("asked for a property"); return 3
    class Layer(torch.nn.Module):
        pass
    @C
    def f(x, o): return x + o.n if hasattr(o, "n") else x - 1
    for o in Plain(n=1), Plain(), Plain(n=2), Hooked(), Plain(n=5), Own(), Own(), Hooked(), Layer(), Layer():
        out(type(o).__name__)
        f(one, o)
    out(len(ran))
""")


@modes
def test_recording_a_miss_runs_no_hook_or_property_once_more(same, mode):
    """torch makes a guard of hasattr(), which may run a hook or a property of the program. We find the failed guards without it."""
    same("hooks", mode)


# ---- random numbers ----

program("random_numbers", """
    import random
    act = lambda: (random.random(), torch.rand(1))
    random.seed(1), torch.manual_seed(1)
    f = C(lambda x: x + 1)
    for n in range(2, 7):
        f(torch.ones(n))
        out(n, len(ran), random.random(), float(torch.rand(1)))
    state = random.getstate()
    f(torch.ones(2, 2))
    out(len(ran), random.getstate() == state)
""")


@modes
def test_a_compile_draws_none_of_the_programs_random_numbers(same, mode):
    same("random_numbers", mode)


# ---- fork, threads, signals, death ----

program("fork", """
    @C
    def f(x): return x * 2 + 1
    @C
    def h(x):
        y = x + 1
        middle()
        return y * 2
    here = None
    def middle():
        if here:
            here()
    def fork():
        global act, here, role
        act = here = None
        role = os.fork()
        if role:
            os.waitpid(role, 0)
    for place in "act", "here":  # in a backend, and between the parts of a function
        globals()[place] = fork
        result = h(one).tolist()
        if not role:
            out(place, "child", result, h(torch.ones(3)).tolist(), f(one).tolist(), len(ran))
            os._exit(7)
        out(place, "parent", result, len(ran))
    # Sudden death while it compiles.
    for death in (lambda: os._exit(3)), (lambda: os.kill(os.getpid(), 9)), (lambda: sys.exit(4)):
        if not os.fork():
            torch._dynamo.reset()
            act = death
            f(one)
            out("not here")
        out(os.wait()[1])
    import atexit
    def last(x): return x + 9
    atexit.register(lambda: out("at exit", C(last)(one).tolist()))
""")


@modes
def test_forks_and_exits_during_a_compile_work_as_without_us(same, mode):
    trace = same("fork", mode)
    assert not trace.lost()
    assert trace.rows("SELECT torch_mode FROM process") == [(mode,)] * 6
    # Of the two compiles that were cut off we know that they began.
    assert trace.rows("SELECT count(*) FROM compile JOIN code USING (code_id) WHERE qualname = 'f' AND end_ns IS NULL") == [(2,)]
    assert (3, None) in trace.rows("SELECT exit_code, exit_signal FROM process")
    assert trace.rows("SELECT m.outcome FROM compile m JOIN code USING (code_id) WHERE qualname = 'last'") == [("compiled",)]


program("threads", """
    import gc, threading
    def g(x): return x * 2
    @C
    def f(x): return g(x) + 1
    @C
    def h(x):
        y = x + 1
        middle()
        return y * 2
    def middle(): print(end="")
    start, results = threading.Barrier(5), {}
    def work(i):
        exec(f"def mine{i}(x): return g(x) + {i}", globals())  # a code object each: their limits are their own
        c = C(globals()[f"mine{i}"])
        start.wait()
        results[i] = [c(torch.ones(n)).tolist() for n in (2, 2, 3)], f(one).tolist(), h(one).tolist()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(5)]
    sys.setswitchinterval(1e-5)
    [t.start() for t in threads], [t.join() for t in threads]
    sys.setswitchinterval(0.005)
    out(sorted(results.items()))
    # Those who watch the program in their own way.
    seen = []
    def ours(code): return "dyntrace" in code.co_filename
    def trace(frame, event, arg):
        if frame.f_code.co_filename == __file__ or ours(frame.f_code):
            seen.append((event, frame.f_code.co_name, frame.f_lineno))
        return trace
    def profile(frame, event, arg):
        if frame.f_code.co_filename == __file__ or ours(frame.f_code):
            seen.append((event, frame.f_code.co_name, getattr(arg, "__name__", "") if event[0] == "c" else ""))
    for begin, watch in (sys.settrace, trace), (sys.setprofile, profile), (threading.settrace, None), (sys.settrace, None):
        torch._dynamo.reset()
        begin(watch)
        f(one), f(one), f(torch.ones(3)), h(one), h(one)
        begin(None)
        out(len(seen), seen)
        del seen[:]
    gc.disable()
    torch._dynamo.reset()
    out(f(one), f(torch.ones(4)), gc.isenabled())
    gc.enable()
    out(gc.isenabled(), gc.is_tracked([]))
""")


@modes
def test_threads_and_trace_functions_work_as_without_us(same, run, mode):
    if run("threads", "plain").status == 128 + 11:
        run("threads", mode) # whose trace is as it must be
        pytest.skip("torch dies in this program, with us and without (2.10 and 2.11 with CPython 3.12)")
    trace = same("threads", mode)
    assert not trace.lost()
    assert trace.rows("SELECT count(DISTINCT thread_id) FROM compile JOIN code USING (code_id) WHERE qualname LIKE 'mine_'") == [(5,)]


# Frames that CPython runs with tracing set: torch counts those that its evaluator gave it, and so must ours.
program("tracing", """
    import threading, warnings
    from torch._dynamo.utils import counters
    warnings.simplefilter("ignore")
    on, seen = False, []
    def note(what, x=torch.ones(4)):
        if on:
            seen.append(what)
            return float(double(x).sum())
    def double(x): return x * 2
    def hook(event, args):
        if event == "hostile.event":
            note(event)
    def open_hook(event, args):
        if event == "hostile.open":
            note(event)
    open_hook.__cantrace__ = True
    def trace(frame, event, arg):
        if frame.f_code.co_name in ("f", "g", "work") or "resume_in_f" in frame.f_code.co_name:
            note(event)
        return trace
    def f(x):
        sys.audit("hostile.event", 1)
        sys.audit("hostile.open", 2)
        return g(x) + 1
    def g(x): return x * 3
    def work():
        c = C(f)
        for n in 2, 2, 3:
            c(torch.ones(n))
    def watched(name, begin, end, work=work):
        global on
        torch._dynamo.reset()
        counters.clear()
        del seen[:], ran[:]
        begin()
        on = True
        work()
        on = False
        end()
        out(name, sorted(counters["frames"].items()), sorted(counters["stats"].items()), len(seen), sorted(set(seen)), len(ran))
    nothing = lambda: None
    watched("nothing", nothing, nothing)
    def in_a_thread():
        thread = threading.Thread(target=work)
        thread.start(), thread.join()
    watched("settrace", lambda: sys.settrace(trace), lambda: sys.settrace(None))
    watched("setprofile", lambda: sys.setprofile(trace), lambda: sys.setprofile(None))
    watched("threading.settrace", lambda: threading.settrace(trace), lambda: threading.settrace(None), in_a_thread)
    if hasattr(sys, "monitoring"):
        m, tool = sys.monitoring, 3
        def begin():
            m.use_tool_id(tool, "hostile")
            m.register_callback(tool, m.events.PY_START, lambda code, offset: note("start") if code.co_name in ("f", "g") else None)
            m.set_events(tool, m.events.PY_START)
        def end():
            m.set_events(tool, 0)
            m.free_tool_id(tool)
        watched("monitoring", begin, end)
    sys.addaudithook(hook)
    watched("audit hook", nothing, nothing)
    sys.addaudithook(open_hook)
    watched("open audit hook", nothing, nothing)
    def f(x):
        sys.settrace(trace)
        y = g(x)
        sys.settrace(None)
        return y + 1
    watched("set in compiled code", nothing, lambda: sys.settrace(None))
    # An audit hook that runs Python at every event there is, those that we raise included.
    events = []
    def every(event, args):
        events.append(event)
        return every.__name__
    sys.addaudithook(every)
    watched("every event", nothing, nothing)
    out(len(events) > 3)
""")


@modes
def test_frames_in_audit_hooks_and_trace_functions_work_as_without_us(same, mode):
    trace = same("tracing", mode)
    assert not trace.lost()
    decided = dict(trace.rows("SELECT qualname, count(*) FROM lookup JOIN code USING (code_id) WHERE qualname IN ('hook', 'open_hook') GROUP BY 1"))
    if trace.rows("SELECT python_version < '3.12' FROM process") == [(1,)]:
        assert set(decided) == {"hook", "open_hook"}


program("backends", """
    def first(graph, inputs): return graph.forward
    def made():
        def inner(graph, inputs): return graph.forward
        return inner
    def f(x): return x + 1
    for one_of in first, made(), made():
        out(torch.compile(f, backend=one_of)(one).tolist())
""")


@modes
def test_a_recompile_for_another_backend_names_both_backends(same, mode):
    trace = same("backends", mode)
    rows = trace.rows("SELECT DISTINCT expected, actual FROM recompile_cause WHERE kind = 'BACKEND_MATCH' ORDER BY 1, 2")
    assert rows == [("first", "inner"), ("inner", "inner (another object)")]


program("signals", """
    import signal, time
    @C
    def f(x): return x * 2 + 1
    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    for n in 2, 3:
        torch._dynamo.reset()
        act = interrupt
        try:
            f(torch.ones(n))
            out("not here")
        except BaseException as error:
            out(type(error).__name__)
        act = None
        out(f(torch.ones(n)), len(ran))
    seen = []
    f(torch.ones(4)), f(one)  # from here on there are only hits
    # It must not call f: torch 2.13 locks an entry's guards while it checks them, some in Python, and would wait for itself.
    signal.signal(signal.SIGALRM, lambda *ignored: seen.append(tuple(one.shape)))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.1)  # again and again: torch, too, swallows what is raised in some places
    while not seen:
        f(one)
    def raises(*ignored):
        raise TimeoutError("now")
    sys.unraisablehook = lambda unraisable: None  # whether it is raised in a callback of a weak reference is chance
    try:
        signal.signal(signal.SIGALRM, raises)
        while True:
            f(one)
    except TimeoutError as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        out(repr(error), seen[0])
    sys.unraisablehook = sys.__unraisablehook__
    # torch 2.6 sets its callback just before the try that puts it back: in one of ten runs it stays, with us and without.
    torch._C._dynamo.eval_frame.set_eval_frame(None)
    # Little left of the recursion limit: in a hit it reaches as far as it does alone; a compile fails or does not.
    def down(n): return f(one) if n <= 0 else down(n - 1)
    sys.setrecursionlimit(400)
    deepest = 0
    for n in range(370, 400):
        try:
            down(n)
            deepest = n
        except RecursionError:
            pass
    # A hit of torch 2.6 makes an object, and from 3.12 on that takes a level more when there is no hook: CPython then pushes a
    # frame that cleans up.
    out(deepest >= 385 if torch.__version__.startswith("2.6.") and sys.version_info >= (3, 12) else deepest)
    for n in range(300, 400, 25):
        torch._dynamo.reset()
        try:
            out(n, down(n))
        except BaseException as error:
            out(n, type(error).__name__)
    sys.setrecursionlimit(1000)
    torch._dynamo.reset()
    out(f(one))
""")


@modes
def test_signals_and_deep_recursion_work_as_without_us(same, mode):
    trace = same("signals", mode)
    assert ("error",) in trace.compiles("f") and ("compiled",) in trace.compiles("f")


program("regions", """
    loop = True
    def g(x): return x * 2
    def f(x):
        if loop:
            for _ in range(2): torch._dynamo.graph_break()  # with a break in a loop torch compiles nothing
        return g(x) + 1
    first, second = (C(f, isolate_recompiles=True) for _ in range(2))
    first(one)
    loop = False
    for function in second, second, first, second:
        out(function(one).tolist(), len(ran))
""")


@modes
@pytest.mark.parametrize("frames", ["all", "decided"])
def test_code_that_one_region_skips_is_compiled_in_another(same, python, mode, frames):
    if subprocess.run([python, "-c", "import inspect, torch; exit('isolate_recompiles' not in inspect.signature(torch.compile).parameters)"],
                      check=False).returncode:
        pytest.skip("this torch has no isolate_recompiles")
    trace = same("regions", mode, "--frames", frames)
    declined, compiled, hit, skip = 6, 2, 1, 4
    expected = [declined, compiled, hit] + [skip] * (frames == "all") + [hit]
    assert [outcome for outcome, in trace.rows("SELECT outcome FROM frame JOIN code USING (code_id) WHERE qualname = 'f' "
                                               "ORDER BY frame_id")] == expected
    assert trace.rows("SELECT region_id FROM code_mark JOIN code USING (code_id) WHERE qualname = 'f'") == [(0,)]


# ---- options ----

program("plainly", """
    def g(x): return x * 2
    @C
    def f(x): return g(x) + 1
    for n in 2, 2, 3:
        out(f(torch.ones(n)).tolist())
    for n in 2, 3:  # torch has many of that name and place: namedtuple makes its __new__ so
        out(C(eval("lambda x: x + 1"))(torch.ones(n)).tolist(), len(ran))
""")


@modes
def test_lambdas_of_the_same_name_and_line_are_recorded_separately(same, mode):
    trace = same("plainly", mode)
    assert trace.rows("SELECT l.outcome, l.cache_entry_id IS NULL FROM lookup l JOIN code USING (code_id) "
                      "WHERE filename = '<string>'") == [(2, 0)] * 2


@pytest.mark.parametrize("mode, options", [("shim", "--frames user --include */plainly.py"), ("observe", "--max-depth 3 --exclude g"),
                                           ("shim", "--min-duration 1s --frames user")])
def test_options_of_run_hold_with_torch(same, mode, options):
    trace = same("plainly", mode, *options.split())
    assert trace.compiles("f") == [("compiled",), ("compiled",)] and not trace.lost()
    outcomes = trace.rows("SELECT outcome FROM lookup JOIN code USING (code_id) WHERE qualname = 'f' ORDER BY lookup_id")
    assert outcomes == [(2,), (1,), (2,)]
    if "include" in options:
        assert trace.rows("SELECT DISTINCT filename LIKE '%/plainly.py' FROM code WHERE kind != 'compiled'") == [(1,)]
    if "min" in options:
        assert trace.rows("SELECT count(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'g'") == [(0,)]
    if "depth" in options:
        assert trace.rows("SELECT count(*) FROM code WHERE qualname = 'g'") == [(0,)]


# ---- record() ----

program("record", """
    import dyntrace, json
    def recorded(path):
        with dyntrace.record(path, force=True):
            import torch._dynamo
            f = torch.compile(F, backend="eager")
            f(one), f(one), f(torch.ones(3))
            try:
                with dyntrace.record("x.db"):
                    pass
            except RuntimeError as error:
                out("refused", "already" in str(error))
        out(f(torch.ones(4)).tolist())
    def F(x): return x + 1
    if len(sys.argv) > 1 or os.environ.get("LATE"):
        import torch._dynamo
    recorded("r1.db")
    torch._dynamo.reset()
    recorded("r2.db")
""")


@pytest.mark.parametrize("late", [False, True])
def test_record_works_from_inside_a_torch_program(dyntrace, python, tmp_path, late):
    library = os.path.join(os.path.dirname(dyntrace), "lib", "python")
    (tmp_path / "p.py").write_text(PROGRAMS["record"])
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TORCH", "PYTHON"))}
    environment.update(PYTHONPATH=library, LATE="1" if late else "")
    done = subprocess.run([python, "p.py"], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=280)
    assert (done.returncode, done.stdout) == (0, "refused True\n[2.0, 2.0, 2.0, 2.0]\n" * 2), done.stderr
    for path in "r1.db", "r2.db":
        trace = Done(done, tmp_path / path)
        (mode, note), = trace.rows("SELECT torch_mode, torch_note FROM process")
        untested = bool(note) and "it was not tested with" in note
        assert mode == ("observe" if late or untested else "shim") and (not late or "loaded before" in note), path
        assert trace.compiles("F") == [("compiled",), ("compiled",)] and not trace.lost(), path


@pytest.mark.parametrize("mode", MODES)
def test_a_program_with_its_own_module_dyntrace_gets_it_and_is_recorded(dyntrace, python, tmp_path, mode):
    """We do not run that module. The program gets it when it imports it, and torch is recorded."""
    (tmp_path / "dyntrace.py").write_text("print('the other one')")
    (tmp_path / "program.py").write_text(textwrap.dedent("""
        import torch
        f = torch.compile(lambda x: x + 1, backend="eager")
        for n in (3, 4): f(torch.ones(n))
        print("before")
        import dyntrace
    """))
    done = subprocess.run([dyntrace, "run", "-o", tmp_path / "t.db", "--frames", "decided", "--torch", mode, "--python", python, tmp_path / "program.py"],
                          capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stdout) == (0, "before\nthe other one\n")
    with contextlib.closing(sqlite3.connect(tmp_path / "t.db")) as db:
        assert db.execute("SELECT COUNT(*) FROM cache_entry").fetchone()[0] == 2 and not db.execute("SELECT * FROM loss").fetchall()
