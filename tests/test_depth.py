"""A recorded program recurses as deep as alone, on every CPython version, and a runaway recursion ends in RecursionError."""
import subprocess

import pytest

from shared import PROGRAMS, calls, holds

pytestmark = pytest.mark.newest_too

DEEP = PROGRAMS / "run_deep.py"

LEVELS = """WITH RECURSIVE up(id, parent, n) AS (
    SELECT * FROM (SELECT frame_id, parent_id, 1 FROM frame WHERE frame_id = (SELECT max(f.frame_id) FROM frame f JOIN code USING (code_id) WHERE qualname = ?))
    UNION ALL SELECT frame_id, parent_id, n + 1 FROM up JOIN frame ON frame_id = parent) SELECT max(n) FROM up"""


def depth_of(trace, name):
    """Frames from the innermost one of NAME to the bottom of its stack."""
    return trace.rows(LEVELS, name)[0][0]


@pytest.mark.parametrize("deep", [100_000, pytest.param(500_000, marks=pytest.mark.slow)])
def test_each_call_of_a_deep_recursion_has_its_parent(record, python, deep):
    trace = holds(record([DEEP, "plain", deep], "--include", "plain", python=python))
    assert (trace.out, trace.err) == ("True\n", "")
    assert trace.rows("SELECT count(*), sum(parent_id IS NULL), sum(end_ns IS NULL) FROM frame") == [(deep + 1, 1, 0)]
    assert depth_of(trace, "plain") == deep + 1


def test_recursion_50000_deep_in_a_thread_is_recorded(record, python):
    trace = holds(record([DEEP, "plain", 50_000, "thread"], python=python))
    assert (trace.out, trace.err) == ("True\n", "")
    assert calls(trace, "plain") == 50_001
    assert depth_of(trace, "plain") > 50_001


@pytest.mark.parametrize("kind", ["init", "methods", "map", "sorted", "generator", "mutual"])
@pytest.mark.parametrize("where", [[], pytest.param(["thread"], marks=pytest.mark.slow)], ids=["main", "thread"])
def test_recursion_through_c_is_as_deep_as_without_dyntrace(record, python, kind, where):
    """Each kind of recursion is run at the greatest depth that CPython alone survives."""
    depths = (700, 100) if kind == "generator" else (8000, 2000, 400)  # it resumes all below it
    for n in depths:
        words = [DEEP, kind, n, *where]
        alone = subprocess.run([python, *map(str, words)], capture_output=True, text=True)
        if alone.stdout == "True\n":
            break
    assert alone.stdout == "True\n"
    trace = holds(record(words, python=python))
    assert (trace.out, trace.err) == ("True\n", "")


@pytest.mark.parametrize("kind", ["plain", "init", "methods", "map", "sorted", "generator", "mutual"])
def test_a_runaway_recursion_ends_in_recursion_error(record, python, kind):
    """Three runaway recursions, at the default recursion limit."""
    trace = holds(record([DEEP, kind, "runaway"], "--frames", "user", python=python))
    assert (trace.out, trace.err) == ("RecursionError RecursionError RecursionError\n", "")


