"""After a recording has ended, none of our code has an effect, although some of it can still be called: docs/internals.md
lists it. Each program records, ends the recording, calls one such part, and records again."""
import os
import subprocess
from pathlib import Path

import pytest

from crash_help import until
from shared import holds, query
from test_foreign import foreign  # noqa: F401  a fixture

PROGRAM = """
import dyntrace, gc, os, sys, threading
def inside(): pass
def late(): pass
def again(): pass
def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
def in_child(work):
    pid = os.fork()
    if not pid:
        work()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
def owner():
    return dyntrace._native.native._owner()
def everything():
    for work in late, lambda: in_thread(late), lambda: in_child(late), lambda: in_child(lambda: in_thread(late)), gc.collect:
        work()
%s
recording = dyntrace.record("first.db")
recording.__enter__()
inside()
within()
recording.__exit__(None, None, None)
everything()
after()
with dyntrace.record("second.db"):
    for _ in range(100): again()
everything()
finally_()
print("ended")
"""
NOTHING = "def within(): pass\ndef after(): assert owner() == '-', owner()\ndef finally_(): after()\n"
CASES = {
    "nothing": NOTHING,
    # an evaluator above ours, which calls ours for ever, and then is gone
    "hook below another": """
import foreign
def within(): foreign.install()
def after():
    before = foreign.counted()
    late()
    assert foreign.counted() == before + 1
def finally_():
    after()
    foreign.restore()
    late()
    assert owner() == "-", owner()
""",
    "hook below another that goes": """
import foreign
def within(): foreign.install()
def after():
    foreign.restore()
    late()
    assert owner() == "-", owner()
def finally_(): assert owner() == "-", owner()
""",
    "another thread ends it": NOTHING + """
real = dyntrace.record
class record:
    def __init__(self, path): self.recording = real(path)
    def __enter__(self): return self.recording.__enter__()
    def __exit__(self, *error): in_thread(lambda: self.recording.__exit__(*error))
dyntrace.record = record
""",
    # frames that began in the recording and end after it: calls, a generator, a coroutine, one that raises, a thread
    "open frames": """
class stop:
    def __await__(self):
        yield 1
def numbers():
    yield 1
    yield late()
    return 3
async def deep():
    await stop()
    late()
    return 5
async def outer(): return await deep()
going = threading.Event(), threading.Event()
def threaded():
    going[0].set()
    going[1].wait()
    late()
generator, coroutine, thread = numbers(), outer(), threading.Thread(target=threaded)
def within():
    next(generator)
    coroutine.send(None)
    thread.start()
    going[0].wait()
    real_exit()
def real_exit():
    try:
        recording.__exit__(None, None, None)
        late()
        raise KeyError
    except KeyError:
        pass
    class ended:
        def __exit__(self, *error): pass
    globals()["recording"] = ended()
def after():
    assert owner() == "-"
    assert list(generator) == [None]
    try: coroutine.send(None)
    except StopIteration as error: assert error.value == 5
    going[1].set()
    thread.join()
def finally_(): pass
""",
    # 3.12: a trace function has ours before it once a generator has ended under it
    "trace function": """
events = []
def trace(frame, event, argument):
    if frame.f_code.co_name in ("inner", "outer"):
        events.append((frame.f_code.co_name, event, type(argument).__name__))
    return trace
async def inner(): return 1
async def outer(): return await inner()
def traced():
    del events[:]
    try: outer().send(None)
    except StopIteration: pass
    return events[:]
sys.settrace(trace)
plain = traced()
def within():
    assert traced() == plain, events
def after():
    assert owner() == "-"
    assert traced() == plain and sys.gettrace() is trace, (events, plain)
    def other(frame, event, argument): return None
    in_thread(lambda: (sys.settrace(other), outer().close(), late()))
    assert traced() == plain
def finally_():
    after()
    sys.settrace(None)
""",
    # 3.13: calls of these are led past ours while the recording goes on
    "classes": """
class Made:
    def __init__(self, a): self.a = again_made(a)
class Sub(Made): pass
def again_made(a): return a
def make():
    for i in range(300): assert Made(i).a == Sub(i).a == i
make()
def within(): make()
def after():
    class Later(Made):
        def __init__(self, a): super().__init__(a)
    for i in range(300): assert Later(i).a == i
    make()
    in_thread(make)
def finally_(): after()
""",
    # data that we keep in code objects, and callbacks of weak references
    "code dies": NOTHING + """
made = {}
exec("def short(n): return n and short(n - 1)\\nclass A: pass\\ndef many():\\n    for _ in range(9): yield A()", made)
def within():
    made["short"](5)
    list(made["many"]())
def after():
    made.clear()
    gc.collect()
""",
    # a compiler of the program's goes on, with entries that die later
    "callback": """
import weakref
from dyntrace.eval_frame import set_eval_frame, _debug_get_cache_entry_list
from dyntrace.guards import GuardTree, L, ID_MATCH
from dyntrace.types import GuardedCode
class Key: pass
key = Key()
def f(key): return 1
def instead(key): return 2
def compiler(frame, entry, state):
    if frame.f_code is f.__code__:
        return GuardedCode(instead.__code__, GuardTree([ID_MATCH(L["key"])], example=frame.f_locals))
def compiled():
    set_eval_frame(compiler)
    try: return f(key)
    finally: set_eval_frame(None)
assert compiled() == 2
def within(): assert compiled() == 2
def after():
    global key
    assert owner() == "-"
    assert compiled() == 2 and f(key) == 1
    in_thread(lambda: compiled())
    key = Key()
    assert compiled() == 2 and len(_debug_get_cache_entry_list(f.__code__)) >= 1
def finally_(): after()
""",
    "callback that stays": """
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode
def f(): return 1
def instead(): return 2
def compiler(frame, entry, state):
    if frame.f_code is f.__code__:
        return GuardedCode(instead.__code__, lambda values: True)
def within():
    set_eval_frame(compiler)
    assert f() == 2
def after():
    assert f() == 2
def finally_():
    after()
    set_eval_frame(None)
    assert owner() == "-" and f() == 1
""",
    # those of sys that look at the slot lead through ours for good
    "functions of sys": """
names = [name for name in ("activate_stack_trampoline", "deactivate_stack_trampoline", "is_stack_trampoline_active") if hasattr(sys, name)]
def within(): pass
def after():
    assert owner() == "-"
    if names:
        assert not sys.is_stack_trampoline_active()
        try: sys.activate_stack_trampoline("perf")
        except ValueError: return  # not in this build
        late()
        assert sys.is_stack_trampoline_active()
        sys.deactivate_stack_trampoline()
        assert not sys.is_stack_trampoline_active()
def finally_(): after()
""",
    "signal handler": NOTHING + """
import signal
signal.signal(signal.SIGALRM, lambda number, frame: late())
def after(): signal.raise_signal(signal.SIGALRM)
""",
    "sub-interpreter": NOTHING + """
try: import _interpreters as interpreters
except ImportError: import _xxsubinterpreters as interpreters
def after():
    one = interpreters.create()
    (getattr(interpreters, "exec", None) or interpreters.run_string)(one, "def f(): pass\\nfor _ in range(9): f()")
    interpreters.destroy(one)
""",
    "at exit": NOTHING + """
import atexit
def finally_():
    atexit.register(everything)
    class Last:
        def __del__(self): late()
    global last
    last = Last()
""",
}


