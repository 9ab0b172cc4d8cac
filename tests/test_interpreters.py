"""Every interpreter of a process is recorded: sub-interpreters of both kinds, and a main interpreter that is initialised
again."""
import os
import shutil
import sqlite3
import subprocess
import textwrap

import pytest

from shared import ROOT, holds, version_of

CALLS = """
def leaf(i):
    return i

class Made:
    def __init__(self):
        leaf(0)

def steps(n):
    for i in range(n):
        yield leaf(i)

def boom():
    raise KeyError("boom")

def outer(n):
    for i in range(n):
        leaf(i)
    for i in range(100):
        Made()
    assert sum(steps(100)) == 4950
    try:
        boom()
    except KeyError:
        pass

outer(1000)
"""
# What one run of it is: (name, kind, the caller's name, how it ended) -> frames.
EXPECTED = {
    ("leaf", "call", "outer", "return"): 1000,
    ("leaf", "call", "Made.__init__", "return"): 100,
    ("leaf", "call", "steps", "return"): 100,
    ("Made.__init__", "call", "outer", "return"): 100,
    ("steps", "call", "outer", "return"): 1,
    ("steps", "resume", "outer", "yield"): 100,
    ("steps", "resume", "outer", "return"): 1,
    ("boom", "call", "outer", "raise"): 1,
    ("outer", "call", "<module>", "return"): 1,
}
ENTER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
"""


def check(trace, times):
    """Check that each of CALLS ran TIMES times in one process, and that every frame has its parent and its end."""
    holds(trace)
    found = {tuple(row[:4]): row[4] for row in trace.rows(
        "SELECT f.qualname, f.kind, p.qualname, f.exit, count(*) FROM frames f LEFT JOIN frames p ON p.frame_id = f.parent_id "
        "WHERE f.filename IN ('<string>', '<script>') AND f.qualname IN ('leaf', 'outer', 'steps', 'boom', 'Made.__init__') GROUP BY 1, 2, 3, 4")}
    assert found == {what: n * times for what, n in EXPECTED.items()}
    assert trace.rows("SELECT cause FROM loss") == []
    assert trace.rows("SELECT count(*) FROM process") == [(1,)]


def program(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(ENTER + "CALLS = " + repr(CALLS) + "\n" + textwrap.dedent(text))
    return path


# ---- sub-interpreters ----

def test_sub_interpreters_one_after_the_other_are_recorded(record, python, tmp_path):
    """The frame that entered an interpreter is the parent of the frames in it. A reused address leads to no data of an
    earlier interpreter."""
    trace = record([program(tmp_path, """
        def enter():
            inside = interpreters.create()
            interpreters.run_string(inside, CALLS)
            interpreters.destroy(inside)
        for _ in range(10):
            enter()
        """)], python=python)
    check(trace, 10)
    assert trace.rows("SELECT count(DISTINCT p.frame_id) FROM frames f JOIN frames m ON m.frame_id = f.parent_id "
                      "JOIN frames p ON p.frame_id = m.parent_id WHERE f.qualname = 'outer' AND p.qualname = 'enter'") == [(10,)]


@pytest.mark.newest_too
def test_sub_interpreters_side_by_side_are_recorded(record, python, tmp_path):
    """Each interpreter runs in its own thread; from 3.12 on with its own GIL."""
    trace = record([program(tmp_path, """
        import threading
        inside = [interpreters.create() for _ in range(6)]
        for _ in range(3):
            threads = [threading.Thread(target=interpreters.run_string, args=(i, CALLS)) for i in inside]
            for thread in threads:
                thread.start()
            exec(CALLS)
            for thread in threads:
                thread.join()
        for i in inside:
            interpreters.destroy(i)
        """)], python=python)
    check(trace, 21)
    assert trace.rows("SELECT count(DISTINCT thread_id) FROM frames WHERE qualname = 'outer'") == [(19,)]


SPANS = """
import sys
sys.path.insert(0, %r)
import dyntrace
for i in range(20000):
    with dyntrace.span("outer", x=i):
        with dyntrace.span("inner"):
            dyntrace.span("unused", y=i, z=2)
