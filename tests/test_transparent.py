"""A program does not notice `dyntrace run`: each runs once alone and once recorded, and all its output is equal."""
import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import textwrap
import time
from pathlib import Path

import pytest

import attach_cycles
from crash_help import collector_of, until
from shared import PROGRAMS, PYTHONS, calls, environment, holds, query, script, version_of

STATE = PROGRAMS / "run_state.py"


@pytest.fixture
def both(dyntrace, tmp_path):
    """both(words, python=...) -> the result of the program alone, after a check that the recorded run gave the same."""
    def both(words, python=None, prepare=None, check=True, options=(), **rest):
        python = python or PYTHONS[0]
        rest.setdefault("cwd", tmp_path)
        rest.setdefault("timeout", 120)
        if "input" not in rest:
            rest.setdefault("stdin", subprocess.DEVNULL)
        done = []
        trace = tmp_path / "both.db"
        trace.unlink(missing_ok=True)
        for before in ([python], [dyntrace, "run", "-o", trace, "--python", python, *options, "--"]):
            if prepare:
                prepare()
            done.append(subprocess.run([*map(str, before), *map(str, words)], capture_output=True, text=True, **rest))
        alone, recorded = done
        if alone.returncode < 0:  # what a shell would say of it
            alone.returncode = 128 - alone.returncode
        for one in done:
            one.stdout, one.stderr = (re.sub(r"\b0x[0-9a-f]{8,}", "0x...", text) for text in (one.stdout, one.stderr))
        assert (recorded.stdout, recorded.stderr, recorded.returncode) == (alone.stdout, alone.stderr, alone.returncode)
        if check:
            holds(trace)
        return alone
    return both


# ---- what a program can look at ----

@pytest.mark.newest_too
@pytest.mark.parametrize("paths", [None, "", ":", "here", "here:", "::/nowhere:there"],
                         ids=["unset", "empty", "colon", "relative", "trailing", "several"])
def test_a_recorded_program_sees_the_same_state_as_without_us(both, python, tmp_path, paths):
    alone = both([STATE, "argument", "--raise"], python, env=environment(PYTHONPATH=paths))
    assert alone.returncode == 1 and "ValueError: y" in alone.stderr
    state = json.loads(alone.stdout)
    assert state["argv"][0][1:] == ["argument", "--raise"]


@pytest.mark.newest_too
def test_objects_are_created_as_without_us(both, python):
    """On 3.13 code of ours calls a class that has a Python __init__."""
    alone = both([PROGRAMS / "run_init.py"], python)
    assert alone.returncode == 0 and "not callable ('TypeError'" in alone.stdout


SPECIALISED = """
import dis, sys
class Kept:
    def __init__(self, x):
        self.x = x
def make():
    return Kept(1)
def special():
    make.__code__ = make.__code__.replace(co_name="another")
    for _ in range(100):
        make()
    return any("INIT" in i.opname for i in dis.get_instructions(make, adaptive=True))
"""


def test_objects_whose_init_is_excluded_are_created_as_without_us(both, python, tmp_path):
    """CPython specialises calls of an __init__ that is not recorded, as it does without us."""
    program = script(tmp_path / "kept.py", SPECIALISED + "print(special())\n")
    seen = version_of(python) not in ("3.11", "3.12")
    assert both([program], python, options=["--exclude", "*kept.py"]).stdout == f"{seen}\n"


@pytest.mark.parametrize("options", [["-m", "run_state"], ["-c", "exec(open(%r).read())" % str(STATE)]], ids=["module", "code"])
def test_modules_and_code_see_the_same_state_as_without_us(both, python, options):
    both([*options, "x"], python, env=environment(PYTHONPATH=PROGRAMS))


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name,value", [("PYTHONDEVMODE", "1"), ("PYTHONWARNINGS", "error"), ("PYTHONHASHSEED", "0"), ("PYTHONSAFEPATH", "1"),
                                        ("PYTHONNOUSERSITE", "1"), ("PYTHONOPTIMIZE", "2"), ("PYTHONDONTWRITEBYTECODE", "1"),
                                        ("PYTHONINSPECT", ""), ("LC_ALL", "C"), ("PYTHONMALLOC", "debug"), ("PYTHONTRACEMALLOC", "3"),
                                        ("PYTHONFAULTHANDLER", "1"), ("PYTHONPROFILEIMPORTTIME", "")])
