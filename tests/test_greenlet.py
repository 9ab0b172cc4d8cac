"""Callers and times are right although libraries switch stacks: greenlet, gevent, eventlet, SQLAlchemy's bridge to
asyncio."""
import functools
import itertools
import json
import os
import random
import signal
import subprocess
import time
from collections import defaultdict

import pytest

from crash_help import collector_of, rows
from shared import PROGRAMS, ROOT, holds, version_of

# greenlet copies parts of C stacks, which ASan takes for an error. DYNTRACE_PYTHONS=... names another Python.
pytestmark = [pytest.mark.one_python, pytest.mark.no_sanitizer]

PROGRAM = PROGRAMS / "greenlets.py"
PACKAGES = ["greenlet", "gevent", "eventlet", "sqlalchemy", "numpy"]


@pytest.fixture(scope="module")
def environment():
    """PYTHON -> the one of a virtual environment with the packages, which are installed under build/ where there is a network."""
    @functools.cache
    def of(python):
        where = ROOT / "build" / f"greenlets-{version_of(python)}"
        inside = where / "bin" / "python"
        present = inside.exists() and not subprocess.run([inside, "-c", f"import {', '.join(PACKAGES)}"], capture_output=True).returncode
        if not present:
            subprocess.run([python, "-m", "venv", "--clear", where], capture_output=True, check=True)
            pip = [inside, "-m", "pip", "install", "--quiet", "--retries", "0", "--timeout", "10", *PACKAGES]
            if subprocess.run(pip, capture_output=True).returncode:
                return None
        return inside

    def environment(python):
        return of(python) or pytest.skip("greenlet cannot be installed here")

    return environment


def same_calls(path, noted):
    """The trace in PATH has the calls that the program NOTED of each thread, in that order, with the callers, and their ends
    in that order."""
    functions = {name for thread in noted.values() for name, _ in thread["calls"]}
    calls, number = defaultdict(list), {}
    frames = {frame: (parent, tid, name, end) for frame, parent, tid, name, end in rows(path, f"""
        SELECT f.frame_id, f.parent_id, t.os_tid, iif(c.filename = '{PROGRAM}' AND f.kind = 0, c.qualname, ''), f.end_ns
        FROM frame f JOIN code c USING (code_id) JOIN thread t USING (thread_id) ORDER BY f.start_ns, f.frame_id""")}
    for frame, (parent, tid, name, _) in frames.items():
        if name not in functions:
            continue
        while parent and parent not in number:
            parent = frames[parent][0]
        number[frame] = len(calls[tid])
        calls[tid].append([name, number.get(parent, -1)])
    ends = defaultdict(list)
    for frame, (_, tid, _, end) in sorted(frames.items(), key=lambda item: item[1][3] or 0):
        if frame in number and end:
            ends[tid].append(number[frame])
    told = """SELECT 'thread', t.thread_id, t.os_tid, t.name, count(f.frame_id) FROM thread t LEFT JOIN frame f USING (thread_id) GROUP BY 1, 2
        UNION ALL SELECT 'loss', process_id, thread_id, cause, events FROM losses"""
    for tid, thread in noted.items():
        for what, have in (("calls", calls[int(tid)]), ("ends", ends[int(tid)])):
            differ = [pair for pair in enumerate(itertools.zip_longest(have, thread[what])) if pair[1][0] != pair[1][1]]
            assert not differ, f"thread {tid}: {what}: {len(have)} of {len(thread[what])}; {differ[:3]} ...; the trace tells of {rows(path, told)}"


def noted_in(out):
    return [json.loads(line) for line in out.read_text().splitlines()]


@pytest.mark.parametrize("how,n,options", [("raw", 40, []), ("raw", 40, ["--frames", "user"]), ("deep", 20, []), ("threads", 20, []), ("pool", 20, []),
                                           ("server", 10, []), ("eventlet", 20, []), ("sqlalchemy", 20, [])])
def test_callers_and_ends_of_frames_are_right_when_stacks_switch(record, environment, python, tmp_path, how, n, options):
    out = tmp_path / "noted"
    trace = record([PROGRAM, how, out, n], *options, python=environment(python))
    same_calls(trace.path, noted_in(out)[0])
    assert trace.rows("SELECT cause FROM losses WHERE NOT is_stall") == []
    holds(trace)


