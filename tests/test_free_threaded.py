"""Free-threaded builds of CPython: frames, spans, arguments, losses and kills are those of builds with the GIL, though threads
run in parallel; compilers are refused in one line.

The interpreters are those of DYNTRACE_PYTHONS, of DYNTRACE_FREE_THREADED (colon separated, too) and python3.Nt on PATH. Without
one, or without an extension for it, the tests are skipped.
"""
import os
import shutil
import signal
import subprocess
import textwrap
import time
from pathlib import Path

import pytest

from crash_help import Work, collector_of, rows, until
from shared import PYTHONS, command_path, holds, script

LOOK = "import sys, sysconfig; print(int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))), sysconfig.get_config_var('EXT_SUFFIX'))"


def has_extension(python):
    """Is PYTHON free-threaded, and is there an extension for it?"""
    done = subprocess.run([python, "-c", LOOK], capture_output=True, text=True)
    free, suffix = done.stdout.split() if done.returncode == 0 else ("0", "")
    return free == "1" and (Path(command_path()).parent / "lib" / f"_dyntrace{suffix}").exists()


def candidates():
    named = os.environ.get("DYNTRACE_FREE_THREADED", "").split(":")
    found = [*PYTHONS, *filter(None, named), *filter(None, map(shutil.which, ("python3.14t", "python3.15t")))]
    return [python for python in dict.fromkeys(found) if has_extension(python)]


FREE = candidates()
pytestmark = pytest.mark.skipif(not FREE, reason="no free-threaded CPython with an extension")


@pytest.fixture(params=FREE or ["none"], ids=os.path.basename)
def free(request):
    return request.param


@pytest.fixture
def recorded(record, free):
    """recorded(code, *options) -> trace, which has kept its promises"""

    def run(code, *options, whole=True, **more):
        trace = record(["-c", PRELUDE + textwrap.dedent(code)], *options, python=free, **more)
        return holds(trace) if whole else trace

    return run


PRELUDE = """
import sys, threading
assert not sys._is_gil_enabled()
def together(count, work):
    gate = threading.Barrier(count)
    def run(n):
        gate.wait()
        work(n)
    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert not sys._is_gil_enabled()
"""

COUNTS = """SELECT c.qualname, t.name, count(*), sum(f.end_ns IS NULL) FROM frame f JOIN code c USING (code_id)
    JOIN thread t USING (thread_id) GROUP BY 1, 2"""


def counts(trace, *names):
    """{(function, thread): frames}, all of which have ended."""
    found = {(name, thread): (frames, still) for name, thread, frames, still in trace.rows(COUNTS) if name in names}
    assert not any(still for _, still in found.values())
    return {key: frames for key, (frames, _) in found.items()}


def no_losses(trace):
    assert trace.rows("SELECT events, cause FROM loss") == []


# ---- frames ----

def test_each_thread_has_all_its_frames_with_the_right_parents(recorded):
    trace = recorded("""
        def leaf(x): return x
        def middle(n):
            return leaf(n) + leaf(n + 1)
        def work(n):
            for i in range(3000): middle(i)
        together(6, work)
    """)
    assert sorted(counts(trace, "leaf", "middle", "work").values()) == [1] * 6 + [3000] * 6 + [6000] * 6
    wrong = """SELECT count(*) FROM frame f JOIN frame p ON p.frame_id = f.parent_id JOIN code c ON c.code_id = f.code_id
        JOIN code pc ON pc.code_id = p.code_id WHERE (c.qualname, pc.qualname) IN (('leaf', 'leaf'), ('middle', 'leaf'), ('leaf', 'work'))
        OR f.thread_id IS NOT p.thread_id OR f.start_ns < p.start_ns OR f.end_ns > p.end_ns"""
    assert trace.rows(wrong) == [(0,)]
    no_losses(trace)


def test_code_that_threads_call_first_at_the_same_time_has_one_id(recorded):
    trace = recorded("""
        COUNT = 400
        made = {}
        for i in range(COUNT):
            exec(f"def fresh_{i}(): return {i}", made)
        def work(n):
            for i in range(COUNT): made[f"fresh_{i}"]()
        together(8, work)
    """)
    found = trace.rows("""SELECT qualname, count(DISTINCT code_id), count(*) FROM frame JOIN code USING (code_id)
        WHERE qualname LIKE 'fresh_%' GROUP BY 1""")
    assert len(found) == 400 and {row[1:] for row in found} == {(1, 8)}
    assert trace.rows("SELECT count(*) FROM code WHERE qualname LIKE 'fresh_%'") == [(400,)]
    no_losses(trace)