def test_a_program_with_other_environment_variables_sees_the_same_state_as_without_us(both, name, value):
    both([STATE], env=environment(**{name: value}))


@pytest.mark.no_sanitizer
def test_a_program_without_environment_sees_the_same_state_as_without_us(both, python):
    both([STATE], python, env={})


def test_python_started_by_a_shell_has_the_same_state_as_without_us(both, dyntrace, python, tmp_path):
    """The shell is a child of the program, and Python a child of the shell."""
    both(["-c", "import subprocess, sys; sys.exit(subprocess.run(['sh', '-c', '\"$0\" \"$1\"', sys.executable, %r]).returncode)" % str(STATE)],
         python, env=environment())


def test_nothing_of_ours_is_left_in_a_bytecode_cache(both, tmp_path):
    """With PYTHONPYCACHEPREFIX the bytecode of our sitecustomize could be written into that cache."""
    both(["-c", "import json"], env=environment(PYTHONPYCACHEPREFIX=tmp_path / "cache", PYTHONDONTWRITEBYTECODE=None))
    assert list((tmp_path / "cache").rglob("*.pyc"))
    assert not [p for p in (tmp_path / "cache").rglob("*") if "dyntrace-" in str(p.relative_to(tmp_path))]


CUSTOMISED = {
    "works": "import sys, os\nsys.customised = [__name__, __file__, __spec__.name, __spec__.origin, list(sys.path), dict(os.environ).get('PYTHONPATH')]\nprint('customised')",
    "raises": "raise RuntimeError('mine')",
    "imports what is missing": "import no_such_module",
    "import error of its own name": "raise ImportError('x', name='sitecustomize')",
    "takes itself out": "import sys; del sys.modules['sitecustomize']; print('gone')",
    "syntax error": "def (",
    "changes the path": "import sys; sys.path.insert(0, '/first'); sys.path.append('/last')",
}


@pytest.mark.parametrize("what", CUSTOMISED)
def test_the_programs_sitecustomize_runs_as_without_us(both, tmp_path, what):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text(CUSTOMISED[what])
    done = both([STATE], env=environment(PYTHONPATH=tmp_path / "own"))
    if what == "works":
        assert done.stdout.startswith("customised\n")


def test_the_programs_usercustomize_runs_as_without_us(both, base_python, tmp_path):
    site = tmp_path / "user" / "lib" / f"python{version_of(base_python)}" / "site-packages"
    site.mkdir(parents=True)
    (site / "usercustomize.py").write_text("import sys; sys.customised = 'by the user'; print(sorted(set(sys.modules) - {'_dyntrace'}))")
    (site / "sitecustomize.py").write_text("print('sitecustomize', __file__)")
    (site / "dotted.pth").write_text("import sys; print('pth', sys.argv)\n/nowhere\n")  # sys.path still has our entry here
    done = both([STATE], base_python, env=environment(PYTHONUSERBASE=tmp_path / "user", PYTHONNOUSERSITE=None))
    assert "by the user" in done.stdout


