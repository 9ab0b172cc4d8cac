"""--frames folded, the default: library frames inside torch's compiles and imports are counted and have no rows. Everything else is
as --frames all has it."""
import json
import os
import re
import signal
import sqlite3
import subprocess
import time

import pytest
from test_frames_decided import TABLES, record

OWN = "c.filename NOT GLOB '*/site-packages/*' AND c.filename NOT GLOB '*/lib*/python3.[0-9]*/*' AND c.filename NOT GLOB '<*'"

# Breaks, an exception in a compile, a function of the program within a compile (the backend), backward graphs, two threads that
# compile at once, a fork, a generator.
PROGRAM = """
import os
import threading
import torch

torch.set_num_threads(1)

def helper(gm):
    return [node.name for node in gm.graph.nodes]

began = threading.Event()

def backend(gm, inputs):
    helper(gm)
    began.set()
    return gm.forward

def failing(gm, inputs):
    helper(gm)
    raise ValueError("no")

@torch.compile(backend=backend, dynamic=False)
def breaks(x):
    x = x + 1
    print("broken off")
    return x * 2

@torch.compile(backend=failing)
def fails(x):
    return x - 1

@torch.compile(backend="aot_eager", dynamic=False)
def trains(x, n):
    return (x * n).sin().sum()

def leaf(n):
    return n

def numbers():
    for i in range(5):
        yield leaf(i)

for size in 3, 3, 4:
    breaks(torch.ones(size))
try:
    fails(torch.ones(3))
except Exception as error:
    print(type(error).__name__)
for n in 2, 2, 3:
    trains(torch.ones(3, requires_grad=True), n).backward()
print(sum(numbers()))

def one(x):
    return x + 0.5

def other(x):
    return x + 1.5

def work(function):
    if function is other:
        began.wait() # it comes while `one` is compiled, each time
    torch.compile(function, backend=backend, dynamic=False)(torch.ones(2))
began.clear()
threads = [threading.Thread(target=work, args=(function,)) for function in (one, other)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

child = os.fork()
if not child:
    breaks(torch.ones(5))
    os._exit(7)
print(os.waitpid(child, 0)[1] >> 8)
"""


def own_calls(db):
    """How often each function of the program was called, by what called it: the caller is the innermost frame of the program."""
    return db.execute(f"""SELECT c.qualname, c.first_line, e.name, COUNT(*) FROM frame f JOIN code c USING (code_id)
                          JOIN enum e ON e.kind = 'outcome' AND e.value = f.outcome WHERE {OWN} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3""").fetchall()


def calls(db):
    return {row[:3]: row[3:] for row in db.execute("SELECT qualname, filename, first_line, SUM(calls), SUM(raised) FROM code_total JOIN code USING (code_id) GROUP BY 1, 2, 3")}