def test_calls_of_code_that_threads_make_and_drop_are_recorded(recorded):
    trace = recorded("""
        def work(n):
            for i in range(300):
                made = {}
                exec(f"def made_{n}(x): return x + {i}", made)
                made[f"made_{n}"](i)
        together(6, work)
    """)
    assert sorted(counts(trace, *(f"made_{n}" for n in range(6))).values()) == [300] * 6
    no_losses(trace)


def test_exceptions_generators_and_coroutines_in_threads_are_recorded(recorded):
    trace = recorded("""
        import asyncio
        def raises(n): raise ValueError(n)
        def catches(n):
            try: raises(n)
            except ValueError as error: return error.args[0]
        def numbers(n):
            for i in range(n): yield i
        async def adds(a, b):
            await asyncio.sleep(0)
            return a + b
        async def all_of(n):
            return sum(await asyncio.gather(*(adds(i, n) for i in range(20))))
        def work(n):
            for i in range(200):
                assert catches(i) == i
                assert sum(numbers(10)) == 45
            assert asyncio.run(all_of(n)) == 190 + 20 * n
        together(4, work)
    """)
    found = counts(trace, "raises", "catches", "numbers", "adds", "all_of")
    # of a generator: the call that makes it, and each resumption
    per_thread = {"raises": 200, "catches": 200, "numbers": 200 * 12}
    for name, frames in per_thread.items():
        assert [n for (function, _), n in sorted(found.items()) if function == name] == [frames] * 4, name
    assert trace.rows("SELECT count(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'raises' AND exit IS NOT "
                      "(SELECT exit FROM frame JOIN code USING (code_id) WHERE qualname = 'raises' LIMIT 1)") == [(0,)]
    no_losses(trace)


def test_deep_recursion_in_threads_is_recorded(recorded):
    trace = recorded("""
        sys.setrecursionlimit(6000)
        def down(n): return n and down(n - 1)
        together(3, lambda n: down(5000))
    """)
    assert list(counts(trace, "down").values()) == [5001] * 3


def test_calls_of_240_short_threads_are_recorded(recorded):
    trace = recorded("""
        def once(): pass
        def work(n):
            for _ in range(60):
                thread = threading.Thread(target=once)
                thread.start()
                thread.join()
        together(4, work)
    """)
    assert sum(counts(trace, "once").values()) == 240
    no_losses(trace)


def test_calls_of_a_thread_that_ends_by_sys_exit_are_recorded(recorded):
    trace = recorded("""
        def leaves(n):
            for i in range(100): inner(i)
            sys.exit(3)
        def inner(i): pass
        together(4, leaves)
    """)
    assert sorted(counts(trace, "leaves", "inner").values()) == [1] * 4 + [100] * 4
    no_losses(trace)


def test_daemon_threads_that_run_at_the_programs_end_are_recorded(recorded):
    trace = recorded("""
        import time
        def spin(): pass
        def forever():
            while True: spin()
        for _ in range(3): threading.Thread(target=forever, daemon=True).start()
        time.sleep(0.3)
    """)
    assert trace.rows("SELECT count(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'spin'")[0][0] > 1000
    assert trace.rows("SELECT exit_code FROM process") == [(0,)]


# ---- spans and arguments ----

def test_spans_of_threads_are_recorded_with_their_parents(recorded):
    trace = recorded("""
        import dyntrace
        shared = dyntrace.span("shared", who="all")
        @dyntrace.span
        def decorated(n): return n
        def work(n):
            for i in range(200):
                with dyntrace.span(f"own {n}"):
                    with shared: decorated(i)
        with dyntrace.span("around"):
            together(4, work)
    """)
    names = dict(trace.rows("SELECT name, count(*) FROM span GROUP BY 1"))
    assert names == {"around": 1, "shared": 800, "decorated": 800, **{f"own {n}": 200 for n in range(4)}}
    assert trace.rows("SELECT count(*) FROM span WHERE end_ns IS NULL OR end_ns < start_ns") == [(0,)]
    parents = trace.rows("""SELECT DISTINCT s.name, substr(p.name, 1, 3), s.thread_id = p.thread_id FROM span s
        LEFT JOIN span p ON p.span_id = s.parent_span_id WHERE s.name IN ('shared', 'decorated')""")
    assert sorted(parents) == [("decorated", "sha", 1), ("shared", "own", 1)]
    no_losses(trace)


