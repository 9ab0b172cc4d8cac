"""`why`, `show` and `report` on recordings of torch programs, with rows like those of real recordings. No torch is
needed: sqlite3 makes the traces from schemas/*.sql. Real programs are in tests/with_torch/test_answers.py."""
import json
import re
import sqlite3

import pytest

from planted import EVIL, MS
from planted_torch import BREAKS, CAUSES, PRINT, SKIPS, Torch


@pytest.fixture
def torch(tmp_path):
    count = 0

    def torch(*argv, **rest):
        nonlocal count
        count += 1
        return Torch(tmp_path / f"t{count}.db", *argv, **rest)
    return torch


@pytest.fixture
def why(run):
    """why(trace) -> (page, what --json says)"""
    def why(path, name="f"):
        done = run("why", name, path)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout, json.loads(run("why", name, path, "--json").stdout)
    return why


# ---- causes ----------------------------------------------------------------


@pytest.mark.parametrize("mode", ["shim", "observe"])
@pytest.mark.parametrize("kind, source, values, text, name, words", CAUSES, ids=[f"{c[0]} {c[1]}" for c in CAUSES])
def test_causes_are_printed_with_their_remedies(torch, why, mode, kind, source, values, text, name, words):
    p = torch(mode=mode)
    for i, value in enumerate(values):
        p.compile([dict(entry=j, kind=kind, source=source, expected=str(older), actual=str(value), text=text)
                   for j, older in enumerate(values[:i])], guards=((kind, source, "?"),))
    if p.observe:
        p.db.execute("UPDATE recompile_cause SET how = 're-checked'")
    page, found = why(p.done())
    assert found["remedies"][0]["name"] == name, found["remedies"]
    assert all(word in found["remedies"][0]["text"] for word in words), found["remedies"][0]["text"]
    assert "{" not in found["remedies"][0]["text"].replace("{0}", "") and "as Python" not in page
    assert all(cause["decided"] for cause in found["causes"]) and found["histories"][0]["recompiles"] == len(values) - 1
    assert ("found when checked again" in page) == p.observe and ("re-checked" in page) == p.observe


def needed(p, line, guards="TRUE"):
    """Say that the guards which fulfil the SQL condition GUARDS are needed by LINE."""
    p.db.execute(f"UPDATE guard SET user_stack = ? WHERE {guards}", (f'File "/src/app.py", line 12, in f\n    {line}',))


@pytest.mark.parametrize("kind, source, values, line, name, words", [
    ("EQUALS_MATCH", "G['made']", [0, 1, 2], "made += 1", "count outside", ["Change the global made outside of f (made += 1)"]),
    ("EQUALS_MATCH", "G['made']", [0, 1, 2], "y = x * made", "move into a tensor", ["Set the global made once"]),
    ("EQUALS_MATCH", "L['text']", ["'a'", "'b'"], "ids = torch.tensor(list(text.encode()))", "text", ["Make the tensor of text before the call of f"]),
    ("EQUALS_MATCH", "L['mode']", ["'a'", "'b'"], "if mode == 'a':", "one value", []),
    ("EQUALS_MATCH", "L['text']", ["'a'", "'b'"], "ids = tokens(text)", "text", []),
    ("EQUALS_MATCH", "L['name']", ["'a'", "'b'"], "state[name] = x.sum()", "store outside", ["Return from f what it stores under name"]),
    ("EQUALS_MATCH", "L['name']", ["'a'", "'b'"], "x = state[name]", "one value", []),
    ("EQUALS_MATCH", "L['self'].theta", [1.5, 2.5], "x = x + TABLES[self.theta]", "looked up", ["Look up what is under self.theta"]),
    ("EQUALS_MATCH", "L['self'].theta", [1.5, 2.5], "x = x + self.theta", "move into a tensor", []),
])
def test_a_remedy_depends_on_the_line_that_needs_the_guard(torch, why, kind, source, values, line, name, words):
    p = torch()
    p.sequence(kind, source, values)
    needed(p, line)
    _, found = why(p.done())
    assert found["remedies"][0]["name"] == name
    assert all(word in found["remedies"][0]["text"] for word in words), found["remedies"][0]["text"]


def test_a_number_that_slices_a_tensor_gets_a_mask_as_remedy(torch, why):
    for line, name in (("y = x[:top + 8]", "sliced number"), ("for i in range(top, 8)", "constant number"), ("y = x + top", "constant number")):
        p = torch()
        p.sequence("LAMBDA_GUARD", "L['top']", [4, 5, 6], template="L['top'] == %d")
        p.db.execute("UPDATE guard SET expression = 'L[''top''] == ' || (3 + cache_entry_id)")
        p.db.execute("UPDATE recompile_cause SET aspect = 'value', actual = substr(actual, -1), expected = substr(expected, -1)")
        needed(p, line)
        _, found = why(p.done())
        assert found["remedies"][0]["name"] == name, (line, found["remedies"])


@pytest.mark.parametrize("calls, name, words", [
    ([(0.5, 0.25), (0.75, 0.125), (0.3, 0.6)], "several numbers", ["one of them alone spares nothing"]),
    ([(0.5, 0.25), (0.75, 0.25), (0.75, 0.125), (0.3, 0.6)], "move into a tensor", []),
    ([(0.5, 0.25), (0.5, 0.125), (0.75, 0.6)], "move into a tensor", [])])
def test_numbers_that_also_change_alone_get_a_remedy_each(torch, why, calls, name, words):
    """Where one number alone differed from an older entry, a tensor in its place would have spared the compile."""
    p = torch()
    sources = ("L['rate']", "L['bias']")
    for i, call in enumerate(calls):
        p.compile([dict(entry=j, guard=guard, expected=str(older[guard]), actual=str(call[guard]))
                   for j, older in enumerate(calls[:i]) for guard in (0, 1) if older[guard] != call[guard]],
                  guards=[("EQUALS_MATCH", source, "?") for source in sources])
    _, found = why(p.done())
    assert {one["name"] for one in found["remedies"]} == {name}, found["remedies"]
    assert all(word in found["remedies"][0]["text"] for word in words)
    assert len(found["remedies"]) == (1 if name == "several numbers" else 2)


