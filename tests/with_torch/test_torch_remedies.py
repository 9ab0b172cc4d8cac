"""What `why` promises of a remedy comes true: programs that need one are recorded as they are and with the remedy applied, on
the torch that is here, and the compiles and the calls that ran eagerly are counted again.

The programs are the functions of programs/remedy_cases.py. EXPECTED has the remedy that each has to be given, by its name
in src/trace/remedies.txt and by words of it, and UNTRIED the rules of that table that no program here is for."""
import concurrent.futures
import functools
import importlib
import json
import os
import re
import sqlite3
import subprocess
from pathlib import Path

import pytest

from shared import run_whole

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "programs" / "remedy_cases.py"
TABLE = HERE.parent.parent / "src" / "trace" / "remedies.txt"
MODES = ("shim", "observe")
UNKNOWN = None

# program: remedy, words of it, has it a figure: where a what-if does what the remedy does and the trace decides each call. Under
# dynamic=False no entry shows what a dynamic one would take.
EXPECTED = {
    "automatic": ("dynamic dimension", "_dynamo.mark_dynamic(x, 0)", True),
    "automatic_two": ("dynamic dimension", "x.size(0), x.size(1)", False),
    "all_dynamic": ("dynamic shapes", "torch.compile(..., dynamic=True)", False),
    "behind_a_break": ("dynamic dimension", "_dynamo.maybe_mark_dynamic(x, 0)", True),
    "last_batch": ("last batch", "drop_last=True", False),
    "constant_number": ("constant number", "A tensor would not do", False),
    "scheduled_rate": ("learning rate", "it is needed as one", False),
    "float_again": ("number only", "that needs a number", False),
    "parameter_sizes": ("dynamic parameter", "force_parameter_static_shapes = False", False),
    "key_order": ("order of keys", "loop over sorted(feats)", False),
    "lengths_of_modules": ("many functions", "isolate_recompiles=True", False),
    "one_then_more": ("sizes 0 and 1", "mark_unbacked(x, 0)", False),
    "inlined_print": ("hoist the print", "Move the print at line", False),
    "size": ("dynamic dimension", "_dynamo.mark_dynamic(x, 0)", False),
    "two_sizes": ("dynamic dimension", "x.size(0), y.size(0)", False),
    "apart": ("move into a tensor", "Pass rate as a tensor", False),
    "size_and_number": ("dynamic shapes", "x and n change together", False),
    "constant_at_limit": ("raise the limit", "2 calls ran eagerly for want of it", False),
    "square": ("dynamic dimension", "x.size(0), x.size(1)", False),
    "branching_size": ("dynamic dimension", "_dynamo.maybe_mark_dynamic(x, 0)", False),
    "constant_size": ("constant size", "mark_dynamic() raises an error", False),
    "small": ("sizes 0 and 1", "mark_unbacked(x, 0)", False),
    "small_first": ("sizes 0 and 1", "mark_unbacked(x, 0)", False),
    "relation": ("shape relation", "11 <= x.size(0)", False),
    "parameters": ("many functions", "isolate_recompiles=True", False),
    "many_lambdas": ("many functions", "isolate_recompiles=True", False),
    "class_again": ("define once", "Options once, outside of the loop", True),
    "class_dies": ("define once", "would not make it fit", False),
    "object_dies": ("keep alive", "pass that same one", False),
    "exec_again": ("define once", "4 times", False),
    "backend": ("backend", "one backend object", False),
    "grad_mode": ("grad mode", "training and evaluation", False),
    "autocast": ("autocast", "under one autocast setting", False),
    "default_dtype": ("global state", "Set default_dtype once", False),
    "two_flags": ("global state", "Set default_dtype once", False),
    "default_device": ("default device", "set_default_device() once", False),
    "function_modes": ("function modes", "function modes outside", False),
    "training": ("training flag", "train() and eval()", False),
    "learning_rate": ("learning rate", "lr=torch.tensor", False),
    "aliasing": ("aliasing", "clone() one of them", True),
    "marking": ("marking", "alike for every call", False),
    "stride": ("dynamic stride", ".contiguous()", True),
    "rank": ("one rank", "reshape before the call", False),
    "dtype": ("one dtype", "Cast x", True),
    "two_aspects": ("one dtype", "Cast x", False),
    "device": ("one device", "Move x", True),
    "requires_grad": ("requires_grad", "detach()", True),
    "one_type": ("one type", "Keep type(y) the same", False),
    "keys": ("one set of keys", "Keep the keys of batch fixed", False),
    "length": ("one length", "at one length", False),
    "module_integer": ("module integer", "allow_unspec_int_on_nn_module = True", False),
    "attribute_number": ("move into a tensor", "Keep self.scale in a tensor", False),
    "global_number": ("move into a tensor", "Set the global SCALE once", False),
    "number": ("move into a tensor", "torch.tensor(rate)", False),
    "function_again": ("define once", "a lambda, partial or nested def", True),
    "attribute": ("attribute", "in __init__", False),
    "none": ("one value", "always or never", False),
    "flag": ("one value", "Keep flag fixed", False),
    "string": ("one value", "Hoist mode", False),
    "reset": ("no reset", "Do not call torch.compiler.reset()", False),
    "limit": ("raise the limit", "5 calls ran eagerly for want of it", False),
    "caller_at_limit": ("mend the caller", "caller_f needless, or raise its limit", False),
    "first_call": ("nothing to compile", "Do not call first_call.<locals>.first_call_f with inputs for which it has no tensor operation", False),
    "not_in_loop": ("give up less", "Mend what torch gave up all of", False),
    "print_break": ("hoist the print", "Hoist the print at line", False),
    "exec_break": ("run it outside", "torch follows functions, not texts", False),
    "warn_break": ("hoist the warning", "reorderable_logging_functions.add(warnings.warn)", False),
    "log_break": ("hoist the logging", "ignore_logg", False),
    "item_break": ("capture scalars", "capture_scalar_outputs = True", False),
    "shape_break": ("capture shapes", "capture_dynamic_output_shape_ops = True", False),
    "branch_break": ("no branch", "torch.where", False),
    "disable_break": ("enable", "Take torch.compiler.disable off", False),
    "own_break": ("remove graph_break", "Remove the torch._dynamo.graph_break() at line", False),
    "torchs_break": ("call it outside", "torch itself breaks the graph within it", False),
    "backward_break": ("call backward outside", "Call .backward() at line", False),
}
# Where torch's own evaluator does not tell.
OBSERVED = {"reset": ("keep alive", "or with torch.compiler.reset()", False)}
# Where torch has no isolate_recompiles.
OLDER = dict.fromkeys(("parameters", "many_lambdas"), ("many functions", "Give each a code object of its own", False))
# Where torch's state of a guard, or of what died, is another: what is given there.
OLD = {
    # Code without a source file is compiled through a wrapper of torch's own.
    "exec_again": ("define once", "as exec() makes them", True),
}
# Up to CPython 3.12 such a torch keeps classes alive, of which it makes guards: the guard says that it was another class.
KEPT = {"class_dies": ("define once", "Options once, outside of the loop", True)}
ASKED = {"exec_again": "wrap_inline.<locals>.inner"}
# Which mends what a count of compiles does not show: see MENDED.
SAME_COUNT = {"branching_size"}