def test_arguments_that_other_threads_change_meanwhile_are_recorded(recorded):
    trace = recorded("""
        class Thing: pass
        data, table, thing = [1, 2, 3], {"a": 1}, Thing()
        done = False
        def takes(items, names, other): return items
        def changes():
            while not done:
                data.append([len(data)]); data[:1] = []
                table[str(len(table) % 50)] = {"x": data}; table.pop(next(iter(table), None), None)
                if len(data) > 40: data.clear()
        def work(n):
            for _ in range(800): takes(data, table, thing)
        threads = [threading.Thread(target=changes) for _ in range(2)]
        for thread in threads: thread.start()
        together(3, work)
        done = True
        for thread in threads: thread.join()
    """, "--args", "takes")
    assert sum(counts(trace, "takes").values()) == 2400
    assert trace.rows("SELECT count(*) FROM call_args WHERE json_valid(arguments)")[0][0] == 2400


# ---- fork ----

def test_a_child_forked_while_threads_run_is_recorded(recorded):
    trace = recorded("""
        import os, warnings
        warnings.simplefilter("ignore")
        stop = False
        def busy(): pass
        def spin():
            while not stop: busy()
        def in_child(n): return n
        threads = [threading.Thread(target=spin) for _ in range(3)]
        for thread in threads: thread.start()
        for n in range(8):
            pid = os.fork()
            if not pid:
                for i in range(100): in_child(i)
                os._exit(n)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == n
        stop = True
        for thread in threads: thread.join()
    """)
    assert sorted(trace.rows("SELECT exit_code FROM process WHERE parent_process_id IS NOT NULL")) == [(n,) for n in range(8)]
    found = trace.rows("""SELECT count(*) FROM frame JOIN code USING (code_id) JOIN thread t USING (thread_id)
        WHERE qualname = 'in_child' GROUP BY t.process_id""")
    assert found == [(100,)] * 8
    no_losses(trace)


def test_programs_that_threads_start_are_recorded(recorded, free):
    trace = recorded(f"""
        import subprocess
        def work(n):
            for _ in range(2):
                done = subprocess.run([{free!r}, "-c", "def here(): pass\\nhere()"], env={{}} if n else None)
                assert done.returncode == 0
        together(3, work)
    """)
    assert trace.rows("SELECT count(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'here'") == [(6,)]


# ---- kills and losses ----

@pytest.mark.parametrize("threads", [3, 2])
def test_frames_survive_sigkill(dyntrace, free, tmp_path, threads):
    for n in range(3):
        work = Work(dyntrace, free, tmp_path, threads, name=f"kill{n}")
        try:
            time.sleep(0.05 * n)
            os.kill(work.pid, signal.SIGKILL)
            assert work.wait() == 128 + signal.SIGKILL, work.err
            work.check()
            assert rows(work.trace, "SELECT events, cause FROM loss") == []
        finally:
            work.end()


def test_a_collector_that_replaces_a_killed_one_loses_nothing(dyntrace, free, tmp_path):
    work = Work(dyntrace, free, tmp_path, 3, rounds=60000)
    try:
        for _ in range(2):
            collector = until(lambda: collector_of(work.run.pid), "a collector")
            os.kill(collector, signal.SIGKILL)
            time.sleep(0.1)
        work.wait()
        work.check(least=[60000] * 3, most=[60000] * 3)
    finally:
        work.end()


def test_lost_frames_are_counted(dyntrace, free, tmp_path):
    """The frames in the trace and the lost ones add up to the calls that ran."""
    path, trace = tmp_path / "p.py", tmp_path / "t.db"
    script(path, PRELUDE + textwrap.dedent("""
        import os, time
        def leaf(): pass
        def work(n):
            for _ in range(1500000): leaf()
        print(os.getpid(), flush=True)
        sys.stdin.readline()
        together(2, work)
    """))
    words = [dyntrace, "run", "-o", trace, "--max-stall", "20ms", "--python", free, "--", path]
    with subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        run.stdout.readline()
        collector = until(lambda: collector_of(run.pid), "a collector")
        os.kill(collector, signal.SIGSTOP)
        run.stdin.write("\n")
        run.stdin.flush()
        time.sleep(4)
        os.kill(collector, signal.SIGCONT)
        run.communicate(timeout=120)
        assert run.returncode == 0
    holds(trace)
    kept, = rows(trace, "SELECT count(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'leaf'")[0]
    lost, = rows(trace, "SELECT total(events) FROM loss")[0]
    others, = rows(trace, "SELECT count(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'work'")[0]
    assert 0 < lost and 3000000 <= kept + lost <= 3000000 + 200, (kept, lost, others)