@pytest.mark.parametrize("rate, name, words", [(0.09, "first step and rate", ["self.param_groups[0]['lr'] changed with it"]), (0.1, "first step", [])])
def test_an_optimizers_first_step_before_its_compile_is_advised(torch, why, rate, name, words):
    state, lr = "L['self'].state[list(L['self'].state.keys())[0]]", "L['self'].param_groups[0]['lr']"
    p = torch(qualname="SGD.step")
    guards = (("DICT_LENGTH", state, "?"), ("EQUALS_MATCH", lr, "?"))
    p.compile(guards=guards)
    other = [dict(guard=1, kind="EQUALS_MATCH", source=lr, expected="0.1", actual=str(rate), how="re-checked")] if rate != 0.1 else []
    p.compile([dict(kind="DICT_LENGTH", source=state, expected="0", actual="1"), *other], guards=guards)
    _, found = why(p.done(), "SGD.step")
    assert found["remedies"][0]["name"] == name and "0, 1" in found["remedies"][0]["text"], found["remedies"]
    assert all(word in found["remedies"][0]["text"] for word in words), found["remedies"][0]["text"]


def test_why_lists_a_value_that_occurs_again_only_once(torch, why):
    p = torch()
    for i, value in enumerate(("False", "True", "False", "True")):
        older = [dict(guard=None, kind="GLOBAL_STATE", source="grad_mode", expected="True" if value == "False" else "False", actual=value)]
        p.compile(older if i else [])
    page, found = why(p.done())
    assert found["histories"][0]["values"] == ["False", "True"] and found["histories"][0]["recompiles"] == 3
    assert "ran with grad mode False, True: training" in page


def test_a_cause_takes_its_line_from_another_guard_of_the_same_value(torch, why):
    """torch 2.7 records the line of a guard that is an expression, but not of a guard on a number."""
    p = torch(version="2.7.1")
    guards = (("EQUALS_MATCH", "L['scale']", "?"), ("LAMBDA_GUARD", "L['scale']", "?"))
    p.compile(guards=guards)
    p.compile([dict(kind="EQUALS_MATCH", source="L['scale']", expected="4.0", actual="3.6")], guards=guards)
    p.compile([dict(kind="EQUALS_MATCH", source="L['scale']", expected="4.0", actual="0.8"),
               dict(entry=1, guard=1, kind="LAMBDA_GUARD", source="L['scale']",
                    expected="L['scale'] == ___as_tensor(L['scale']).item() and ___as_tensor(L['scale']).item() > 1.0",
                    text="L['scale'] == ___as_tensor(L['scale']).item() # (unknown var zf0, please file a bug); "
                         "___as_tensor(L['scale']).item() > 1.0 # if scale > 1.0: # src/app.py:12 in f (a.py:1 in b)")], guards=guards)
    p.db.execute("""UPDATE guard SET user_stack = 'File "/src/app.py", line 12, in f' WHERE kind = 'LAMBDA_GUARD'""")
    page, found = why(p.done())
    assert [one["name"] for one in found["remedies"]] == ["branch on a number"], found["remedies"]
    assert "(if scale > 1.0)" in found["remedies"][0]["text"]
    assert "needed by if scale > 1.0, src/app.py:12\n" in page and "expected scale == scale.item() and scale.item() > 1.0 (0/1)" in page, page


def test_an_unknown_guard_is_replaced_by_the_first_recheck_failure(torch, why):
    p = torch()
    p.compile(guards=(("TENSOR_MATCH", "L['obs']", "?"),))
    p.compile([dict(guard=None, text="it did not hold when it was checked"),
               dict(kind="TENSOR_MATCH", source="L['obs'].size()[0]", expected="8", actual="7", how="re-checked"),
               dict(kind="TENSOR_MATCH", source="L['obs'].size()[1]", expected="3", actual="4", how="re-checked")])
    page, found = why(p.done())
    assert [(one["source"], one["recompiles"]) for one in found["histories"]] == [("L['obs'].size()[0]", 1)]
    assert found["remedies"][0]["name"] in ("dynamic shapes", "dynamic dimension") and "found when checked again" in page
    assert [one["decided"] for one in found["causes"]] == [True, False, False]


def test_an_unknown_guard_without_recheck_failure_is_reported(torch, why):
    p = torch()
    p.compile()
    p.compile([dict(guard=None, text="it did not hold when it was checked")])
    _, found = why(p.done())
    assert found["remedies"][0]["name"] == "unknown guard" and found["histories"][0]["recompiles"] == 1


def test_a_nested_tensor_is_dynamic_as_a_whole(torch, why):
    p = torch()
    p.compile()
    p.compile([dict(kind="TENSOR_MATCH", source="L['x'].size()[0]", expected="2", actual="3"),
               dict(kind="TENSOR_MATCH", source="L['x']._offsets.size()[0]", expected="3", actual="4", how="re-checked")])
    _, found = why(p.done())
    assert [one["setting"] for one in found["remedies"]] == ["dynamic=True@f"] and "x is a nested tensor" in found["remedies"][0]["text"]


def test_a_what_if_drops_both_rows_of_an_aliasing_guard(torch, why):
    """torch 2.7 has a row for each of the two objects. The failed row may be either of them."""
    p = torch(version="2.7.1")
    one, other = [("OBJECT_ALIASING", source, "L['one'] is L['other']") for source in ("L['one']", "L['other']")]
    first = p.compile(guards=(one, other))
    second = p.compile([dict(guard=1, kind="OBJECT_ALIASING", source="L['one'], L['other']", expected="the same object", actual="different objects")])
    p.call("hit", second, [(first, p.entries[0][2][0])])
    page, found = why(p.done())
    assert (found["remedies"][0]["name"], found["remedies"][0]["predicted_compiles"]) == ("aliasing", 1), page


