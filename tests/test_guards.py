"""Native guards: tests/programs/guard_rules.py with every Python, alone and recorded, and what a check costs.

    PYTHONPATH=build/lib/python python3 tests/programs/guard_rules.py -v
"""
import os
import subprocess
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parent / "programs"
BUILD = Path(os.environ.get("DYNTRACE", Path(__file__).resolve().parent.parent / "build" / "dyntrace")).parent

COST = """
import array
from dyntrace.guards import *
x, y = array.array("d", [1, 2]), array.array("d", [1, 2])
flat = GuardTree([TENSOR_MATCH(L["x"]), TENSOR_MATCH(L["y"]), TYPE_MATCH(L["x"]), TYPE_MATCH(L["y"]),
                  NO_ALIASING([L["x"], L["y"]]), EQUALS_MATCH(L["n"])], example=(arrays := dict(x=x, y=y, n=1)))
class Node: pass
root = Node()
guards = [TYPE_MATCH(L["root"])]
for i in range(9):
    node = Node()
    setattr(root, "n%d" % i, node)
    guards.append(TYPE_MATCH(getattr(L["root"], "n%d" % i)))
    for j in range(10):
        setattr(node, "a%d" % j, j)
        guards.append(EQUALS_MATCH(getattr(getattr(L["root"], "n%d" % i), "a%d" % j)))
nested = GuardTree(guards, example=dict(root=root))
for tree, values in (flat, arrays), (nested, dict(root=root)):
    assert tree.check_verbose(values) == (True, len(tree.guards()), None)
    print(min(tree._cost(values, 20000) for _ in range(15)))
"""


def run(python, *arguments):
    done = subprocess.run([python, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env=dict(os.environ, PYTHONPATH=str(BUILD / "lib" / "python")))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return done


def test_rules(python):
    assert "\nOK" in run(python, PROGRAMS / "guard_rules.py").stderr


def test_rules_while_recorded(record, python):
    assert "\nOK" in record([PROGRAMS / "guard_rules.py"], python=python).err


@pytest.mark.timing
def test_cost(python):
    """Six guards on two arrays, a hundred on a nested object: nanoseconds a check, in C."""
    best = [float("inf")] * 2
    for _ in range(5):  # others use the machine as well
        best = list(map(min, best, map(float, run(python, "-c", COST).stdout.split())))
        if best[0] < 150 and best[1] < 1500:
            return
    pytest.fail("%.0f ns and %.0f ns" % tuple(best))
