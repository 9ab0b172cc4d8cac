"""dyntrace.span: what the program says its time is spent on, from the program to the pages."""
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from crash_help import rows, until
from shared import CONTRACT, script

pytestmark = pytest.mark.newest_too


@pytest.fixture
def spans(record, python):
    """spans(code, *options) -> (trace, {name: row}); rows are of the view spans."""

    def run(code, *options, **more):
        trace = record(["-c", textwrap.dedent(code)], *options, python=python, **more)
        return trace, {row["name"]: row for row in view(trace.path)}

    return run


def view(path, sql="SELECT * FROM spans ORDER BY span_id"):
    import sqlite3

    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute(sql)]


def alone(dyntrace, python, code):
    env = dict(os.environ, PYTHONPATH=str(Path(dyntrace).parent / "lib" / "python"))
    done = subprocess.run([python, "-c", textwrap.dedent(code)], env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


# ---- what the program sees ----

SEEN = """
import asyncio, copy, functools, gc, inspect, pickle, sys, traceback, weakref
import dyntrace

@dyntrace.span
def plain(a, b=2, *c, d=4, **e):
    "A text."
    return a, b, c, d, e

class Thing:
    @dyntrace.span("a method")
    def method(self, x): return self, x
    @staticmethod
    @dyntrace.span
    def static(x): return x
    @classmethod
    @dyntrace.span
    def made(cls): return cls

@dyntrace.span
def generator():
    got = yield 1
    try:
        yield got
    except ValueError as error:
        yield str(error)
    return "end"

@dyntrace.span
async def coroutine(x):
    await asyncio.sleep(0)
    return x

@dyntrace.span("names", n=1)
async def names():
    got = yield 1
    try:
        yield got
    except ValueError as error:
        yield str(error)

def outer():
    return (yield from generator())

print(plain(1), plain(1, 2, 3, d=5, f=6), plain.__name__, plain.__doc__, plain.__wrapped__.__code__.co_name, plain.__code__.co_name)
print(inspect.signature(plain), inspect.iscoroutinefunction(coroutine), inspect.isgeneratorfunction(generator), inspect.isasyncgenfunction(names))
thing = Thing()
print(thing.method(3) == (thing, 3), Thing.static(4), Thing.made() is Thing, Thing.method.__name__)
print(pickle.loads(pickle.dumps(plain)) is plain, weakref.ref(plain)() is plain)
it = generator()
print(next(it), it.send("sent"), it.throw(ValueError("thrown")), list(it))
print(list(outer()))
print(asyncio.run(coroutine(7)))
async def use():
    agen = names()
    print(await agen.__anext__(), await agen.asend("sent"), await agen.athrow(ValueError("thrown")), [x async for x in agen])
    agen = names()
    await agen.__anext__()
    await agen.aclose()
asyncio.run(use())
try:
    with dyntrace.span("raises"):
        raise KeyError("mine")
except KeyError as error:
    print("raised", error, len(traceback.extract_tb(error.__traceback__)))
@dyntrace.span
def failing(): raise KeyError("its")
try:
    failing()
except KeyError as error:
    print([frame.name for frame in traceback.extract_tb(error.__traceback__)])
with dyntrace.span("x") as s, s:
    print(s)
enter, leave = s.__enter__, s.__exit__
print(enter() is s, s.__enter__ is enter, leave.__self__ is s, leave(None, None, None))
del s, enter
gc.collect()
print(leave.__self__, leave(None, None, None), dyntrace.span("reused", a=1, b=2), dyntrace.span("reused", a=1, b=2, c=3))
print(type(leave.__self__).__enter__(leave.__self__) is leave.__self__, dyntrace.span.__exit__(leave.__self__))
print(dyntrace.span.__enter__.__get__(5) is dyntrace.span.__enter__)
for wrong in (lambda: dyntrace.span.__exit__(5), lambda: leave(x=1), lambda: dyntrace.span(), lambda: dyntrace.span(3), lambda: dyntrace.span("a", "b"), lambda: dyntrace.span("a")(3), lambda: dyntrace.span("a")()):
    try:
        wrong()
    except TypeError as error:
        print(error)
class Value:
    def __repr__(self): print("foreign code"); return ""
    __str__ = __hash__ = __eq__ = __len__ = __bool__ = __repr__
class Name(str):
    def __str__(self): print("foreign code")
    __repr__ = encode = __str__
value = Value()
gone = weakref.ref(value)
with dyntrace.span(Name("n"), value=value, **{"odd key ": 1}):
    pass
del value
print(gone() is None)
holder = []
holder.append(dyntrace.span("cycle", me=holder))
gone = weakref.ref(plain)
del holder, plain
gc.collect()
print(gone() is None, sys.getrefcount(None) > 0)
print(functools.partial(dyntrace.span, "p", k=1)(), dyntrace.span(*["q"], **{"k": 1}))
"""


def test_a_program_with_spans_does_the_same_with_and_without_recording(dyntrace, python, record):
    expected = alone(dyntrace, python, SEEN)
    assert "foreign code" not in expected and "(1, 2, (3,), 5, {'f': 6})" in expected and expected.count("True") > 5
    assert record(["-c", SEEN], python=python).out == expected


def test_only_calling_the_class_span_makes_a_span(dyntrace, python):
    assert alone(dyntrace, python, """
        import copy, pickle
        import dyntrace
        span = dyntrace.span("x")
        def rebuild(): return pickle.loads(pickle.dumps(span, 0))
        def derive(): type("Derived", (dyntrace.span,), {})
        ways = [lambda: object.__new__(dyntrace.span), lambda: dyntrace.span.__new__(dyntrace.span), rebuild, lambda: copy.copy(span), derive]
        for way in ways:
            try: print(way())
            except TypeError: pass
        with type(span)("y") as made: print(isinstance(made, dyntrace.span))
        """) == "True\n"


@pytest.mark.parametrize("freed", ["in order", "with their context", "of one object"])
def test_many_nested_spans_are_freed_without_deep_recursion(spans, freed):
    _, found = spans(f"""
        import contextvars, threading
        import dyntrace
        def enter(spans):
            for span in spans: span.__enter__()
        def work():
            context = contextvars.copy_context()
            if {freed == "with their context"}:
                context.run(enter, (dyntrace.span("s") for _ in range(20000)))
            made = [dyntrace.span("s")] * 20000 if {freed == "of one object"} else [dyntrace.span("s") for _ in range(20000)]
            context.run(enter, made)
            if {freed == "in order"}:
                for span in made: span.__exit__(None, None, None)
            del made, context
            with dyntrace.span("next"): pass
        threading.stack_size(256 << 10)
        thread = threading.Thread(target=work)
        thread.start(), thread.join()
        """)
    assert found["next"]["parent"] in (None, "s") and found["next"]["end_ns"]


@pytest.mark.parametrize("recorded", [False, True])
def test_decorated_generators_and_coroutines_behave_like_plain_ones(dyntrace, python, record, recorded):
    """Wrong calls raise at the call, arguments and values die as soon, and exceptions pass alike."""
    program = """
import asyncio, dyntrace, types, weakref
class C: pass
def same(function): return function
def look(put):
    log = []
    @put
    def generator(x):
        r = weakref.ref(x); del x
        yield r() is None
    log.append(next(generator(C())))
    @put
    async def coroutine(x):
        r = weakref.ref(x); del x
        await asyncio.sleep(0)
        return r() is None
    log.append(asyncio.run(coroutine(C())))
    @put
    async def values(x=None):
        r = weakref.ref(x or C()); del x
        yield C()
        yield r() is None
    @put
    async def ends():
        try: yield 1
        except GeneratorExit: return
    @put
    async def ignores():
        try: yield 1
        except GeneratorExit: yield 2
    @put
    async def catches():
        try: yield 1
        except ValueError as error: yield type(error.__context__).__name__
    @put
    @types.coroutine
    def old(x):
        yield
        return x
    @put
    async def fails():
        yield 1
        raise KeyError("its")
    async def use():
        made = values(C())
        value = await made.__anext__()
        r = weakref.ref(value); del value
        log.append(r() is None)
        log.append(await made.__anext__())
        await made.aclose()
        for function in (ends, ignores):
            for error in (GeneratorExit, GeneratorExit(), KeyError("k")):
                made = function()
                await made.__anext__()
                try: log.append(await made.athrow(error))
                except BaseException as error: log.append(repr(error))
                try: log.append(await made.aclose())
                except BaseException as error: log.append(repr(error))
        made = catches()
        await made.__anext__()
        log.append(await made.athrow(ValueError()))
        await made.aclose()
        try: log.append([x async for x in fails()])
        except KeyError as error: log.append(repr(error))
        log.append(await old(5))
    asyncio.run(use())
    for function in (generator, coroutine, values, old):
        try: log.append(function(1, 2, 3))
        except TypeError: log.append("TypeError")
    return log
assert look(dyntrace.span) == look(same), (look(dyntrace.span), look(same))
"""
    assert recorded and record(["-c", program], python=python) or alone(dyntrace, python, program) == ""


# ---- what is recorded ----


def test_spans_are_recorded_with_their_parents_and_attributes(spans):
    trace, found = spans(
        """
        import dyntrace
        class Mine: pass
        def work():
            with dyntrace.span("inner", size=3): pass
        with dyntrace.span("outer", id=271, x=1.5, on=True, none=None, text="a'\\"\\n", big=1 << 80, inf=float("inf"), parts=[1, 2], map={1: 2}, mine=Mine(),
                           raw=b"12", password="hunter2", token="abc", tokens="kept", api_key=5, url="http://me:hunter2@host/"):
            work()
        with dyntrace.span("long", **{f"attribute{i}": "v" * 100 for i in range(50)}): pass
        """
    )
    outer, inner = found["outer"], found["inner"]
    assert inner["parent_span_id"] == outer["span_id"] and outer["parent_span_id"] is None and inner["parent"] == "outer"
    assert outer["start_ns"] <= inner["start_ns"] <= inner["end_ns"] <= outer["end_ns"]
    assert json.loads(outer["attributes"]) == {
        "id": 271, "x": 1.5, "on": True, "none": None, "text": "a'\"\n", "big": "an int of more than 64 bits", "inf": "inf", "parts": "list[2]",
        "map": "dict[1]", "mine": "Mine", "raw": "bytes", "password": "<redacted>", "token": "<redacted>", "tokens": "kept", "api_key": "<redacted>",
        "url": "http://me:<redacted>@host/"}
    cut = json.loads(found["long"]["attributes"])
    assert cut["..."] == 50 - (len(cut) - 1) and 5 < len(cut) < 12
    named = dict(trace.rows("SELECT frame_id, qualname FROM frames"))
    assert named[inner["frame_id"]] == "work" and named[outer["frame_id"]] == "<module>"
    if CONTRACT.exists():
        done = subprocess.run([sys.executable, CONTRACT, trace.path], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.one_python
def test_names_and_attributes_are_cut_between_two_characters(spans):
    trace, found = spans("""
        import ctypes, dyntrace
        for n in range(4):
            x = "x" * n
            kinds = [type(x + "\\u20ac" * 100, (), {})] + [type("S", (ctypes.Structure,), {"_fields_": [(x + "\\u20ac" * 60, ctypes.c_int)]})]
            values = dict(zip("abcd", [kind() for kind in kinds] + [x + "\\u20ac" * 100, x + ":://me:x@" + "\\u20ac" * 100]))
            with dyntrace.span(x + "\\u20ac" * 100, **values, **{x + "\\u20ac" * 40: 1}): pass
            with dyntrace.span(x + "://me:x@" + "\\u20ac" * 100): pass
        """)
    assert len(found) == 8 and max(len(name.encode()) for name in found) == 200
    attributes = [json.loads(row["attributes"]) for row in found.values() if row["attributes"]]
    assert len(attributes) == 4 and all(value for row in attributes for value in row.values())


@pytest.mark.parametrize("kept, said", [("types", '{"id": "int", "word": "str", "none": "NoneType", "on": "bool"}'), ("off", None)])
def test_under_values_types_or_off_span_attributes_have_no_values(spans, kept, said):
    _, found = spans("import dyntrace\nwith dyntrace.span('s', id=271, word='w', none=None, on=True): pass", "--values", kept)
    assert found["s"]["attributes"] == said


def test_threads_have_spans_of_their_own(spans):
    _, found = spans(
        """
        import threading, dyntrace
        def work():
            with dyntrace.span("in thread"): pass
        with dyntrace.span("around"):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        ended = dyntrace.span("ends elsewhere")
        ended.__enter__()
        thread = threading.Thread(target=lambda: ended.__exit__(None, None, None))
        thread.start()
        thread.join()
        with dyntrace.span("after"): pass
        """
    )
    assert found["in thread"]["parent_span_id"] is None and found["in thread"]["thread_id"] != found["around"]["thread_id"]
    assert found["ends elsewhere"]["end_ns"] and found["after"]["parent_span_id"] is None


def test_spans_of_a_task_are_inside_the_span_that_made_the_task(spans):
    trace, _ = spans(
        """
        import asyncio, dyntrace
        shared = dyntrace.span("shared")
        async def step(i):
            with dyntrace.span("task", i=i):
                await asyncio.sleep(0.01 * (3 - i))
                with shared:
                    await asyncio.sleep(0.01 * i)
                    with dyntrace.span("inner", i=i): pass
        async def main():
            with dyntrace.span("main"):
                await asyncio.gather(*map(step, range(3)))
        asyncio.run(main())
        """
    )
    found = {row["span_id"]: row for row in view(trace.path)}
    inner = [row for row in found.values() if row["name"] == "inner"]
    assert len(inner) == 3 and all(row["end_ns"] for row in found.values())
    for row in inner:
        shared = found[row["parent_span_id"]]
        task = found[shared["parent_span_id"]]
        assert (shared["name"], task["name"], task["attributes"], task["parent"]) == ("shared", "task", row["attributes"], "main")


def test_a_span_in_a_suspended_generator_is_no_parent_of_others(spans):
    _, found = spans(
        """
        import dyntrace
        def generator(name):
            with dyntrace.span(name):
                yield 1
                with dyntrace.span("in " + name): pass
                yield 2
        with dyntrace.span("outer"):
            a, b = generator("a"), generator("b")
            next(a), next(b)
            with dyntrace.span("beside"): pass
            next(a), next(b)
            with dyntrace.span("beside once more"): pass
            a.close()
            b.close()
            with dyntrace.span("last"): pass
        """
    )
    parents = {name: row["parent"] for name, row in found.items()}
    assert parents == {"outer": None, "a": "outer", "b": "outer", "beside": "outer", "in a": "a", "in b": "b", "beside once more": "outer", "last": "outer"}
    assert all(row["end_ns"] for row in found.values())


@pytest.mark.parametrize("frames, generators", [(6000, 0), (0, 700)])
def test_a_span_in_a_generator_is_the_parent_however_far_below_it_another_begins(spans, frames, generators):
    _, found = spans(
        f"""
        import sys, dyntrace
        sys.setrecursionlimit(20000)
        def call(frames):
            if frames:
                return call(frames - 1)
            with dyntrace.span("inner"): pass
            with dyntrace.span("inner once more"): pass
        def delegate(generators):
            if generators:
                yield from delegate(generators - 1)
            else:
                call({frames})
                yield 1
        def generator():
            with dyntrace.span("generator"):
                yield from delegate({generators})
        with dyntrace.span("outer"):
            assert list(generator()) == [1]
        """
    )
    parents = {name: row["parent"] for name, row in found.items()}
    assert parents == {"outer": None, "generator": "outer", "inner": "generator", "inner once more": "generator"}


def test_greenlets_have_spans_of_their_own(spans, python):
    if subprocess.run([python, "-c", "import greenlet"], capture_output=True).returncode:
        pytest.skip("no greenlet for this Python")
    _, found = spans(
        """
        import greenlet, dyntrace
        def work():
            with dyntrace.span("in greenlet"):
                main.switch()
        main = greenlet.getcurrent()
        with dyntrace.span("around"):
            g = greenlet.greenlet(work)
            g.switch()
            with dyntrace.span("beside"): pass
            g.switch()
        """
    )
    assert found["in greenlet"]["parent"] is None and found["beside"]["parent"] == "around"
    assert found["in greenlet"]["thread_id"] != found["around"]["thread_id"]


def test_a_forked_child_goes_on_in_its_parents_span(spans):
    trace, _ = spans(
        """
        import os, dyntrace
        with dyntrace.span("around"):
            pid = os.fork()
            with dyntrace.span("child" if not pid else "parent"): pass
            if not pid:
                grandchild = os.fork()
                with dyntrace.span("child" if grandchild else "grandchild"): pass
                if not grandchild: os._exit(0)
                os.waitpid(grandchild, 0)
                os._exit(0)
            os.waitpid(pid, 0)
        """
    )
    found = view(trace.path)
    assert sorted((row["name"], row["parent"]) for row in found) == [
        ("around", None), ("child", "around"), ("child", "around"), ("grandchild", "around"), ("parent", "around")]
    assert len({row["process_id"] for row in found}) == 3 and all(row["end_ns"] for row in found)
    around, = (row for row in found if row["name"] == "around")
    assert around["end_ns"] >= max(row["end_ns"] for row in found if row["name"] == "parent")


def test_a_killed_program_leaves_an_open_span(spans, run):
    trace, found = spans(
        """
        import os, signal, dyntrace
        with dyntrace.span("killed", step=3):
            with dyntrace.span("done"): pass
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        status=128 + signal.SIGKILL,
    )
    assert found["killed"]["end_ns"] is None and found["killed"]["duration_ns"] > 0 and found["done"]["end_ns"]
    report = run("report", trace.path).stdout
    assert "Spans" in report and "killed" in report and "open" in report


def test_all_of_60000_spans_of_three_threads_are_recorded(spans):
    """The spans need more room than a ring has, and have frames between them."""
    trace, _ = spans(
        """
        import threading, dyntrace
        def f(i):
            with dyntrace.span("s" * (i % 200), i=i, text="t" * (i % 150)): pass
        threads = [threading.Thread(target=lambda: [f(i) for i in range(20000)]) for _ in range(3)]
        for t in threads: t.start()
        for t in threads: t.join()
        """
    )
    assert trace.rows("SELECT COUNT(*), COUNT(end_ns), COUNT(DISTINCT frame_id), SUM(json_valid(attributes)) FROM span") == [(60000,) * 4]
    assert trace.rows("SELECT COUNT(*) FROM span s LEFT JOIN frames f USING (frame_id) WHERE f.qualname IS NOT 'f' OR f.thread_id <> s.thread_id "
                      "OR s.start_ns NOT BETWEEN f.start_ns AND f.end_ns OR s.end_ns NOT BETWEEN f.start_ns AND f.end_ns") == [(0,)]
    assert trace.rows("SELECT COUNT(*) FROM loss WHERE events > 0") == [(0,)]


@pytest.mark.one_python
def test_a_frame_with_a_span_is_stored_whatever_min_duration_says(spans):
    trace, found = spans("import dyntrace\ndef f():\n    with dyntrace.span('s'): pass\nf()", "--min-duration", "10s")
    assert trace.rows("SELECT qualname FROM frames JOIN span USING (frame_id)") == [("f",)]


@pytest.mark.one_python
@pytest.mark.parametrize("frames", ["decided", "user", "none"])
def test_spans_are_recorded_without_frames(spans, frames):
    trace, found = spans("import dyntrace\nwith dyntrace.span('s', i=1): pass", "--frames", frames)
    assert ("s" in found) == (frames != "none")


@pytest.mark.one_python
def test_a_record_block_has_only_the_spans_that_begin_in_it(dyntrace, python, tmp_path):
    """A span that began before the block is missing. One that ends after the block has no end."""
    path = tmp_path / "inside.db"
    alone(dyntrace, python, f"""
        import dyntrace
        late = dyntrace.span("ends later")
        with dyntrace.span("before"):
            with dyntrace.record({str(path)!r}):
                with dyntrace.span("inside"): pass
                late.__enter__()
            with dyntrace.span("between"): pass
            with dyntrace.record({str(tmp_path / "second.db")!r}):
                late.__exit__(None, None, None)
                with dyntrace.span("second"): pass
        """)
    assert [(row["name"], row["parent"], bool(row["end_ns"])) for row in view(path)] == [("inside", None, True), ("ends later", None, False)]
    assert [(row["name"], row["parent"]) for row in view(tmp_path / "second.db")] == [("second", None)]


@pytest.mark.one_python
def test_a_killed_recorder_loses_no_span(dyntrace, python, tmp_path):
    """Another collector takes its place, and gives the spans the same ids."""
    from crash_help import collector_of

    trace = tmp_path / "killed.db"
    program = script(tmp_path / "p.py", """
        import sys, dyntrace
        def work(n):
            for i in range(n):
                with dyntrace.span("s", i=i): pass
        with dyntrace.span("outer"):
            work(30000)
            print("half", flush=True)
            sys.stdin.readline()
            work(30000)
    """)
    run = subprocess.Popen([dyntrace, "run", "-o", trace, "--python", python, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "half\n"
    os.kill(collector_of(run.pid), signal.SIGKILL)
    run.communicate("\n", timeout=120)
    outer, = rows(trace, "SELECT span_id FROM span WHERE name = 'outer'")
    assert rows(trace, "SELECT COUNT(*), COUNT(end_ns), COUNT(DISTINCT attributes) FROM span WHERE name = 's' AND parent_span_id = ?", *outer) == [(60000, 60000, 30000)]


# ---- where they are shown ----


@pytest.fixture
def served(spans):
    return spans(
        """
        import asyncio, time, dyntrace
        def handle(n):
            time.sleep(n / 20)  # further apart than what a busy machine adds
        for n in (1, 5, 2):
            with dyntrace.span("request", id=n):
                handle(n)
        async def slow(n):
            await asyncio.sleep(0.01)
            after(n)
        def after(n):
            time.sleep(0.03)
        async def main():
            with dyntrace.span("tasks"):
                await slow(1)
        asyncio.run(main())
        """
    )[0]


def test_why_and_tree_name_the_span(served, run):
    why = run("why", "handle", served.path).stdout
    assert why.index('in span request {"id": 5}, ') < why.index('in span request {"id": 2}, ') < why.index('in span request {"id": 1}, ')
    assert "in span tasks, " in run("why", "after", served.path).stdout
    tree = run("tree", "handle", "--slowest", served.path).stdout
    assert 'in span request {"id": 5}, ' in tree


def test_a_call_of_another_coroutine_of_the_same_code_is_in_no_span(spans, run):
    trace = spans(
        """
        import asyncio, dyntrace
        def leaf(n): pass
        async def worker(n):
            if n == 1:
                with dyntrace.span("request"):
                    await asyncio.sleep(0.05)
                    leaf(n)  # the other worker has ended
            else:
                await asyncio.sleep(0.01)
                leaf(n)      # in no span
        async def main():
            await asyncio.gather(worker(1), worker(2))
        asyncio.run(main())
        """
    )[0]
    sql = "SELECT span_of(frame_id) AS span_id FROM frames WHERE qualname = 'leaf' ORDER BY frame_id"
    found = json.loads(run("sql", trace.path, sql, "--json").stdout)
    assert [row["span_id"] for row in found] == [None, 1]


def test_report_and_the_query_spans_count_spans(served, run):
    report = run("report", served.path).stdout
    table = report[report.index("Spans"):].split("\n\n")[0] if "\n\n" in report else report
    assert "request" in table and "tasks" in table and "p50" in table
    found = json.loads(run("sql", served.path, "spans", "--json").stdout)
    request = next(row for row in found if row["name"] == "request")
    assert request["spans"] == 3 and request["attributes"] == '{"id": 5}' and 100 <= request["p50_ms"] < 250 <= request["max_ms"] <= request["total_ms"]
    assert {row["name"] for row in json.loads(run("report", "--json", served.path).stdout)["spans"]} == {"request", "tasks"}


def test_perfetto_has_spans(served, run):
    events = json.loads(run("export", "--format", "chrome", served.path).stdout)["traceEvents"]
    found = [event for event in events if event.get("cat") == "span"]
    assert [event["ph"] for event in found] == ["b", "e"] * 4 and len({event["id"] for event in found}) == 4
    assert [event["args"].get("attributes") for event in found if event["name"] == "request"][::2] == ['{"id": 1}', '{"id": 5}', '{"id": 2}']


@pytest.mark.one_python
def test_speedscope_has_spans_in_profiles_where_they_nest(spans, run):
    from test_export import check_speedscope

    trace, found = spans(
        """
        import asyncio, dyntrace
        async def task(i):
            with dyntrace.span("task", i=i):
                await asyncio.sleep(0.05)
                with dyntrace.span("inner"): pass
        async def main():
            with dyntrace.span("main"):
                await asyncio.gather(*map(task, range(3)))
        asyncio.run(main())
        """
    )
    document = check_speedscope(run("export", "--format", "speedscope", trace.path).stdout)
    names = [frame["name"] for frame in document["shared"]["frames"]]
    profiles = {p["name"].split(": ")[1]: p for p in document["profiles"] if ": spans" in p["name"]}
    opened = {name: [names[event["frame"]] for event in p["events"] if event["type"] == "O"] for name, p in profiles.items()}
    assert opened.pop("spans")[:2] == ["main", "task"]
    assert sorted(sum(opened.values(), [])) == sorted(["task", "inner"] * 2) or len(opened) in (1, 2)
    assert [opened[name] and opened[name][0] for name in ("spans 2", "spans 3")] == ["task", "task"]
    main = next(event["at"] for event in profiles["spans"]["events"])
    assert main == found["main"]["start_ns"]
    # a part of the time, and of the threads
    middle = max(row["start_ns"] for row in view(trace.path) if row["name"] == "task") + 1000
    part = check_speedscope(run("export", "--format", "speedscope", "--time", f"..{middle / 1e9:.9f}s", trace.path).stdout)
    (cut,) = [p for p in part["profiles"] if ": spans" in p["name"]]  # all end there, so they nest
    assert cut["endValue"] == middle and len(cut["events"]) == 8
    part = json.loads(run("export", "--format", "chrome", "--time", f"..{middle / 1e9:.9f}s", trace.path).stdout)["traceEvents"]
    assert [event["name"] for event in part if event.get("cat") == "span" and event["ph"] == "b"] == ["main", "task", "task", "task"]


@pytest.mark.one_python
def test_report_of_a_program_without_spans_has_no_section_for_them(record, run, python):
    trace = record(["-c", "pass"], python=python)
    assert "Spans" not in run("report", trace.path).stdout
    assert json.loads(run("sql", trace.path, "spans", "--json").stdout) == []


@pytest.mark.one_python
def test_merged_traces_keep_their_spans(served, spans, run, tmp_path):
    other, _ = spans("import dyntrace\nwith dyntrace.span('a', n=1), dyntrace.span('b'): pass")
    done = run("merge", "-o", tmp_path / "m.db", served.path, other.path)
    assert done.returncode == 0, done.stderr
    found = {row["name"]: row for row in view(tmp_path / "m.db")}
    assert found["b"]["parent"] == "a" and found["a"]["attributes"] == '{"n": 1}' and found["tasks"]["end_ns"]
    assert rows(tmp_path / "m.db", "SELECT COUNT(*), COUNT(DISTINCT span_id) FROM span") == [(6, 6)]
    assert rows(tmp_path / "m.db", "SELECT COUNT(*) FROM span s JOIN frame f USING (frame_id) WHERE f.thread_id = s.thread_id") == [(6,)]


@pytest.mark.one_python
def test_older_traces_have_no_spans(served, run):
    import sqlite3

    with sqlite3.connect(served.path) as db:
        db.executescript("DROP VIEW span_names; DROP VIEW spans; DROP TABLE span")
    assert json.loads(run("sql", served.path, "spans", "--json").stdout) == []
    assert run("report", served.path).returncode == 0 and run("why", "handle", served.path).returncode == 0


# ---- on the page for a browser, and on the screen ----

REQUESTS = """
import dyntrace, time
def handle(i):
    with dyntrace.span("request <b>", id=i):
        parse(i)
def parse(i):
    time.sleep(0.3 if i == 7 else 0)  # longer than a busy machine adds to the others
for i in range(12):
    handle(i)
"""


def test_spans_are_on_the_html_page_and_in_the_tui(spans, run, dyntrace):
    from terminal import dump

    trace, _ = spans(REQUESTS)
    path = Path(trace.path)
    page = run("report", path, "--html", "-").stdout
    section = page.split('<section id="longest_spans">')[1].split("</section>")[0]
    assert section.split("<tbody>")[1].split("</tr>")[0].count("request &lt;b&gt;") == 1 and '{&quot;id&quot;: 7}' in section.split("<tbody>")[1].split("</tr>")[0]
    assert 'href="#spans">spans</a>' in page and ">span</td>" in page.split('<section id="glossary">')[1]
    first = dump(dyntrace, path.parent, "", "100x30", trace=path.name)
    assert " Spans: 12\n" in first and "request <b>  12 spans, p50 " in first
    rows = dump(dyntrace, path.parent, ":spans Enter", "100x30", trace=path.name).splitlines()
    assert rows[1].split()[:6] == ["span_id↑", "at", "(s)", "took", "name", "attributes"] and '{"id": 0}' in rows[2] and rows[0].endswith("1/12")
    call = dump(dyntrace, path.parent, ":frames Space function Space = Space 'parse' Enter Enter", "100x30", trace=path.name)
    assert '\n in span    request <b>, ' in call and '{"id": 0}' in call
    assert "> call handle #" in dump(dyntrace, path.parent, ":spans Enter Enter", "100x30", trace=path.name)


def test_without_spans_html_page_and_tui_do_not_mention_them(spans, run, dyntrace):
    from terminal import dump

    trace, _ = spans("def f(): pass\nf()")
    path = Path(trace.path)
    page = run("report", path, "--html", "-").stdout
    assert 'id="spans"' not in page and 'id="longest_spans"' not in page and "#spans" not in page
    assert "Spans" not in dump(dyntrace, path.parent, "", "100x30", trace=path.name)
    assert 'no spans: dyntrace.span("name") in the program makes them' in dump(dyntrace, path.parent, ":spans Enter", "100x30", trace=path.name)
    assert "in span" not in dump(dyntrace, path.parent, ":frames Enter Enter", "100x30", trace=path.name)
