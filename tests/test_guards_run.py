"""The number of guards that ran in each check, for trees of the program's own: each guard counts its evaluations. Guards
that compare are reordered when they fail; LAMBDA guards stay last."""
import json

import pytest

from shared import holds, query

pytestmark = pytest.mark.newest_too

PROGRAM = """
import json, random, sys
from dyntrace import config
from dyntrace.eval_frame import set_eval_frame
from dyntrace.guards import EQUALS_MATCH, GuardTree, L, LAMBDA
from dyntrace.types import GuardedCode

R = random.Random({seed})
config.recompile_limit = 4
WIDE = {wide}
asked, told, ended = [], [], []

def f(a, b, c, d, e):
    return a

exec("def wide(%s):\\n    return a0" % ", ".join("a%d" % i for i in range(WIDE)))
exec("def outer(x, y):\\n    return x")

class Number:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        told[-1]["ran"] += 1
        return self.value == other.value

    __hash__ = None

def counting(name, wanted):
    def guard(value):
        if name == "x" and value == 7 and not told[-1]["nested"]:
            told[-1]["nested"] = True
            inner(x=1, y=R.choice([1, 2]))         # a lookup of the same entry, within its check
        told[-1]["ran"] += 1
        return value == wanted
    return LAMBDA(guard, "%s == %r" % (name, wanted), L[name])

def callback(frame, entry, state):
    name = frame.f_code.co_name
    if name not in ("f", "wide", "outer"):
        return None
    values = frame.f_locals
    made = [counting(n, v) if type(v) is int else EQUALS_MATCH(L[n], Number(v.value)) for n, v in values.items()]
    return GuardedCode(frame.f_code.replace(), GuardTree(made, example=values))

def inner(**values):
    told.append(dict(function="outer", ran=0, nested=True, quiet=True))
    outer(**values)
    told.pop()

def call(function, values):
    told.append(dict(function=function.__name__, ran=0, nested=False))
    ended.append(told[-1])
    function(**values)

set_eval_frame(callback)
for i in range({calls}):
    call(f, dict((n, R.choice([Number(1), Number(1), Number(1), Number(2)]) if n < "d" else R.choice([1, 1, 1, 2])) for n in "abcde"))
    if not i % 10:
        values = dict(("a%d" % n, Number(0)) for n in range(WIDE))
        values["a%d" % R.randrange(WIDE)] = Number(R.choice([0, 1]))
        call(wide, values)
    if {nested} and not i % 5:
        call(outer, dict(x=R.choice([1, 7]), y=R.choice([1, 2])))
set_eval_frame(None)
json.dump(ended, open(sys.argv[1], "w"))
"""

RAN = """
    SELECT c.qualname, l.lookup_id, TOTAL(k.guard_check_id IS NOT NULL AND k.guards_run IS NULL), TOTAL(k.guards_run),
           (SELECT COUNT(*) FROM guard_evaluation e WHERE e.lookup_id = l.lookup_id)
    FROM lookup l JOIN code c USING (code_id) LEFT JOIN guard_check k USING (lookup_id)
    WHERE c.qualname IN ('f', 'wide', 'outer') GROUP BY l.lookup_id ORDER BY l.lookup_id"""


@pytest.mark.parametrize("seed, wide", [(1, 8), (2, 700)])
def test_a_guard_check_records_how_many_guards_ran(record, python, tmp_path, seed, wide):
    """Failures change the order of the guards. 700 guards are more than a short text can list."""
    (tmp_path / "p.py").write_text(PROGRAM.format(seed=seed, wide=wide, nested=0, calls=120))
    trace = holds(record(["p.py", tmp_path / "told"], "--frames", "decided", python=python))
    told = json.loads((tmp_path / "told").read_text())
    rows = query(trace.path, RAN)
    assert [(row[0], row[3], row[4]) for row in rows] == [(each["function"], each["ran"], each["ran"]) for each in told]
    assert not any(row[2] for row in rows)
    assert query(trace.path, "SELECT COUNT(*) FROM guard_order")[0][0] > 10     # guards did change places
    assert query(trace.path, "SELECT SUM(evaluations) FROM guard_bill") == [(sum(each["ran"] for each in told),)]
    assert query(trace.path, "SELECT SUM(failures) FROM guard_bill") == query(trace.path, "SELECT COUNT(*) FROM guard_check WHERE result = 'fail'")


def test_guards_reordered_within_a_lookup_are_not_counted_wrongly(record, python, tmp_path):
    """A guard calls the same function, and the inner check reorders the guards. The outer check's count may be unknown,
    but never wrong."""
    (tmp_path / "p.py").write_text(PROGRAM.format(seed=3, wide=4, nested=1, calls=200))
    trace = holds(record(["p.py", tmp_path / "told"], "--frames", "decided", python=python))
    told = [each["ran"] for each in json.loads((tmp_path / "told").read_text()) if each["function"] == "f"]
    assert [row[3] for row in query(trace.path, RAN) if row[0] == "f"] == told
    assert query(trace.path, "SELECT COUNT(*) FROM guard_check WHERE guards_run = 0 AND result IN ('fail', 'error')") == [(0,)]


CHECKED = """
from dyntrace.eval_frame import set_eval_frame
from dyntrace.guards import EQUALS_MATCH, GuardTree, L
from dyntrace.types import GuardedCode

trees = []

def f(a, b):
    return a

def callback(frame, entry, state):
    if frame.f_code is not f.__code__:
        return None
    trees.append(GuardTree([EQUALS_MATCH(L["a"]), EQUALS_MATCH(L["b"])], example=frame.f_locals))
    return GuardedCode(frame.f_code.replace(), trees[-1])

set_eval_frame(callback)
f(1, 1)
for i in range(3):
    trees[0].check(dict(a=1, b=2))      # by the program's own hand: nobody sees that b comes first from here on
f(2, 1)
f(2, 2)
set_eval_frame(None)
"""


def test_a_guard_check_by_the_program_makes_the_next_count_null(record, python, tmp_path):
    """The program's check changes the order, which the trace does not have. So the next count is NULL; later counts are
    known."""
    (tmp_path / "p.py").write_text(CHECKED)
    trace = holds(record(["p.py"], "--frames", "decided", python=python))
    rows = query(trace.path, "SELECT k.result, g.source, k.guards_run FROM guard_check k JOIN cache_entry e USING (cache_entry_id)"
                             " JOIN guard g ON g.guard_id = k.failed_guard_id WHERE e.label = '0/0' ORDER BY guard_check_id")
    assert rows == [("fail", "L['a']", None), ("fail", "L['b']", 1)]