def started(dyntrace, tmp_path, python, *words):
    return subprocess.Popen(list(map(str, [dyntrace, "run", "-o", tmp_path / "t.db", "--python", python, *words])),
                            stderr=subprocess.PIPE, text=True)


def test_a_forked_child_continues_its_greenlets(record, environment, python, tmp_path):
    """The child continues its parent's greenlets, each with its own stack."""
    out = tmp_path / "noted"
    trace = record([PROGRAM, "fork", out, 40], python=environment(python))
    child, parent = sorted(noted_in(out), key=lambda notes: len(next(iter(notes.values()))["calls"]))
    same_calls(trace.path, parent)
    assert trace.rows("SELECT cause FROM losses WHERE NOT is_stall") == []
    wrong = trace.rows("""SELECT c.qualname, p.qualname FROM frame f JOIN code c USING (code_id) JOIN frame pf ON pf.frame_id = f.parent_id
        JOIN code p ON p.code_id = pf.code_id JOIN thread t USING (thread_id) WHERE t.process_id <> 1
        AND c.qualname IN ('Life.leaf', 'Life.walk') AND p.qualname NOT IN ('Life.walk', 'Life.run')""")
    assert wrong == []
    forked = trace.rows("""SELECT c.qualname, count(*) FROM frame f JOIN code c USING (code_id) JOIN thread t USING (thread_id)
        WHERE t.process_id <> 1 AND c.qualname = 'Life.leaf' AND f.kind = 0 GROUP BY 1""")
    assert forked == [("Life.leaf", sum(name == "Life.leaf" for name, _ in next(iter(child.values()))["calls"]))]
    holds(trace)


def test_a_note_belongs_to_the_compile_on_its_greenlets_stack(record, environment, python):
    """A note belongs to the compile on the same stack, however stacks are switched. No stack that was moved away is read."""
    trace = record([PROGRAMS / "notes_greenlet.py"], python=environment(python))
    assert trace.rows("SELECT c.qualname, l.text FROM listing l JOIN compile m USING (compile_id) JOIN code c USING (code_id) WHERE l.kind = 'who' ORDER BY 2") == [
        ("first", "first"), ("second", "second")]
    holds(trace)


def test_a_lookup_belongs_to_its_frame_after_stack_switches(record, environment, python, tmp_path):
    """A lookup belongs to the frame that was looked up, whatever ran during its guards and its compile."""
    trace = record([PROGRAM, "shim", tmp_path / "noted", 100], python=environment(python))
    looked_up = trace.rows("""SELECT c.qualname, fc.qualname, l.thread_id = f.thread_id, l.outcome = f.outcome, count(*) > 20 FROM lookup l
        JOIN code c USING (code_id) JOIN frame f ON f.frame_id = l.frame_id JOIN code fc ON fc.code_id = f.code_id
        WHERE c.qualname GLOB 'f[0-9]' GROUP BY 1, 2, 3, 4 ORDER BY 1""")
    assert {row[:4] for row in looked_up} == {(f"f{i}", f"f{i}", 1, 1) for i in range(4)}, looked_up
    assert any(row[4] for row in looked_up)
    assert trace.rows("SELECT cause FROM losses WHERE NOT is_stall") == []
    holds(trace)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_captured_functions_can_switch_stacks(record, environment, dyntrace, python, seed):
    """Stack switches below a captured call behave as without capture, and each greenlet has its own callback: by the API,
    alone and recorded, and under --capture."""
    program = PROGRAMS / "greenlets_captured.py"
    where = {**os.environ, "PYTHONPATH": os.path.join(os.path.dirname(dyntrace), "lib", "python")}
    alone, captured = [subprocess.run([environment(python), program, *how, str(seed)], env=where, capture_output=True, text=True, timeout=300) for how in (["plain"], [])]
    assert (alone.returncode, alone.stderr) == (0, "")
    assert (captured.returncode, captured.stdout, captured.stderr) == (0, alone.stdout, "")
    for command, options in ([[program, seed], []], [[program, "plain", seed], ["--capture"]]):
        trace = record(command, *options, python=environment(python))
        assert trace.out == alone.stdout
        assert trace.rows("SELECT count(*) > 5 FROM compile") == [(1,)]
        assert trace.rows("SELECT cause FROM losses WHERE NOT is_stall") == []
        holds(trace)


