"""run --args: arguments and return values of chosen functions, without running code of the program."""
import json
import os
import subprocess
import sys
import textwrap

import pytest

from crash_help import rows
from shared import CONTRACT, leaks, secrets

pytestmark = pytest.mark.newest_too

PROGRAM = """
import asyncio, sys
class Mine:
    def __init__(self, n): self.n = n
    def __repr__(self): print("foreign code"); return ""
    __str__ = __hash__ = __len__ = __bool__ = __iter__ = __repr__
    def method(self, x): return self
class Text(str):
    def __repr__(self): print("foreign code"); return ""
    __str__ = encode = __repr__
def f(a, b=2, *rest, key, **more):
    g = lambda: a
    return [a, b]
def plain(*values): return values[-1] if values else None
def raises(x): raise KeyError(x)
def generator(n):
    yield n
    return "end"
async def coroutine(n):
    await asyncio.sleep(0)
    return n
def left_out(x): return x
def recursive(n): return recursive(n - 1) + [n] if n else []
print(f(1, "two", 3.5, None, key=True, other=[1, [2, [3]]]))
plain({"a": 1, "b": (1, 2), "c": {"d": {"e": 1}}}, list(range(10)), b"12", bytearray(b"123"), {1: 2}, {1, 2}, 1 << 80, float("nan"), Mine, "x" * 1000)
plain(Mine(3), Text("abc"), sys)
plain()
Mine(4).method(5)
try: raises("why")
except KeyError: pass
list(generator(7))
print(asyncio.run(coroutine(8)))
left_out(9)
recursive(3)
deep = plain
for _ in range(3): deep(memoryview(b"12"))
"""


@pytest.fixture
def called(record, python):
    """called(code, *options) -> (trace, [(function, arguments, result)])"""

    def run(code, *options, **more):
        trace = record(["-c", textwrap.dedent(code)], *options, python=python, **more)
        rows = trace.rows("SELECT f.qualname, a.arguments, a.result FROM call_args a LEFT JOIN frames f USING (frame_id) ORDER BY frame_id")
        return trace, [(name, arguments and json.loads(arguments), result and json.loads(result)) for name, arguments, result in rows]

    return run


