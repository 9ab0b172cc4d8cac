"""Findings: one query and one text, printed by `report`, by `why` without a name, at the end of `run`, in HTML and in the
TUI."""
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess

import pytest

from crash_help import collector_of, until
from planted import MS, make_trace
from shared import ROOT, Screen, query

pytestmark = pytest.mark.one_python

PLAIN = """
import threading, time
def quick(): pass
def sleep(n): time.sleep(n)
def compute(): sum(range(5_000_000))
def main():
    compute()
    worker = threading.Thread(target=sleep, args=(0.3,))
    worker.start()
    for i in range(20): sleep(0.1 if i == 7 else 0)
    worker.join()
main()
"""


@pytest.fixture
def plain(record):
    return record(["-c", PLAIN]).path


def test_findings_of_a_plain_program_name_waiting_and_slow_functions(run, plain):
    lines = run("why", plain).stdout.splitlines()
    assert re.fullmatch(r"[\d.]+ m?s: [\d.]+ m?s in functions of the program(, [\d.]+ m?s in their library calls)?, [\d.]+ m?s waiting(, [\d.]+ m?s waiting for a processor)?, [\d.]+ [mu]?s importing, on all 2 threads together", lines[0])
    assert lines[2] == "What to look at first" and len(lines) == 9
    assert re.fullmatch(r"1\. sleep waited at least [2-9]\d\d ms in 21 calls, \d\d % of all functions' own time", lines[3])
    assert lines[4] == f"   dyntrace why sleep {plain}"
    assert re.fullmatch(r"2\. sleep: one call took [3-9]\d\d ms, all 21 took [\d.]+ ms on average", lines[5])
    assert re.fullmatch(r"3\. compute: [\d.]+ m?s of its own in 1 call, [\d.]+ % of all functions' own time", lines[7])
    for line in lines[4::2]:
        command = line.split()
        assert command[:2] == ["dyntrace", "why"] and run(*command[1:]).returncode == 0


IN_LIBRARIES = """
import datetime
def day_of(text): return datetime.datetime.strptime(text, "%Y-%m-%d")
def clean(row):
    total = 0
    for n in row: total += n
    return day_of("2026-11-%02d" % row[0])
for i in range(4000): clean([1 + i % 28] * 30)
"""


def test_the_first_finding_is_the_function_whose_library_calls_take_the_time(run, record):
    """clean has more time of its own."""
    path = record(["-c", IN_LIBRARIES]).path
    lines = run("why", path).stdout.splitlines()
    assert re.fullmatch(r"1\. day_of: [\d.]+ m?s in 4000 calls, [\d.]+ m?s of that in its library calls, [\d.]+ % of all functions' own time", lines[3])
    assert re.search(r" of that its own, [\d.]+ m?s in its library calls\n", run("why", "day_of", path).stdout)
    text = run("report", path).stdout.split("most self and library time first\n")[1]
    assert text.split("\n")[1].split("\t")[-2] == "day_of"


def test_a_library_function_that_waits_is_named_with_the_function_that_called_it(run, record):
    path = record(["-c", "import threading\nevent = threading.Event()\ndef pause(n): event.wait(n)\ndef main(): pause(0.01); pause(0.3)\nmain()"]).path
    assert re.fullmatch(r"1\. Condition.wait waited at least [23]\d\d ms in 2 calls, longest for pause, [\d.]+ % of all functions' own time",
                        run("why", path).stdout.splitlines()[3])


def test_a_program_that_mostly_imports_is_told_which_module_takes_the_time(run, record, tmp_path):
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow/__init__.py").write_text("import slow.part")
    (tmp_path / "slow/part.py").write_text("import time; time.sleep(0.2)")
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "slow").rename(tmp_path / "site-packages/slow")
    path = record(["-c", f"import sys; sys.path.insert(0, '{tmp_path}/site-packages')\nimport json, slow"]).path
    lines = run("why", path).stdout.splitlines()
    at = next(n for n, line in enumerate(lines) if "import took" in line)
    assert re.fullmatch(r"\d\. slow/__init__.py: its import took 2\d\d ms; all imports took 2\d\d ms, \d\d % of the time", lines[at])
    assert run(*shlex.split(lines[at + 1])[1:]).stdout.startswith("<module>  slow/__init__.py:1")