def test_a_changed_requires_grad_does_not_suggest_removing_a_branch(torch, why):
    p = torch()
    p.compile()
    p.compile([dict(kind="EQUALS_MATCH", source="L['n']", expected="2", actual="3"),
               dict(kind="TENSOR_MATCH", source="L['w'].requires_grad", expected="True", actual="False", how="re-checked")])
    needed(p, "y = x * n")
    _, found = why(p.done())
    assert not any("branch" in one["text"] for one in found["remedies"]), found["remedies"]


def test_only_the_first_failed_guard_decides(torch, why):
    p = torch()
    p.compile()
    p.compile([dict(kind="TENSOR_MATCH", source="L['x'].dtype", expected="torch.float32", actual="torch.float64"),
               dict(kind="TENSOR_MATCH", source="L['x'].requires_grad", expected="True", actual="False"),
               dict(kind="TRUE_MATCH", source="L['flag']", expected="True", actual="False", how="re-checked")])
    p.db.execute("UPDATE recompile_cause SET ordinal = (how = 're-checked')")  # as the recorder has it: 0, 0, 1
    page, found = why(p.done())
    assert [cause["decided"] for cause in found["causes"]] == [True, False, False]
    assert "         x.dtype: expected torch.float32 (0/0), actual torch.float64  [TENSOR_MATCH, observed]" in page
    assert "         also x.requires_grad: expected True (0/0), actual False" in page and [h["source"] for h in found["histories"]] == ["L['x'].dtype"]


def test_a_shape_guard_is_printed_with_its_value(torch, why):
    p = torch()
    p.compile()
    p.compile([dict(kind="LAMBDA_GUARD", source="L['x'].size()[0]", expected="2 <= L['x'].size()[0] <= 4", actual="L['x'].size()[0] = 8")])
    page, found = why(p.done())
    assert "x.size(0): expected 2 <= x.size(0) <= 4 (0/0), actual 8" in page
    assert found["histories"][0]["values"] == ["8"]  # a range is no value that it had


def test_a_changed_global_flag_is_named_as_cause(torch, why):
    p = torch()
    p.compile()
    p.compile([dict(kind="GLOBAL_STATE", source="global state", expected="True", actual="False", text="GLOBAL_STATE changed: grad_mode")])
    page, _ = why(p.done())
    assert "grad_mode: expected True (0/0), actual False" in page


def test_causes_without_a_guard_are_printed(torch, why):
    p = torch()
    p.compile(backend="one")
    p.compile([dict(kind="BACKEND_MATCH", guard=None, text="the entry was compiled for another backend")], backend="two")
    page, found = why(p.done())
    assert "0/0 was compiled by another backend, one, than now, two" in page
    assert found["remedies"][0]["name"] == "backend" and "isolate_recompiles=True" in found["remedies"][0]["text"]

    p = torch()
    for region in (0, 1, None):
        entry = p.compile()
        p.db.execute("UPDATE cache_entry SET region_id = ? WHERE cache_entry_id = ?", (region, entry))
    page, found = why(p.done())
    assert "0/0 belongs to region 0 and is not seen by others (isolate_recompiles)" in page and "eager  region 1  1 guard" in page
    assert [entry["region_id"] for entry in found["entries"]] == [0, 1, None]

    p = torch()
    p.compile()
    p.die(1, "Cache line invalidated because L['kind'] got deallocated")
    p.compile()
    page, found = why(p.done())
    assert "0/0 had died at 0.002 s: Cache line invalidated because L['kind'] got deallocated" in page
    assert found["remedies"][0]["text"].startswith("Keep kind alive between calls and pass that same one (1 entry died with it)")

    p = torch()
    for _ in range(2):
        p.die(p.compile(), "reset")
    p.compile()
    assert "torch.compiler.reset() while f is in use (2 entries died of it)" in why(p.done())[0]

    p = torch(mode="observe")
    p.compile(guards=())
    p.compile([dict(guard=None, text="which guard did not hold was not seen", how="re-checked")])
    page, found = why(p.done())
    assert "0/0: which guard did not hold was not seen" in page and found["remedies"][0]["name"] == "see the guard"


# ---- outcomes --------------------------------------------------------------


@pytest.mark.parametrize("reason, kind, name, words", SKIPS, ids=[(s[0] or "none")[:40] + " " + s[1] for s in SKIPS])
def test_skips_are_printed_with_reason_and_time(torch, why, reason, kind, name, words):
    p = torch()
    p.db.execute("UPDATE code SET kind = ? WHERE code_id = 1", (kind,))
    p.turned_away(reason, calls=3)
    page, found = why(p.done())
    assert "3  75.0 %  skip            torch skips it: ran eagerly; first at 0.002 s, last at 0.004 s" in page
    assert "skipped, for good: " + (reason or "torch did not say why").split("\n")[0][:130] in page
    assert "since 0.001 s: never compiled, runs eagerly: " + (reason or "torch did not say why").split("\n")[0][:130] in page
    assert found["remedies"][0]["name"] == name and all(word in found["remedies"][0]["text"] for word in words), found["remedies"]
    assert found["compiles"][0]["sticky"] == 1 and found["recompiles"] == 0 and "1 attempt that gave no code" in page


def test_declined_calls_and_requested_skips_are_told_apart(torch, why):
    p = torch()
    p.turned_away("tracing is non-recursively disabled for this frame", sticky=0, mark=False)
    page, found = why(p.done())
    assert "skipped, for this call: tracing is non-recursively disabled" in page and found["remedies"][0]["name"] == "enable"
    p = torch()
    p.insert("code_mark", code_id=1, at_ns=5 * MS, action="skip", recursive_action="skip", region_id=3)
    p.call("skip")
    page, found = why(p.done())
    assert "since 0.005 s, in region 3: never compiled, runs eagerly, and so do the calls that it makes: it was asked to" in page
    assert found["remedies"][0]["name"] == "asked for"