# The beginnings of texts of [torch ...] rules that are tried elsewhere or cannot be: why.
UNTRIED = {
    "planted traces have them: tests/planted_torch.py, tests/test_torch_answers.py": [
        "Leave out sequences of length 0 and 1", "Make the optimizer's state before {function} is compiled, by a first step without torch.compile",
        "Mend the graph break where {function} begins", "Make the copy{at} before the call"],
    "an older torch, or one without isolate_recompiles": [
        "Give each a code object", "Pass one backend object to every torch.compile of {function}: an entry", 
        "Parameters are static in every dimension", "Call torch.set_default_device() once, before the first call of {function} (it", "Raise torch._dynamo.config.{limit} to {needed}", "Hoist the logging{at} out of {function}, or let torch leave it out: torch._dynamo.config.ignore_logger",
        "Keep {source} fixed: True and False need an entry each.", "Pass {source} always or never: None"],
    "the call fails without it: programs/why_cases.py has them": [
        "Warm up {function} with these", "Mend what torch cannot follow ({what}), or let", "Mend the backend",
        "Mend the call", "Mend what torch raised", "Mend the guard"],
    "nothing to count: it advises to look, to leave it, or says what to do elsewhere": [
        "Record with --torch shim", "Look at the guards of the older entry", "Nothing: torch never", "Find out why torch", "Guards take", "Remove the cause for which",
        "Compile a function of your own", "Compile a function that calls the generator", "Move the tensor operations of the coroutine", "Mend the break{at}", "Move what torch cannot follow",
        "Move what breaks the graph", "Call {function} where the compiler is on", "Call {function} from within", "Take torch.compiler.disable off {function}", "Take torch.compiler.disable(recursive",
        "Take torch.compiler.disable or skip_code off", "Make the first call of {function} outside of the dispatch", "Keep {source} one way"],
    "a kind of guard or break with another way of the same rule above": [
        "Keep {base} alive between calls", "Call {function} under one set of modes", "Register hooks",
        "Pass the same object as {source}", "Set the global {source} once, before the first call: it was {values}.", "Define the function {source}",
        "Keep alive what", "Compile {function} once and keep it", "Raise torch._dynamo.config.{limit}, which", "Raise torch._dynamo.config.{limit};", "Warm up {function} with all",
        "Use an operator", "Let torch follow the RNN", "Move the with block", "Call what torch skips", "Take the generator", "Keep the keys of {base} fixed (there", "Give each module entries", "Compile one module at a time", "Pass the same keys in",
        "Pass one type as {base}", "Keep the class attribute"],
    "programs/advice.py has them, and test_advice.py": [
        "Compile {function} by itself",
        "Call {function} where {source} is {expected}", "{function} is one code object", "{function} ran", "Take mark_dynamic() off", "Look at what {function} depends on",
        "A scheduler wraps", "Make the call{at} outside of {function}: a scheduler", "Torch itself breaks the graph of an optimizer",
        "{text} was called after", "Make the changes that these settings", "Make several changes at once"],
}