def library_times(path):
    """{code_id: library_ns} of the trace PATH, from its frames: the own time of each frame of a library belongs to the nearest
    function of the program around it, if no import and no waiting function is between them."""
    own = dict(query(path, "SELECT code_id, is_own FROM functions"))
    apart = {code for code, in query(path, "SELECT code_id FROM waits UNION SELECT code_id FROM code WHERE qualname = '_find_and_load'")}
    frames = {frame: [parent, code, took, took] for frame, parent, code, took in query(path, """
        SELECT frame_id, parent_id, code_id, COALESCE(end_ns, (SELECT e.end_ns FROM thread_ends e WHERE e.thread_id = frame.thread_id)) - start_ns FROM frame""")}
    for parent, _, took, _ in frames.values():
        if parent:
            frames[parent][3] -= took
    times = dict.fromkeys((code for code, in query(path, "SELECT code_id FROM code_total")), 0)
    for at, code, _, self_ns in frames.values():
        if own[code] or code in apart:
            continue
        while at and not own[frames[at][1]] and frames[at][1] not in apart:
            at = frames[at][0]
        if at and own[frames[at][1]]:
            times[frames[at][1]] += self_ns
    return times


def test_library_time_is_what_the_frames_of_the_trace_add_up_to(record):
    """Processes, threads, a pool, coroutines and generators."""
    for program in ([ROOT / "examples/wordcount.py"], ["-c", PLAIN], ["-c", IN_LIBRARIES]):
        path = record(program).path
        times = dict(query(path, "SELECT code_id, library_ns FROM code_total"))
        assert times == library_times(path) and sum(times.values()) > 0


def test_library_time_survives_a_kill_of_the_recorder(dyntrace, tmp_path):
    """The totals are then computed from the frames."""
    path = tmp_path / "t.db"
    program = ("import json, os, time\ndef f(n): return json.loads(json.dumps(n))\nfor i in range(2000): f([i])\n"
               "open('ready', 'w')\nwhile not os.path.exists('go'): time.sleep(0.01)")
    with subprocess.Popen([dyntrace, "run", "-o", path, "-c", program], cwd=tmp_path) as run:
        until((tmp_path / "ready").exists, "the program's calls")
        killed = collector_of(run.pid)
        os.kill(killed, signal.SIGKILL)
        until(lambda: collector_of(run.pid) not in (None, killed), "another collector")
        (tmp_path / "go").touch()
    assert run.returncode == 0 and query(path, "SELECT value FROM meta WHERE key = 'state'") == [("recovered",)]
    times = dict(query(path, "SELECT code_id, library_ns FROM code_total"))
    assert times == library_times(path) and sum(times.values()) > 0


def test_every_command_prints_findings_with_the_same_text(run, dyntrace, plain, tmp_path):
    text = run("why", plain).stdout
    assert run("report", plain).stdout.startswith(text)
    words = [re.sub(r"^\d\. ", "", line) for line in text.splitlines()[3::2]]
    assert run("report", plain, "--html", tmp_path / "t.html").returncode == 0
    page = (tmp_path / "t.html").read_text().replace("&#39;", "'")
    screen = run("tui", plain, "--dump", "--screen", "160x50").stdout
    for line in [text.splitlines()[0], *words]:
        assert line in page and line in screen
    found = json.loads(run("report", plain, "--json").stdout)["findings"]
    assert found == json.loads(run("why", plain, "--json").stdout)["findings"] and [f["kind"] for f in found] == ["waits", "slow", "time"]
    assert [f["cost_ns"] for f in found] == [n for n, in query(plain, "SELECT cost_ns FROM findings")]


def test_run_prints_findings_on_a_terminal_only(dyntrace, record, tmp_path):
    words = [dyntrace, "run", "-o", tmp_path / "t.db", "--force"]
    program = ["-c", "def f(): sum(range(100000))\nfor i in range(5): f()"]
    assert "look at first" in Screen([*words, *program], NO_COLOR="1").finish()[0]
    assert "look at first" not in Screen([*words, "--quiet", *program]).finish()[0]
    assert "look at first" not in record(program).err