def test_why_explains_the_recompile_limit(torch, why, run):
    p = torch()
    p.sizes(16, 18, 20)
    p.limit()
    path = p.done()
    page, found = why(path)
    assert "recompile_limit (8) reached at 0.004 s with 3 compiles; since then 6 calls ran eagerly, the last at 0.009 s" in page
    assert "3 compiles (2 recompiles) and 1 attempt that gave no code" in page and "limit, for good: recompile_limit (8) reached" in page
    assert "nothing new is compiled, nor for the calls that it makes: recompile_limit (8) reached" in page
    names = [remedy["name"] for remedy in found["remedies"]]
    assert sorted(names) == ["dynamic dimension", "raise the limit"]  # by what comes of them
    row, = json.loads(run("sql", path, "limit-reached", "--json").stdout)
    assert (row["reason"], row["entries"], row["eager_calls"], row["calls"]) == ("recompile_limit (8) reached", 3, 6, 9)


def test_why_explains_calls_that_fail(torch, why):
    for reason, name, words in [
            ("RuntimeError: Detected recompile when torch.compile stance is 'fail_on_recompile'. filename: 'a.py'", "warm up", ["set_stance"]),
            ("FailOnRecompileLimitHit: Hard failure due to fullgraph=True", "raise the limit", ["recompile_limit", "fullgraph=True"]),
            ("Unsupported: Data-dependent branching", "allow the break", ["leave out fullgraph=True"]),
            ("Unsupported: Unsupported Tensor.item() call with capture_scalar_outputs=False", "allow the break", []),
            ("BackendCompilerFailed: backend='mine' raised: ValueError: broken", "mend the backend", ["aot_eager"]),
            ("BackendCompilerFailed: backend='mine' raised:\nValueError: broken\n\nSet TORCHDYNAMO_VERBOSE=1", "mend the backend",
             ["raised: ValueError: broken)"]),
            ("Unsupported: " + PRINT, "hoist the print", ["Hoist the print out of f", "reorderable_logging_functions"]),
            ("TorchRuntimeError: RuntimeError when making fake tensor call", "mend the call", ["does not fit its inputs"]),
            ("KeyError: 3", "mend the compiler", ["KeyError: 3"])]:
        p = torch()
        p.compile(outcome="error", reason=reason)
        page, found = why(p.done())
        assert "torch raised while compiling: the call failed" in page and "error: " + reason.partition("\n")[0][:100] in page
        mine = [remedy for remedy in found["remedies"] if remedy["name"] == name]
        assert mine and all(word in mine[0]["text"] for word in words), found["remedies"]
    p = torch()
    entry = p.compile(guards=(("EQUALS_MATCH", "L['x']", "L['x'] == 3"),))
    p.call("guard_error", failed=[(entry, 1, "error")])
    page, found = why(p.done())
    assert "a guard raised: the call failed" in page and "raised 1 time: 0/0 EQUALS_MATCH x" in page
    assert found["remedies"][0]["name"] == "mend the guard"


def test_why_explains_run_only_and_disabled_calls(torch, why):
    p = torch()
    entry = p.compile(signature="x: int 1")
    p.call("run_only", failed=[(entry, 1)], signature="x: str")
    p.call("disabled")
    page, found = why(p.done())
    assert "compiling was forbidden (a stance, or a caller at its limit): ran eagerly" in page and "inputs of 1 call: x: str" in page
    assert "the compiler was off (force_eager, disable): ran eagerly" in page
    texts = " ".join(remedy["text"] for remedy in found["remedies"])
    assert 'set_stance("eager_on_recompile")' in texts and 'set_stance("force_eager")' in texts


# ---- graph breaks ----------------------------------------------------------


@pytest.mark.parametrize("reason, version, name, words", BREAKS, ids=[f"{b[0][:40]} {b[1]}" for b in BREAKS])
def test_graph_breaks_are_printed_with_remedies(torch, why, reason, version, name, words):
    p = torch(version=version)
    p.compile()
    p.breaks(reason)
    page, found = why(p.done())
    assert found["remedies"][0]["name"] == name and all(word in found["remedies"][0]["text"] for word in words), found["remedies"]
    assert "line 14, 1 time: " in page and "generic_jump" not in page or version == "2.6.0"


def test_the_cost_of_a_graph_break_is_printed(torch, why, run):
    p = torch()
    p.compile()
    p.breaks(times=2, stack='File "/src/app.py", line 14, in f\nFile "/src/lib.py", line 3, in helper', compiles=3)
    p.breaks(PRINT.replace("print", "input").replace("0x1", "0x2"), line=20)
    for _ in range(2):
        p.insert("lookup", lookup_id=1000 + _, code_id=100 + 140 + 1, start_ns=1, duration_ns=7000, outcome=1)
    p.insert("lookup", lookup_id=1002, code_id=100 + 140 + 1, start_ns=1, duration_ns=9, outcome=5)
    path = p.done()
    page, found = why(path)
    assert "line 14, 2 times: Failed to trace builtin operator" in page and "at src/lib.py:3 in helper\n" in page
    assert "by f (src/app.py:14) -> helper (src/lib.py:3)\n" in page
    assert ("goes on in the rest of f after line 14 (torch_dynamo_resume_in_f_at_14): 6 calls, 1 of them eagerly, "
            "3 compiles (2 recompiles) took 6 ms, lookups 14 us; see `dyntrace why f@14`") in page
    first = found["graph_breaks"][0]
    assert (first["line"], first["times"], first["rest_calls"], first["rest_recompiles"], first["rest_lookup_ns"]) == (14, 2, 6, 2, 14000)
    row = json.loads(run("sql", path, "graph-breaks", "--json").stdout)[0]
    assert (row["times"], row["rest_calls"], row["rest_compiles"], row["rest_compile_ms"]) == (2, 6, 3, 6.0)
    assert row["reason"] == "Failed to trace builtin operator"
    rests = json.loads(run("sql", path, "resume-functions", "--json").stdout)
    assert [(r["after_line"], r["calls"], r["recompiles"]) for r in rests] == [(14, 6, 2), (20, 6, 1)]
    # the rest is one function, whatever its code objects are called, and has a short name
    page, found = why(path, "f@14")
    assert page.startswith("torch_dynamo_resume_in_f_at_14  src/app.py:14  the rest of f after line 14, 2 code objects")
    assert found["function"]["kind"] == "resume"