def well_formed(dyntrace, path):
    done = subprocess.run([dyntrace, "fsck", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("mode", ["shim", pytest.param("observe", marks=pytest.mark.slow)])
def test_stored_and_counted_frames_together_are_those_of_frames_all(dyntrace, python, tmp_path, mode, monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    (tmp_path / "p.py").write_text(PROGRAM)
    (said, every), (said_too, folded) = (record(dyntrace, python, tmp_path, mode, frames, tmp_path / "p.py") for frames in ("all", "folded"))
    assert said == said_too
    for table in TABLES:
        a, b = (re.sub(r"\d{9,}|0x[0-9a-f]+", "ADDRESS", repr(db.execute(table).fetchall())) for db in (every, folded))
        assert a == b, table
    assert own_calls(every) == own_calls(folded)
    # Functions of torch and of libraries, but for the few whose calls vary from run to run (locks, timers, the recorder's process).
    a, b = calls(every), calls(folded)
    differ = [key for key in set(a) | set(b) if a.get(key) != b.get(key)]
    assert len(differ) <= len(a) / 50, differ[:20]
    (all_rows,), = every.execute("SELECT COUNT(*) FROM frame")
    (rows,), = folded.execute("SELECT COUNT(*) FROM frame")
    (counted,), = folded.execute("SELECT SUM(frames) FROM frame_count")
    assert abs(rows + counted - all_rows) < all_rows / 100 and rows < all_rows / 20
    assert every.execute("SELECT COUNT(*) FROM frame_count").fetchone() == (0,)
    assert [mode for mode, in folded.execute("SELECT DISTINCT mode FROM process")] == ["folded"]
    assert folded.execute("SELECT value FROM meta WHERE key = 'counted_frame_count'").fetchone() == (counted,)
    phases = {phase for phase, in folded.execute("SELECT DISTINCT phase FROM counted_frames WHERE frames > 0")}
    assert phases == {"import", "compile", "bytecode_tracing", "backend_compile", "build_guards", "entire_backward_compile"}
    # none of the program's own functions is only counted
    assert folded.execute(f"SELECT c.qualname FROM frame_count n JOIN code c USING (code_id) WHERE n.frames > 0 AND {OWN}").fetchall() == []
    for name in "all", "folded":
        well_formed(dyntrace, tmp_path / f"{name}.db")


def test_a_frame_of_the_program_in_a_compile_has_the_frame_around_it_as_its_parent(dyntrace, python, tmp_path):
    (tmp_path / "p.py").write_text(PROGRAM)
    _, db = record(dyntrace, python, tmp_path, "shim", "folded", tmp_path / "p.py")
    parents = set(db.execute("""SELECT p.qualname FROM frame f JOIN code c ON c.code_id = f.code_id JOIN frame g ON g.frame_id = f.parent_id
                                JOIN code p ON p.code_id = g.code_id WHERE c.qualname = 'backend'"""))
    assert parents == {("breaks",), ("torch_dynamo_resume_in_breaks_at_%d" % (PROGRAM[:PROGRAM.index('print("broken')].count("\n") + 1),), ("one",), ("other",)}
    assert set(db.execute("""SELECT p.qualname FROM frame f JOIN code c ON c.code_id = f.code_id JOIN frame g ON g.frame_id = f.parent_id
                             JOIN code p ON p.code_id = g.code_id WHERE c.qualname = 'helper'""")) == {("backend",), ("failing",)}


@pytest.mark.parametrize("phase", ["backend", "import"])
def test_a_program_killed_in_a_compile_or_import_loses_nothing(dyntrace, python, tmp_path, phase):
    program = {"backend": """
import os, signal, torch
def backend(gm, inputs):
    os.kill(os.getpid(), signal.SIGKILL)
torch.compile(lambda x: x + 1, backend=backend)(torch.ones(3))
""", "import": """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch.nn":
            os.kill(os.getpid(), signal.SIGKILL)
sys.meta_path.insert(0, Finder())
import torch
"""}[phase]
    (tmp_path / "p.py").write_text(program)
    done = subprocess.run([dyntrace, "run", "-o", tmp_path / "t.db", "--python", python, tmp_path / "p.py"], capture_output=True, timeout=280)
    assert done.returncode == 128 + signal.SIGKILL
    db = sqlite3.connect(tmp_path / "t.db")
    assert db.execute("SELECT COUNT(*) FROM loss WHERE events > 0 OR events IS NULL").fetchone() == (0,)
    open_frames = [name for name, in db.execute("SELECT qualname FROM frame JOIN code USING (code_id) WHERE end_ns IS NULL ORDER BY frame_id")]
    assert open_frames[0] == "<module>" and open_frames[-1] == ("backend" if phase == "backend" else "Finder.find_spec")
    assert db.execute("SELECT SUM(frames) > 1000 FROM frame_count").fetchone() == (1,)
    well_formed(dyntrace, tmp_path / "t.db")


def test_the_recorder_may_be_killed_while_torch_compiles(dyntrace, python, tmp_path):
    (tmp_path / "p.py").write_text(PROGRAM)
    with subprocess.Popen([dyntrace, "run", "-o", tmp_path / "t.db", "--python", python, tmp_path / "p.py"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONHASHSEED": "0"}) as running:
        for _ in range(3):
            time.sleep(1.5)
            for child in subprocess.run(["pgrep", "-P", str(running.pid)], capture_output=True, text=True).stdout.split():
                words = open(f"/proc/{child}/cmdline").read()
                if "p.py" not in words or words.startswith(str(dyntrace)):
                    os.kill(int(child), signal.SIGKILL)
        running.communicate(timeout=280)
    assert running.returncode == 0
    _, whole = record(dyntrace, python, tmp_path, "shim", "all", tmp_path / "p.py")
    db = sqlite3.connect(tmp_path / "t.db")
    assert db.execute("SELECT value FROM meta WHERE key = 'state'").fetchone() == ("recovered",)
    assert own_calls(db) == own_calls(whole)
    well_formed(dyntrace, tmp_path / "t.db")


def test_pages_say_how_many_frames_were_counted_and_not_stored(dyntrace, python, tmp_path):
    (tmp_path / "p.py").write_text(PROGRAM)
    record(dyntrace, python, tmp_path, "shim", "folded", tmp_path / "p.py")
    path = tmp_path / "folded.db"
    words = r"all but [\d.]+ [kM] of libraries inside torch's compiles and imports, which were counted \(--frames all stores them\)"

    def run(*command):
        done = subprocess.run([dyntrace, *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    assert re.search(words, run("report", path))
    assert re.search(words, run("tui", "--dump", "--screen", "200x60", path))
    report = json.loads(run("report", "--json", path))
    assert report["counted_frames"] > 100000
    assert re.search(words, run("why", "FakeTensor.__new__", path))
    html = tmp_path / "t.html"
    run("report", "--html", html, path)
    assert re.search(words.replace("'", "(?:'|&#39;|&#x27;|&apos;)"), html.read_text())
    (tmp_path / "plain.py").write_text("import torch")
    subprocess.run([dyntrace, "run", "-o", tmp_path / "other.db", "--python", python, tmp_path / "plain.py"], check=True)
    run("merge", path, tmp_path / "other.db", "-o", tmp_path / "m.db")
    sums = [sqlite3.connect(name).execute("SELECT SUM(frames), SUM(self_ns), SUM(inner_ns) FROM frame_count").fetchone()
            for name in (path, tmp_path / "other.db", tmp_path / "m.db")]
    assert sums[2] == tuple(a + b for a, b in zip(*sums[:2]))
    well_formed(dyntrace, tmp_path / "m.db")


def test_a_program_without_torch_has_every_frame(dyntrace, python, tmp_path):
    (tmp_path / "p.py").write_text("import json\nfor i in range(3):\n    json.loads(json.dumps([i]))\n")
    for frames in ["--frames", "all"], []:
        subprocess.run([dyntrace, "run", "--force", *frames, "-o", tmp_path / "t.db", "--python", python, tmp_path / "p.py"], check=True)
        db = sqlite3.connect(tmp_path / "t.db")
        assert db.execute("SELECT mode, (SELECT COUNT(*) FROM frame_count) FROM process").fetchall() == [("all", 0)]
        assert db.execute("SELECT COUNT(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'loads'").fetchone() == (3,)
