"""`dyntrace why` and `dyntrace show`, on traces with planted causes. Python's sqlite3 makes the traces from
schemas/*.sql. Whole pages are compared with tests/golden/*.txt; DYNTRACE_RENEW=1 writes them anew, then read the diff."""
import json
import os
import re
import sqlite3
import subprocess

import pytest

from frame_rows import frame_rows
from planted import EVIL, MS, OUTCOMES, size_changes, tensor_words
from shared import ROOT, SCHEMA, golden, table


# ---- planted causes --------------------------------------------------------

def size_source_changes(p):
    p.sequence("EQUALS_MATCH", "L['x'].size()[1]", [4, 8, 12])


def size_in_words(p):  # as torch says it
    p.compile()
    p.compile([dict(kind="TENSOR_MATCH", source="L['x'].size()[2]", text="tensor 'L['x']' size mismatch at index 2. expected 3, actual 5",
                    expected="3", actual="5")])


def stride_changes(p):
    p.sequence("TENSOR_MATCH", "L['x']", [4, 1], "stride[1] = %d")


def rank_changes(p):
    p.sequence("TENSOR_MATCH", "L['x']", [1, 2, 3], "ndim %d")


def dtype_changes(p):
    p.sequence("TENSOR_MATCH", "L['x']", ["float32", "float64"], "dtype %s")


def device_changes(p):
    p.sequence("TENSOR_MATCH", "L['x']", ["cpu", "cuda:0"], "device %s")


def grad_changes(p):
    p.sequence("TENSOR_MATCH", "L['x']", ["False", "True"], "requires_grad %s")


def number_changes(p):
    p.sequence("EQUALS_MATCH", "L['n']", [1, 2, 3])


def global_changes(p):
    p.sequence("EQUALS_MATCH", "G['step']", [1, 2, 3])


def attribute_counts(p):
    p.sequence("EQUALS_MATCH", "L['self'].calls", [1, 2, 3])


def string_changes(p):
    p.sequence("EQUALS_MATCH", "L['mode']", ["'train'", "'eval'"])


def type_changes(p):
    p.sequence("TYPE_MATCH", "L['x']", ["int", "float"])


def object_changes(p):
    p.sequence("ID_MATCH", "L['cfg']", ["Config object at 0x1", "Config object at 0x2"])


def length_changes(p):
    p.sequence("LIST_LENGTH", "L['items']", [3, 4])


def keys_change(p):
    p.sequence("DICT_KEYS", "L['d']", ["{'a'}", "{'a', 'b'}"])


def function_changes(p):
    p.sequence("FUNCTION_MATCH", "L['fn']", ["function main.<locals>.<lambda> at 0x1", "function main.<locals>.<lambda> at 0x2"])


def grad_mode_changes(p):
    p.sequence("GLOBAL_STATE", "torch.is_grad_enabled()", ["True", "False"])


def none_or_value(p):
    p.sequence("NONE_MATCH", "L['mask']", ["None", "array"])


def alias(p):
    p.compile()
    p.compile([dict(kind="NO_ALIASING", source="L['a'], L['b']", expected="different objects", actual="one object")])


def opaque(p):
    p.compile(guards=(("LAMBDA", "", "function(f_locals)"),))
    p.compile([dict(kind="LAMBDA", source="", text="the guard returned False")])


def other_backend(p):
    p.compile(backend="a")
    p.compile([dict(kind="BACKEND_MATCH", guard=None, text="the entry was compiled for another backend")], backend="b")


def weakref_dead(p):
    p.compile(guards=(("WEAKREF_ALIVE", "L['m']", "L['m'] is alive"),))
    p.compile([dict(kind="WEAKREF_ALIVE", source="L['m']", expected="alive", actual="dead")])


def entry_dies(p):
    entry = p.compile(guards=(("ID_MATCH", "L['m']", "L['m'] is Model object at 0x1"),))
    p.call("hit", entry)
    p.die(entry, "L['m'] was collected: Model object at 0x1")
    p.compile()


def cache_reset(p):
    for i in range(3):
        p.die(p.compile(), "reset")
    p.compile()


def limit_reached(p):
    p.sequence("EQUALS_MATCH", "L['mode']", ["'a'", "'b'"], signatures="mode: str %s")
    for mode in "cdcdc":
        p.call("limit", failed=[(e, g[0]) for e, _, g in p.entries], signature=f"mode: str '{mode}'")


def run_only(p):
    entry = p.compile(signature="x: int 1")
    for i in range(4):
        p.call("run_only", failed=[(entry, 1)], signature="x: str")


def skipped(p):
    p.compile(outcome="declined", reason="first call")
    for i in range(3):
        p.call("skip")


def declined(p):
    for i in range(3):
        p.compile(outcome="declined", reason="Unsupported: generator")


def disabled(p):
    for i in range(3):
        p.call("disabled")


def guard_raises(p):
    entry = p.compile(guards=(("LAMBDA", "L['x'].size", "x.size > 3"),))
    p.call("guard_error", failed=[(entry, 1, "error")])


def compiler_raises(p):
    p.compile(outcome="error", reason="RuntimeError: no such operator")


def never_asked(p):  # of a program that has a compiler
    p.insert("compile", compile_id=1, code_id=2, thread_id=1, start_ns=0, end_ns=1, outcome="declined")


