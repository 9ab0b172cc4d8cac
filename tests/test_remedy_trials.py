"""Remedies that `dyntrace try` has measured: their text in `why`, and their order. The trials are planted."""
import json
import re

import pytest

from planted_torch import Torch

pytestmark = pytest.mark.one_python

BASELINE = dict(compiles=3, recompiles=2, breaks=0, eager=5, hits=0)


@pytest.fixture
def why(run):
    def why(path, *more):
        done = run("why", "f", path, *more)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout, json.loads(run("why", "f", path, "--json").stdout)["remedies"]
    return why


@pytest.fixture
def sizes(tmp_path):
    """Three sizes of x and three of y, then the limit."""
    p = Torch(tmp_path / "t.db")
    p.sizes(4, 5, 6)
    p.limit("recompile_limit (3) reached", calls=4)
    p.trials = 0
    return p


def tried(p, setting, exit_code=0, output_same=1, values_same=None, error=None, difference=None, **counts):
    """Add a trial with its counts of f. The first trial is the baseline."""
    p.trials += 1
    ended = dict(exit_code=exit_code, output_same=None if p.trials == 1 else output_same, values_same=values_same, error=error,
                 difference=difference)
    counts = {**BASELINE, **counts, "compile_ns": 9}
    p.insert("trial", trial_id=p.trials, batch=1, setting=setting, command="[]", **ended, **counts)
    p.insert("trial_function", trial_id=p.trials, function_id=1, **counts)


MARK, RAISE = "mark_dynamic=L['x'][0]@f", "config.recompile_limit=7"


def test_a_remedy_has_the_figures_that_its_trial_measured(why, sizes):
    tried(sizes, "")
    tried(sizes, MARK, compiles=1, recompiles=0, eager=0, hits=7)
    page, remedies = why(sizes.done())
    first = remedies[0]
    assert (first["setting"], first["status"], first["trial"]) == (MARK, "measured", 2)
    assert (first["compiles"], first["measured_compiles"], first["eager"], first["measured_eager"]) == (3, 1, 5, 0)
    assert "     measured (trial 2): 1 compile instead of 3, 0 eager calls instead of 5\n" in page
    assert all(one["status"] != "measured" for one in remedies[1:]) and "no gain" not in page


def test_a_pair_no_better_than_one_setting_is_no_remedy(why, sizes):
    tried(sizes, "")
    tried(sizes, MARK, compiles=1, recompiles=0, eager=0, hits=7)
    tried(sizes, f"{MARK} {RAISE}", compiles=1, recompiles=0, eager=0, hits=7)
    _, remedies = why(sizes.done())
    assert f"{MARK} {RAISE}" not in [one["setting"] for one in remedies]


def test_a_pair_better_than_each_setting_is_a_remedy(why, sizes):
    tried(sizes, "")
    tried(sizes, MARK, compiles=2, recompiles=1, eager=0, hits=6)
    tried(sizes, f"{MARK} {RAISE}", compiles=1, recompiles=0, eager=0, hits=7)
    _, remedies = why(sizes.done())
    assert remedies[0]["setting"] == f"{MARK} {RAISE}"


def test_the_last_trial_of_a_setting_counts(why, sizes):
    tried(sizes, "")
    tried(sizes, MARK, error="stopped after 1 s (--timeout)", exit_code=None)
    tried(sizes, MARK, compiles=2, recompiles=1, eager=0)
    _, remedies = why(sizes.done())
    assert (remedies[0]["status"], remedies[0]["trial"], remedies[0]["measured_compiles"]) == ("measured", 3, 2)


def test_the_remedy_with_the_better_trial_is_first(why, sizes):
    tried(sizes, "")
    tried(sizes, MARK, compiles=2, recompiles=1, eager=0)
    tried(sizes, RAISE, compiles=8, recompiles=7, eager=0)
    page, remedies = why(sizes.done())
    assert [one["setting"] for one in remedies[:1]] == [MARK]
    # a limit that only postpones stays behind, with its figure
    assert remedies[-1]["setting"] == RAISE and "8 compiles instead of 3, 0 eager calls instead of 5" in page


def test_a_remedy_whose_trial_had_no_gain_says_so(why, sizes):
    tried(sizes, "")
    tried(sizes, MARK)
    page, remedies = why(sizes.done())
    assert remedies[-1]["setting"] == MARK and remedies[-1]["status"] == "measured"
    assert "     measured (trial 2): still 3 compiles, still 5 eager calls; no gain\n" in page


