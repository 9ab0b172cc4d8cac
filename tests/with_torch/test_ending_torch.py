"""dyntrace.record() in a process that has loaded torch's compiler: torch's evaluator may lie above ours when it ends, and below when
it begins. See tests/test_ending.py."""
import os
import subprocess
from pathlib import Path

import pytest

from shared import holds, query

START = """
import threading, torch, torch._dynamo, dyntrace
def fails(gm, inputs): raise ValueError("backend")
@torch.compile(backend=fails)
def bad(x): return x + 1
@torch.compile(backend="eager", fullgraph=True)
def broken(x):
    torch._dynamo.graph_break()
    return x + 1
@torch.compile(backend="eager", dynamic=False)
def good(x): return x + 2
def leaf(): return 1
def fail(f=bad):
    try: f(torch.ones(2))
    except Exception: return
    raise SystemError
def work():
    leaf()
    good(torch.ones(2))
    good(torch.ones(3))
    good(torch.ones(2))
    leaf()
going = [threading.Event() for _ in range(2)]
@torch._dynamo.disable
def hold():
    going[0].set()
    going[1].wait(60)
@torch.compile(backend="eager")
def held(then):
    torch._dynamo.graph_break()
    hold()
    if then:
        then(torch.ones(2))
class record:
    def __init__(self, name): self.recording = dyntrace.record(name)
    def __enter__(self): self.recording.__enter__()
    def __exit__(self, *error): self.recording.__exit__(*error)
"""
END = """
print("ended")
"""
# Each records first.db and second.db, and works once in both. Torch's evaluator stays in its place after a compile that raised.
CASES = {
    "plain": """
with record("first.db"): work()
work()
assert dyntrace._native.native._owner() == "-"
with record("second.db"): work()
""",
    "raises within": """
with record("first.db"):
    fail()
    work()
work(), fail()
with record("second.db"): work()
work()
""",
    "fullgraph": """
with record("first.db"):
    work()
    fail(broken)
leaf()
with record("second.db"):
    fail(broken)
    work()
""",
    "raised before": """
fail()
with record("first.db"): work()
work(), fail()
with record("second.db"): work()
work()
""",
    "raises between": """
with record("first.db"): work()
fail()
with record("second.db"): work()
work()
""",
    # another thread is in a call of torch's, which then ends
    "begins in a compiled call": """
for name in "first.db", "second.db":
    going[0].clear(), going[1].clear()
    thread = threading.Thread(target=held, args=(None,))
    thread.start()
    going[0].wait(60)
    with record(name):
        going[1].set()
        thread.join()
        work()
    leaf()
""",
    "ends in a compiled call": """
for name in "first.db", "second.db":
    going[0].clear(), going[1].clear()
    with record(name):
        work()
        thread = threading.Thread(target=held, args=(good,))
        thread.start()
        going[0].wait(60)
    leaf()
    going[1].set()
    thread.join()
    leaf()
""",
    "another thread ends it": """
for name in "first.db", "second.db":
    recording = record(name)
    recording.__enter__()
    fail()
    work()
    thread = threading.Thread(target=recording.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    leaf()
""",
    "begins and ends within a compile": """
def backend(gm, inputs):
    with record("first.db"): work()
    return gm.forward
outer = torch.compile(lambda x: x * 3, backend=backend)
outer(torch.ones(2))
leaf()
with record("second.db"): work()
""",
    "fork": """
import os
with record("first.db"):
    fail()
    work()
pid = os.fork()
if not pid:
    work()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
with record("second.db"): work()
""",
}


QUICK = {"ends in a compiled call", "fork"}


@pytest.mark.parametrize("case", [pytest.param(case, marks=() if case in QUICK else pytest.mark.slow) for case in CASES])
def test_after_a_recording_torch_runs_as_before_it(dyntrace, python, tmp_path, case):
    environment = dict(os.environ, PYTHONPATH=str(Path(dyntrace).parent / "lib" / "python"))
    done = subprocess.run([python, "-W", "ignore", "-c", START + CASES[case] + END], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280)
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr[-2000:]
    for name in "first.db", "second.db":
        trace = holds(tmp_path / name)
        assert query(trace, "SELECT count(*) FROM frames WHERE qualname = 'leaf'") == [(2,)], name
        outcomes = [outcome for outcome, in query(trace, "SELECT outcome FROM frames WHERE qualname = 'good' AND kind = 'call' ORDER BY start_ns")]
        compiled = CASES[case].find("work()") < CASES[case].find(name)
        want = ["hit"] * 3 if compiled or name == "second.db" else ["compiled", "compiled", "hit"]
        assert outcomes[:3] == want, (name, outcomes)
        assert query(trace, "SELECT cause FROM loss WHERE cause NOT LIKE 'stall:%'") == [], name


PLUGIN = """
import pytest, torch, torch._dynamo

@torch.compile(backend="eager", fullgraph=True)
def f(x):
    torch._dynamo.graph_break()
    return x + 1

@pytest.mark.dyntrace(max_compiles=3)
def test_raises():
    with pytest.raises(Exception):
        f(torch.ones(2))

def test_after():
    assert True
"""


@pytest.mark.slow
def test_the_plugin_records_a_test_whose_compile_raises(dyntrace, python, tmp_path):
    if subprocess.run([python, "-c", "import pytest"], capture_output=True).returncode:
        pytest.skip("this Python has no pytest")
    (tmp_path / "test_it.py").write_text(PLUGIN)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment.update(PYTHONPATH=str(Path(dyntrace).parent / "lib" / "python"))
    done = subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "dyntrace.pytest_plugin", "test_it.py"],
                          cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