PLANTED = [  # cause, the first remedy's name, words on the page
    (size_changes, "dynamic dimension", ["dimension 0 of x", "16, 18, 20, 22", "dynamic_sizes=[0]", "Raise recompile_limit to 5",
                                         "7 calls ran as Python", "Reached at 0.010 s"]),
    (size_source_changes, "dynamic dimension", ["dimension 1 of x dynamic", "4, 8, 12"]),
    (size_in_words, "dynamic dimension", ["dimension 2 of x dynamic", "3, 5"]),
    (stride_changes, "dynamic stride", ["stride 1 was 4, 1"]),
    (rank_changes, "one rank", ["it was 1, 2, 3"]),
    (dtype_changes, "one dtype", ["x dtype: expected float32 (0/0), actual float64"]),
    (device_changes, "one device", ["it was cpu, cuda:0"]),
    (grad_changes, "one grad mode", ["requires_grad for x"]),
    (number_changes, "hoist", ["n was 1, 2, 3"]),
    (global_changes, "hoist", ["Set the global step once"]),
    (attribute_counts, "hoist", ["self.calls was 1, 2, 3"]),
    (string_changes, "one value", ["'train', 'eval'"]),
    (type_changes, "one type", ["type(x): expected int (0/0), actual float"]),
    (object_changes, "one object", ["Make cfg once"]),
    (length_changes, "one length", ["it was 3, 4"]),
    (keys_change, "one set of keys", ["keys of d"]),
    (function_changes, "define once", ["Define the function fn once"]),
    (grad_mode_changes, "global state", ["one global state"]),
    (none_or_value, "one value", ["always or never"]),
    (alias, "aliasing", ["clone() one of them"]),
    (opaque, "name the guard", ["the guard returned False"]),
    (other_backend, "backend", ["one backend object", "another backend asked"]),
    (weakref_dead, "keep alive", ["Keep m alive"]),
    (entry_dies, "keep alive", ["0/0 had died at 0.003 s: L['m'] was collected", "died at 0.003 s"]),
    (cache_reset, "no reset", ["3 entries died"]),
    (limit_reached, "one value", ["Raise recompile_limit to 4", "inputs of 3 calls: mode: str 'c'"]),
    (run_only, "warm up", ["all 2 kinds of input", "inputs of 4 calls: x: str"]),
    (skipped, "unskip", ["marked never to be compiled", "first at 0.002 s, last at 0.004 s"]),
    (declined, "declined", ["Unsupported: generator"]),
    (disabled, "turn on", ["callback is set per thread"]),
    (guard_raises, "mend the guard", ["x.size: x.size > 3", "raised 1 time: 0/0 LAMBDA"]),
    (compiler_raises, "mend the compiler", ["RuntimeError: no such operator"]),
    (never_asked, "turn on", ["no compiler was asked", "5 calls"]),
]


@pytest.mark.parametrize("cause, name, words", PLANTED, ids=[case[0].__name__ for case in PLANTED])
def test_why_names_the_cause_that_the_test_trace_contains(run, plant, cause, name, words):
    p = plant()
    cause(p)
    if cause is never_asked:
        for i in range(5):
            p.insert("frame", frame_id=i + 1, thread_id=1, code_id=1, kind=0, outcome=0, start_ns=i * MS, end_ns=i * MS + 5, exit=0)
    path = p.done(more=5 if cause is never_asked else 0)
    done = run("why", "f", path)
    assert (done.returncode, done.stderr) == (0, "")
    for text in words:
        assert text in done.stdout, done.stdout
    assert done.stdout.count("\n") < 60  # about one screen
    found = json.loads(run("why", "f", path, "--json").stdout)
    assert found["remedies"][0]["name"] == name, found["remedies"]
    assert run("show", "f", path).returncode == 0
    shown = json.loads(run("show", "f", path, "--json").stdout)
    assert len(shown["compiles"]) == len(found["compiles"]) == shown["compile_count"]


def test_every_outcome_is_printed_with_its_first_moment(run, plant):
    p = plant()
    entry = p.compile()
    for outcome in OUTCOMES[3:]:
        p.call(outcome)
    p.call("hit", entry)
    path = p.done()
    found = {row["outcome"]: row for row in json.loads(run("why", "f", path, "--json").stdout)["calls"]}
    assert sorted(found) == sorted(OUTCOMES[1:])
    assert found["limit"]["first_ns"] == 4 * MS and found["hit"]["entry"] == "0/0"
    page = run("why", "f", path).stdout
    assert all(outcome in page for outcome in OUTCOMES[1:])


def test_only_exact_shares_are_printed_as_0_or_100_percent(run, plant):
    p = plant()
    entry = p.compile()
    for _ in range(2999):
        p.call("hit", entry)
    p.call("limit", failed=[(entry, p.entries[0][2][0])])
    path = p.done()
    text = run("why", "f", path).stdout
    assert "99.97 % ran compiled code, 0.0333 % ran as Python" in text
    assert "0.03 %  limit" in text and not re.search(r"\b(100|0)(\.0)? %", text)
    assert not re.search(r"\b(100|0)(\.0)? ?%", run("report", path).stdout)
    screen = run("tui", path, "--dump", "--screen", "160x50").stdout
    assert "% hit, 0.03 % compiled, 0.03 % ran" in screen


def test_calls_without_a_lookup_are_counted_from_frames(run, plant):
    p = plant()
    p.compile(outcome="declined", reason="first call")
    for i, outcome in enumerate([6, 4, 4, 0, 7]):  # the first is the one with a lookup
        p.insert("frame", frame_id=i + 1, thread_id=1, code_id=1, kind=0, outcome=outcome, start_ns=(i + 1) * MS,
                 end_ns=(i + 1) * MS + 5, exit=0)
    path = p.done(more=5)
    found = json.loads(run("why", "f", path, "--json").stdout)
    assert {row["outcome"]: row["calls"] for row in found["calls"]} == {"declined": 1, "skip": 2, "plain": 1, "disabled": 1}
    assert (found["call_count"], found["calls_not_told_apart"]) == (6, 1)
    assert "without a lookup" in run("why", "f", path).stdout


# ---- whole pages -----------------------------------------------------------