def test_breaks_that_differ_only_in_addresses_are_one(torch, why):
    p = torch()
    p.compile()
    for address in ("0x7f1", "0x7f2abc"):
        p.insert("graph_break", compile_id=1, code_id=1, line=14, reason=f"no <function g at {address}> here")
    p.insert("graph_break", compile_id=1, code_id=1, line=14, reason="no <function h at 0x7f1> here")
    _, found = why(p.done())
    assert sorted(row["times"] for row in found["graph_breaks"]) == [1, 2]


@pytest.mark.parametrize("name, told", [
    ("torch_dynamo_resume_in_f_at_12", "the rest of f after line 12"),
    ("Net.torch_dynamo_resume_in_forward_at_12", "the rest of Net.forward after line 12"),
    ("f.<locals>.torch_dynamo_resume_in_<lambda>_at_3", "the rest of f.<locals>.<lambda> after line 3"),
    ("torch_dynamo_resume_in_f_at_", None), ("torch_dynamo_resume_in_f", None), ("torch_dynamo_resume_in__at_5", None),
    ("xtorch_dynamo_resume_in_f_at_5", None), ("torch_dynamo_resume_in_f_at_99999999999999999999", None),
])
def test_resume_functions_are_named_after_their_function(torch, run, name, told):
    p = torch(qualname=name)
    p.compile()
    path = p.done()
    head = run("why", "/src/app.py:10", path).stdout.splitlines()[0]
    assert head.endswith(told) if told else "the rest of" not in head, head
    if told:
        short = re.sub(r"torch_dynamo_resume_in_(.*)_at_(\d+)", r"\1@\2", name)
        assert run("why", short, path).stdout.splitlines()[0] == head


# ---- phases ----------------------------------------------------------------