def test_greenlets_begun_deep_in_a_recursion_are_recorded(record, environment, python):
    trace = record([PROGRAMS / "greenlets_deep.py"], python=environment(python))
    assert trace.out == "30000 3000\n[50, 50]\n['end', 'end']\n"
    holds(trace)


def test_a_replacement_collector_knows_the_open_frames_of_greenlets(dyntrace, environment, python, tmp_path):
    """The new collector knows which frames are open, also those of greenlets that have not run since."""
    random.seed(7)
    out = tmp_path / "noted"
    run = started(dyntrace, tmp_path, environment(python), PROGRAM, "threads", out, 600)
    while run.poll() is None and not out.exists():
        time.sleep(0.05 + 0.1 * random.random())
        collector = collector_of(run.pid)
        if collector and not out.exists():
            os.kill(collector, signal.SIGKILL)
    assert run.wait(60) == 0, run.stderr.read()
    losses = rows(tmp_path / "t.db", "SELECT events, cause FROM losses WHERE NOT is_stall")
    assert losses and all("was killed" in cause for _, cause in losses)
    same_calls(tmp_path / "t.db", noted_in(out)[0])
    holds(tmp_path / "t.db")


@pytest.mark.slow
def test_lost_frames_give_greenlets_no_wrong_caller(dyntrace, environment, python, tmp_path):
    """Frames are lost, and no remaining frame gets a wrong caller."""
    run = started(dyntrace, tmp_path, environment(python), "--max-stall", "20ms", PROGRAM, "pairs", tmp_path / "noted", 200000)
    while run.poll() is None:
        time.sleep(0.1)
        collector = collector_of(run.pid)
        if collector:
            os.kill(collector, signal.SIGSTOP)
            time.sleep(1)
            os.kill(collector, signal.SIGCONT)
    assert run.wait(60) == 0, run.stderr.read()
    assert rows(tmp_path / "t.db", "SELECT count(*) > 0, TOTAL(events) > 0 FROM losses WHERE NOT is_stall") == [(1, 1)]
    pairs = rows(tmp_path / "t.db", """SELECT substr(c.qualname, 2), substr(p.qualname, 2), count(*) FROM frame f JOIN code c USING (code_id)
        JOIN frame pf ON pf.frame_id = f.parent_id JOIN code p ON p.code_id = pf.code_id WHERE c.qualname GLOB 'l[0-9]' GROUP BY 1, 2""")
    assert [pair[0] for pair in pairs] == list("012345") and all(callee == caller for callee, caller, _ in pairs), pairs
    holds(tmp_path / "t.db")


SWITCHED = """
import time
import greenlet

def leaf(n):
    return n

def inner(n):
    while True:
        leaf(n)
        hub.switch()

def outer(n):
    inner(n)

def turn():
    for one in greenlets:
        one.switch()

hub = greenlet.getcurrent()
greenlets = [greenlet.greenlet(outer) for _ in range(3)]
for n, one in enumerate(greenlets):
    one.switch(n)
print("ready", flush=True)
while True:
    turn()
    time.sleep(0.002)
"""


def test_attach_records_the_open_frames_of_switched_out_greenlets(dyntrace, python, environment, tmp_path):
    """Each greenlet has the frames that were open when it switched away."""
    words = [dyntrace, "run", "--standby", "--python", environment(python), "--", "-c", SWITCHED]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            subprocess.run([dyntrace, "attach", str(process.pid), "-o", tmp_path / "t.db", "--for", "0.5s"], check=True, capture_output=True)
        finally:
            process.kill()
    callers = rows(tmp_path / "t.db", """SELECT DISTINCT thread.name, p.qualname, p.kind, pp.qualname FROM frames f JOIN thread USING (thread_id)
                                           LEFT JOIN frames p ON p.frame_id = f.parent_id LEFT JOIN frames pp ON pp.frame_id = p.parent_id
                                          WHERE f.qualname = 'leaf' ORDER BY 1""")
    assert callers == [(f"greenlet {n}", "inner", "inherited", "outer") for n in (1, 2, 3)]
    turns = rows(tmp_path / "t.db", "SELECT count(*) FROM frames WHERE qualname = 'turn'")[0][0]
    calls = rows(tmp_path / "t.db", "SELECT count(*) FROM frames WHERE qualname = 'leaf' GROUP BY thread_id")
    assert turns > 1 and all(turns - 1 <= count <= turns for count, in calls), (turns, calls)
    assert rows(tmp_path / "t.db", "SELECT * FROM loss") == []