def test_report_begins_with_findings_and_ends_with_the_recording(run, plain, trace):
    text = run("report", plain).stdout
    order = ["What to look at first", "Processes", "Threads", "Functions of the program", "Slowest calls", "Waiting", "Other functions, by package", "The recording"]
    assert [text.index(title) for title in order] == sorted(text.index(title) for title in order)
    assert "json" not in text.split("Other functions")[0] and "\tthreading\n" in text.split("Other functions")[1]


def test_report_prints_a_single_process_and_thread_last(run, record):
    text = run("report", record(["-c", "def f(): pass\nf()"]).path).stdout
    assert text.index("Functions of the program") < text.index("The recording") < text.index("Processes") < text.index("Threads")


def test_findings_count_the_calls_that_met_a_break(run, plant):
    p = plant()
    p.compile()
    p.compile([dict(kind="EQUALS_MATCH", source="L['n']", expected="1", actual="2", text="n")])
    path = p.done()
    with sqlite3.connect(path) as db:
        entries = [n for n, in db.execute("SELECT cache_entry_id FROM cache_entry ORDER BY 1")]
        db.executemany("INSERT INTO lookup(thread_id, code_id, start_ns, duration_ns, outcome, cache_entry_id) VALUES (1, 1, ?, 1, 1, ?)",
                       [(900 * MS + i, entries[i % 2]) for i in range(10)])
        db.execute("INSERT INTO graph_break(graph_break_id, compile_id, code_id, line, reason) SELECT compile_id, compile_id, 1, 12, 'print' FROM compile")
    calls, = query(path, "SELECT COUNT(*) FROM lookup WHERE outcome IN (1, 2) AND cache_entry_id IS NOT NULL")[0]
    assert f"breaks in line 12, met by {calls} calls" in run("why", path).stdout
    assert query(path, "SELECT break_calls FROM findings") == [(calls,)] and f"\n{calls}\t2\tprint\t" in run("report", path).stdout


def test_report_and_why_work_on_unusual_traces(run, record, tmp_path):
    empty = make_trace(tmp_path / "empty.db", rows="")
    killed = record(["-c", "import os\nos.kill(os.getpid(), 9)"], status=None).path
    nothing = record(["-c", "pass"], "--frames", "none").path
    many = record(["-c", "import os\ndef f(): pass\nfor i in range(3):\n  if not os.fork():\n    f(); os._exit(0)\nfor i in range(3): os.wait()"]).path
    for path in (empty, killed, nothing, many, record(["-c", "pass"], "--frames", "user").path, record(["-c", "pass"], "--frames", "decided").path):
        for command in ("report", "why"):
            done = run(command, path)
            assert done.returncode == 0 and not done.stderr, (path, done.stderr)
    assert "in 4 processes together" in run("why", many).stdout
    assert run("report", many).stdout.index("Processes") < run("report", many).stdout.index("Functions of the program")


def test_commands_in_findings_work_although_functions_have_the_same_name(run, record):
    program = "class A:\n  def f(self): sum(range(300000))\nclass B:\n  def f(self): pass\ndef g(n):\n  def f(): sum(range(n))\n  return f\n"
    path = record(["-c", program + "A.f.__qualname__\ng(400000)()\nexec('def g(n): pass\\n\\ng(1)')"]).path
    for command in re.findall(r"dyntrace (why .*)", run("why", path).stdout):
        assert run(*shlex.split(command)).returncode == 0, command


def test_functions_that_a_library_generates_are_not_the_programs_own(record):
    program = "for name in '<template>', '<attrs generated init x>', '<_remote>.py', '<string>', '<stdin>', '<ipython-input-3-ab>', '<doctest m.f[0]>':\n" \
              "    exec(compile('def f(): pass\\nf()', name, 'exec'))"
    own = dict(query(record(["-c", program]).path, "SELECT filename, is_own FROM functions WHERE qualname = 'f'"))
    assert own == {"<template>": 0, "<attrs generated init x>": 0, "<_remote>.py": 0, "<string>": 1, "<stdin>": 1, "<ipython-input-3-ab>": 1, "<doctest m.f[0]>": 1}