def rich(plant):
    """A trace with something of everything that `show` prints."""
    p = plant("Net.forward", "/src/app/net.py", 12)
    old, new = ((("TYPE_MATCH", "L['self']", "type(L['self']) is Net"), ("TENSOR_MATCH", "L['x']", tensor_words("L['x']", size)),
                 ("FALSE_MATCH" if size == 16 else "TRUE_MATCH", "L['flag']", f"L['flag'] is {size != 16}")) for size in (16, 18))
    p.compile(guards=old, signature="self: Net, x: Tensor float32[16, 4] cpu, flag: bool False", reason="first call")
    p.compile([dict(guard=1, kind="TENSOR_MATCH", source="L['x']", expected="size[0] = 16", actual="size[0] = 18"),
               dict(guard=2, source="L['flag']", expected="False", actual="True", how="rechecked")],
              guards=new, signature="self: Net, x: Tensor float32[18, 4] cpu, flag: bool True", reason="no entry fitted")
    for i in range(3):
        p.call("hit", 2)
    p.die(1, "reset")
    p.insert("graph_break", graph_break_id=1, compile_id=2, code_id=1, line=14, offset=8, reason="call of print()",
             user_stack="net.py:14 forward\nnet.py:90 main", resume_code_id=2)
    p.insert("graph", graph_id=1, compile_id=2, name="__compiled_fn_1", node_count=2)
    p.insert("graph_node", graph_id=1, ordinal=0, opcode="placeholder", name="x", target="x", args="()", kwargs="{}")
    p.insert("graph_node", graph_id=1, ordinal=1, opcode="call_function", name="add", target="operator.add", args="(x, 1)",
             kwargs="{'out': None}")
    for kind in ("modified_bytecode", "original_bytecode", "guards"):
        p.insert("listing", compile_id=2, kind=kind, text=f"  0 RESUME\n  2 {kind.upper()}\n")
    return p.done()


def test_pages_of_why_and_show_are_the_golden_pages(run, plant):
    path = rich(plant)
    for command in ("why", "show"):
        done = run(command, "Net.forward", path)
        assert (done.returncode, done.stderr) == (0, "")
        golden(command, done.stdout.replace(str(path), "t.db"))
    p = plant()
    size_changes(p)
    path = p.done()
    golden("why-f", run("why", "f", path).stdout.replace(str(path), "t.db"))
    golden("why-json", run("why", "f", path.name, "--json").stdout)


def test_the_sql_printed_by_why_gives_the_same_answers(run, plant):
    p = plant()
    size_changes(p)
    path = p.done()
    found = json.loads(run("why", "f", path, "--json", "--sql").stdout)
    assert len(found["sql"]) >= 7
    page = run("why", "f", path).stdout
    texts = [f"-- {query['title']}\n{query['sql'].strip()}\n;\n" for query in found["sql"]]
    assert run("why", "f", path, "--sql").stdout == page + "\nSQL\n" + "".join(texts)
    db = sqlite3.connect(path)
    rows = {query["title"]: db.execute(query["sql"]).fetchall() for query in found["sql"]}
    grouped = rows["how its calls were decided, hits by entry"]
    assert sum(row[2] for row in grouped) == sum(row["calls"] for row in found["calls"]) == 16
    checks = rows["checks of the entries' guards: number, failed guard, time"]
    assert sum(row[3] for row in checks) == found["guards"]["checks"]
    assert sum(row[4] for row in checks) == found["guards"]["check_ns"]
    assert sorted(row[3] for row in checks if row[1] == "fail") == sorted(row["times"] for row in found["failed_guards"])


def test_show_prints_one_compile_by_its_label(run, plant):
    path = rich(plant)
    text = run("show", "0/0", path).stdout
    assert "compile 0/0" in text and "compile 0/1" not in text
    found = json.loads(run("show", "0/1", path, "--json").stdout)
    one, = found["compiles"]
    assert [guard["kind"] for guard in one["guards"]] == ["TYPE_MATCH", "TENSOR_MATCH", "TRUE_MATCH"]
    assert [listing["kind"] for listing in one["listings"]] == ["original_bytecode", "modified_bytecode", "guards"]
    assert one["graphs"][0]["nodes"][1]["target"] == "operator.add" and one["graph_breaks"][0]["line"] == 14
    assert "never compiled" in run("show", "main", path).stdout


# ---- which function --------------------------------------------------------

@pytest.fixture
def crowd(tmp_path, plant):
    p = plant("Net.forward", "/src/app/net.py", 12)
    p.compile()
    for code_id, (qualname, filename, line, kind) in enumerate([
            ("Other.forward", "/src/app/net.py", 40, "function"), ("make.<locals>.inner", "/src/app/net.py", 60, "function"),
            ("Net.forward", "/src/app/net.py", 12, "compiled"), ("forward", "/src/lib/net.py", 5, "function")], 10):
        p.insert("code", code_id=code_id, process_id=1, filename=filename, qualname=qualname, first_line=line, kind=kind)
    return p.done()


@pytest.mark.parametrize("name, found", [
    ("Net.forward", "Net.forward"), ("forward", "forward"), ("inner", "make.<locals>.inner"), ("app/net.py:40", "Other.forward"),
    ("/src/app/net.py:12", "Net.forward"), ("app/net.py:45", "Other.forward"), ("Oth*", "Other.forward"), ("*inner", "make.<locals>.inner"),
    ("0/0", "Net.forward"), ("main", "main"),
])
def test_names_and_patterns_find_one_function(run, crowd, name, found):
    assert json.loads(run("why", name, crowd, "--json").stdout)["function"]["qualname"] == found
    assert json.loads(run("show", crowd, name, "--json").stdout)["function"]["qualname"] == found


def test_a_function_is_found_by_file_line_and_name(run, plant):
    p = plant("f", "/src/app/net.py", 12)
    for k in range(3):
        p.compile([dict()] * bool(k))
    for code_id, name, line in (10, "g", 12), (11, "f", 40):  # neither the name nor the line names f
        p.insert("code", code_id=code_id, process_id=1, filename="/src/app/net.py", qualname=name, first_line=line, kind="function")
    path = p.done()
    done = run("why", "net.py:12", path)
    assert done.returncode == 1 and "by FILE:LINE or by FILE:LINE:NAME" in done.stdout
    for name in "net.py:12:f", "/src/app/net.py:12:f", "app/net.py:12:f":
        assert json.loads(run("why", name, path, "--json").stdout)["function"]["qualname"] == "f"
    assert run("why", "et.py:12:f", path).returncode == 2
    ask, = re.findall(r"dyntrace why (\S+)", run("report", path).stdout)
    assert ask == "/src/app/net.py:12:f" and run("why", ask, path).returncode == 0


