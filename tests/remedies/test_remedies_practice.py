"""torch programs as people write them: what dyntrace counts, advises and promises of them is what torch really does.

programs/ has the programs with their hand-edited fixes, practice.py says which fixes are best, and measure.py counts without dyntrace."""
import pytest

from recorded import PRACTICE, Recorder, expected, gain

pytestmark = [pytest.mark.slow, pytest.mark.one_python]
every = pytest.mark.parametrize("name", PRACTICE)
SETTINGS = [(name, fix) for name, one in PRACTICE.items() for fix, more in one["fixes"].items() if more["setting"]]


@pytest.fixture(scope="module")
def recorder(dyntrace, python, tmp_path_factory):
    return Recorder(dyntrace, python, tmp_path_factory.mktemp("practice"))


@pytest.fixture(scope="module")
def plain(recorder):
    return recorder.plain()


@pytest.fixture(scope="module")
def under_settings(recorder):
    return recorder.set(SETTINGS)


@every
def test_best_fixes_are_those_that_torch_counts_as_best(recorder, name):
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
def test_counts_are_torchs(recorder, plain, name):
    run, truth = plain[name], recorder.measure(name)[""]
    assert (run["status"], run["out"]) == (truth["status"], truth["out"])
    assert run["counts"] == expected(truth)


@pytest.mark.parametrize("name, fix", SETTINGS)
def test_setting_does_what_the_edit_does(recorder, under_settings, name, fix):
    run, truth = under_settings[name, fix], recorder.measure(name)[fix]
    assert (run["status"], run["out"]) == (truth["status"], truth["out"]), run
    assert run["counts"] == expected(truth)


def test_every_setting_did_something(under_settings):
    said = {line for run in under_settings.values() for line in run["said"].splitlines() if line.startswith("dyntrace: ")}
    assert not said