def test_a_sitecustomize_that_forks_and_starts_children_works(both, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text(textwrap.dedent("""
        import os, sys
        if "ONCE" not in os.environ:
            os.environ["ONCE"] = "1"
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                os._exit(os.system("exit 3") >> 8)
            print(os.waitpid(pid, 0)[1], os.system("'%s' -c 'import sys; print(sys.path)'" % sys.executable), flush=True)
        """))
    both(["-c", "print('main')"], env=environment(PYTHONPATH=tmp_path / "own"))


# ---- programs that look closely ----

@pytest.mark.newest_too
def test_trace_functions_of_the_program_get_the_same_events(both, python):
    """sys.settrace, sys.setprofile and sys.monitoring say the same."""
    done = both([PROGRAMS / "run_hooks.py"], python)
    assert done.returncode == 0 and len(done.stdout.splitlines()) > 100


@pytest.mark.parametrize("when", ["never", "first", "last"])
def test_extra_data_of_the_program_in_code_objects_works(both, dyntrace, python, when):
    """The program's free function is called for the data that it has set, when these are freed, and never for a code
    object that only we marked."""
    env = environment(PYTHONPATH=os.path.join(os.path.dirname(dyntrace), "lib", "python"))
    done = both([PROGRAMS / "run_extra.py", when], python=python, env=env)
    assert (done.stdout.splitlines(), done.stderr, done.returncode) == ([
        "never set: []", "before and after the first call: 1 2 3 3 1 2 None", "set again: [2]", "dead: [2, 3, 1]"], "", 0)


PURE = {"plain", "arguments", "method", "generator", "for", "coroutine", "map", "sorted", "reduce", "exec", "comprehension", "class"}


@pytest.mark.newest_too
def test_recursion_errors_come_no_sooner_than_without_us(dyntrace, tmp_path, python):
    """Most come at the same depth. 3.12 and 3.13 also count C calls, and a frame called from C twice: with any PEP 523 hook all frames
    are; what we give back for them makes some recursions through C end later, never sooner. 3.15, and 3.14 in its later releases,
    count a specialised call of a class twice."""
    words = [python, PROGRAMS / "run_limits.py"]
    alone, recorded = [subprocess.run([*map(str, before), *map(str, words)], capture_output=True, text=True)
                       for before in ([], [dyntrace, "run", "-o", tmp_path / "t.db"])]
    assert (recorded.returncode, recorded.stderr) == (alone.returncode, alone.stderr) == (0, "")
    pairs = list(zip(alone.stdout.splitlines(), recorded.stdout.splitlines(), strict=True))
    for before, after in pairs:
        kind, depth, *error = before.split()
        exact = version_of(python) not in ("3.12", "3.13") and (kind, version_of(python)) not in (("init", "3.14"), ("init", "3.15"))
        if kind in PURE or exact:
            assert before == after
        else:
            assert after.split()[::2] == before.split()[::2] and after.split()[2:] == error and int(after.split()[1]) >= int(depth)
    holds(tmp_path / "t.db")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("program", [
    "import faulthandler; faulthandler.enable(); print(1)",
    "import inspect, sys\ndef f(): return [x.function for x in inspect.stack()], sys._getframe(1).f_lineno\nprint(f())",
    "import cProfile, pstats, io\ndef f(n): return f(n - 1) if n else 0\np = cProfile.Profile(); p.runcall(f, 10); s = pstats.Stats(p); print(sorted((k[2], v[:2]) for k, v in s.stats.items()))",
    "import gc, sys\nclass A: pass\na = A(); a.a = a; gc.collect(); del a; print(gc.collect(), sys.getrefcount(A))",
    "import sys\ndef f(): pass\nprint(sys.getrefcount(f), sys.getsizeof(f.__code__), f.__code__ == f.__code__.replace())",
    "import types\ndef f(): pass\nclass C:\n  def __init__(self): pass\nfor _ in range(100): C()\nprint(C.__init__, type.__call__, C.__dict__.keys(), C.__flags__, C.__basicsize__)",
    "import pickle, os, copy\nprint(pickle.loads(pickle.dumps(os.system)) is os.system, copy.copy(os.execve) is os.execve, os.execve == __import__('posix').execve)",
    "import sys, importlib\nfor m in ('posix', '_posixsubprocess', 'os', 'subprocess', 'site'): sys.modules.pop(m, None)\nimport os, subprocess; print(subprocess.run(['true']), os.system('exit 2'))",
    "import unittest.mock, os\nwith unittest.mock.patch('os.system', return_value=5) as m: print(os.system('x'), m.call_args)",
    "import code, sys; code.interact(banner='b', readfunc=lambda p: (_ for _ in ()).throw(EOFError), exitmsg='e')",
    "raise ExceptionGroup('g', [ValueError(1), ExceptionGroup('h', [KeyError(2)])])",
    "import sys\ndef hook(*a): print('hook', a[0]); sys.exit(12)\nsys.excepthook = hook\n1/0",
    "class D:\n  def __del__(self): raise ValueError('in del')\nD()",
    "import threading\ncalls = []\nclass T(threading.Thread):\n"
    "    def get(self): calls.append(1); return self.__dict__['n']\n    def set(self, to): self.__dict__['n'] = to\n"
    "    _name = property(get, set)\nt = T(); t.start(); t.join(); print(len(calls))",
    "import atexit, os, threading\natexit.register(print, 'at exit')\nt = threading.Thread(target=lambda: 1/0, name='T'); t.start(); t.join()",
    "import warnings; warnings.simplefilter('always'); open('/dev/null'); import asyncio\nasync def c(): pass\nc()",
    "import sys; sys.stdout.write('no newline'); sys.stdout.close()",
    "import os; os.close(1); print('x')",
    "import os; os.write(2, b'raw'); os.kill(os.getpid(), 10)",
    "import sys; sys.exit('text')",
    "import threading, sys\nthreading.stack_size(131072)\ndef r(n): return r(n - 1) if n else 0\nt = threading.Thread(target=r, args=(200,)); t.start(); t.join(); print('ok')",
    "import sys, _xxsubinterpreters as s\ni = s.create(); s.run_string(i, 'def f(): print(\"sub\", flush=True)\\nf()'); s.destroy(i)",
    "import os, sys\nos.environ['PYTHONPATH'] = 'x'; os.environ['NEW'] = 'y'; del os.environ['HOME']\nimport subprocess; sys.stdout.flush(); subprocess.run([sys.executable, '-c', 'import os, sys; print(sorted(os.environ.items()), sys.path)'])",
    pytest.param("import os, sys; os.execve(sys.executable, [sys.executable, '-c', 'import os, sys; print(os.environ, sys.path)'], {'A': 'b'})",
                 marks=pytest.mark.no_sanitizer),
    pytest.param("import os, sys; os.execve(sys.executable, ['name', '-c', 'import os, sys; print(os.environ, sys.orig_argv)'], {'PYTHONPATH': ''})",
                 marks=pytest.mark.no_sanitizer),
    "import os; os.unsetenv('PYTHONPATH'); os.putenv('PYTHONPATH', 'z'); os.system('echo $HOME')",
    "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)); import threading; t = threading.Thread(target=print, args=('t',)); t.start(); t.join()\nopen('small', 'w').write('x' * 50)",
    "import resource, os; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)); import threading; t = threading.Thread(target=print, args=('t',)); t.start(); t.join()\ntry: os.open('/dev/null', 0)\nexcept OSError as e: print(e)",
    "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); import ctypes; ctypes.string_at(0)",
    "import ctypes, sys; print(ctypes.pythonapi.Py_IsInitialized()); sys.setrecursionlimit(60)\ndef f(): f()\ntry: f()\nexcept RecursionError as e: print(e)",
    "import signal, time\nsignal.setitimer(signal.ITIMER_REAL, .02)\ntime.sleep(5)",
    "import signal, os\nprint(signal.sigwait([signal.SIGUSR1]) if signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]) is not None and os.kill(os.getpid(), signal.SIGUSR1) is None else 0)",
    "import tracemalloc; tracemalloc.start(5)\ndef f(): return [bytearray(10000)]\nx = f(); print([t.lineno for t in tracemalloc.get_object_traceback(x[0])])",
    "import os\npid = os.fork()\nif pid: print(pid > 0, os.waitpid(pid, 0)[1])\nelse: raise SystemExit(3)",
], ids=lambda text: text[:24].replace("\n", " "))
def test_small_programs_behave_the_same(both, program):
    both(["-c", program], env=environment(), check="NOFILE" not in program and "FSIZE" not in program)


def test_standard_input_reaches_the_program(both, python):
    both(["-c", "import sys; print(input('? ')); print(repr(sys.stdin.read()))"], python, input="line\nrest\nof it")


def test_a_program_on_standard_input_runs(dyntrace, tmp_path, python):
    for words in ([python], [python, "-"], [python, "-i", "-q"]):
        alone, recorded = [subprocess.run([*before, *words], input="def f(): print(5)\n\nf()\nprint(__name__)\n", capture_output=True, text=True)
                           for before in ([], [dyntrace, "run", "--force", "-o", tmp_path / "t.db"])]
        assert (recorded.returncode, recorded.stdout, recorded.stderr) == (alone.returncode, alone.stdout, alone.stderr)
        assert calls(holds(tmp_path / "t.db"), "f") == 1


@pytest.mark.parametrize("stack", [1 << 20, -1], ids=["1 MB", "unlimited"])
def test_a_stack_limit_holds_as_without_us(both, python, stack):
    import resource
    both(["-c", "import resource, sys; print(resource.getrlimit(resource.RLIMIT_STACK)); sys.setrecursionlimit(6000)\n"
          "def f(n): return f(n - 1) if n else 0\nprint(f(5000), sorted([1], key=lambda x: f(900)))"], python,
         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (stack, stack)))