def test_an_ambiguous_name_lists_the_functions(run, crowd):
    for command in ("why", "show"):
        done = run(command, "*forward", crowd)
        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout.splitlines()[2:] == ["calls\tcompiles\tentries\tfunction\tkind\twhere",
                                                "1\t1\t1\tNet.forward\tfunction\t/src/app/net.py:12",
                                                "\t0\t0\tOther.forward\tfunction\t/src/app/net.py:40",
                                                "\t0\t0\tforward\tfunction\t/src/lib/net.py:5"]
        found = json.loads(run(command, "*forward", crowd, "--json").stdout)
        assert [row["function"] for row in found["matches"]] == ["Net.forward", "Other.forward", "forward"]


def test_an_unknown_name_gets_suggestions(run, crowd):
    for name, near in (("Net.forwrad", "Net.forward"), ("iner", "make.<locals>.inner"), ("FORWARD", "forward")):
        done = run("why", name, crowd)
        assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
        assert near in done.stderr.partition("did you mean ")[2]
    done = run("why", "zzzzzzzz", crowd)
    assert done.returncode == 2 and "did you mean" not in done.stderr


def test_the_same_function_in_several_processes_is_one(run, plant):
    p = plant()
    p.compile()
    p.insert("process", process_id=2, pid=200)
    p.insert("code", code_id=20, process_id=2, filename="/src/app.py", qualname="f", first_line=10, kind="function")
    p.insert("code_total", code_id=20, calls=4, total_ns=5, self_ns=5, raised=0)
    path = p.done()
    text = run("why", "f", path).stdout
    assert "2 code objects in 2 processes" in text and "5 calls" in text


def test_recompiles_for_one_cause_are_counted_over_all_processes(run, plant):
    p = plant()
    p.insert("process", process_id=2, pid=200)
    p.insert("code", code_id=20, process_id=2, filename="/src/app.py", qualname="f", first_line=10, kind="function")
    size_changes(p)
    older, p.entries = len(p.entries), []
    compiles = p.ids["compile"]
    size_changes(p)
    p.db.execute("UPDATE compile SET code_id = 20 WHERE compile_id > ?", (compiles,))
    p.db.execute("UPDATE cache_entry SET code_id = 20 WHERE cache_entry_id > ?", (older,))
    p.db.execute("UPDATE lookup SET code_id = 20 WHERE lookup_id > (SELECT MAX(lookup_id) / 2 FROM lookup)")
    path = p.done()
    text = run("why", "f", path).stdout
    all_, = re.findall(r"\((\d+) recompiles\)", text)
    assert int(all_) > 1 and f"[decided {all_} recompiles" in text and len(re.findall("decided", text)) == 1
    assert f", {all_} recompiles" in text  # the remedy's reason
    each = [h["recompiles"] for h in json.loads(run("why", "f", path, "--json").stdout)["histories"]]
    assert len(each) == 2 and sum(each) == int(all_)


# ---- bad input -------------------------------------------------------------

def test_all_code_objects_of_a_function_are_counted(run, plant):
    p = plant()
    for code_id in range(1000, 7000):
        p.insert("code", code_id=code_id, process_id=1, filename="/src/app.py", qualname="f", first_line=10, kind="function")
        p.insert("code_total", code_id=code_id, calls=1, total_ns=1, self_ns=1, raised=0)
    p.compile()
    for name in "compile", "cache_entry", "lookup":
        p.db.execute(f"UPDATE {name} SET code_id = 6999")
    path = p.done(more=-1)
    done = run("why", "f", path)
    assert "6001 code objects" in done.stdout and "6000 calls, 1 that wanted compiled code" in done.stdout and "1 compile" in done.stdout
    assert len(json.loads(run("why", "f", path, "--json").stdout)["function"]["code_ids"]) == 6001
    assert run("check", path, "--require-compiled", "f").returncode == 0


def test_all_compiles_of_a_function_are_counted(run, plant):
    p = plant()
    p.compile()
    for _ in range(11_000):
        p.compile(outcome="error", reason="ValueError: no")
    done = run("why", "f", p.done())
    assert "1 compile (0 recompiles) and 11000 attempts that gave no code" in done.stdout
    assert "because: 11000 calls: the compiler raised" in done.stdout and "10995 more; --json has them all" in done.stdout


def test_hostile_texts_reach_neither_terminal_nor_json(run, plant):
    p = plant(EVIL, "/src/\x1b]0;title\x07.py")
    p.compile(guards=((EVIL, EVIL, EVIL),), signature=EVIL, backend=EVIL, reason=EVIL)
    p.compile([dict(kind=EVIL, source=EVIL, expected=EVIL, actual=EVIL + "2", text=EVIL),
               dict(kind="TENSOR_MATCH", source=EVIL, expected="(" + "9" * 5000, actual="size[" + "9" * 5000),
               dict(kind="LAMBDA", source=None, text=EVIL)])
    p.die(1, EVIL)
    p.insert("graph_break", graph_break_id=1, compile_id=2, code_id=1, line=1, reason=EVIL, user_stack=EVIL)
    p.insert("graph", graph_id=1, compile_id=2, name=EVIL, node_count=1)
    p.insert("graph_node", graph_id=1, ordinal=0, opcode=EVIL, name=EVIL, target=EVIL, args=EVIL, kwargs=EVIL)
    p.insert("listing", compile_id=2, kind=EVIL, text=EVIL)
    p.db.execute("UPDATE cache_entry SET label = ?, death_cause = CAST(x'ff00fe' AS TEXT) WHERE cache_entry_id = 2", (EVIL,))
    p.db.execute("INSERT INTO recompile_cause VALUES (2, 1, 9, 1, x'00ff', x'1b', 'a%s', -9, x'1b5b', 7.5, x'ff', 'observed')")
    path = p.done()
    for argv in (["why", "app*"], ["why", "*"], ["why", "*evil*"], ["why", "*evil*", "--sql"], ["show", "*evil*"], ["show", "*evil*", "--full"]):
        done = run(*argv, path, text=False)
        assert done.returncode in (0, 1, 2), argv
        text = (done.stdout + done.stderr).decode()
        assert all(c == "\n" or c == "\t" and "\t0\t0\t" or c >= " " for c in text) and not set(text) & set("\x7f\x9b\u202e"), argv
        assert len(text) < 60000 or "--full" in argv or argv[1] == "*"
        if argv[0] == "show" or argv[1] == "*evil*":
            assert done.returncode == 0
    for command in ("why", "show"):
        text = run(command, "*evil*", path, "--json").stdout
        assert json.loads(text)["function"]["qualname"] == EVIL
        assert "\x1b" not in text and "\u202e" not in text