@pytest.fixture
def program(dyntrace, python, foreign, tmp_path):  # noqa: F811
    environment = dict(os.environ, PYTHONPATH=f"{Path(dyntrace).parent / 'lib' / 'python'}:{foreign[1]}")

    def run(text):
        return subprocess.run([python, "-W", "ignore", "-c", text], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    return run


@pytest.mark.sweep(2)
@pytest.mark.parametrize("case", CASES)
def test_after_a_recording_calls_run_as_before_it(program, tmp_path, case):
    done = program(PROGRAM % CASES[case])
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr[-2000:]
    calls = "SELECT qualname, count(*) FROM frames WHERE qualname IN ('inside', 'late', 'again') AND kind = 'call' GROUP BY 1"
    for name, found in ("first.db", ("inside", 1)), ("second.db", ("again", 100)):
        assert query(holds(tmp_path / name), calls) == [found]
        assert query(tmp_path / name, "SELECT cause FROM loss WHERE cause NOT LIKE 'stall:%'") == []
        assert query(tmp_path / name, "SELECT count(*) FROM process WHERE process_id > 1 OR parent_process_id IS NOT NULL")[0][0] <= 1


OUTLIVES = """
import os, sys, time
def leaf(): pass
if not os.fork():
    os.setsid()
    for fd in range(3): os.dup2(os.open(os.devnull, os.O_RDWR), fd)
    leaf()
    while not os.path.exists("go"): time.sleep(0.01)
    import dyntrace
    for _ in range(1000): leaf()
    with dyntrace.record("own.db") as path:
        for _ in range(10): leaf()
    for _ in range(10): leaf()
    if not os.fork():
        leaf()
        os._exit(0)
    os.wait()
    open("done", "w").write(path)
    os._exit(0)
"""


def test_a_daemon_that_outlives_the_recording_can_record_itself(record, python, tmp_path):
    """The daemon starts a new recording, and does not join the one that is over."""
    trace = record(["-c", OUTLIVES], python=python)
    (tmp_path / "go").touch()
    until(lambda: (tmp_path / "done").exists() and (tmp_path / "done").read_text(), "the daemon has ended")
    assert (tmp_path / "done").read_text() == "own.db"
    leaf = "SELECT count(*) FROM frames WHERE qualname = 'leaf'"
    assert trace.rows(leaf) == [(1,)] and query(holds(tmp_path / "own.db"), leaf) == [(10,)]


def test_no_facts_are_written_after_the_recording(dyntrace, python, tmp_path):
    """A process that has ended its recording has no file of the recording mapped."""
    text = """
import dyntrace
with dyntrace.record("x.db"): pass
print(sum("dyntrace-" in line for line in open("/proc/self/maps")))
"""
    environment = dict(os.environ, PYTHONPATH=str(Path(dyntrace).parent / "lib" / "python"))
    done = subprocess.run([python, "-c", text], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "0\n", done.stdout + done.stderr