def test_ignored_and_blocked_signals_stay_ignored_and_blocked(both):
    """nohup, for example, ignores SIGHUP, and a parent may have blocked other signals."""
    def prepare():
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGALRM])
    both([STATE], preexec_fn=prepare)


# ---- descriptors ----

@pytest.mark.parametrize("recorded", [False, True])
def test_a_reader_of_the_programs_output_sees_its_end(dyntrace, tmp_path, recorded):
    """Our processes keep no pipe of the program open: neither standard output nor an inherited descriptor."""
    extra, handed_on = os.pipe()
    words = ["-c", f"import os, sys; os.close(1); os.close({handed_on}); sys.stdin.read(); sys.exit(3)"]
    before = [dyntrace, "run", "-o", tmp_path / "t.db", "--python", PYTHONS[0]] if recorded else [PYTHONS[0]]
    child = subprocess.Popen([*before, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[handed_on])
    os.close(handed_on)
    try:
        for fd in (child.stdout.fileno(), extra):
            assert select.select([fd], [], [], 20)[0], "still open somewhere"
            assert os.read(fd, 10) == b""
    finally:
        child.stdin.close()
        os.close(extra)
        child.stdout.close()
        assert child.wait(30) == 3


# ---- signals ----

# Says so, and waits. Not in one long sleep, which Python may begin just when the signal has come; on one line, which a traceback names.
WAITS = "[time.sleep(.05) if i else print('ready', flush=True) for i in range(1200)]"

HANDLER = """
import os, signal, sys, time
got = []
for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT, signal.SIGQUIT):
    signal.signal(n, lambda n, f: got.append(n))
print("ready", flush=True)
while not got: time.sleep(.01)
time.sleep(.2)
print(got)
sys.exit(9)
"""


def signalled(command, send, **rest):
    child = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **rest)
    try:
        assert child.stdout.readline() == "ready\n"
        send(child.pid)
        out, err = child.communicate(timeout=120)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    return child.returncode, out, err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT])
