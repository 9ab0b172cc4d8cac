"""An exception that ends the program is what `why` and `report` say first: which, where, and after how long."""
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from shared import query

pytestmark = pytest.mark.newest_too

# The innermost line of the program is 4; json's own are below it.
FAILS = """import json
def load(text):
    for attempt in range(2):
        json.loads(text)
def main():
    load("{")
main()
"""


def endings(trace):
    return query(trace, "SELECT type, qualname, line FROM endings")


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "fails.py"
    path.write_text(FAILS)
    return path


def test_the_first_finding_is_the_exception_that_ended_the_program(run, record, script):
    trace = record([script], status=1).path
    assert endings(trace) == [("JSONDecodeError", "load", 4)]
    text = run("why", trace).stdout
    sentence = rf"1\. load: an uncaught JSONDecodeError ended the program in line 4 of {re.escape(str(script))}, [\d.]+ m?s after its start"
    assert re.search(sentence + "\n   dyntrace why load ", text)
    assert "Nothing stands out" not in text and run("report", trace).stdout.startswith(text)
    found = json.loads(run("why", trace, "--json").stdout)["findings"][0]
    assert (found["kind"], found["exception"], found["ended_line"], found["processes"]) == ("ended", "JSONDecodeError", 4, 1)
    assert "an uncaught JSONDecodeError ended the program in line 4" in run("tui", trace, "--dump", "--screen", "160x50").stdout


def test_the_html_page_names_the_exception_that_ended_the_program(run, record, script, tmp_path):
    trace = record([script], status=1).path
    assert run("report", trace, "--html", tmp_path / "t.html").returncode == 0
    assert "an uncaught JSONDecodeError ended the program in line 4" in (tmp_path / "t.html").read_text()


@pytest.mark.parametrize("way", ["-c", "-m", "directory", "user frames"])
def test_an_uncaught_exception_is_found_however_the_program_was_started(record, script, tmp_path, way):
    words = {"-c": ["-c", FAILS], "-m": ["-m", "fails"], "directory": [tmp_path / "d"], "user frames": [script]}[way]
    if way == "directory":
        (tmp_path / "d").mkdir()
        script.rename(tmp_path / "d" / "__main__.py")
    options = ["--frames", "user"] if way == "user frames" else []
    assert endings(record(words, *options, status=1, cwd=tmp_path).path) == [("JSONDecodeError", "load", 4)]


@pytest.mark.parametrize("program, status", [
    ("import sys; sys.exit(1)", 1),
    ("import sys; sys.exit('no')", 1),
    ("class Stop(SystemExit): pass\nraise Stop(3)", 3),
    ("import os\ntry: 1 / 0\nexcept ZeroDivisionError: os._exit(1)", 1),
    ("try: import no_such_module\nexcept ImportError: raise SystemExit(1)", 1),
    ("import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start(); t.join(); raise SystemExit(1)", 1),
    # another main module, whose exception the program catches
    ("import os, runpy\nopen('x.py', 'w').write('1 / 0')\ntry: runpy.run_path('x.py', run_name='__main__')\nexcept ZeroDivisionError: os._exit(1)", 1),
    ("def f(): exec(compile('1 / 0', 'x', 'exec'))\nimport os\ntry: f()\nexcept ZeroDivisionError: os._exit(1)", 1),
])
def test_exits_and_caught_exceptions_are_no_uncaught_exceptions(run, record, tmp_path, program, status):
    trace = record(["-c", program], status=status, cwd=tmp_path).path
    assert endings(trace) == [] and "an uncaught " not in run("why", trace).stdout


def test_uncaught_exceptions_of_forked_children_are_found(record):
    program = """
import os
def child(): raise KeyError(1)
def interrupted(): raise KeyboardInterrupt
for f in (child, interrupted):
    if not os.fork(): f()
    os.wait()
"""
    trace = record(["-c", program]).path
    assert endings(trace) == [("KeyError", "child", 3), ("KeyboardInterrupt", "interrupted", 4)]
    assert query(trace, "SELECT kind, processes FROM findings WHERE kind = 'ended'") == [("ended", 2)]


def test_reading_an_exceptions_class_name_runs_no_code_of_the_program(record):
    """The traceback names it by its own rules; we read the class's name without running code of the program."""
    program = """
class Meta(type):
    def __getattribute__(cls, name):
        print(name)
        return super().__getattribute__(name)
class Odd(Exception, metaclass=Meta):
    __eq__ = __hash__ = None
def f(): raise Odd
f()
"""
    plain = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    trace = record(["-c", program], status=1, python=sys.executable)
    assert trace.out == plain.stdout and endings(trace.path) == [("Odd", "f", 8)]


def test_a_long_name_of_an_exception_is_cut_between_two_characters(record):
    for n in range(3):
        found = endings(record(["-c", f"raise type('x' * {n} + chr(0x20ac) * 100, (Exception,), {{}})"], status=1).path)
        assert found[0][0] == "x" * n + chr(0x20ac) * ((200 - n) // 3)


@pytest.mark.parametrize("program", [
    # a module's code that is outermost on another thread, and in an exit handler
    "import _thread, time, os\nlock = _thread.allocate_lock(); lock.acquire()\n"
    "_thread.start_new_thread(exec, (compile('try: 1 / 0\\nfinally: lock.release()', 'x.py', 'exec'), {'lock': lock}))\n"
    "lock.acquire(); time.sleep(.2); os._exit(1)",
    "import atexit, sys\natexit.register(exec, compile('1 / 0', 'x.py', 'exec'), {})\nsys.exit(1)",
    "import sys\nclass Dies:\n    __del__ = lambda self, run=exec, code=compile('1 / 0', 'x.py', 'exec'): run(code, {})\nlast = Dies()\nsys.exit(1)",
])
def test_only_an_exception_of_the_main_module_counts_as_ending_the_program(record, program):
    assert endings(record(["-c", program], status=1).path) == []