def test_a_long_history_stays_on_one_screen(run, plant):
    p = plant()
    p.sequence("EQUALS_MATCH", "L['n']", list(range(100)))
    path = p.done()
    text = run("why", "f", path).stdout
    assert text.count("\n") < 50 and "94 more; --json has them all" in text and max(map(len, text.splitlines())) < 500
    found = json.loads(run("why", "f", path, "--json").stdout)
    assert found["histories"][0]["values"] == [str(i) for i in range(100)] and found["recompiles"] == 99
    assert "(10 of 100 compiles" in run("show", "f", path).stdout
    assert run("show", "f", path, "--full").stdout.count("\ncompile ") == 100


# ---- what would come of a remedy -------------------------------------------

def remedy(found, key):
    return next(one for one in found["remedies"] if (one["what_if"] or "").startswith(key))


def test_remedies_have_what_if_figures(run, plant):
    p = plant()
    size_changes(p)
    path = p.done()
    page = run("why", "f", path).stdout
    assert "     exact (what-if dynamic=L['x'][0]): 1 compile instead of 4, 0 eager calls instead of 7\n" in page
    found = json.loads(run("why", "f", path, "--json").stdout)
    limit = remedy(found, "recompile_limit") # that a fifth compile would give code is not known
    assert (limit["status"], limit["compiles"], limit["predicted_compiles"]) == ("not measured", None, None)
    assert f"     not measured: dyntrace try {path} f limit=5\n" in page
    for key in ("dynamic",): # replay says the same
        one = remedy(found, key)
        assert one["status"] == "exact"
        asked = json.loads(run("replay", path, "--what-if", one["what_if"], "--function", "f", "--json").stdout)["functions"][0]
        assert (one["compiles"], one["eager"]) == (asked["recorded"]["compiles"], asked["recorded"]["eager"]) == (4, 7)
        assert (one["predicted_compiles"], one["predicted_eager"]) == (asked["predicted"]["compiles"], asked["predicted"]["eager"])


LIMITED = """
import os
import dyntrace.config
from dyntrace.eval_frame import set_eval_frame
from dyntrace.guards import EQUALS_MATCH, GuardTree, L
from dyntrace.types import GuardedCode
dyntrace.config.recompile_limit = 2
def f(x): return x
def compiler(frame, entry, state):
    if frame.f_code is f.__code__:
        return GuardedCode(f.__code__.replace(), GuardTree([EQUALS_MATCH(L["x"])], example=frame.f_locals))
for rank in range(3):
    if os.fork() == 0:
        set_eval_frame(compiler)
        for x in range(5): f(x); f(x)
        os._exit(0)
    os.wait()
"""


@pytest.mark.parametrize("values, limit", [("all", 5), ("off", 8)])
def test_the_advised_recompile_limit_is_for_one_process(run, record, values, limit):
    """Each of three processes has 5 inputs: 2 compiles, and 6 calls that the limit lets run as Python."""
    path = record(["-c", LIMITED], "--values", values).path
    found = json.loads(run("why", "f", path, "--json").stdout)
    assert len(found["compiles"]) == 6
    assert remedy(found, "recompile_limit")["what_if"] == f"recompile_limit={limit}"
    assert values == "off" or "Raise recompile_limit to 5 at most" in run("why", "f", path).stdout


def test_what_if_figures_are_for_one_function(run, plant):
    """Another function has the same source; its figures must not be printed."""
    p = plant()
    size_changes(p)
    p.insert("code", code_id=3, process_id=1, filename="/src/app.py", qualname="g", first_line=50, kind="function")
    p.insert("compile", compile_id=50, code_id=3, thread_id=1, label="1/0", start_ns=p.now, end_ns=p.now + 1, outcome="compiled",
             cache_entry_id=50)
    p.insert("cache_entry", cache_entry_id=50, code_id=3, compile_id=50, label="1/0", guard_count=0, born_ns=p.now)
    p.insert("lookup", lookup_id=90, thread_id=1, code_id=3, start_ns=p.now + MS, duration_ns=5, outcome=2, cache_entry_id=50)
    found = json.loads(run("why", "f", p.done(), "--json").stdout)
    assert (remedy(found, "dynamic")["compiles"], remedy(found, "dynamic")["predicted_compiles"]) == (4, 1)


def test_the_remedy_of_dropping_a_guard_has_a_what_if_figure(run, plant):
    p = plant()
    p.sequence("TENSOR_MATCH", "L['x'].dtype", ["torch.float32", "torch.float64", "torch.int8"])
    path = p.done()
    page, found = run("why", "f", path).stdout, json.loads(run("why", "f", path, "--json").stdout)
    assert f"     exact (what-if drop_guard={p.entries[1][2][0]}): 1 compile instead of 3\n" in page
    assert remedy(found, "drop_guard")["predicted_compiles"] == 1


