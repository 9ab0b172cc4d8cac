"""A program without memory goes on as it does alone, and what could not be recorded is a row of `loss`."""
import subprocess

import pytest

from shared import holds

pytestmark = pytest.mark.newest_too

# `without(first, count, act)`: act() is called, and COUNT allocations fail from number FIRST on.
WITHOUT = """
import _testcapi

def without(first, count, act):
    _testcapi.set_nomemory(first, first + count)
    try:
        act()
    except MemoryError:
        pass
    finally:
        _testcapi.remove_mem_hooks()
"""

DECIDED = WITHOUT + """
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode

def decided(x):
    return x + 1

def callback(frame, entry, frame_state):
    if frame.f_code is decided.__code__:
        return GuardedCode(frame.f_code, lambda f_locals: f_locals["x"] != 3)

def call():
    set_eval_frame(callback)
    try:
        for x in 1, 2, 3, 4:
            assert decided(x) == x + 1
    finally:
        set_eval_frame(None)

for count in 1, 2, 5, 1000:
    for first in range(0, 240, 4):
        without(first, count, call)
        set_eval_frame(None)
"""

# With more than one, CPython itself may crash: it makes a token that it does not check.
SPANS = WITHOUT + """
import dyntrace

begun = 0
with dyntrace.span("first"):
    pass
for first in range(12):
    inner, outer = dyntrace.span("inner"), dyntrace.span("outer")
    def spans():
        global begun
        with outer:
            begun += 1
            with inner:
                begun += 1
    without(first, 1, spans)
print(begun)
"""


NAMES = WITHOUT + """
for first in range(20):
    namespace = {}
    exec(f"def naïve_{first}(): pass", namespace)
    without(first, 2, namespace[f"naïve_{first}"])
"""


@pytest.fixture(autouse=True)
def _has_testcapi(python):
    if subprocess.run([python, "-c", "import _testcapi"], capture_output=True).returncode:
        pytest.skip("this Python has no _testcapi")


def test_an_entry_whose_guards_cannot_be_described_is_recorded(record, python):
    trace = record(["-c", DECIDED], python=python)
    holds(trace)
    unknown = trace.rows("SELECT count(*) FROM guard WHERE kind = 'UNKNOWN'")[0][0]
    said = dict(trace.rows("SELECT cause, sum(events) FROM loss GROUP BY 1"))
    assert unknown >= 1 and said["guards of a cache entry left out: no memory to describe them"] == unknown
    assert trace.rows("SELECT count(*) FROM lookup WHERE outcome IN (1, 2) AND cache_entry_id IS NULL") == [(0,)]


def test_a_span_without_memory_is_a_loss(record, python):
    trace = record(["-c", SPANS], python=python)
    holds(trace)
    recorded = trace.rows("SELECT count(*) FROM span WHERE name <> 'first'")[0][0]
    lost = trace.rows("SELECT sum(events) FROM loss WHERE cause = 'span: no memory for it'")[0][0]
    assert lost and recorded + lost == int(trace.out)
    orphans = trace.rows("SELECT count(*) FROM span WHERE name = 'inner' AND parent_span_id IS NULL")[0][0]
    assert orphans <= trace.rows("SELECT sum(events) FROM loss WHERE cause LIKE 'span: %'")[0][0]


def test_a_function_without_memory_for_its_name_is_a_loss(record, python):
    trace = record(["-c", NAMES], python=python)
    holds(trace)
    (named,), = trace.rows("SELECT count(*) FROM code WHERE qualname LIKE 'naïve%'")
    (lost,), = trace.rows("SELECT coalesce(sum(events), 0) FROM loss WHERE cause LIKE 'names: no memory %'")
    assert lost >= 1 and named + lost == 20