def test_arguments_and_results_of_chosen_functions_are_recorded(called):
    globs = ["f", "plain", "raises", "generator", "coroutine", "Mine.*", "recursive"]
    trace, rows = called(PROGRAM, *(word for glob in globs for word in ("--args", glob)))
    expected, none = called(PROGRAM)
    assert trace.out == expected.out and "foreign code" not in trace.out and none == []
    found = {}
    for name, *values in rows:
        found.setdefault(name, []).append(tuple(values))
    assert found["f"] == [({"a": 1, "b": "two", "key": True, "rest": [3.5, None], "more": {"other": [1, "list[2]"]}}, [1, "two"])]
    (big, last), (odd, module), (nothing, none), *views = found["plain"]
    assert big["values"][:6] == [{"a": 1, "b": "tuple[2]", "c": "dict[1]"}, [0, 1, 2, 3, 4, 5, "..."], "bytes", "bytearray B[3]", {"...": True}, "set"]
    assert last == "x" * 200
    assert odd == {"values": ["Mine", "Text", "module"]} and module == "module"
    assert nothing == {"values": []} and none is None
    assert views == [({"values": ["memoryview B[2]"]}, "memoryview B[2]")] * 3
    assert found["Mine.method"] == [({"self": "Mine", "x": 5}, "Mine")]
    assert found["raises"] == [({"x": "why"}, None)]
    # the object that the call made, then in the last part what it returned at its end; not what it yielded
    assert found["generator"] == [({"n": 7}, "generator"), (None, "end")]
    assert found["coroutine"][-2:] == [({"n": 8}, "coroutine"), (None, 8)]
    assert found["recursive"] == [({"n": 3}, [1, 2, 3]), ({"n": 2}, [1, 2]), ({"n": 1}, [1]), ({"n": 0}, [])]
    assert "left_out" not in found
    if CONTRACT.exists():
        done = subprocess.run([sys.executable, CONTRACT, trace.path], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.one_python
def test_patterns_of_the_option_args_match_function_and_file_names(called, tmp_path):
    assert {name for name, *_ in called(PROGRAM, "--args", "*.method", "--args", "left*")[1]} == {"Mine.method", "left_out"}
    assert {name for name, *_ in called(PROGRAM, "--args", "<string>")[1]} >= {"f", "plain", "left_out", "Mine.__init__"}
    trace, rows = called(PROGRAM, "--args", "f", "--args", "left_out", "--exclude", "left_out")
    assert {name for name, *_ in rows} == {"f"}
    assert json.loads(trace.rows("SELECT value FROM meta WHERE key = 'options'")[0][0])[:6] == ["--exclude", "left_out", "--args", "f", "--args", "left_out"]


@pytest.mark.one_python
@pytest.mark.parametrize("kept, expected", [
    ("types", [("f", {"a": "int", "b": "str", "key": "bool", "rest": "tuple[2]", "more": "dict[1]"}, "list[2]")]), ("off", [])])
def test_under_values_types_or_off_arguments_have_no_values(called, kept, expected):
    assert called(PROGRAM, "--args", "f", "--values", kept)[1] == expected


def test_secret_arguments_are_left_out(called, dyntrace):
    words = secrets()
    trace, rows = called(
        f"""
        import os
        words = os.environ["WORDS"].split()
        def login(user, password, token, tokens, settings): return "in"
        def read_secret(n): return words[0]
        def get_token(): return words[1]
        login("me", words[0], words[1], 5, {{"api_key": words[0], "parts": [{{"password": words[1]}}], "passwords": [words[0], words[1]]}})
        read_secret(1), get_token()
        """, "--args", "login", "--args", "read_secret", "--args", "get_token", env=dict(os.environ, WORDS=" ".join(words[:2])))
    assert leaks([trace.path], words[:2]) == []
    found = {name: values for name, *values in rows}
    assert found["login"][0]["user"] == "me" and found["login"][0]["tokens"] == 5 and found["login"][0]["password"] == "<redacted>"
    assert found["read_secret"] == [{"n": 1}, "<redacted>"] and found["get_token"][1] == "<redacted>"


def test_arguments_of_60000_calls_on_threads_belong_to_their_calls(called):
    """The calls need more room than a ring has. Each row has the arguments and the result of its call."""
    trace, rows = called(
        """
        import threading
        def f(i, text): return g(i)
        def g(i): return i + 1
        threads = [threading.Thread(target=lambda: [f(i, "t" * (i % 300)) for i in range(10000)]) for _ in range(3)]
        for t in threads: t.start()
        for t in threads: t.join()
        """, "--args", "[fg]")
    assert len(rows) == 60000
    assert all(result == arguments["i"] + 1 and (name == "g" or len(arguments["text"]) == min(arguments["i"] % 300, 200)) for name, arguments, result in rows)
    assert trace.rows("SELECT COUNT(*) FROM loss WHERE events > 0") == [(0,)]


@pytest.mark.one_python
@pytest.mark.parametrize("option", [["--min-duration", "10s"], ["--clock", "coarse"], ["--max-depth", "50"], ["--frames", "user"]])
def test_arguments_are_recorded_together_with_other_options(called, option):
    _, rows = called("def f(x): return x\nf(3)", "--args", "f", *option)
    assert rows == [("f", {"x": 3}, 3)]


def test_arguments_of_calls_that_run_compiled_code_are_recorded(called, dyntrace):
    """A callback gives code for the calls of f and h."""
    _, rows = called(
        """
        from dyntrace.eval_frame import set_eval_frame
        from dyntrace.types import GuardedCode
        def f(x): return h(x)
        def h(x): return x * 2
        def answer(frame, entry, state):
            return GuardedCode(frame.f_code, lambda f_locals: True) if frame.f_code.co_name in "fh" else None
        set_eval_frame(answer)
        f(1), f(2)
        set_eval_frame(None)
        f(3)
        """, "--args", "[fh]")
    assert rows == [(name, {"x": x}, 2 * x) for x in (1, 2, 3) for name in "fh"]


def test_why_and_tree_show_arguments_and_results(called, run):
    trace, _ = called(
        """
        import time
        def handle(n, name, ok): time.sleep(n / 100); return {"done": n}
        for n in (1, 5, 2): handle(n, "a", True)
        """, "--args", "handle")
    assert 'handle(n=5, name="a", ok=True) = {"done": 5}' in run("why", "handle", trace.path).stdout
    assert 'handle(n=5, name="a", ok=True) = {"done": 5}' in run("tree", "handle", "--slowest", trace.path).stdout


@pytest.mark.one_python
def test_merged_traces_keep_arguments(called, run, tmp_path):
    code = "def f(x): return x\nf(3)"
    first, second = called(code, "--args", "f")[0], called(code, "--args", "f")[0]
    assert run("merge", "-o", tmp_path / "m.db", first.path, second.path).returncode == 0
    from crash_help import rows
    assert rows(tmp_path / "m.db", "SELECT qualname, arguments FROM call_args JOIN frames USING (frame_id)") == [("f", '{"x": 3}')] * 2


@pytest.mark.one_python
def test_numpy_arrays_are_recorded_as_type_and_shape(dyntrace, record):
    """The type and shape of a numpy array are read without a call of its methods."""
    pytest.importorskip("numpy")
    trace = record(["-c", "import numpy\ndef f(x): return x\nf(numpy.ones((2, 3), 'f'))"], "--args", "f", python=sys.executable)
    if not trace.rows("SELECT 1 FROM process WHERE python_version IS NOT NULL"):
        pytest.skip("no extension for the tests' own Python")
    assert trace.rows("SELECT arguments, result FROM call_args") == [('{"x": "numpy.ndarray f[2, 3]"}', '"numpy.ndarray f[2, 3]"')]


def test_finalizers_that_run_while_arguments_are_written_are_recorded(called):
    """With 3.11 a collection runs while arguments are written, and its finalizers are recorded calls, too."""
    code = """
        import gc
        class Dies:
            def __init__(self, n): self.n, self.me = n, self
            def __del__(self): inner(self.n)
        def inner(n): return -n
        def outer(n): return n
        gc.set_threshold(1)
        for n in range(200):
            Dies(n)
            outer(n)
        gc.collect()
    """
    trace, found = called(code, "--args", "outer", "--args", "inner")
    assert [(a, r) for name, a, r in found if name == "outer"] == [({"n": n}, n) for n in range(200)]
    assert sorted((a["n"], r) for name, a, r in found if name == "inner") == [(n, -n) for n in range(200)]
    assert trace.rows("SELECT cause FROM loss") == []


@pytest.mark.one_python
def test_why_and_tree_say_what_a_coroutine_returned(called, run):
    code = """
    import asyncio
    async def co(n):
        await asyncio.sleep(0)
        sum(range(100000))
        return [n]
    asyncio.run(co(5))
    """
    trace, _ = called(code, "--args", "co")
    why = run("why", "co", trace.path).stdout
    assert "            ended here, and returned [5]\n" in why and '            co(n=5) = "coroutine"\n' in why
    assert "ended here, and returned [5]\n" in run("tree", "co", trace.path, "--slowest").stdout


def test_dyntrace_record_accepts_the_option_args(python, dyntrace, run, tmp_path):
    path = tmp_path / "t.db"
    code = f"""
        import dyntrace
        def f(n): return [n]
        def g(n): return n
        with dyntrace.record({str(path)!r}, args=["f"]): f(1), g(2)
        with dyntrace.record({str(path)!r}, args="g", force=True): f(3), g(4)
        with dyntrace.record({str(path)!r} + "2"): f(5), g(6)
    """
    env = dict(os.environ, PYTHONPATH=os.path.join(os.path.dirname(dyntrace), "lib", "python"))
    subprocess.run([python, "-c", textwrap.dedent(code)], env=env, check=True, timeout=60)
    found = json.loads(run("sql", path, "SELECT f.qualname, a.arguments, a.result FROM call_args a JOIN frames f USING (frame_id)", "--json").stdout)
    assert [tuple(row.values()) for row in found] == [("g", '{"n": 4}', "4")]
    assert json.loads(run("sql", f"{path}2", "SELECT * FROM call_args", "--json").stdout) == []


def test_a_call_that_spans_two_recordings_has_no_result_in_the_second(python, dyntrace, tmp_path):
    """The second has rules of its own: which functions, and which values are secret."""
    word = secrets()[0]
    code = f"""
        import dyntrace, os
        def recording(name, **more): return dyntrace.record({str(tmp_path)!r} + "/" + name, **more)
        def get_password(first, second):
            first.__exit__(None, None, None)
            second.__enter__()
            return os.environ["WORD"]
        for i, more in enumerate(({{}}, {{"args": "get_*"}})):
            first, second = recording(f"first{{i}}", args="get_*", redact=False), recording(f"second{{i}}", **more)
            first.__enter__()
            get_password(first, second)
            second.__exit__(None, None, None)
    """
    env = dict(os.environ, WORD=word, PYTHONPATH=os.path.join(os.path.dirname(dyntrace), "lib", "python"))
    subprocess.run([python, "-c", textwrap.dedent(code)], env=env, check=True, timeout=60)
    paths = [tmp_path / "second0", tmp_path / "second1"]
    assert leaks(paths, [word]) == [] and [rows(path, "SELECT * FROM call_args") for path in paths] == [[], []]