# ---- sessions begin and end while threads run ----

def test_record_begins_and_ends_while_threads_run(dyntrace, free, tmp_path):
    code = PRELUDE + textwrap.dedent("""
        import dyntrace, os, time
        stop = False
        def leaf(x): return x
        def outer(n):
            with dyntrace.span("s", n=n): return leaf(n) + leaf(n)
        def spin():
            n = 0
            while not stop:
                n += 1
                outer(n)
                if n % 50 == 0:
                    made = {}
                    exec(f"def made(): return {n}", made)
                    made["made"]()
        def deep(n): return deep(n - 1) if n else time.sleep(0.05)
        def sleeper():
            while not stop: deep(30)
        threads = [threading.Thread(target=spin) for _ in range(3)] + [threading.Thread(target=sleeper)]
        for thread in threads: thread.start()
        for n in range(12):
            with dyntrace.record(f"{n}.db"):
                time.sleep(0.03)
            if n % 3 == 0:
                with dyntrace.record(f"p{n}.db"):
                    for _ in range(20):
                        sys.modules["_dyntrace"].pause()
                        sys.modules["_dyntrace"].resume()
        stop = True
        for thread in threads: thread.join()
        print("end")
    """)
    env = dict(os.environ, PYTHONPATH=str(Path(dyntrace).parent / "lib" / "python"))
    done = subprocess.run([free, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
    for n in range(12):
        holds(tmp_path / f"{n}.db")
        assert rows(tmp_path / f"{n}.db", "SELECT count(*) FROM frame")[0][0] > 0


# ---- what needs the GIL ----

SENTENCE = "dyntrace's compilers need a CPython with the GIL: of this free-threaded one frames are recorded, nothing more"


def test_free_threaded_python_refuses_compilers_in_one_sentence(recorded):
    trace = recorded("""
        import dyntrace, dyntrace.note
        def tried(what):
            try: what()
            except RuntimeError as error: print(error)
            else: print("done")
        def of_eval_frame():
            import dyntrace.eval_frame
        def of_compile():
            dyntrace.compile(lambda x: x)
        def of_resume():
            import dyntrace.resume
        tried(of_eval_frame)
        tried(of_compile)
        tried(of_resume)
        dyntrace.note.graph("g", [])
        assert not sys._is_gil_enabled()
    """)
    assert trace.out == (SENTENCE + "\n") * 3


def test_capture_is_refused_in_one_line(dyntrace, free, tmp_path):
    words = [dyntrace, "run", "--capture", "-o", tmp_path / "t.db", "--python", free, "--", "-c", "1"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == (f"dyntrace: run: --capture needs a CPython with the GIL, and {free} is free-threaded: run without "
                           "--capture, which records its frames\n")


def test_attach_is_refused_in_one_line(dyntrace, free, tmp_path):
    program = subprocess.Popen([free, "-c", "import time\nprint(1, flush=True)\nfor _ in range(600): time.sleep(0.1)"], stdout=subprocess.PIPE)
    try:
        program.stdout.readline()
        done = subprocess.run([dyntrace, "attach", str(program.pid), "-o", str(tmp_path / "t.db")], capture_output=True, text=True, timeout=60)
        assert done.returncode != 0
        assert done.stderr.endswith("runs in a free-threaded CPython, which cannot be attached to: record it from its start with "
                                    "`dyntrace run`\n")
        assert program.poll() is None
    finally:
        program.kill()
        program.wait()


def test_sub_interpreters_are_recorded_as_a_loss(recorded):
    trace = recorded("""
        import _interpreters
        made = _interpreters.create()
        _interpreters.exec(made, "def inside(): pass\\ninside()")
        _interpreters.destroy(made)
        def after(): pass
        after()
    """)
    assert trace.rows("SELECT count(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'after'") == [(1,)]
    assert [cause for cause, in trace.rows("SELECT cause FROM loss")] == [
        "interpreter: in a free-threaded CPython only the main interpreter is recorded: nothing of another one was recorded"]


def test_doctor_says_what_works_on_a_free_threaded_python(dyntrace, free, tmp_path):
    (tmp_path / "python3.14t").symlink_to(free)
    done = subprocess.run([dyntrace, "doctor"], env=dict(os.environ, PATH=str(tmp_path)), capture_output=True, text=True)
    assert ", free-threaded: frames, spans and arguments, but no compilers\n" in done.stdout