def test_a_remedy_with_another_effect_has_no_what_if_figure(run, plant):
    """Hoisting a value has another effect than dropping the guard on it."""
    p = plant()
    p.sequence("EQUALS_MATCH", "L['n']", ["'a'", "'b'", "'c'"], signatures="n: str %s")
    path = p.done()
    page, found = run("why", "f", path).stdout, json.loads(run("why", "f", path, "--json").stdout)
    one = found["remedies"][0]
    assert (one["name"], one["status"], one["what_if"], one["compiles"]) == ("one value", "not measured", None, None)
    assert "     not measured: it needs an edit of the program\n" in page and "no gain" not in page


def test_undecided_calls_are_printed(run, plant):
    p = plant()
    p.sequence("EQUALS_MATCH", "L['n']", [1, 2]) # nothing is known of the inputs
    for i in range(3):
        p.call("limit")
    path = p.done()
    page, found = run("why", "f", path).stdout, json.loads(run("why", "f", path, "--json").stdout)
    limit = remedy(found, "recompile_limit")
    assert limit["undecided"] > 0 and (limit["status"], limit["predicted_eager"]) == ("not measured", None)
    assert "no gain" not in page and " instead of " not in page


def test_a_long_trace_gets_no_what_if_figures(run, plant):
    p = plant()
    size_changes(p)
    p.db.execute("UPDATE lookup SET lookup_id = lookup_id + 300000")
    p.db.execute("UPDATE guard_check SET lookup_id = lookup_id + 300000")
    path = p.done()
    page = run("why", "f", path).stdout
    line, = [line for line in page.splitlines() if "dynamic=L" in line and "dyntrace replay" in line]
    command = line.partition("long: dyntrace ")[2].partition(", or why --what-if")[0]
    asked = subprocess.run(["sh", "-c", f'"$0" {command}', os.environ.get("DYNTRACE") or str(ROOT / "build/dyntrace")],
                           capture_output=True, text=True, timeout=60)
    assert (asked.returncode, asked.stderr) == (0, "") and "What if dynamic=L['x'][0]?" in asked.stdout
    assert remedy(json.loads(run("why", "f", path, "--json").stdout), "dynamic")["predicted_compiles"] is None
    assert "1 compile instead of 4" in run("why", "f", path, "--what-if").stdout


# ---- what a recompile follows from -----------------------------------------

def cascade(p, frames=True, same=True, origin=1):
    """f is called three times and compiled for 16, 18 and 20; each time it calls rest(), as does main, without f."""
    p.insert("code", code_id=3, process_id=1, filename="/src/app.py", qualname="rest", first_line=14, kind="resume", origin_code_id=origin)
    p.sequence("TENSOR_MATCH", "L['x']", [16, 18, 20], "size[0] = %d")
    p.db.execute("DELETE FROM compile WHERE compile_id > 3")
    for i in range(3):
        start, value = (i + 1) * 2 * MS, [16, 18, 20][i]
        if frames:
            p.insert("frame", frame_id=10 * i + 1, thread_id=1, code_id=2, start_ns=start, end_ns=start + MS, kind=0, outcome=0)
            p.insert("frame", frame_id=10 * i + 2, thread_id=1, parent_id=10 * i + 1, code_id=1, start_ns=start, end_ns=start + MS, kind=0, outcome=2)
            p.insert("frame", frame_id=10 * i + 3, thread_id=1, parent_id=10 * i + 2, code_id=3, start_ns=start + 9, end_ns=start + MS, kind=0, outcome=2)
        p.db.execute("UPDATE compile SET frame_id = ?, start_ns = ?, end_ns = ? WHERE compile_id = ?", (10 * i + 2, start, start + 5, i + 1))
        p.db.execute("UPDATE lookup SET start_ns = ? WHERE lookup_id = ?", (start, i + 1))
        p.insert("compile", compile_id=11 + i, frame_id=10 * i + 3, code_id=3, thread_id=1, label=f"1/{i}", start_ns=start + 9,
                 end_ns=start + 20, outcome="compiled", cache_entry_id=11 + i)
        p.insert("cache_entry", cache_entry_id=11 + i, code_id=3, compile_id=11 + i, label=f"1/{i}", born_ns=start + 20, guard_count=1)
        if i:
            was = [16, 18][i - 1]
            p.insert("recompile_cause", compile_id=11 + i, cache_entry_id=10 + i, ordinal=0, kind="TENSOR_MATCH", source="L['y']",
                     aspect="size", dimension=0, expected=f"size[0] = {was if same else 7}", actual=f"size[0] = {value if same else 9}", how="observed")
    return p


def follows(run, path):
    page, found = run("why", "rest", path).stdout, json.loads(run("why", "rest", path, "--json").stdout)
    told = [one["follows_from"] for one in found["compiles"]]
    assert page.count("follows from") == sum(one is not None for one in told)
    return page, told


@pytest.mark.parametrize("frames", [True, False])
def test_a_recompile_that_another_recompile_caused_names_that_one(run, plant, frames):
    page, told = follows(run, cascade(plant(), frames).done())
    assert told[0] is None
    assert told[2] == {"compile_id": 3, "function": "f", "label": "0/2", "source": "L['x'] size[0]", "expected": "18", "actual": "20"}
    assert "         follows from: f 0/1 (x size[0]: expected 16, actual 18)\n" in page


@pytest.mark.parametrize("frames", [True, False])
def test_recompiles_with_different_causes_are_not_reported_as_a_chain(run, plant, frames):
    assert follows(run, cascade(plant(), frames, same=False).done())[1] == [None] * 3


def test_recompiles_in_different_calls_are_not_reported_as_a_chain(run, plant):
    p = cascade(plant())
    p.db.execute("UPDATE frame_rows SET parent_id = frame_id - 2 WHERE code_id = 3") # main calls it itself
    assert follows(run, p.done())[1] == [None] * 3
    p = cascade(plant(), frames=False)
    p.insert("lookup", lookup_id=70, thread_id=1, code_id=1, start_ns=4 * MS + 7, duration_ns=1, outcome=1) # f was called again
    assert [one and one["label"] for one in follows(run, p.done())[1]] == [None, None, "0/2"]


