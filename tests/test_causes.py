"""A cause is stored as data: the guard that failed, its source, the aspect and the dimension. One what-if setting avoids
it, and all commands propose the same one."""
import json
import re
import sqlite3
import subprocess

import pytest
from tui_trace import make_trace

PROGRAM = """
import array
from dyntrace.eval_frame import set_eval_frame
from dyntrace.guards import EQUALS_MATCH, GuardTree, ID_MATCH, L, LIST_LENGTH, TENSOR_MATCH, TYPE_MATCH
from dyntrace.types import GuardedCode

class Box:
    def __init__(self, *shape): self.shape = shape
def size(x): pass
def dtype(x): pass
def narrow(x): pass
def value(x): pass
def kind(x): pass
def same(x): pass
def length(x): pass
GUARDS = {"size": lambda x: TENSOR_MATCH(L["x"]), "dtype": lambda x: TENSOR_MATCH(L["x"]),
          "narrow": lambda x: EQUALS_MATCH(L["x"].shape[1], x.shape[1]), "value": lambda x: EQUALS_MATCH(L["x"], x),
          "kind": lambda x: TYPE_MATCH(L["x"], type(x)), "same": lambda x: ID_MATCH(L["x"], x), "length": lambda x: LIST_LENGTH(L["x"], len(x))}
def callback(frame, entry, state):
    if frame.f_code.co_name in GUARDS:
        return GuardedCode(frame.f_code.replace(), GuardTree([GUARDS[frame.f_code.co_name](frame.f_locals["x"])], example=frame.f_locals))
set_eval_frame(callback)
size(array.array("d", [1])), size(array.array("d", [1, 2]))
dtype(array.array("d", [1])), dtype(array.array("f", [1]))
narrow(Box(1, 2)), narrow(Box(1, 3))
value("a"), value("b")
kind(1), kind(1.5)
boxes = Box(), Box()
same(boxes[0]), same(boxes[1])
length([1]), length([1, 2])
set_eval_frame(None)
"""


def test_a_recompile_cause_names_the_aspect_and_dimension_that_changed(dyntrace, python, tmp_path):
    (tmp_path / "p.py").write_text(PROGRAM)
    for trace in ("a.db", "b.db"):
        subprocess.run([dyntrace, "run", "-o", tmp_path / trace, "--python", python, tmp_path / "p.py"], check=True)
    subprocess.run([dyntrace, "merge", tmp_path / "a.db", tmp_path / "b.db", "-o", tmp_path / "both.db"], check=True)
    for trace, times in (("a.db", 1), ("both.db", 2)):
        assert sqlite3.connect(tmp_path / trace).execute(
            "SELECT qualname, kind, source, aspect, dimension FROM recompile_causes ORDER BY compile_id").fetchall() == times * [
                ("size", "TENSOR_MATCH", "L['x']", "size", 0), ("dtype", "TENSOR_MATCH", "L['x']", "dtype", None),
                ("narrow", "EQUALS_MATCH", "L['x'].shape[1]", "size", 1), ("value", "EQUALS_MATCH", "L['x']", "value", None),
                ("kind", "TYPE_MATCH", "L['x']", "type", None), ("same", "ID_MATCH", "L['x']", "identity", None),
                ("length", "LIST_LENGTH", "L['x']", "length", None)]


# What recompile_cause of compile 2 says, and the setting that spares it. Guard 13 is the one that failed.
SETTINGS = [("kind = 'TENSOR_MATCH'", "dynamic=L['x'][0]"),
            ("source = 'L[''x''].size()[1]', dimension = 1, expected = '16', actual = '18'", "dynamic=L['x'][1]"),
            ("kind = 'EQUALS_MATCH', source = 'L[''n'']', aspect = 'value', dimension = NULL, expected = '2', actual = '3'", "dynamic=L['n']"),
            ("kind = 'EQUALS_MATCH', source = 'L[''n'']', aspect = 'value', dimension = NULL, expected = '''a''', actual = '''b'''", "drop_guard=13"),
            ("aspect = 'dtype', dimension = NULL, expected = 'dtype float32', actual = 'dtype float64'", "drop_guard=13"),
            ("aspect = 'stride', dimension = 1, expected = 'stride[1] = 4', actual = 'stride[1] = 8'", "drop_guard=13")]


@pytest.mark.parametrize("change, setting", SETTINGS)
def test_why_tui_and_best_propose_the_same_setting_for_a_cause(dyntrace, tmp_path, change, setting):
    """`why`, the TUI and the search for the best settings propose the same setting."""
    trace = tmp_path / "t.db"
    make_trace(trace, hostile=False)
    with sqlite3.connect(trace) as db:
        db.execute("DELETE FROM recompile_cause WHERE compile_id > 2")
        db.execute(f"UPDATE recompile_cause SET {change}")
        db.execute("UPDATE guard SET source = 'L[''n'']' WHERE guard_id % 10 = 1") # a what-if is of a source that some guard has
    ask = lambda *arguments: subprocess.run([dyntrace, *arguments], capture_output=True, text=True, check=True, timeout=100).stdout
    why = json.loads(ask("why", "step", trace, "--json"))
    # to pass a number as a tensor or to hoist a value is not what the setting does, so `why` has no what-if for those
    expected = [] if "aspect = 'value'" in change else [setting]
    assert [remedy["what_if"] for remedy in why["remedies"] if remedy["what_if"]] == expected, why["remedies"]
    screen = ask("tui", trace, "--dump", "--screen", "100x30", "--keys", "3 Enter j Enter w")
    assert re.search(r"dynamic=L\S+|drop_guard=\w+$", screen, re.M)[0] == setting
    best = json.loads(ask("replay", trace, "--what-if", "best", "--json"))
    assert re.findall(r"dynamic=[^,]*", best["settings"]) in ([], [setting]) # where it helps at all