"""


@pytest.mark.newest_too
def test_sub_interpreters_side_by_side_make_spans(record, dyntrace, python, tmp_path):
    """Each interpreter has its own memory and, from 3.12 on, its own GIL. The main interpreter makes spans, too, or none."""
    spans = SPANS % os.path.join(os.path.dirname(dyntrace), "lib", "python")
    path = program(tmp_path, """
        import sys, threading
        inside = [interpreters.create() for _ in range(4)]
        threads = [threading.Thread(target=interpreters.run_string, args=(i, SPANS)) for i in inside]
        for thread in threads:
            thread.start()
        if len(sys.argv) > 1:
            exec(SPANS)
        for thread in threads:
            thread.join()
        for i in inside:
            interpreters.destroy(i)
        """)
    path.write_text("SPANS = %r\n" % spans + path.read_text())
    trace = record([path, "main"], python=python)
    assert holds(trace).rows("SELECT name, COUNT(*) FROM span GROUP BY 1 ORDER BY 1") == [("inner", 20000), ("outer", 20000)]
    for words in (["main"], []):
        done = subprocess.run([python, path, *words], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")


def test_resume_in_a_sub_interpreter_without_a_recording_does_nothing(python, dyntrace, tmp_path):
    """resume() in a sub-interpreter does nothing without a recording, and in one of record(), which ends before the process."""
    path = program(tmp_path, """
        import threading, dyntrace
        RESUME = '''
        import time
        from dyntrace._native import native
        native.pause()
        native.resume()
        def calls(): pass
        end = time.monotonic() + %s
        while time.monotonic() < end:
            calls()
        '''
        import textwrap
        first = interpreters.create()
        interpreters.run_string(first, textwrap.dedent(RESUME % 0))
        interpreters.destroy(first)
        with dyntrace.record("t.db"):
            inside = interpreters.create()
            thread = threading.Thread(target=interpreters.run_string, args=(inside, textwrap.dedent(RESUME % 1)))
            thread.start()
        for number in range(10):
            with dyntrace.record("%d.db" % number):
                pass
        thread.join()
        interpreters.destroy(inside)
        """)
    env = {**os.environ, "PYTHONPATH": os.path.join(os.path.dirname(dyntrace), "lib", "python"), "PATH": os.path.dirname(dyntrace) + ":" + os.environ["PATH"]}
    done = subprocess.run([python, path], capture_output=True, text=True, timeout=120, cwd=tmp_path, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    for trace in tmp_path.glob("*.db"):
        assert sqlite3.connect(trace).execute("SELECT COUNT(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'calls'").fetchone() == (0,)


def test_threads_of_a_sub_interpreter_are_recorded(record, python, tmp_path):
    """A sub-interpreter starts threads itself, where CPython allows this."""
    inner = ("import threading\ndef work(): exec(%r, {})\nthreads = [threading.Thread(target=work) for _ in range(3)]\n"
             "for thread in threads: thread.start()\nfor thread in threads: thread.join()\n" % CALLS)
    check(record([program(tmp_path, """
        import _testcapi
        assert _testcapi.run_in_subinterp(%r) == 0
        """ % inner)], python=python), 3)


def test_recording_options_hold_in_a_sub_interpreter(record, python, tmp_path):
    """--frames user, --exclude and --max-depth, and pause() in the interpreter that calls it."""
    path = program(tmp_path, """
        inside = interpreters.create()
        interpreters.run_string(inside, CALLS)
        interpreters.run_string(inside, "import _dyntrace; _dyntrace.pause()\\ndef unseen(): pass\\nunseen()\\n"
                                        "_dyntrace.resume()\\ndef seen(): pass\\nseen()")
        """)
    count = "SELECT qualname, count(*) FROM frames WHERE filename IN ('<string>', '<script>') AND qualname != '<module>' GROUP BY 1"
    trace = record([path], "--exclude", "leaf", "--exclude", "steps", python=python)
    assert dict(holds(trace).rows(count)) == {"Made": 1, "Made.__init__": 100, "boom": 1, "outer": 1, "seen": 1}
    trace = record([path], "--max-depth", "3", python=python)
    assert dict(holds(trace).rows(count)) == {"Made": 1, "outer": 1, "seen": 1}
    trace = record([path], "--frames", "user", python=python)
    assert trace.rows("SELECT count(*) FROM frames WHERE qualname = 'leaf'") == [(1200,)]
    assert trace.rows("SELECT count(*) FROM frames WHERE filename LIKE '<frozen%'") == [(0,)]


@pytest.mark.no_sanitizer
def test_children_of_a_sub_interpreter_are_recorded(record, python, tmp_path):
    """A subprocess that the sub-interpreter starts is recorded, and later forks and subprocesses of the main interpreter
    are, too."""
    trace = record([program(tmp_path, """
        import os, subprocess, sys
        inside = interpreters.create(isolated=False) if sys.version_info < (3, 12) else interpreters.create()
        start = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'def %s(): pass\\\\n%s()'], check=True)"
        interpreters.run_string(inside, start % ("inner", "inner"))
        interpreters.run_string(inside, (start % ("clean", "clean")).replace("check", "env={}, check"))
        exec(start % ("later", "later"))
        interpreters.destroy(inside) # CPython itself hangs or dies in a fork where another interpreter is
        def forked(): pass
        if not os.fork():
            forked()
            os._exit(0)
        assert os.wait()[1] == 0
        """)], python=python, status=None)
    assert trace.status == 0, trace.err
    holds(trace)
    names = dict(trace.rows("SELECT qualname, count(*) FROM frames WHERE qualname IN ('inner', 'clean', 'later', 'forked') GROUP BY 1"))
    assert names == {"inner": 1, "clean": 1, "later": 1, "forked": 1}
    assert trace.rows("SELECT count(*) FROM process") == [(5,)]


def test_sub_interpreters_with_a_shared_gil_are_recorded(record, python, tmp_path):
    """_testcapi.run_in_subinterp makes an interpreter that shares the main one's GIL."""
    check(record([program(tmp_path, """
        import _testcapi
        for _ in range(5):
            assert _testcapi.run_in_subinterp(CALLS) == 0
        """)], python=python), 5)