def test_why_prints_the_phases_of_compile_time(torch, why, run):
    p = torch()
    p.compile()
    p.insert("code", code_id=7, process_id=1, filename="/src/app.py", qualname="g", first_line=70, kind="function")
    p.insert("compile", compile_id=9, code_id=7, label="9/0", start_ns=0, end_ns=1, outcome="compiled")
    ms = MS
    for compile_id, name, start, end, label in [
            (1, "dynamo", 0, 100 * ms, "0/0"), (1, "compile_attempt_0", 10 * ms, 30 * ms, "0/0"),
            (1, "compile_attempt_1", 30 * ms, 80 * ms, "0/0"),
            (1, "bytecode_tracing", 30 * ms, 50 * ms, "0/0"), (1, "backend_compile", 60 * ms, 75 * ms, "0/0"),
            (None, "entire_backward_compile", 500 * ms, 540 * ms, "0/0"), (None, "inductor_compile", 510 * ms, 530 * ms, "0/0"),
            (9, "dynamo", 0, 900 * ms, "9/0"), (None, "entire_backward_compile", 600 * ms, 800 * ms, "9/0"),
            (None, "compile_file", 0, 99 * ms, None)]:
        p.insert("compile_phase", compile_id=compile_id, name=name, start_ns=start, end_ns=end, label=label)
    path = p.done()
    page, found = why(path)
    own = {(phase["name"], phase["late"]): (phase["times"], phase["total_ns"] // ms, phase["self_ns"] // ms) for phase in found["phases"]}
    assert own == {("dynamo", False): (1, 100, 30), ("compile_attempt", False): (2, 70, 35),
                   ("bytecode_tracing", False): (1, 20, 20), ("backend_compile", False): (1, 15, 15),
                   ("entire_backward_compile", True): (1, 40, 20), ("inductor_compile", True): (1, 20, 20)}
    assert "bytecode_tracing: following the bytecode" in page and "40 ms  28.6 %  of it later and on their own" in page
    shown = run("show", "f", path).stdout
    assert "100 ms  dynamo" in shown and "20 ms      bytecode_tracing" in shown  # indented below what it lies in
    assert {row["phase"]: row["times"] for row in json.loads(run("sql", path, "compile-phases", "--json").stdout)}["compile_attempt"] == 2
    assert [phase["name"] for phase in json.loads(run("show", "f", path, "--json").stdout)["compiles"][0]["phases"]][0] == "dynamo"


def test_a_backward_graph_with_the_label_of_two_functions_belongs_to_neither(torch, why):
    """Labels are reused after a reset, so a backward graph with such a label may belong to either function."""
    p = torch()
    p.compile()
    p.insert("code", code_id=7, process_id=1, filename="/src/app.py", qualname="g", first_line=70, kind="function")
    p.insert("compile", compile_id=9, code_id=7, label="0/0", start_ns=0, end_ns=1, outcome="compiled")
    p.insert("compile_phase", name="entire_backward_compile", start_ns=1, end_ns=MS, label="0/0")
    assert why(p.done())[1]["phases"] == []


# ---- versions --------------------------------------------------------------

def remedies_of(torch, why, version):
    """Everything that depends on the version, in one text."""
    p = torch(version=version)
    p.sequence("EQUALS_MATCH", "L['self'].n", [0, 1])
    p.db.execute("UPDATE recompile_cause SET text = 'n == 0 (HINT: torch._dynamo.config.allow_unspec_int_on_nn_module)'")
    p.compile([dict(kind="BACKEND_MATCH", guard=None, text="another backend")], backend="two")
    p.limit("cache_size_limit (8) reached" if version.startswith("2.6") else "recompile_limit (8) reached")
    p.breaks("logging.Logger method not supported for non-export cases")
    return " ".join(remedy["text"] for remedy in why(p.done())[1]["remedies"])


@pytest.mark.parametrize("version, has, lacks", [
    ("2.6.0+debian", ["cache_size_limit", "ignore_logger_methods"],
     [" recompile_limit", "config.recompile_limit", "isolate_recompiles", "allow_unspec_int", "ignore_logging_functions"]),
    ("2.7.1", ["config.recompile_limit", "allow_unspec_int_on_nn_module", "ignore_logger_methods"],
     ["cache_size_limit", "isolate_recompiles", "(..., recompile_limit", "ignore_logging_functions"]),
    ("2.11.0", ["config.recompile_limit", "ignore_logging_functions"], ["isolate_recompiles", "(..., recompile_limit"]),
    ("2.12.0", ["torch.compile(..., recompile_limit=", "allow_unspec_int_on_nn_module"], ["isolate_recompiles"]),
    ("2.13.0+cpu", ["torch.compile(..., recompile_limit=", "isolate_recompiles=True", "ignore_logging_functions"], ["cache_size_limit"]),
    ("2.14.1+debian", ["torch.compile(..., recompile_limit=", "isolate_recompiles=True", "allow_unspec_int_on_nn_module"], ["cache_size"]),
])
def test_a_remedy_names_only_options_that_the_recorded_torch_has(torch, why, version, has, lacks):
    text = remedies_of(torch, why, version)
    assert all(word in text for word in has) and not any(word in text for word in lacks), text


def test_why_explains_the_accumulated_limit(torch, why):
    for version, name in (("2.6.0", "accumulated_cache_size_limit"), ("2.13.0", "accumulated_recompile_limit")):
        p = torch(version=version)
        p.sizes(1, 2)
        p.limit(f"{name} (256) reached")
        assert f"Raise torch._dynamo.config.{name}, which counts" in why(p.done())[0]


def test_remedies_fit_the_oldest_torch_of_several_processes(torch, why):
    p = torch(version="2.14.0")
    p.sizes(2, 3)
    p.limit()
    p.insert("process", process_id=2, pid=9, torch_version="2.6.0", torch_mode="observe", torch_note="why not")
    p.insert("code", code_id=20, process_id=2, filename="/src/app.py", qualname="f", first_line=10, kind="function")
    page, found = why(p.done())
    assert "torch 2.6.0 and others, watched in different ways in different processes\nwhy not\n" in page
    assert found["torch"] == {"version": "2.6.0", "mode": "observe", "note": "why not"} and "config.recompile_limit" not in page
    for version in ("git", "", "2", "2.x", "-1.5", "99999999999.1"):  # what is no version is no torch
        p = torch(version=version)
        p.sizes(2, 3)
        assert "torch " not in why(p.done())[0].splitlines()[2]


# ---- both modes ------------------------------------------------------------

def test_pages_say_what_observe_mode_does_not_record(torch, why):
    note = "torch 2.20 is observed, not run on dyntrace's evaluator: its evaluator has functions that dyntrace does not know (x)"
    p = torch(mode="observe", version="2.20.0", note=note)
    p.sizes(2, 3)
    p.db.execute("UPDATE recompile_cause SET how = 're-checked'")
    p.call("hit", 2)
    p.db.execute("DELETE FROM guard_check WHERE result <> 'pass'")
    p.db.execute("UPDATE guard_check SET duration_ns = NULL")
    p.db.execute("UPDATE lookup SET entries_checked = NULL")
    p.call("plain")
    page, found = why(p.done())
    assert "ran eagerly; whether torch was asked was not seen" in page
    assert "torch 2.20.0, observe: entries that were tried in vain before a hit or an eager call are not seen" in page and note in page
    assert "tried " not in page.partition("Cache entries")[2] and "checks took" not in page
    assert "  0/0  eager  1 guard, never hit\n  0/1  eager  1 guard, hit 1, last at 0.003 s\n" in page
    assert found["remedies"][0]["name"] == "dynamic dimension" and found["histories"][0]["values"] == ["2", "3"]


def test_pages_of_shim_recordings_say_that_every_check_was_seen(torch, why):
    p = torch()
    p.sizes(2, 3)
    p.call("hit", 2)
    page, found = why(p.done())
    assert "torch 2.13.0+cpu, shim: every guard check was seen" in page and "  0/1  eager  1 guard, tried 1 time, hit 1" in page
    assert found["torch"]["mode"] == "shim" and "2 checks took 200 ns" in page


def test_ranks_that_compile_differently_are_printed(torch, why, run):
    p = torch()
    p.db.execute("UPDATE process SET rank = 0, local_rank = 0")
    p.compile()
    p.insert("process", process_id=2, pid=9, rank=1, local_rank=0, torch_version="2.13.0+cpu", torch_mode="shim")
    p.insert("code", code_id=20, process_id=2, filename="/src/app.py", qualname="f", first_line=10, kind="function")
    for i in range(2):
        p.insert("compile", compile_id=20 + i, code_id=20, label=f"0/{i}", start_ns=i, end_ns=i + 1, outcome="compiled",
                 cache_entry_id=20 + i)
    path = p.done()
    page, found = why(path)
    assert "ranks 0: 1 compile, 1: 2 compiles; they differ" in page and "  0/1   rank 1, at 0.000000001 s" in page
    assert [row["rank"] for row in found["compiles"]] == [0, 1, 1]
    text = run("report", path).stdout
    assert "pid\tended\tran\tthreads\tpython\trank\ttorch\tcommand" in text and "1 (0 here)\tshim" in text
    rows = json.loads(run("sql", path, "torch-processes", "--json").stdout)
    assert [(row["rank"], row["compiles"], row["recompiles"]) for row in rows] == [(0, 1, 0), (1, 2, 1)]


# ---- report and show -------------------------------------------------------

def test_report_describes_torch_and_its_compiles(torch, run):
    p = torch(note="why it was not shim", mode="observe")
    p.sizes(2, 3, 4)
    p.limit(calls=2)
    p.compile(outcome="error", reason="KeyError: 3")
    p.breaks()
    path = p.done()
    text = run("report", path).stdout
    assert "torch\t2.13.0+cpu, observe\n\twhy it was not shim\n" in text
    lines = text.partition("Compiles, most recompiles first\n")[2].splitlines()
    assert lines[0] == ("5 compiles of 2 code objects, 6.5 ms; 3 recompiles, 1 graph break; 1 reached the limit; 1 failed; "
                        "1 attempt without code (`dyntrace sql FILE skips`)")
    assert lines[1:3] == ["compiles\trecompiles\tbreaks\ttime\tended\tfunction\twhere",
                          "3\t2\t1\t2.5 ms\tat the limit, failed 1 time\tf\tsrc/app.py:10"]
    found = json.loads(run("report", path, "--json").stdout)
    assert found["torch"] == [{"torch_version": "2.13.0+cpu", "torch_mode": "observe", "torch_note": "why it was not shim", "processes": 1}]
    assert (found["compiles"][0]["recompiles"], found["compiles"][0]["limits"], found["processes"][0]["torch_mode"]) == (2, 1, "observe")


def test_show_uses_torchs_words(torch, run):
    p = torch()
    p.compile(guards=(("TENSOR_MATCH", "L['x']", "check_tensor(L['x'], Tensor)"),))
    p.db.execute("UPDATE guard SET user_stack = ?", ('File "/src/lib.py", line 9, in g\nFile "/src/app.py", line 12, in f',))
    p.sizes(3)
    p.turned_away("an error was suppressed\n  Explanation: it cannot be\n  Hint: do not", calls=1)
    p.breaks()
    p.insert("graph", graph_id=1, compile_id=1, name="__compiled_fn_1", node_count=3)
    for i, node in enumerate([("placeholder", "l_x_", "L_x_", "()", "{}"), ("call_function", "y", "_operator.add", "(l_x_, 1)", "{}"),
                              ("output", "output", "output", "((y,),)", "{}")]):
        p.insert("graph_node", graph_id=1, ordinal=i, **dict(zip(("opcode", "name", "target", "args", "kwargs"), node)))
    for compile_id in (1, 2):
        for kind in ("original_bytecode", "modified_bytecode", "guards", "graph"):
            p.insert("listing", compile_id=compile_id, kind=kind, text=f"{kind.upper()}\n")
    path = p.done()
    text = run("show", "f", path).stdout
    assert "      0  TENSOR_MATCH  x  check_tensor(L['x'], Tensor)  # src/app.py:12\n" in text
    assert """\
    opcode         name    target         args       kwargs
    placeholder    l_x_    L_x_           ()         {}
    call_function  y       _operator.add  (l_x_, 1)  {}
    output         output  output         ((y,),)    {}
""" in text
    assert "    line 14: Failed to trace builtin operator\n      Dynamo does not know" in text
    assert "      hint: Avoid calling builtin `print`" in text
    assert "goes on in the rest of f after line 14 (torch_dynamo_resume_in_f_at_14)" in text
    assert "skipped, for good: an error was suppressed\n    Explanation: it cannot be\n" in text
    assert text.count("ORIGINAL_BYTECODE") == 1 and text.count("bytecode before: as of the compile above") == 1
    assert "GUARDS" not in text and "GRAPH\n" not in text  # torch's own texts of what is above
    full = run("show", "f", path, "--full").stdout
    assert "GUARDS" in full and "GRAPH\n" in full and 'File "/src/lib.py", line 9, in g' in full
    one = json.loads(run("show", "f", path, "--json").stdout)["compiles"]
    assert one[0]["guards"][0]["user_stack"].endswith("in f") and one[2]["sticky"] == 1


def test_named_queries_about_torch_have_answers(torch, run):
    p = torch()
    p.sizes(2, 3)
    p.turned_away("frame is in the Dynamo skipfiles list\nmore", calls=2)
    p.insert("code", code_id=9, process_id=1, filename="/src/app.py", qualname="quiet", first_line=40, kind="function")
    p.insert("code_mark", code_id=9, at_ns=5, action="skip", recursive_action="default")
    path = p.done()

    def rows(name):
        return json.loads(run("sql", path, name, "--json").stdout)
    skips = rows("skips")
    assert [(row["qualname"], row["how"], row["sticky"], row["reason"]) for row in skips] == [
        ("f", "skipped", 1, "frame is in the Dynamo skipfiles list"), ("quiet", "asked for", 1, None)]
    source, = rows("guards-by-source")
    assert (source["source"], source["guards"], source["entries"], source["failures"], source["recompiles"]) == (
        "L['x'].size()[0]", 2, 2, 1, 1)
    cause, = rows("recompile-causes")
    assert (cause["recompiles"], cause["decided"]) == (1, 1)
    assert rows("limit-reached") == [] and rows("compiles")[2]["reason"] == "frame is in the Dynamo skipfiles list"


# ---- hostile, and old ------------------------------------------------------

def test_hostile_texts_of_torch_are_escaped(torch, run):
    p = torch(note=EVIL, mode=EVIL, qualname="Evil")
    p.compile(guards=((EVIL, EVIL, EVIL),), signature="__nested_" + EVIL)
    p.compile([dict(kind="GLOBAL_STATE", source="global state", expected=EVIL, actual=EVIL, text="GLOBAL_STATE changed: " + EVIL),
               dict(kind="LAMBDA_GUARD", source=EVIL, expected="2 <= " + EVIL, actual=EVIL + " = " + EVIL)], reason=EVIL)
    p.turned_away(EVIL + "\n  Explanation:" + EVIL + "\n  Hint:" + EVIL)
    p.limit("recompile_limit " + EVIL)
    p.breaks(EVIL + "\n  Explanation: " + EVIL + "\n  Hint: " + EVIL + "<function " + EVIL + " at 0x",
             stack='File "' + EVIL + '", line 9, in ' + EVIL)
    p.insert("graph_break", compile_id=1, code_id=1, line=-1 << 62, reason="0x" * 5000, user_stack="\n" * 5000, resume_code_id=1)
    p.insert("graph_break", compile_id=1, code_id=1, line=None, reason=None)
    p.die(1, "because " + EVIL + " got deallocated")
    p.insert("code_mark", code_id=1, at_ns=-5, action=EVIL, recursive_action=EVIL, region_id=1 << 62, reason=EVIL)
    p.insert("code_mark", code_id=1, at_ns=None, action="run_only", recursive_action="skip", reason=b"\x00\xff\x1b")
    for name, start, end in ((EVIL, 0, 5), ("dynamo", -1 << 63, (1 << 63) - 1), ("a", (1 << 63) - 1, -5), (None, None, None),
                             ("compile_attempt_", 5, 9), ("compile_attempt_" + "9" * 500, 0, 1 << 62)):
        for compile_id in (1, None):
            p.insert("compile_phase", compile_id=compile_id, name=name, start_ns=start, end_ns=end, label="0/0")
    p.db.execute("UPDATE guard SET user_stack = ?", ('File "' + EVIL + '", line 1\x1b2, in ' + EVIL + "\nFile \"",))
    p.db.execute("UPDATE compile SET sticky = 'x' WHERE compile_id = 1")
    p.db.execute("UPDATE process SET rank = 'zero', local_rank = ?", (EVIL,))
    p.insert("graph", graph_id=1, compile_id=1, name=EVIL, node_count=1)
    p.insert("graph_node", graph_id=1, ordinal=0, opcode=EVIL, name=None, target=b"\xff\x00", args="", kwargs=EVIL)
    path = p.done()
    for argv in (["why", "Evil"], ["why", "Evil", "--sql"], ["show", "Evil"], ["show", "Evil", "--full"], ["report"], ["why", "f@14"]):
        done = run(argv[0], *argv[1:2], path, *argv[2:], text=False)
        assert done.returncode == 0 and done.stderr == b"", (argv, done.stderr)
        text = done.stdout.decode()
        assert all(c == "\n" or c == "\t" and argv[0] == "report" or c >= " " for c in text) and not set(text) & set("\x7f\x9b\u202e"), argv
        assert len(text) < 40000 or "--full" in argv or argv[0] == "report", (argv, len(text))
    for argv in (["why", "Evil", path, "--json"], ["show", "Evil", path, "--json"], ["report", path, "--json"]):
        text = run(*argv).stdout
        json.loads(text)
        assert "\x1b" not in text and "\u202e" not in text


def remedies(found):
    return " ".join(one["text"] for one in found["remedies"])


def test_slow_lookups_are_reported_if_guards_were_not_timed(torch, why):
    p = torch(mode="observe")
    p.compile()
    for i in range(20):
        p.call("hit", 1)
    path = p.done()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE guard_check SET duration_ns = NULL")
        db.execute("UPDATE lookup SET duration_ns = 5000")
        db.execute("UPDATE code_total SET total_ns = (SELECT end_ns - start_ns FROM compile) + 400000 WHERE code_id = 1")
    page, found = why(path)
    assert "\nGuards: slow\n  20 lookups that ended in a hit took 100 us; 5 us a call, 25 % of the time in the function" in page
    assert "skip_guard_eval_unsafe=True" in remedies(found) and found["guards"]["slow"]


def test_a_caller_at_its_limit_is_named(torch, why):
    p = torch()
    p.compile()
    for caller, action in ((2, "run_only"), (3, "default")):
        if caller == 3:
            p.insert("code", code_id=3, process_id=1, filename="/src/app.py", qualname="innocent", first_line=50, kind="function")
        p.insert("code_mark", code_id=caller, at_ns=1, action="run_only", recursive_action=action, reason="a strategy")
    p.insert("compile", compile_id=90, code_id=2, thread_id=1, start_ns=1, end_ns=2, outcome="limit", reason="recompile_limit (2) reached")
    for i in range(2):
        p.call("run_only")
        lookup = p.ids["lookup"]
        p.db.execute("UPDATE lookup SET frame_id = ? WHERE lookup_id = ?", (10 * lookup + 2, lookup))
        for place, code in enumerate((2, 3, 1)):
            p.insert("frame", frame_id=10 * lookup + place, parent_id=10 * lookup + place - 1 if place else None, thread_id=1, code_id=code,
                     start_ns=p.now, end_ns=p.now + 5, kind=0, outcome=0)
    page, found = why(p.done())
    assert found["forbidden_by"] == [{"function": "main", "reason": "recompile_limit (2) reached", "calls": 2}]
    assert "  2 calls: within main, for whose calls nothing new is compiled: recompile_limit (2) reached\n" in page
    assert "Make the recompiles of main needless, or raise its limit" in remedies(found)


def test_a_disabled_function_is_explained(torch, why):
    p = torch()
    p.insert("compile", compile_id=90, code_id=2, thread_id=1, start_ns=1, end_ns=2, outcome="compiled", cache_entry_id=90)
    p.insert("graph_break", graph_break_id=1, compile_id=90, code_id=2, line=93, reason=DISABLED % "other")
    p.insert("graph_break", graph_break_id=2, compile_id=90, code_id=2, line=95, reason=DISABLED % "f")
    page, found = why(p.done(more=3))
    assert "called in line 95 of main after a graph break: Skip calling `torch.compiler.disable()`d function\n" in page
    assert "Take torch.compiler.disable off f, if it need not run eagerly." == remedies(found)


DISABLED = """Skip calling `torch.compiler.disable()`d function
  Explanation: Skip calling function `<function %s at 0x7fcdd9574360>` since it was wrapped with `torch.compiler.disable`"""