@pytest.mark.parametrize("limit", [50_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_a_runaway_recursion_with_a_high_limit_ends_in_recursion_error(record, python, limit):
    trace = holds(record([DEEP, "plain", "runaway", limit], "--frames", "user", python=python))
    assert trace.out == "RecursionError RecursionError RecursionError\n"
    assert trace.rows("SELECT count(*) FROM frames WHERE qualname = 'plain' AND exit <> 'raise'") == [(0,)]


def test_every_call_of_init_is_recorded(record, python):
    """CPython 3.13 runs a specialised __init__ without calling a PEP 523 hook."""
    program = """if True:
        class Plain:
            def __init__(self, x): self.x = x
        class Slots:
            __slots__ = 'x'
            def __init__(self, x): self.x = x
        class Derived(Plain):
            def __init__(self, x): super().__init__(x)
        class Inherits(Plain): pass
        class Meta(type): pass
        class WithMeta(metaclass=Meta):
            def __init__(self, x): leaf()
        class Both:
            def __new__(cls, x): return super().__new__(cls)
            def __init__(self, x): pass
        class Raises:
            def __init__(self, x): raise ValueError
        def leaf(): pass
        def make(cls, n):
            for i in range(n): cls(i)
        def attempt(n):
            for i in range(n):
                try: Raises(i)
                except ValueError: pass
        for cls in (Plain, Slots, Derived, Inherits, WithMeta, Both): make(cls, 1000)
        attempt(1000)
        def loop():
            for i in range(1000): Plain(i)
        loop()
        def late():
            class Late:
                def __init__(self): pass
            for _ in range(500): Late()
        late(); late()
        Plain.__init__ = lambda self, x: None
        loop()
        """
    trace = holds(record(["-c", program], python=python))
    for name, n in (("Plain.__init__", 4000), ("Slots.__init__", 1000), ("Derived.__init__", 1000), ("WithMeta.__init__", 1000),
                    ("Both.__init__", 1000), ("Both.__new__", 1000), ("Raises.__init__", 1000), ("late.<locals>.Late.__init__", 1000),
                    ("leaf", 1000), ("<lambda>", 1000)):
        assert calls(trace, name) == n, name
    assert trace.rows("SELECT count(*) FROM frames f JOIN frames p ON p.frame_id = f.parent_id WHERE f.qualname = 'leaf' "
                      "AND p.qualname = 'WithMeta.__init__'") == [(1000,)]


@pytest.mark.parametrize("size", [256 << 10, 32 << 20])
def test_deep_recursion_in_threads_with_chosen_stack_sizes_is_recorded(record, python, size):
    program = f"""if True:
        import sys, threading
        sys.setrecursionlimit(30000)
        def down(n): return down(n - 1) if n else 0
        threading.stack_size({size})
        threads = [threading.Thread(target=down, args=(10000,)) for _ in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        print(down(20000))
        """
    trace = holds(record(["-c", program], python=python))
    assert (trace.out, trace.err) == ("0\n", "")
    assert calls(trace, "down") == 8 * 10001 + 20001


def test_fork_and_exceptions_work_on_stack_segments(record, python):
    """A child is forked on one of our stack segments, and an exception leaves all segments."""
    program = """if True:
        import os, sys
        sys.setrecursionlimit(100000)
        def down(n):
            if n: return down(n - 1)
            pid = os.fork()
            if pid == 0:
                again(20000); os._exit(0)
            print(os.waitpid(pid, 0)[1])
            raise KeyError('deep')
        def again(n): return again(n - 1) if n else 0
        try: down(30000)
        except KeyError as error: print(error)
        print(again(20000))
        """
    trace = holds(record(["-c", program], python=python))
    assert (trace.out, trace.err) == ("0\n'deep'\n0\n", "")
    assert trace.rows("SELECT count(*) FROM frames WHERE qualname = 'down' AND kind = 'call' AND exit = 'raise'") == [(30001,)]
    assert trace.rows("SELECT count(*) FROM frames WHERE qualname = 'down' AND kind = 'inherited' AND end_ns IS NULL") == [(30001,)]
    assert calls(trace, "again") == 2 * 20001


def test_a_generator_can_be_resumed_at_another_depth(record, python):
    """The generator is made near the top, resumed on a stack segment, and finished near the top."""
    program = """if True:
        import sys
        sys.setrecursionlimit(50000)
        def g():
            for i in range(3): yield i
        def down(n, it): return down(n - 1, it) if n else next(it)
        it = g()
        print(next(it), down(30000, it), next(it), list(it))
        """
    trace = holds(record(["-c", program], python=python))
    assert trace.out == "0 1 2 []\n"
    assert trace.rows("SELECT exit, count(*) FROM frames WHERE qualname = 'g' AND kind = 'resume' GROUP BY 1 ORDER BY 1") == [("return", 1), ("yield", 3)]
