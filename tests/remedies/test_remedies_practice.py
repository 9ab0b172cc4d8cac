"""torch programs as people write them: what dyntrace counts, advises and promises of them is what torch really does.

programs/ has the programs with their hand-edited fixes, practice.py says which fixes are best, and measure.py counts without dyntrace."""
import pytest

from recorded import (PRACTICE, PRINTED, TABLE_VERSION, Recorder, expected, figure_is_right, figure_of, first_is_right, gain,
                      of_function, pairs_with_settings, settings_in, true_counts, works)

pytestmark = [pytest.mark.slow, pytest.mark.one_python]
every = pytest.mark.parametrize("name", PRACTICE)
SETTINGS = pairs_with_settings()


@pytest.fixture(scope="module")
def recorder(dyntrace, python, tmp_path_factory):
    return Recorder(dyntrace, python, tmp_path_factory.mktemp("practice"))


@pytest.fixture(autouse=True)
def half_on_other_versions(recorder, request):
    name = request.node.callspec.params.get("name") if hasattr(request.node, "callspec") else None
    if name and name not in recorder.names:
        pytest.skip("on this torch every second program runs")


@pytest.fixture(scope="module")
def plain(recorder):
    return recorder.plain()


@pytest.fixture(scope="module")
def under_settings(recorder):
    return recorder.under(recorder.fixes_with_settings())


@pytest.fixture(scope="module")
def advised(recorder, plain):
    """What the settings of all remedies do."""
    return recorder.under([(name, text) for name in plain for text in settings_in(plain[name]["remedies"])])


@every
def test_best_fixes_in_the_table_are_best_by_torchs_own_counts(recorder, name):
    if recorder.version != TABLE_VERSION:
        pytest.skip("practice.py says what is best on another torch")
    measured = recorder.measure(name)
    plain, fixes = measured[""], PRACTICE[name]["fixes"]
    for fix, more in fixes.items():
        assert measured[fix]["status"] == plain["status"]
        assert more.get("changes") or measured[fix]["out"] == plain["out"]
    if not PRACTICE[name]["best"]:
        assert all(gain(measured[fix]) >= gain(plain) for fix in fixes)
    for fix in PRACTICE[name]["best"]:
        others = [gain(measured[other]) for other in fixes if other not in PRACTICE[name]["best"]]
        assert gain(measured[fix]) < min([gain(plain), *others])


@every
def test_recorded_counts_equal_torchs_own_counts(recorder, plain, name):
    run, truth = plain[name], recorder.measure(name)[""]
    assert (run["status"], run["out"]) == (truth["status"], truth["out"])
    assert run["counts"] == expected(truth)


@pytest.mark.parametrize("name, fix", SETTINGS)
def test_a_setting_gives_the_counts_and_output_of_the_hand_edit(recorder, under_settings, name, fix):
    key, truth = (name, PRACTICE[name]["fixes"][fix]["setting"]), recorder.measure(name)[fix]
    if key not in under_settings:
        pytest.skip(truth["error"])
    run = under_settings[key]
    assert (run["status"], run["out"], run["refused"]) == (truth["status"], truth["out"], []), run
    assert run["counts"] == expected(truth)


def skip_without_status(remedies):
    if remedies and "status" not in remedies[0]:
        pytest.skip("`why` does not tell measured figures from others yet")


@every
def test_the_first_remedy_of_why_is_one_of_the_best(recorder, plain, advised, name):
    skip_without_status(plain[name]["remedies"])
    assert first_is_right(name, plain[name]["remedies"], recorder.measure(name), advised)


@every
def test_figures_printed_with_remedies_equal_torchs_counts(recorder, plain, advised, name):
    skip_without_status(plain[name]["remedies"])
    for remedy in plain[name]["remedies"][:PRINTED]:
        if figure_of(remedy):
            assert figure_is_right(remedy, true_counts(name, remedy, recorder.measure(name), advised)), remedy["text"]


@every
def test_no_setting_printed_by_why_raises_or_changes_results(recorder, plain, advised, name):
    skip_without_status(plain[name]["remedies"])
    for text in settings_in(plain[name]["remedies"][:PRINTED]):
        assert works(name, text, recorder.measure(name), advised), (text, advised[name, text])


@pytest.fixture(scope="module")
def tried(recorder):
    return recorder.tries(recorder.fixes_with_settings())


@pytest.mark.parametrize("name, fix", SETTINGS)
def test_try_counts_the_same_as_the_hand_edited_program(recorder, tried, name, fix):
    key, truth = (name, PRACTICE[name]["fixes"][fix]["setting"]), recorder.measure(name)[fix]
    if key not in tried:
        pytest.skip(truth["error"])
    assert tried[key] == of_function(truth)
