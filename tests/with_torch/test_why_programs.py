"""`dyntrace why` of small torch programs that really ran, each with one known cause, in both ways of watching: it has to
name that cause, and where there is one the remedy and what would come of it.

The programs are the functions of programs/why_cases.py, recorded once in each mode. What is asked below was planted there
by hand; nothing of it is read from what the recording says."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).resolve().parent / "programs" / "why_cases.py"
LINES = PROGRAM.read_text().splitlines()
MODES = ("shim", "observe")


def line_of(text):
    at, = [number for number, line in enumerate(LINES, 1) if text in line]
    return at


# ---- what recompiles -------------------------------------------------------

# function: (its recompiles, what is told of the cause, the failing source, its values, remedy's name, what its text holds,
#            what-if settings and the compiles that they would leave, or None)
RECOMPILED = {
    # dynamic=False: no entry shows what a dynamic one takes, so there is no figure
    "size_f": (3, "x.size(0): expected 4 (0/0), actual 5", "L['x'].size()[0]", ["4", "5", "6", "7"],
               "dynamic dimension", "mark_dynamic(x, 0)", ("dynamic=L['x'][0]", 1)),
    "dynamic_f": (1, "x.size(0): ... actual 5", "L['x'].size()[0]", ["4", "5"],
                  "dynamic dimension", "mark_dynamic(x, 0)", ("dynamic=L['x'][0]", 1)),
    "marked_f": (2, "x.size(0): ... actual 5", "L['x'].size()[0]", ["4", "5", "6"],
                 "constant size", "mark_static() off it", None),
    "rank_f": (2, "x.ndim: ... actual 2", "L['x'].ndim", ["1", "2", "3"], "one rank", "one number of dimensions", None),
    "dtype_f": (1, "x.dtype: ... actual torch.float64", "L['x'].dtype", ["torch.float32", "torch.float64"],
                "one dtype", "Cast x", ("drop_guard=", 1)),
    "stride_f": (1, "x.stride(0): ... actual 1", "L['x'].stride()[0]", ["4", "1"], "dynamic stride", ".contiguous()", ("drop_guard=", 1)),
    "requires_grad_f": (1, "x.requires_grad: ... actual True", "L['x'].requires_grad", ["False", "True"],
                        "requires_grad", "detach()", ("drop_guard=", 1)),
    "integer_f": (2, "n: ... actual 3", "L['n']", ["2", "3", "4"], "move into a tensor", "torch.tensor(n)", None),
    "floating_f": (2, "rate: ... actual 0.25", "L['rate']", ["0.5", "0.25", "0.125"], "move into a tensor", "torch.tensor(rate)", None),
    "string_f": (1, "mode: ... actual 'tanh'", "L['mode']", ["'relu'", "'tanh'"], "one value", "Hoist mode", None),
    "global_f": (1, "SCALE: ... actual 7", "G['SCALE']", ["2", "7"], "move into a tensor", "Set the global SCALE once", None),
    "Scaled.forward": (1, "self.scale: ... actual 3.0", "L['self'].scale", ["2.0", "3.0"], "move into a tensor", "a buffer", None),
    "lambda_f": (2, "act.__code__: ... actual code <lambda>", "L['act'].__code__", None, "define once", "once, outside of the loop",
                 ("drop_guard=", 1)),
    "closure_f": (1, "factor: ... actual 3", "L['factor']", ["2", "3"], "move into a tensor", "factor", None),
    "list_f": (2, "len(tensors): ... actual 2", "L['tensors']", ["1", "2", "3"], "one length", "at one length", None),
    "dict_f": (1, "batch: ... actual has 'mask'", "L['batch']", ["lacks 'mask'", "has 'mask'"], "one set of keys",
               "Keep the keys of batch fixed", None),
    "none_f": (1, "mask: ... actual Tensor float32[3] cpu", "L['mask']", ["None", "Tensor float32[3] cpu"], "one value",
               "always or never", None),
    "Dropping.forward": (1, "self.training: ... actual False", "L['self'].training", ["True", "False"], "training flag",
                         "train() and eval()", None),
    "grad_f": (1, "grad_mode: ... actual False", None, ["True", "False"], "grad mode", "training and evaluation", None),
    "autocast_f": (1, "autocast(cpu)_enabled: ... actual True", None, ["False", "True"], "autocast", "enter torch.autocast", None),
    "default_f": (1, "default_dtype: ... actual torch.float64", None, ["torch.float32", "torch.float64"], "global state",
                  "Set default_dtype once", None),
}

# function: the outcomes of its calls, what the page says, remedy's name and words
ANSWERED = {
    "backend_f": ({"compiled": 2}, r"the backend: expected eager \(\S+\), actual other  \[BACKEND_MATCH", "backend", "one backend object"),
    "limit_f": ({"limit": 4, "compiled": 2}, r"(?:recompile_limit|cache_size_limit) \(2\) reached at .* with 2 compiles; since then 4 calls",
                "raise the limit", "4 calls ran eagerly for want of it"),
    "accumulated_f": ({"limit": 2, "compiled": 2}, r"accumulated_\w+_limit \(2\) reached at .* with 2 compiles; since then 2 calls",
                      "raise the limit", "accumulated_"),
    "callee_f": ({"run_only": 2, "compiled": 1}, r"2 calls: within \S*caller_f, for whose calls nothing new is compiled: \w+_limit \(1\) reached",
                 "mend the caller", "caller_f needless, or raise its limit"),
    "run_only_f": ({"run_only": 2, "compiled": 1}, r"no entry fitted, compiling was forbidden \(a stance,", "warm up",
                   'set_stance("eager_on_recompile")'),
    "failing_f": ({"callback_error": 1, "compiled": 1}, r"stance is 'fail_on_recompile'(?s:.*)x\.size\(0\): expected 3 \(\S+\), actual 4",
                  "warm up", 'set_stance("fail_on_recompile")'),
    "forced_f": ({"plain": 2}, r"no compiler had to do with them", "turn on", 'set_stance("force_eager")'),
    "never_f": ({"plain": 2}, r"no compiler had to do with them", "turn on", "from within torch.compile"),
    "loud_f": ({"plain": 2}, r"called in line %d of \S*disabling_f after a graph break: .*torch.compiler.disable"
               % line_of("return loud_f(x + 1) + 1"), "enable", "Take torch.compiler.disable off"),
    "disabling_f": ({"hit": 1, "compiled": 1}, r"line %d, 1 time: .*torch.compiler.disable" % line_of("return loud_f(x + 1) + 1"),
                    "enable", "disable off disabled.<locals>.loud_f"),
    "itself_f": ({"declined": 2}, r"non-recursively disabled", "enable", "disable(recursive=False) off"),
    "skipped_f": ({"skip": 1, "declined": 1}, r"declined, for good: .*graph_break\(\)", "remove graph_break", "graph_break()"),
    "plain_f": ({"skip": 1, "declined": 1}, r"No ops traced", "nothing to compile", "no tensor operation"),
    "generator_f": ({"skip": 1, "declined": 1}, r"skipped, for good", "no generator", "a generator itself is not compiled"),
    "full_f": ({"callback_error": 1}, r"error: Unsupported: .*", "hoist the print", "Hoist the print"),
    "unbacked_f": ({"callback_error": 1}, r"backend='broken' raised: ValueError: out of registers", "mend the backend", "out of registers"),
    "print_f": ({"hit": 1, "compiled": 1}, r"line %d, 1 time: .*\n.*print" % line_of('print("", end="")'), "hoist the print",
                "Hoist the print at line %d" % line_of('print("", end="")')),
    "item_f": ({"hit": 1, "compiled": 1}, r"line %d, 1 time: .*item\(\)" % line_of("n = x.sum().item()"), "capture scalars",
               "capture_scalar_outputs = True"),
    "branch_f": ({"hit": 1, "compiled": 1}, r"line %d, 1 time: .*branch" % line_of("if x.sum() > 0:"), "no branch", "torch.where"),
    "holder_f": ({"compiled": 2}, r"had died at .*L\['kind'\].*dealloc", "keep alive", "Keep kind alive"),
    "reset_f": ({"compiled": 2}, r"had died at .*reset", None, "torch.compiler.reset()"),
}
# function, or the line of a graph break for what is after it: what its recompiles follow from
FOLLOWS = {
    "behind_f": ("cascade.<locals>.cascade_f", "L['x'].size()[0]"),
    "cascade_f@%d" % (line_of("y = x + 25") + 1): ("cascade.<locals>.cascade_f", "L['x'].size()[0]"),
}

# Where torch 2.6 decides or says otherwise, each with what is different there.
OLD_RECOMPILED = {
    # A float that changes becomes an input of the graph, dynamic=False or not.
    "floating_f": (1, "rate: ... actual 0.25", "L['rate']", ["0.5", "0.25"], "move into a tensor", "torch.tensor(rate)",
                   ("drop_guard=", 1)),
    # A dict's keys are guarded by their number first.
    "dict_f": (1, "batch: ... actual 2", "L['batch']", ["1", "2"], "one set of keys", "Keep the keys of batch fixed", None),
    # Autocast is no part of the global state yet; the tensor's keys tell.
    "autocast_f": (1, "torch._C._dispatch_keys(x): ... actual AutocastCPU", "torch._C._dispatch_keys(L['x'])",
                   ["not AutocastCPU", "AutocastCPU"], "modes", "autocast", None),
    # The guard does not say what the state was.
    "default_f": (1, "default_dtype: ... actual torch.float64", None, ["torch.float64"], "global state",
                  "Set default_dtype once", None),
    "lambda_f": None,  # below: an entry ends with the code that it is guarded by
}
OLD_ANSWERED = {
    "lambda_f": ({"compiled": 3}, r"had died at .*L\['act'\]\.__code__ got dealloc", "keep alive", "Keep act.__code__ alive"),
    "loud_f": ({"plain": 2}, r"called in line %d of \S*disabling_f after a graph break: .*torch._dynamo.disable\(\)"
               % line_of("return loud_f(x + 1) + 1"), "enable", "Take torch.compiler.disable off"),
    "disabling_f": ({"hit": 1, "compiled": 1}, r"line %d, 1 time: .*torch._dynamo.disable\(\)" % line_of("return loud_f(x + 1) + 1"),
                    "enable", "disable off disabled.<locals>.loud_f"),
    # The code itself is marked, not a wrapper: torch is never asked.
    "itself_f": ({"skip": 2}, r"runs eagerly: it was asked to", "asked for", "Take torch.compiler.disable or skip_code off"),
    # The context manager is what it cannot do: it does not look into it.
    "skipped_f": ({"skip": 1, "declined": 1}, r"declined, for good: .*context manager", "give up less", "context manager"),
    "plain_f": ({"skip": 1, "declined": 1}, r"skipped, for good: torch did not say why", "look again", "nothing_to_compile"),
    "item_f": ({"hit": 1, "compiled": 1}, r"line %d, 1 time: Tensor\.item" % line_of("n = x.sum().item()"), "capture scalars",
               "capture_scalar_outputs = True"),
    "branch_f": ({"hit": 1, "compiled": 1}, r"line %d, 1 time: generic_jump" % line_of("if x.sum() > 0:"), "no branch", "torch.where"),
}


# What is so in 2.7, too.
OLD_IN_27 = {"default_f", "itself_f", "item_f", "branch_f"}
# And what is so in one or some versions only.
NO_CONTENT = {"plain_f": ({"skip": 1, "declined": 1}, r"because no content in function call", "nothing to compile", "no tensor operation")}
BRANCH = {"branch_f": OLD_ANSWERED["branch_f"]}
ONLY_IN = {
    (2, 7): {
        "floating_f": (*OLD_RECOMPILED["floating_f"][:-1], ("dynamic=", 1)),
        # The guard says which state changed, not what it was.
        "autocast_f": (1, "GLOBAL_STATE changed: autocast", None, [], "autocast", "enter torch.autocast", None),
        **NO_CONTENT,
    },
    (2, 8): {**NO_CONTENT, **BRANCH},
    (2, 9): {**NO_CONTENT, **BRANCH},
    (2, 10): {
        "plain_f": ({"skip": 1, "declined": 1}, r"intentionally decided to skip the frame plain_f", "nothing to compile", "no tensor operation"),
        **BRANCH,
    },
}


def told_by(found, function, new, old):
    """What is asked of FUNCTION on the torch of the recording; None: it belongs elsewhere there."""
    version = tuple(int(part) for part in re.findall(r"\d+", found["torch"]["version"])[:2])
    if function in ONLY_IN.get(version, ()):
        return ONLY_IN[version][function]
    if version < (2, 7) or version == (2, 7) and function in OLD_IN_27:
        return {**new, **old}.get(function)
    return new.get(function)


@pytest.fixture(scope="module")
def traces(dyntrace, python, tmp_path_factory):
    """why_cases.py, recorded in both modes at once."""
    folder = tmp_path_factory.mktemp("why")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "PYTHON"))}
    environment.update(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    running = {mode: subprocess.Popen([dyntrace, "run", "-o", folder / f"{mode}.db", "--frames", "user", "--torch", mode,
                                       "--python", python, "--", PROGRAM],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      cwd=folder, env=environment) for mode in MODES}
    for mode, one in running.items():
        said = one.communicate(timeout=280)[0]
        assert one.returncode == 0, said[-3000:]
    return {mode: folder / f"{mode}.db" for mode in MODES}


@pytest.fixture
def why(traces, dyntrace):
    """why(function, mode) -> (page, what --json says)"""
    def why(function, mode):
        pages = []
        for more in ([], ["--json"]):
            done = subprocess.run([dyntrace, "why", function, traces[mode], *more], capture_output=True, text=True, timeout=60)
            assert (done.returncode, done.stderr) == (0, ""), done.stderr
            pages.append(done.stdout)
        return pages[0], json.loads(pages[1])
    return why


def test_there_are_at_least_40_programs_to_test():
    assert len(RECOMPILED) + len(ANSWERED) + 1 >= 40
    assert all(line_of(f"def {name.split('.')[-1]}(") for name in ANSWERED)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", RECOMPILED)
def test_why_names_the_value_that_changed(why, function, mode):
    page, found = why(function, mode)
    planted = told_by(found, function, RECOMPILED, OLD_RECOMPILED)
    if planted is None:
        return outcomes_are_told(page, found, *told_by(found, function, ANSWERED, OLD_ANSWERED))
    recompiles, said, source, values, name, words, whatif = planted
    assert found["torch"]["mode"] == mode
    assert found["recompiles"] == recompiles
    # The source that decided is the planted one, and the only one that is told to have decided.
    history, = found["histories"]
    assert history["recompiles"] == recompiles
    assert source is None or history["source"] == source
    assert values is None or history["values"] == values
    parts = said.replace("0/0", found["compiles"][0]["label"]).split(" ... ")
    assert re.search(".*".join(map(re.escape, parts)), page), page
    how = {cause["how"] for cause in found["causes"] if cause["decided"]}
    assert how == ({"observed"} if mode == "shim" else {"rechecked"})
    first = found["remedies"][0]
    assert first["name"] == name and words in first["text"]
    if whatif:
        settings, compiles = whatif
        assert first["what_if"].startswith(settings) and first["compiles"] in (None, recompiles + 1)
        if first["undecided"]: # what the trace does not decide has no figure
            assert first["status"] == "not measured" and first["compiles"] is None and " instead of " not in page
            return
        assert (first["status"], first["predicted_compiles"]) == ("exact", compiles)
        assert re.search(r"^     exact \(what-if %s.*\): 1 compile instead of %d$" % (re.escape(settings), recompiles + 1), page, re.M)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", ANSWERED)
def test_why_names_the_outcomes_of_calls_and_their_reasons(why, function, mode):
    page, found = why(function, mode)
    outcomes_are_told(page, found, *told_by(found, function, ANSWERED, OLD_ANSWERED))


def outcomes_are_told(page, found, outcomes, said, name, words):
    counts = {}
    for call in found["calls"]:
        counts[call["outcome"]] = counts.get(call["outcome"], 0) + call["calls"]
    assert counts == outcomes
    assert re.search(said, page), page
    assert any((name is None or remedy["name"] == name) and words in remedy["text"] for remedy in found["remedies"]), found["remedies"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", FOLLOWS)
def test_why_names_the_recompile_that_caused_another(why, function, mode):
    caller, source = FOLLOWS[function]
    page, found = why(function, mode)
    _, parent = why("cascade_f", mode)
    first, *later = found["compiles"]
    assert first["follows_from"] is None and len(later) == 2
    for compile, older, (was, now) in zip(later, parent["compiles"][1:], (("16", "18"), ("18", "20"))):
        assert compile["follows_from"] == {"compile_id": older["compile_id"], "function": caller, "label": older["label"],
                                           "source": source, "expected": was, "actual": now}
        written = source.replace("L['x'].size()[0]", "x.size(0)")
        assert f"follows from: {caller} {older['label']} ({written}: expected {was}, actual {now})" in page
    assert all(compile["follows_from"] is None for compile in parent["compiles"])


@pytest.mark.parametrize("mode", MODES)
def test_why_names_the_eager_calls_beyond_a_limit_and_promises_nothing(why, mode):
    """2 of the 4 sizes are beyond the limit. `why` promises no count for a higher limit, since code that was never compiled
    may not compile, nor for a dynamic size, since no entry shows what it needs."""
    for function, key, eager in (("limit_f", "recompile_limit", 4), ("accumulated_f", "accumulated_limit", 2)):
        page, found = why(function, mode)
        by_setting = {remedy["what_if"].split("=")[0]: remedy for remedy in found["remedies"] if remedy["what_if"]}
        dynamic, limit = by_setting["dynamic"], by_setting[key]
        assert limit["setting"].startswith("config.") # the inputs of calls that torch was not asked about are known in shim mode
        assert limit["setting"].endswith("=4") or mode == "observe"
        assert [remedy["status"] for remedy in (dynamic, limit)] == ["not measured"] * 2
        assert all(remedy[figure] is None for remedy in (dynamic, limit) for figure in ("compiles", "predicted_compiles", "eager"))
        assert " instead of " not in page and "no gain" not in page and f"{eager} calls" in limit["text"]


@pytest.mark.parametrize("mode", MODES)
def test_guards_on_400_numbers_are_reported_as_slow(why, mode):
    """The function has guards on 400 numbers, which make it slow."""
    page, found = why("guarded_f", mode)
    guards = found["guards"]
    assert guards["slow"] and guards["share_percent"] >= 10 and guards["ns"] >= 1000 * guards["calls"] >= 29000, guards
    assert found["guard_costs"][0]["guards"] >= 400 and "\nGuards: slow\n" in page
    assert "fewer guards" in [remedy["name"] for remedy in found["remedies"]]


@pytest.mark.parametrize("mode", MODES)
def test_why_describes_a_function_without_recorded_calls(traces, dyntrace, mode):
    done = subprocess.run([dyntrace, "why", "size_g", traces[mode]], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    assert re.fullmatch(r"dyntrace: size_g: no such function in .*; did you mean .*size_f.*\n", done.stderr)
    done = subprocess.run([dyntrace, "why", "inner_f", traces[mode]], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    taken = r"dyntrace: inner_f: no call of it is in .*: torch has taken it into the code of taken_in.<locals>.outer_f, see there\n"
    old = r"dyntrace: inner_f: no such function in .*; did you mean .*outer_f.*\n" # guards without the user's stack, which says it
    version = json.loads(subprocess.run([dyntrace, "why", "outer_f", traces[mode], "--json"], capture_output=True, text=True,
                                        timeout=60).stdout)["torch"]["version"]
    assert re.fullmatch(old if version.startswith(("2.6.", "2.7.", "2.8.")) else taken, done.stderr)