@pytest.mark.parametrize("before, after, gain, words", [
    (None, 0, True, "1 compile instead of 3, 0 eager calls instead of some that were not counted"),
    (None, 2, False, "1 compile instead of 3, 2 eager calls instead of some that were not counted; no gain"),
    (None, None, True, "1 compile instead of 3, eager calls not counted"),
    (2, None, False, "1 compile instead of 3, eager calls not counted; no gain")])
def test_eager_calls_that_were_not_counted_are_taken_as_at_least_one(why, sizes, before, after, gain, words):
    """torch gave the function up, so its eager calls were not counted. There was at least one such call."""
    tried(sizes, "", eager=before)
    tried(sizes, MARK, compiles=1, recompiles=0, eager=after)
    page, remedies = why(sizes.done())
    one, = [one for one in remedies if one["setting"] == MARK]
    assert (one["measured_eager"], one["eager"], one["status"]) == (after, before, "measured")
    assert f"     measured (trial 2): {words}\n" in page
    assert (remedies[0] is one) == gain


@pytest.mark.parametrize("ended, words", [
    (dict(exit_code=1, error="RuntimeError: no such size"), "RuntimeError: no such size"),
    (dict(values_same="different"), "it returned other values")])
def test_a_remedy_that_failed_is_not_printed(why, sizes, ended, words):
    tried(sizes, "")
    tried(sizes, MARK, compiles=1, eager=0, **ended)
    page, remedies = why(sizes.done())
    assert remedies[-1]["setting"] == MARK and remedies[-1]["rejected"] and remedies[-1]["trial_error"] == words
    assert (remedies[-1]["status"], remedies[-1]["compiles"]) == ("not measured", None)
    assert "mark_dynamic(x, 0)" not in page and re.search(r"^  1\. Raise the limit", page, re.M)


def test_a_remedy_with_another_output_is_listed_apart(why, sizes):
    """A program that prints how often it compiled has another output under each remedy. Its author must decide."""
    tried(sizes, "")
    tried(sizes, MARK, compiles=1, eager=0, output_same=0, difference="stdout: 'graphs 1', unchanged 'graphs 3'")
    tried(sizes, RAISE, compiles=3, eager=5, output_same=0)  # spares nothing
    page, remedies = why(sizes.done())
    one, = [one for one in remedies if one["setting"] == MARK]
    assert one["rejected"] and (one["status"], one["compiles"]) == ("not measured", None)
    told = page.partition("Tried, and not advised: the program wrote something else\n")[2]
    assert "mark_dynamic(x, 0)" in told and f"     trial 2, {MARK}: compiles 1 instead of 3, eager calls 0 instead of 5\n" in told
    assert "its output was another: stdout: 'graphs 1', unchanged 'graphs 3'" in told and RAISE not in told
    assert not re.search(r"^  1\. Mark", page, re.M)


@pytest.mark.parametrize("eager, words", [
    (None, "eager calls not counted"), (0, "eager calls fewer than before")])
def test_another_output_and_uncounted_eager_calls_are_printed(why, sizes, eager, words):
    tried(sizes, "", eager=None)
    tried(sizes, MARK, compiles=1, eager=eager, output_same=0)
    page, _ = why(sizes.done())
    told = page.partition("Tried, and not advised: the program wrote something else\n")[2]
    assert f"     trial 2, {MARK}: compiles 1 instead of 3, {words}\n" in told
    assert "its output was another\n" in told


@pytest.mark.parametrize("ended", [dict(error="stopped after 1 s (--timeout)", exit_code=None), dict(error="no call had such an argument")])
def test_a_trial_without_a_result_rejects_no_remedy(why, sizes, ended):
    tried(sizes, "")
    tried(sizes, MARK, **ended)
    page, remedies = why(sizes.done())
    one, = [one for one in remedies if one["setting"] == MARK]
    assert not one["rejected"] and one["status"] == "not measured"
    assert f"     not measured (trial 2): {ended['error']}\n" in page


def test_settings_without_a_rule_are_remedies_too(why, sizes):
    tried(sizes, "")
    tried(sizes, "dynamic=True@f config.specialize_float=True", compiles=1, recompiles=0, eager=0)
    tried(sizes, "mode=default@f")
    page, remedies = why(sizes.done())
    assert (remedies[0]["name"], remedies[0]["setting"]) == ("tried", "dynamic=True@f config.specialize_float=True")
    assert "mode=default" not in page


