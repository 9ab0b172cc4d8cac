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


WARNED = """
import torch, warnings, dyntrace
F = torch.nn.functional
layer = torch.nn.Conv1d(1, 1, 2, padding="same")
cases = {
    "x[:1].std()": 1, "torch.var(x[:1])": 1, "x[:, None, None].T": 1, "F.softmax(x)": 1, "F.mse_loss(x, x[:1])": 1, "layer(x[None, None])": 1,
    "torch.where((x > 2).to(torch.uint8), x, x)": 1, "x[(x > 2).to(torch.uint8)]": 1, "x[None][0, (x > 2).to(torch.uint8)]": 1,
    "(x * 1j).to(torch.float32)": 1, "(x * 1j).float()": 1, "torch.tensor(x)": 1, "(x * 2).requires_grad_().mul(2).grad": 1,
    "F.softmax(x, 0) + x[None].T[:, 0]": 0, "x.float() / 2": 0}
def made(value):
    space = {"torch": torch, "F": F, "layer": layer}
    exec(f"def attempt(x, at):\\n  try:\\n    y = {value}\\n    return x[at]\\n  except IndexError:\\n    return x", space)
    return space["attempt"]
def warned(function):
    found = []
    for at in 0, 0, 99, 0:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(torch.arange(1.0, 5.0), torch.zeros(2, dtype=int) + at)
        found.append([(str(w.message), w.lineno) for w in caught])
    return found
torch.set_warn_always(True)
for value, warns in cases.items():
    plain, captured = warned(made(value)), warned(dyntrace.compile(made(value)))
    assert plain == captured and len(plain[0]) == warns, (value, plain, captured)
"""


def test_captured_torch_operations_inside_try_warn_as_uncaptured(dyntrace):
    """An operation for which torch may warn is in no graph that may be abandoned, so it does not warn twice."""
    alone(dyntrace, "-c", WARNED)


@pytest.mark.slow
def test_captured_corpus_functions_do_as_uncaptured_with_torch(dyntrace):
    functions, differ, graphs, nodes = map(int, re.findall(r"\d+", alone(dyntrace, CAPTURE / "corpus.py", "--library", "torch").splitlines()[-1]))
    assert functions > 500 and differ == 0 and graphs > 500


@pytest.mark.slow
def test_captured_hypothesis_functions_do_as_uncaptured(dyntrace):
    """Skipped if hypothesis is not installed."""
    pytest.importorskip("hypothesis")
    last = alone(dyntrace, CAPTURE / "random_functions.py", "--library", "torch", "--hypothesis", "--count", "100").splitlines()[-1]
    functions, differ, graphs, nodes = map(int, re.findall(r"\d+", last))
    assert functions >= 100 and differ == 0 and graphs > 50


def test_toy_example_has_the_nodes_of_torch_fx(dyntrace):
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
def test_capture_and_torch_compile_in_one_program(dyntrace, tmp_path, option):
    """Both compile one function: neither uses the cache entries of the other, and torch restores the callback that the program has set."""
    (tmp_path / "program.py").write_text(BOTH)
    plain = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, timeout=600,
                           env=dict(os.environ, PYTHONPATH=str(Path(dyntrace).parent / "lib" / "python")))
    done = subprocess.run([dyntrace, "run", option, "-o", tmp_path / "t.db", "--python", sys.executable, tmp_path / "program.py"],
                          capture_output=True, text=True, timeout=600)
    assert plain.stdout.count("\n") == 13, plain.stderr
    assert (done.stdout, done.returncode) == (plain.stdout, 0), done.stderr