def test_a_signal_to_run_reaches_the_program_once(dyntrace, tmp_path, number):
    recorded = signalled([dyntrace, "run", "--python", PYTHONS[0], "-o", tmp_path / "t.db", "-c", HANDLER], lambda pid: os.kill(pid, number))
    assert recorded == (9, f"[{int(number)}]\n", "")
    holds(tmp_path / "t.db")


def test_a_signal_to_the_group_reaches_the_program_once(dyntrace, tmp_path):
    """The signal is sent as `kill %1` or `timeout` send it."""
    recorded = signalled([dyntrace, "run", "--python", PYTHONS[0], "-o", tmp_path / "t.db", "-c", HANDLER],
                         lambda pid: os.killpg(pid, signal.SIGTERM))
    assert recorded == (9, "[15]\n", "")


def test_two_signals_to_the_group_reach_the_program_once_each(dyntrace, tmp_path):
    """systemd sends SIGTERM and SIGHUP one after the other."""
    def send(pid):
        os.killpg(pid, signal.SIGTERM)
        os.killpg(pid, signal.SIGHUP)

    for _ in range(5):
        status, out, err = signalled([dyntrace, "run", "--force", "--python", PYTHONS[0], "-o", tmp_path / "t.db", "-c", HANDLER], send)
        assert (status, sorted(json.loads(out)), err) == (9, [1, 15], "")


def test_a_signal_to_the_group_reaches_the_program_once_on_a_busy_machine(dyntrace, tmp_path):
    """The process that tells a signal to the group from one to `run` gets no processor for a while."""
    def send(pid):
        own = [child for child in attach_cycles.children(pid) if os.path.samefile(f"/proc/{child}/exe", dyntrace)]
        witness, = set(own) - {collector_of(pid)}
        os.kill(witness, signal.SIGSTOP)
        until(lambda: "State:\tT" in Path(f"/proc/{witness}/status").read_text(), "the stop")
        os.killpg(pid, signal.SIGTERM)
        time.sleep(0.15)
        os.kill(witness, signal.SIGCONT)

    recorded = signalled([dyntrace, "run", "--python", PYTHONS[0], "-o", tmp_path / "t.db", "-c", HANDLER], send)
    assert recorded == (9, "[15]\n", "")