def test_settings_in_another_order_are_the_same(why, tmp_path):
    p = Torch(tmp_path / "t.db")
    for i, (x, y) in enumerate(((4, 4), (5, 5), (6, 6))):
        p.compile([dict(entry=j, kind="TENSOR_MATCH", source=f"L['{name}'].size()[0]", expected=str(4 + j), actual=str(value))
                   for j in range(i) for name, value in (("x", x), ("y", y))], guards=(("TENSOR_MATCH", "L['x']", "?"),))
    p.trials = 0
    tried(p, "", eager=0)
    tried(p, "maybe_mark_dynamic=L['y'][0]@f maybe_mark_dynamic=L['x'][0]@f", compiles=1, eager=0)
    _, remedies = why(p.done())
    assert remedies[0]["setting"] == "maybe_mark_dynamic=L['x'][0]@f maybe_mark_dynamic=L['y'][0]@f" and remedies[0]["measured_compiles"] == 1


def test_why_prints_three_remedies_and_all_with_the_option_all(why, tmp_path):
    p = Torch(tmp_path / "t.db")
    for i, source in enumerate(("L['a']", "L['b']", "L['c']", "L['d']")):
        p.sequence("EQUALS_MATCH", source, [2 * i, 2 * i + 1])
    page, remedies = why(p.done())
    assert len(remedies) == 4 and re.search(r"^  and 1 more: dyntrace why f --all$", page, re.M) and "  4. " not in page
    everything, _ = why(p.path, "--all")
    assert "  4. " in everything and " more: dyntrace" not in everything


# ---- resume functions: trial 1 is the unchanged run -----------------------------------------

REST = "torch_dynamo_resume_in_f_at_14"
CAPTURE = "config.capture_scalar_outputs=True"


@pytest.fixture
def broken(tmp_path):
    """f with a graph break in line 14: codes 1 (f) and 240 (the rest of f). `tried` adds a trial, of which only code ids are known."""
    p = Torch(tmp_path / "t.db")
    p.sizes(4)
    p.breaks(line=14)
    p.db.execute("UPDATE code SET origin_code_id = 1 WHERE code_id = 240")
    p.trials = 0

    def tried(setting, **compiles):
        p.trials += 1
        p.insert("trial", trial_id=p.trials, batch=1, setting=setting, command="[]", exit_code=0, output_same=None if p.trials == 1 else 1,
                 compiles=sum(compiles.values()), recompiles=0, breaks=1, eager=0, hits=0, compile_ns=9)
        for function, count in compiles.items():
            p.insert("trial_function", trial_id=p.trials, function_id={"f": 1, "rest": 240, "unnamed": None}[function], compiles=count,
                     recompiles=count - 1, breaks=int(function == "f"), eager=0, hits=0, compile_ns=9)
    p.tried = tried
    return p


def of_rest(run, path):
    done = run("why", REST, path, "--json")
    assert done.returncode == 0, done.stderr
    return [(one["setting"], one["measured_compiles"]) for one in json.loads(done.stdout)["remedies"] if one["status"] == "measured"]


def test_a_graph_break_that_moved_is_not_counted_as_a_gain(run, broken):
    broken.tried("", f=1, rest=2)
    broken.tried(CAPTURE, f=1, unnamed=3)
    path = broken.done()
    assert of_rest(run, path) == []
    rows = json.loads(run("sql", path, f"SELECT compiles, gain, note FROM trial_functions WHERE qualname = '{REST}' AND NOT baseline",
                          "--json").stdout)
    assert [tuple(row.values()) for row in rows] == [(None, 0, "not measured")]


@pytest.mark.parametrize("unnamed, gain", [(0, 1), (1, 1), (3, 0)])
def test_compiles_of_new_resume_functions_count_against_a_gain(run, broken, unnamed, gain):
    broken.tried("", f=1, rest=2)
    broken.tried(CAPTURE, f=1, rest=1, **({"unnamed": unnamed} if unnamed else {}))
    path = broken.done()
    assert [one for one in of_rest(run, path) if one[0] == CAPTURE] == [(CAPTURE, 2 + unnamed)] * gain
    rows = json.loads(run("sql", path, f"SELECT compiles, baseline_compiles, gain FROM trial_functions WHERE qualname = '{REST}' "
                          "AND NOT baseline", "--json").stdout)
    assert [tuple(row.values()) for row in rows] == [(2 + unnamed, 3, gain)]