# ---- slow guards, functions without calls ----------------------------------

def guarded(p, calls=20, check_ns=5000, call_ns=20000):
    p.compile(guards=(("TENSOR_MATCH", "L['x']", "x"), ("TENSOR_MATCH", "L['y']", "y"), ("GLOBAL_STATE", "", "state")))
    for i in range(calls):
        p.call("hit", 1)
    path = p.done()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE guard_check SET duration_ns = ?", (check_ns,))
        db.execute("UPDATE lookup SET duration_ns = ?", (check_ns,))
        db.execute("UPDATE code_total SET total_ns = (SELECT end_ns - start_ns FROM compile) + ? WHERE code_id = 1", (calls * call_ns,))
    return path


def test_slow_guards_are_named_with_their_cost(run, plant):
    path = guarded(plant())
    page, found = run("why", "f", path).stdout, json.loads(run("why", "f", path, "--json").stdout)
    assert "\nGuards: slow\n  20 checks took 100 us, 5 us each; 4.76 us a call, 25 % of the time in the function, compiles left aside\n" in page
    assert "  2 guards of kind TENSOR_MATCH: some 66.7 us, 67 % of that\n  1 guard of kind GLOBAL_STATE: some 33.3 us, 33 % of that\n" in page
    assert (found["guards"]["slow"], found["guards"]["share_percent"], found["guards"]["calls"]) == (True, 25, 21)
    assert [(one["kind"], one["guards"]) for one in found["guard_costs"]] == [("TENSOR_MATCH", 2), ("GLOBAL_STATE", 1)]
    one, = found["remedies"]
    assert one["name"] == "fewer guards" and one["text"].startswith("Guards take 25 % of the calls of f: ")


def test_the_time_share_of_guards_is_measured_on_cache_hits(run, plant):
    """The first call took long, as first calls do. The other calls show the guards' share."""
    path = guarded(plant(), call_ns=10 ** 9)
    with frame_rows(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO frame_rows(frame_id, thread_id, code_id, kind, outcome, start_ns, end_ns)"
                   " SELECT frame_id, 1, 1, 0, outcome, start_ns, start_ns + CASE outcome WHEN 1 THEN 10000 ELSE 1000000000 END FROM lookup")
        db.execute("INSERT OR REPLACE INTO meta VALUES ('frame_count', 21)")
    page, found = run("why", "f", path).stdout, json.loads(run("why", "f", path, "--json").stdout)
    assert "\nGuards: slow\n" in page and "; 4.76 us a call, 50 % of a call that hits, with the lookup\n" in page and found["guards"]["share_percent"] == 50


@pytest.mark.parametrize("less", [{"calls": 5}, {"check_ns": 900, "call_ns": 2000}, {"call_ns": 60000}])
def test_guards_that_are_not_slow_are_not_listed(run, plant, less):
    path = guarded(plant(), **less)
    found = json.loads(run("why", "f", path, "--json").stdout)
    assert found["guards"]["slow"] is False and found["remedies"] == [] and found["guard_costs"] == []
    assert "\nGuards\n" in run("why", "f", path).stdout


def test_a_function_that_was_never_called_is_explained(run, plant):
    path = plant().done()
    page, found = run("why", "f", path).stdout, json.loads(run("why", "f", path, "--json").stdout)
    assert page.splitlines()[1] == "0 calls: it is known, but was never called while this was recorded"
    assert (found["call_count"], found["calls"], found["remedies"]) == (0, [], [])


def test_losses_are_printed_first(run, plant):
    p = plant()
    p.insert("loss", process_id=1, at_ns=1, events=5, cause="ring full")
    assert "LOSS" in run("why", "f", p.done()).stdout.splitlines()[2]


def test_bad_usage_gives_a_one_line_error_and_status_2(run, plant):
    path = plant().done()
    for command in ("why", "show"):
        nameless = [[]] if command == "show" else []  # `why` without a name says what to look at
        for argv in (*nameless, [""], ["f", path, "x"], ["f", path, "--nonsense"], ["f", "none.db"], ["nothing-like-it", path]):
            done = run(command, *argv)
            assert done.returncode == 2 and done.stdout == "" and done.stderr.startswith("dyntrace: "), argv
            assert done.stderr.count("\n") == 1
        assert run(command, "--help").stdout.startswith(f"usage: dyntrace {command}")


def test_a_trace_without_a_needed_table_is_refused(run, plant):
    for change in ("DROP TABLE lookup", "DROP TABLE recompile_cause; CREATE VIEW recompile_cause AS SELECT 1"):
        p = plant()
        p.db.executescript("".join(f"DROP VIEW {name[0]};" for name in p.db.execute("SELECT name FROM sqlite_master WHERE type = 'view'")))
        p.db.executescript(change)
        done = run("why", "f", p.done())
        said = "in the place of the table recompile_cause" if "VIEW" in change else "has no table"
        assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


def test_an_empty_trace_has_no_such_function(run, tmp_path):
    sqlite3.connect(tmp_path / "e.db").executescript(SCHEMA)
    done = run("why", "f", "e.db")
    assert done.returncode == 2 and "no such function" in done.stderr


# ---- the named queries -----------------------------------------------------