def test_the_shim_works_only_in_the_main_interpreter(record, python, tmp_path):
    """A callback of the main interpreter is not called in another one. Setting a callback there is an error with a
    message."""
    trace = record([program(tmp_path, """
        import dyntrace.eval_frame as ef
        asked = []
        def callback(frame, entry, state):
            asked.append(frame.f_code.co_name)
        inside = interpreters.create()
        ef.set_eval_frame(callback)
        interpreters.run_string(inside, CALLS)
        ef.set_eval_frame(None)
        assert "leaf" not in asked, asked
        interpreters.run_string(inside, "try:\\n    import dyntrace.eval_frame\\nexcept RuntimeError as e:\\n    print(e, flush=True)")
        """)], python=python)
    check(trace, 1)
    assert trace.out.count("\n") == 1 and "in the main interpreter only" in trace.out


def test_many_sub_interpreters_are_recorded(record, python, tmp_path):
    """Interpreters start and end in many threads at once, while the main interpreter works, too."""
    trace = record([program(tmp_path, """
        import threading
        def crowd():
            for _ in range(5):
                inside = interpreters.create()
                interpreters.run_string(inside, CALLS)
                interpreters.destroy(inside)
        threads = [threading.Thread(target=crowd) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """)], python=python)
    check(trace, 20)


# ---- Python inside another program ----

@pytest.fixture(scope="module")
def embed(python, tmp_path_factory):
    """tests/programs/embed.c, built for PYTHON."""
    config = os.path.dirname(os.path.realpath(python)) + f"/python{version_of(python)}-config"
    if not os.path.exists(config) or not shutil.which("gcc"):
        pytest.skip("no python3.N-config beside this Python, or no compiler")
    flags = [subprocess.run([config, *what], capture_output=True, text=True, check=True).stdout.split()
             for what in (["--includes"], ["--embed", "--ldflags"])]
    where = [flag[2:] for flag in flags[1] if flag.startswith("-L")]
    path = tmp_path_factory.mktemp("embed") / "embed"
    done = subprocess.run(["gcc", "-o", path, ROOT / "tests/programs/embed.c", *flags[0], *flags[1],
                           *[f"-Wl,-rpath,{w}" for w in where]], capture_output=True, text=True)
    if done.returncode:
        pytest.skip("this Python has no library to embed: " + done.stderr[-200:])
    return path


def test_a_python_initialised_again_is_recorded(record, python, embed):
    """The program calls Py_Initialize() and Py_Finalize() three times. The trace has one process and all frames."""
    check(record([embed, "again", "3", CALLS], python=python), 3)


def test_a_program_that_embeds_python_is_recorded(record, python, embed):
    """The program calls Py_NewInterpreter() and Py_EndInterpreter(), so a new interpreter may get an old one's address."""
    check(record([embed, "legacy", "5", CALLS], python=python), 6)


def test_the_shim_works_after_python_is_initialised_again(record, python, embed):
    """State of the shim from before Py_Finalize() has no effect afterwards."""
    code = ("try:\n import dyntrace.eval_frame as ef\nexcept RuntimeError as e:\n print(e)\nelse:\n"
            " def old(): pass\n ef.set_eval_frame(lambda *a: None)\n old()\n" + CALLS)
    trace = record([embed, "again", "3", code], python=python)
    check(trace, 3)
    assert trace.out.count("initialised again") == 2


def test_run_capture_works_after_python_is_initialised_again(record, python, embed):
    """The callback of `run --capture` is only for threads of the first interpreter."""
    code = ("import threading\n"
            "def leaf(): pass\n"
            "thread = threading.Thread(target=leaf)\nthread.start()\nthread.join()")
    trace = record([embed, "again", "3", code], "--capture", python=python)
    assert trace.rows("SELECT count(*) FROM frames WHERE qualname = 'leaf'") == [(3,)]
    assert trace.rows("SELECT count(*) FROM calls WHERE qualname = 'leaf'") == [(1,)]


@pytest.mark.newest_too
def test_an_interpreter_that_cannot_be_recorded_gets_a_row_of_loss(record, python, embed):
    """The row says why the interpreter is not recorded."""
    trace = record([embed, "taken", CALLS], python=python)
    assert "is not complete: code data" in trace.err and trace.err.count("\n") == 1
    assert trace.rows("SELECT count(*) FROM frames WHERE qualname = 'leaf'") == [(1200,)]
    (cause,), = trace.rows("SELECT cause FROM loss")
    assert cause.startswith("code data: an interpreter ") and cause.endswith("it was not recorded")