@pytest.fixture(scope="module")
def traces(dyntrace, python, tmp_path_factory):
    """The programs as they are and mended, in both modes, all at once."""
    folder = tmp_path_factory.mktemp("remedies")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "PYTHON"))}
    environment.update(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    paths = {(mode, state): folder / f"{mode}-{state}.db" for mode in MODES for state in ("needs", "mended")}

    def record(key):
        mode, state = key
        return run_whole([dyntrace, "run", "-o", paths[key], "--frames", "user", "--torch", mode, "--python", python, "--", PROGRAM, state],
                         560, cwd=folder, env=environment)
    with concurrent.futures.ThreadPoolExecutor(len(paths)) as pool:
        for done in pool.map(record, paths):
            assert done.returncode == 0, done.stderr[-3000:]
    return paths


@functools.cache
def facts_of(python):
    """Of the torch that is here: its minor version, has it isolate_recompiles, does it keep the classes alive that it guards?"""
    done = subprocess.run([python, "-c", "import inspect, sys, torch; print(*torch.__version__.split('.')[:2], int('isolate_recompiles' in inspect.signature(torch.compile).parameters), sys.version_info[1])"],
                          cwd="/", capture_output=True, text=True, check=True)
    major, minor, isolates, python_minor = map(int, done.stdout.split())
    return (major, minor), bool(isolates), (major, minor) < (2, 13) and python_minor < 13


def is_old(python):
    return facts_of(python)[0] < (2, 13)


def why(dyntrace, path, name, *more, old=False):
    name = ASKED.get(name, f"{name}_f") if old else f"{name}_f"
    done = subprocess.run([dyntrace, "why", name, path, *more], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def counted(found):
    """Compiles that made code, calls that ran eagerly, graph breaks."""
    eager = sum(c["calls"] for c in found["calls"] if c["outcome"] in ("limit", "run_only", "skip", "declined"))
    return sum(c["cache_entry_id"] is not None for c in found["compiles"]), eager, len(found["graph_breaks"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", EXPECTED)
def test_promised_counts_of_a_remedy_equal_those_with_the_remedy_applied(traces, dyntrace, python, name, mode):
    ask, old = functools.partial(why, dyntrace, old=is_old(python)), is_old(python)
    here = EXPECTED | (OBSERVED if mode == "observe" else {}) | ({} if facts_of(python)[1] else OLDER) | (OLD if old else {}) | (KEPT if facts_of(python)[2] else {})
    if name == "module_integer" and facts_of(python)[0] < (2, 8):
        pytest.skip("this torch makes a module's integer dynamic by itself")
    remedy, words, figure = here[name]
    page, found = ask(traces[mode, "needs"], name), json.loads(ask(traces[mode, "needs"], name, "--json"))
    given, = [r for r in found["remedies"] if r["name"] == remedy and words in r["text"]]
    now, then = counted(found), counted(json.loads(ask(traces[mode, "mended"], name, "--json")))
    assert then != now or name in SAME_COUNT, "the program does not need it"
    assert (then[1], then[0] + then[2]) <= (now[1], now[0] + now[2]), "it makes things worse"
    promised = given["predicted_compiles"] is not UNKNOWN
    if promised and not given["undecided"]:
        assert (given["compiles"], given["eager"]) == now[:2]
        assert (given["predicted_compiles"], given["predicted_eager"]) == then[:2]
    if mode == "shim":
        assert promised == figure
    # Cause and remedy are within the first lines, and what is known to help comes before what is not.
    assert given["text"][:60] in "\n".join(page.splitlines()[:12]) or given is not found["remedies"][0]
    assert all(r["what_if"] is None or "dynamic=" not in r["what_if"] for r in found["remedies"]) or not name.startswith("constant")
    gains = [None if r["compiles"] is None else (r["eager"] - r["predicted_eager"] or r["compiles"] - r["predicted_compiles"]) > 0
             for r in found["remedies"] if r["status"] != "normal"]
    assert gains == sorted(gains, key=[True, None, False].index)
    assert all((r["compiles"] is not None) == (r["status"] == "exact") for r in found["remedies"])


@pytest.mark.parametrize("mode", MODES)
def test_a_function_without_problems_gets_no_remedy(traces, dyntrace, mode):
    page = why(dyntrace, traces[mode, "needs"], "clean")
    assert "\nNothing to improve: compiled once, and every other call ran that.\n" in page and "What would have" not in page
    assert why(dyntrace, traces[mode, "needs"], "wrapper").splitlines()[0].endswith("function of Bert")


def test_why_prints_the_inputs_of_a_skipped_first_call(traces, dyntrace):
    for mode in MODES:
        assert re.search(r"skipped, for good: .*\n         inputs: tensors: list\[0\]\n", why(dyntrace, traces[mode, "needs"], "first_call"))


def test_a_recompile_for_a_dead_entry_has_a_cause(traces, dyntrace, python):
    rows = subprocess.run([dyntrace, "sql", traces["shim", "needs"], "SELECT why FROM recompiles WHERE qualname LIKE '%class_dies_f' ORDER BY compile_id"],
                          capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()[1:]
    words = r"L\['options'\]: expected \S+\.Options at 0x\w+, actual \S+\.Options at 0x\w+" if facts_of(python)[2] else r"\S+ had died: .*type\(L\['options'\]\) got deallocated"
    assert len(rows) == 2 and all(re.fullmatch(words, row) for row in rows), rows


def test_a_row_says_that_the_time_for_an_explanation_ran_out(dyntrace, python, tmp_path):
    """The guard that decided is right all the same."""
    program = tmp_path / "short.py"
    program.write_text("""
import torch
import _dyntrace_package._torch_guards
_dyntrace_package._torch_guards.MAX_SECONDS = 0.0
@torch.compile(backend="eager", dynamic=True)
def f(x):
    return x + 1 if 10 < x.shape[0] < 20 and x.shape[1] < 30 else x - 1
f(torch.ones(12, 5)), f(torch.ones(12, 40))
""")
    trace = tmp_path / "t.db"
    subprocess.run([dyntrace, "run", "-o", trace, "--frames", "decided", "--torch", "shim", "--python", python, program], check=True, timeout=200)
    with sqlite3.connect(trace) as db:
        rows = db.execute("SELECT ordinal, source, actual, how FROM recompile_cause ORDER BY ordinal").fetchall()
    assert rows == [(0, "L['x'].size()[1]", "L['x'].size()[1] = 40", "observed"), (1, None, None, "re-checked in part")]


# What `run --set` does instead of the edit: why names it, and the counts are those of the edited program.
SETTINGS = {
    "automatic": "mark_dynamic=L['x'][0]@automatic_f",
    "automatic_two": "dynamic=True@automatic_two_f",
    "all_dynamic": "dynamic=True@all_dynamic_f",
    "behind_a_break": "maybe_mark_dynamic=L['x'][0]@behind_a_break_f",
    "scheduled_rate": None, # the program's own branch on tensors is what the edit takes
    "one_then_more": "mark_unbacked=L['x'][0]@one_then_more_f",
    "lengths_of_modules": "isolate_recompiles=True@Stack.lengths_of_modules_f",
    "size": "mark_dynamic=L['x'][0]@size_f",
    "two_sizes": "maybe_mark_dynamic=L['x'][0]@two_sizes_f maybe_mark_dynamic=L['y'][0]@two_sizes_f",
    "small": "mark_unbacked=L['x'][0]@small_f",
    "small_first": "mark_unbacked=L['x'][0]@small_first_f",
    "number": "tensor=L['rate']@number_f",
    "parameter_sizes": "config.force_parameter_static_shapes=False",
    "module_integer": "config.allow_unspec_int_on_nn_module=True",
    "item_break": "config.capture_scalar_outputs=True",
    "shape_break": "config.capture_dynamic_output_shape_ops=True",
}


@pytest.fixture(scope="module")
def under_settings(dyntrace, python, tmp_path_factory):
    """The programs as they are, recorded under the settings that are for one function, then under those that are for all."""
    folder = tmp_path_factory.mktemp("settings")
    given = [word for text in SETTINGS.values() if text for word in text.split()]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "PYTHON"))}
    environment.update(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")

    def record(scoped):
        words = [part for word in given if word.startswith("config.") != scoped for part in ("--set", word)]
        path = folder / f"{scoped}.db"
        done = run_whole([dyntrace, "run", "-o", path, "--frames", "user", "--torch", "shim", "--python", python, *words, "--", PROGRAM, "needs"],
                         560, cwd=folder, env=environment)
        assert done.returncode == 0, done.stderr[-3000:]
        return path
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return dict(zip((True, False), pool.map(record, (True, False))))


def settings_of(found):
    return [one["setting"].replace(f"@{found['function']['qualname']}", "@" + found["function"]["qualname"].split(".")[-1])
            if one["setting"] else None for one in found["remedies"]]


@pytest.mark.parametrize("name", [name for name, text in SETTINGS.items() if text])
def test_a_setting_gives_the_counts_of_the_same_edit_by_hand(traces, under_settings, dyntrace, python, name):
    if is_old(python):
        pytest.skip("the settings are those of a torch with isolate_recompiles")
    needs = json.loads(why(dyntrace, traces["shim", "needs"], name, "--json"))
    mended = json.loads(why(dyntrace, traces["shim", "mended"], name, "--json"))
    tried = json.loads(why(dyntrace, under_settings[not SETTINGS[name].startswith("config.")], name, "--json"))
    wanted = SETTINGS[name].replace("@Stack.", "@")
    assert wanted in settings_of(needs), settings_of(needs)
    assert counted(tried) == counted(mended) != counted(needs)


def test_every_remedy_rule_is_tested_or_listed_as_untested(monkeypatch):
    monkeypatch.syspath_prepend(HERE.parent / "remedies")
    practice = importlib.import_module("practice").PRACTICE
    practised = {name for one in practice.values() for fix in one["fixes"].values() for name in fix["names"]}
    rules = re.findall(r"^\[torch (\w+)\] ([^\n]*)\n(?:(?!  )[^\n]+\n)+((?:  .*\n)+)", TABLE.read_text(), re.M)
    assert len(rules) > 95
    untried = [start for starts in UNTRIED.values() for start in starts]
    tried = set()
    for name, words, _ in [*EXPECTED.values(), *OLD.values()]:
        tried.add((name, words))
    for event, name, text in rules:
        text = " ".join(text.split())
        pattern = re.compile("(?s)" + re.sub(r"\\\{\w+\\\}", ".*", re.escape(text)))
        here = name in practised or any(name == other for other, _ in tried)
        assert here or any(text.startswith(start) for start in untried), (event, name, text)
        assert pattern
    for start in untried:
        assert any(" ".join(text.split()).startswith(start) for _, _, text in rules), start