def test_named_queries_answer_about_decisions(run, plant):
    p = plant()
    size_changes(p)
    p.die(1, "reset")
    path = p.done()

    def rows(name):
        return json.loads(run("sql", path, name, "--json").stdout)
    cause, = rows("recompile-causes")
    assert (cause["source"], cause["recompiles"], cause["decided"], cause["wanted"]) == ("L['x']", 3, 3, "size[0] = 16")
    assert [(row["calls"], row["outcome"]) for row in rows("eager-calls")] == [(7, "limit")]
    outcomes, = rows("call-outcomes")
    assert (outcomes["lookups"], outcomes["hit"], outcomes["compiled"], outcomes["at_limit"]) == (16, 5, 4, 7)
    assert [row["label"] for row in rows("cache-entries")][-1] == "0/3" and rows("cache-entries")[0]["death_cause"] == "reset"
    assert rows("failing-guards")[0]["times"] == 10 and rows("guard-bill")[0]["checks"] == 12
    assert [row["label"] for row in rows("compiles")] == ["0/0", "0/1", "0/2", "0/3"]
    assert [(row["label"], row["later_compiles"]) for row in rows("dead-entries")] == [("0/0", 0)]


def test_why_prints_the_same_shares_as_other_commands(run, plant):
    """why counts like the views: plain calls are in no share, and calls and recompiles belong to their process."""
    p = plant()
    size_changes(p)
    p.db.execute("UPDATE lookup SET outcome = 0 WHERE lookup_id = (SELECT MAX(lookup_id) FROM lookup)")
    path = p.done()
    asked = run("sql", path, "SELECT SUM(counted) AS calls, SUM(counted AND is_hit) AS hits, SUM(counted AND missed) AS misses,"
                " SUM(counted AND ran_as_python) AS ran_as_python FROM calls WHERE qualname = 'f'", "--json")
    found = json.loads(run("why", "f", path, "--json").stdout)
    assert found["shares"] == json.loads(asked.stdout)[0]
    assert found["shares"]["calls"] == found["call_count"] - 1
    asked = run("sql", path, "SELECT COUNT(*) AS n FROM recompiles WHERE qualname = 'f'", "--json")
    assert found["recompiles"] == json.loads(asked.stdout)[0]["n"] == 3


def test_without_a_function_why_says_what_to_look_at_first(run, plant, tmp_path):
    """It prints the functions to look at first, with the numbers of `why FUNC` and of `report`."""
    from planted import make_trace
    p = plant()
    size_changes(p)
    p.insert("code", code_id=7, process_id=1, filename="/src/app.py", qualname="g", first_line=30, kind="function")
    one = p.done()
    with sqlite3.connect(one) as db:
        db.execute("INSERT INTO lookup(lookup_id, thread_id, code_id, start_ns, duration_ns, outcome) VALUES (900, 1, 7, 1, 1, 5)")
        db.execute("INSERT INTO graph_break(graph_break_id, compile_id, code_id, line, reason) VALUES (1, 2, 1, 12, 'print')")
    db.close()
    done = run("why", one)
    assert (done.returncode, done.stderr) == (0, "")
    time, found = done.stdout.split("\n\n")
    assert time == "time not known: 2 ms compiling, compiling to the end" and found.startswith("What to look at first\n1. f was compiled again 3 times, most often for x; 7 of 16 calls ran as Python")
    assert f"dyntrace why f {one}\n2. g: 1 of 1 call ran as Python since 0.000 s" in found and f"   dyntrace why g {one}\n" in found
    json_of = {f["qualname"]: f for f in json.loads(run("why", one, "--json").stdout)["findings"]}
    why = json.loads(run("why", "f", one, "--json").stdout)
    assert json_of["f"]["recompiles"] == why["recompiles"] == 3 and json_of["f"]["eager"] == why["shares"]["ran_as_python"]
    assert json_of["f"]["calls"] == why["shares"]["calls"] and (json_of["g"]["eager"], json_of["g"]["calls"]) == (1, 1)
    assert run("report", one).stdout.startswith(done.stdout)
    assert json.loads(run("report", one, "--json").stdout)["findings"] == list(json_of.values())
    assert run("why", cwd=one.parent, env={**os.environ, "HOME": "/"}).stdout.count("dyntrace why f\n") == 1
    assert run("show", one).stdout.startswith("What to ask, the worst first")
    none = make_trace(tmp_path / "none.db", rows="")
    done = run("why", none)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.endswith("Nothing stands out.\n")
    assert json.loads(run("why", none, "--json").stdout)["findings"] == []
    assert "no such function" in run("why", "not-there.db", cwd=tmp_path).stderr


def test_an_unknown_label_is_an_error(run, plant):
    p = plant()
    size_changes(p)
    path = p.done()
    done = run("why", "99/99", path)
    assert done.returncode == 2 and done.stderr.startswith("dyntrace: 99/99: no compile or cache entry has this label in ")
    assert "no such function" in run("why", "a/b", path).stderr


def test_a_name_too_long_for_a_pattern_of_sqlite_is_not_found(run, record):
    """SQLite takes no pattern of over 1000 bytes."""
    done = run("why", "f[" + "x" * 2000, record(["-c", "pass"]).path)
    assert done.returncode == 2 and ": no such function in " in done.stderr and done.stderr.count("\n") == 1, done


def test_findings_say_that_the_compiler_gave_no_code(record, run):
    code = """
from dyntrace.eval_frame import set_eval_frame
def f(n): return n
def compiler(frame, entry, state): return None
set_eval_frame(compiler)
for n in range(5): f(n)
set_eval_frame(None)
"""
    trace = record(["-c", code]).path
    found = run("why", trace).stdout
    assert re.search(r"f: 5 of 5 calls ran as Python since \d\S* s, as the compiler gave no code for it\n", found)
    assert "\tcompiler gave no code\tf\t" in run("report", trace).stdout
    # a moment of the run, which began after the recording did
    with sqlite3.connect(trace) as db:
        db.execute("UPDATE lookup SET start_ns = start_ns + 5000000000")
        db.execute("UPDATE compile SET start_ns = start_ns + 4000000000, end_ns = end_ns + 4000000000")
        db.execute("UPDATE process SET start_ns = 4000000000, end_ns = end_ns + 4000000000")
    (steady,) = re.findall(r"steady since ([\d.]+) (m?)s", run("why", trace).stdout.splitlines()[0])
    assert float(steady[0]) < 4 or steady[1]