def test_a_signal_without_a_handler_ends_the_program(dyntrace, tmp_path):
    program = f"import time\n{WAITS}"
    for number in (signal.SIGTERM, signal.SIGINT):
        status, out, err = signalled([dyntrace, "run", "--force", "--python", PYTHONS[0], "-o", tmp_path / "t.db", "-c", program],
                                     lambda pid: os.kill(pid, number))
        assert status == 128 + number and out == ""
        assert err.count("KeyboardInterrupt") == (number == signal.SIGINT)
        trace = holds(tmp_path / "t.db")
        assert query(trace, "SELECT exit_code, exit_signal FROM process") == [(None, number)]


# ---- the terminal ----

def on_terminal(command, steps, cwd, env=None):
    """COMMAND in a session and a terminal of its own. STEPS: text to wait for, what to type then. -> its wait status, and the lines
    on the terminal without ours."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        for key in (signal.SIGINT, signal.SIGQUIT): # which a shell's background job is born without
            signal.signal(key, signal.SIG_DFL)
        os.execvpe(command[0], list(map(str, command)), {**(env or os.environ), "PYTHONUNBUFFERED": ""})  # whole lines
    said, seen = b"", 0
    steps = list(steps)
    until = time.monotonic() + 60
    try:
        while True:
            if steps and steps[0][0].encode() in said[seen:]:
                seen = said.index(steps[0][0].encode(), seen) + len(steps[0][0])
                os.write(fd, steps.pop(0)[1].encode())
                continue
            assert time.monotonic() < until, said
            if not select.select([fd], [], [], 1)[0]:
                continue
            try:
                more = os.read(fd, 65536)
            except OSError:
                more = b""
            if not more:
                break
            said += more
        status = os.waitpid(pid, 0)[1]
    except BaseException:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    finally:
        os.close(fd)
    assert not steps, (steps, said)
    return status, re.sub(r"dyntrace: .*\n", "", said.decode().replace("\r", "")).split("\n")


@pytest.fixture
def both_on_terminal(dyntrace, tmp_path):
    def both(words, steps):
        alone = on_terminal([PYTHONS[0], *words], steps, tmp_path)
        recorded = on_terminal([dyntrace, "run", "--quiet", "-o", tmp_path / "t.db", "--python", PYTHONS[0], *words], steps, tmp_path)
        holds(tmp_path / "t.db")
        return alone, recorded
    return both


def test_the_terminal_belongs_to_the_program(both_on_terminal):
    alone, recorded = both_on_terminal(
        ["-c", "import os, sys, shutil\nprint([os.isatty(i) for i in range(3)], os.ttyname(0) == os.ttyname(1), os.tcgetpgrp(0) == os.getpgrp(),"
         " shutil.get_terminal_size())\nprint(input('name? '), sys.stdin.read())"], [("name? ", "me\n"), ("me", "more\n\x04")])
    assert alone == recorded and alone[0] == 0


def test_the_interrupt_key_raises_keyboard_interrupt_once(both_on_terminal, monkeypatch):
    """The exit status is that of an interrupted program."""
    monkeypatch.setenv("PYTHONNODEBUGRANGES", "1")  # the key may come while print() has not returned yet, and a traceback marks the call
    program = f"import time\ntry:\n    {WAITS}\nfinally:\n    time.sleep(.2); print('cleaned up')"
    alone, recorded = both_on_terminal(["-c", program], [("ready\r\n", "\x03")])
    assert recorded[1] == alone[1] and "cleaned up" in "".join(recorded[1])
    assert os.WIFSIGNALED(alone[0]) and os.WTERMSIG(alone[0]) == signal.SIGINT
    assert os.waitstatus_to_exitcode(recorded[0]) in (130, -2)


def test_a_program_can_catch_the_interrupt_key(both_on_terminal):
    program = ("import time\ngot = 0\nfor _ in range(2):\n  try:\n    got or print('ready', flush=True)\n    for _ in range(6 if got else 1200): time.sleep(.05)\n"
               "  except KeyboardInterrupt:\n    got += 1; print('once', got)\nraise SystemExit(got)")
    alone, recorded = both_on_terminal(["-c", program], [("ready\r\n", "\x03")])
    assert alone == recorded and os.waitstatus_to_exitcode(alone[0]) == 1


def test_the_quit_key_ends_the_program(both_on_terminal):
    program = "import resource, time\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nprint('ready', flush=True); time.sleep(60)"
    alone, recorded = both_on_terminal(["-c", program], [("ready\r\n", "\x1c")])
    assert alone[1] == recorded[1]
    assert os.waitstatus_to_exitcode(alone[0]) == -3 and os.waitstatus_to_exitcode(recorded[0]) in (131, -3)


JOB = """import os, signal, sys, time
count = 0
def continued(n, f):
    global count
    count += 1
