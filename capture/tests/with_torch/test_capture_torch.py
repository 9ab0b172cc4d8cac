"""dyntrace.compile on torch's arrays: capture/tests/corpus/ and the table of seed 003."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CAPTURE = Path(__file__).resolve().parents[1]

SEED = """
import torch, dyntrace
@dyntrace.compile(backend=lambda module, inputs: module.print_tabular() or module.forward)
def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b
toy_example(torch.ones(10), -torch.ones(10))
"""


def alone(dyntrace, *words):
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=900,
                          env=dict(os.environ, PYTHONPATH=str(Path(dyntrace).parent / "lib" / "python")))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_corpus(dyntrace):
    functions, differ, graphs, nodes = map(int, re.findall(r"\d+", alone(dyntrace, CAPTURE / "corpus.py", "--library", "torch").splitlines()[-1]))
    assert functions > 500 and differ == 0 and graphs > 500


def test_functions_that_hypothesis_chooses(dyntrace):
    """Torch that a user has may come without it."""
    pytest.importorskip("hypothesis")
    last = alone(dyntrace, CAPTURE / "random_functions.py", "--library", "torch", "--hypothesis", "--count", "100").splitlines()[-1]
    functions, differ, graphs, nodes = map(int, re.findall(r"\d+", last))
    assert functions >= 100 and differ == 0 and graphs > 50


def test_seed(dyntrace):
    rows = [re.split(r"  +", line) for line in re.sub(r"0x\w+", "0x..", alone(dyntrace, "-c", SEED)).splitlines()[2:10]]
    assert [(op, name) for op, name, *_ in rows] == [("placeholder", "a"), ("placeholder", "b"), ("call_function", "abs_1"), ("call_function", "add"),
                                                     ("call_function", "truediv"), ("call_method", "sum_1"), ("call_function", "lt"), ("output", "output")]
    assert rows[2][2:] == ["<built-in method abs of type object at 0x..>", "(a,)", "{}"] and rows[7][2:] == ["output", "((truediv, lt),)", "{}"]


BOTH = """
import torch, dyntrace
from dyntrace.eval_frame import set_eval_frame
def f(x):
    return torch.sin(x) + 1
def g(x):
    return torch.cos(f(x))
by_torch = torch.compile(f, backend="eager", dynamic=False)
outer = torch.compile(g, backend="eager")
inner = torch.compile(lambda *inputs: [x + 0 for x in inputs], backend="eager")

def backend(module, inputs):
    return lambda *inputs: inner(*module(*inputs))

def asked(frame, entry, state):
    names.append(frame.f_code.co_name)

ours, names = dyntrace.compile(f, backend=backend), []
for n in range(12):
    x = torch.ones(n + 2)
    print(*(float(a.sum()) for a in (f(x), by_torch(x), f(x), ours(x), outer(x), g(x), ours(x))))
set_eval_frame(asked)
def later():
    return 1
by_torch(torch.ones(99))
later()
set_eval_frame(None)
print("later" in names)
"""


@pytest.mark.parametrize("option", ["--force", "--capture"])
def test_beside_a_compiler_of_torchs(dyntrace, tmp_path, option):
    """A function that both compile: neither sees the other's entries, and a callback that torch puts back is still ours."""
    (tmp_path / "program.py").write_text(BOTH)
    plain = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, timeout=600,
                           env=dict(os.environ, PYTHONPATH=str(Path(dyntrace).parent / "lib" / "python")))
    done = subprocess.run([dyntrace, "run", option, "-o", tmp_path / "t.db", "--python", sys.executable, tmp_path / "program.py"],
                          capture_output=True, text=True, timeout=600)
    assert plain.stdout.count("\n") == 13, plain.stderr
    assert (done.stdout, done.returncode) == (plain.stdout, 0), done.stderr