signal.signal(signal.SIGCONT, continued)
print("rea" + "dy", flush=True)
%s
line = sys.stdin.readline()
print("read", line.strip(), count, os.tcgetpgrp(0) == os.getpgrp())
sys.exit(5)
"""


@pytest.mark.parametrize("stop,key", [("", "\x1a"), ("os.kill(os.getpid(), signal.SIGSTOP)", ""), ("os.kill(os.getpid(), signal.SIGTSTP)", "")],
                         ids=["key", "SIGSTOP", "SIGTSTP"])
def test_a_shell_stops_and_continues_a_recorded_program(dyntrace, tmp_path, stop, key):
    """The shell stops the program and brings it back to the foreground, as without us."""
    script(tmp_path / "job.py", JOB % stop)
    said = []
    for before in (PYTHONS[0], f"'{dyntrace}' run -o t.db --python '{PYTHONS[0]}'"):
        status, lines = on_terminal(["bash", "--norc", "--noprofile", "-i"], [
            ("$ ", f"{before} job.py\n"), ("ready\r\n", key), ("Stopped", ""), ("$ ", "fg\n"), ("job.py", "typed\n"),
            ("True\r\n", ""), ("$ ", "echo status=$?\n"), ("status=5", "exit\n")], tmp_path, dict(os.environ, PS1="$ ", TERM="dumb", HISTFILE="/dev/null"))
        said.append([line for line in lines if line.startswith("read typed")])
    assert said[0] == said[1]
    holds(tmp_path / "t.db")


CATCHES = """import os, signal, sys, time
got = []
signal.signal(signal.SIGTSTP, lambda *a: os.write(1, b"not" + b" now\\n"))
signal.signal(signal.SIGINT, lambda *a: got.append(1))
print("rea" + "dy", flush=True)
while not got:
    time.sleep(.05)
time.sleep(.3)
sys.exit(5 + len(got))
"""


def test_a_program_that_catches_ctrl_z_goes_on_and_gets_ctrl_c_once(dyntrace, tmp_path):
    """A program that catches Ctrl-Z is not stopped, and then gets Ctrl-C once, as without us."""
    script(tmp_path / "job.py", CATCHES)
    for before in (PYTHONS[0], f"'{dyntrace}' run -o t.db --python '{PYTHONS[0]}'"):
        on_terminal(["bash", "--norc", "--noprofile", "-i"], [
            ("$ ", f"{before} job.py\n"), ("ready\r\n", "\x1a"), ("not now\r\n", "\x03"), ("$ ", "echo status=$?\n"), ("status=6", "exit\n")],
            tmp_path, dict(os.environ, PS1="$ ", TERM="dumb", HISTFILE="/dev/null"))
    holds(tmp_path / "t.db")


def test_reading_attributes_of_all_modules_loads_nothing(dyntrace, python, tmp_path):
    """regrtest does this. It must not load the package that we offer."""
    code = "import sys\nfor m in sys.modules.values(): getattr(m, '__warningregistry__', None), getattr(m, 'anything', None)\nprint('ok')"
    done = subprocess.run([dyntrace, "run", "-o", tmp_path / "t.db", "--python", python, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("ok\n", "")


@pytest.mark.newest_too
def test_a_finalizer_sees_the_stack_as_without_us(both, python, tmp_path):
    """3.13 crashed when faulthandler printed the stack while a function's variables died."""
    script(tmp_path / "finalizer.py", """
        import faulthandler, sys, traceback
        class Dies:
            def __del__(self):
                faulthandler.dump_traceback(sys.stderr, all_threads=False)
                traceback.print_stack()
                inner()
        def inner():
            kept = [Later()]
        class Later:
            def __del__(self):
                faulthandler.dump_traceback(sys.stderr, all_threads=False)
        def outer(raises=False):
            kept = Dies()
            if raises:
                raise ValueError
        outer()
        try:
            outer(True)
        except ValueError:
            pass
        print("ended")
        """)
    assert both(["finalizer.py"], python=python).stdout == "ended\n"
