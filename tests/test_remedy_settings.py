"""The settings of `dyntrace run --set` that `why` prints for its remedies. `dyntrace try` runs the program under them."""
import importlib.util
import json
import shlex
import subprocess
from pathlib import Path

import pytest

from planted import Plant
from planted_torch import CAUSES, Torch

pytestmark = pytest.mark.one_python

SETTINGS_PY = Path(__file__).resolve().parent.parent / "python" / "dyntrace" / "_settings.py"


@pytest.fixture(scope="module")
def settings():
    spec = importlib.util.spec_from_file_location("settings", SETTINGS_PY)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def understood(settings):
    """understood(TEXT): each setting in it is one that `run --set` reads."""
    def understood(text):
        for number, word in enumerate(words_of(text)):
            settings.parse(number, word)
    return understood


def test_a_global_that_a_called_function_reads_is_reached_by_the_functions_name(settings):
    def caller(x):
        return settings.parse(x, x)

    for text, reached in (("tensor=G['made']@f", True), ("tensor=G['made']", False), ("tensor=L['made']@f", False),
                          ("mark_dynamic=L['x'][0]@f", True)):
        assert settings.parse(0, text).can_be_read_in(caller.__code__) == reached, text


def words_of(text):
    return shlex.split(text) if text.startswith("'") else text.split()


@pytest.fixture
def remedies(dyntrace, tmp_path):
    def remedies(plant):
        done = subprocess.run([dyntrace, "why", "f", plant.done(), "--json"], capture_output=True, text=True, check=True, timeout=60)
        return json.loads(done.stdout)["remedies"]
    return remedies


CASES = [  # kind, source, values, torch's sentence, version, the setting of the first remedy that has one
    ("TENSOR_MATCH", "L['x'].size()[0]", [16, 18, 20], None, "2.13.0", "mark_dynamic=L['x'][0]@f"),
    ("TENSOR_MATCH", "L['self'].cache.size()[2]", [4, 5], None, "2.13.0", "mark_dynamic=L['self'].cache[2]@f"),
    ("TENSOR_MATCH", "L['a b'].size()[2]", [4, 5], None, "2.13.0", "'mark_dynamic=L['\\''a b'\\''][2]@f'"),
    ("TENSOR_MATCH", "___from_numpy(L['w']).size()[0]", [4, 5], None, "2.13.0", "mark_dynamic=L['w'][0]"),
    ("TENSOR_MATCH", "___from_numpy(L['w']).size()[0]", [4, 5], None, "2.12.0", "dynamic=True@f"),
    ("TENSOR_MATCH", "L['x'].size()[1]", [1, 0], None, "2.13.0", "mark_unbacked=L['x'][1]@f"),
    ("TENSOR_MATCH", "L['self']._modules['fc']._parameters['weight'].size()[0]", [4, 8], None, "2.13.0",
     "config.force_parameter_static_shapes=False"),
    ("TENSOR_MATCH", "L['self']._modules['fc']._parameters['weight'].size()[0]", [4, 8], None, "2.12.0",
     "config.force_parameter_static_shapes=False"),
    ("EQUALS_MATCH", "L['n']", [2, 3], None, "2.13.0", "tensor=L['n']@f"),
    ("EQUALS_MATCH", "G['step']", [2, 3], None, "2.13.0", "tensor=G['step']@f"),
    ("EQUALS_MATCH", "G['o'].param_groups[0]['lr']", [0.1, 0.2], None, "2.13.0", "tensor=G['o'].param_groups[0]['lr']@f"),
    ("EQUALS_MATCH", "dict(type(L['self']).__dict__)['factor']", [2, 3], None, "2.13.0",
     "tensor=dict(type(L['self']).__dict__)['factor']@f"),
    ("EQUALS_MATCH", "list(dict.keys(L['d']))[0]", [2, 3], None, "2.13.0", None),
    ("EQUALS_MATCH", "L['self'].n", [0, 1, 2], "L['self'].n == 0 (HINT: ... torch._dynamo.config.allow_unspec_int_on_nn_module = True)",
     "2.13.0", "config.allow_unspec_int_on_nn_module=True"),
    ("EQUALS_MATCH", "L['mode']", ["'train'", "'eval'"], None, "2.13.0", None),
    ("TENSOR_MATCH", "L['x'].dtype", ["torch.float32", "torch.float64"], None, "2.13.0", None),
    ("BACKEND_MATCH", None, [None, None], "the backend differs", "2.13.0", "isolate_recompiles=True@f"),
]


@pytest.mark.parametrize("kind, source, values, text, version, setting", CASES)
def test_each_cause_has_the_setting_that_avoids_it(remedies, understood, tmp_path, kind, source, values, text, version, setting):
    p = Torch(tmp_path / "t.db", version)
    for i, value in enumerate(values):
        p.compile([dict(entry=j, kind=kind, source=source, expected=values[j] if values[j] is None else str(values[j]),
                        actual=value if value is None else str(value), text=text) for j in range(i)],
                  guards=((kind, source, f"{source} is {value}"),))
    given = [remedy["setting"] for remedy in remedies(p)]
    assert next(filter(None, given), None) == setting
    for one in filter(None, given):
        understood(one)


def test_a_resume_function_has_the_setting_of_its_function(dyntrace, understood, tmp_path):
    """The program passes f to torch.compile(), not its resume function."""
    p = Torch(tmp_path / "t.db", qualname="Net.torch_dynamo_resume_in_forward_at_12")
    p.sizes(4, 5, 6, source="L['y'].size()[0]")
    done = subprocess.run([dyntrace, "why", "Net.torch_dynamo_resume_in_forward_at_12", p.done(), "--json"], capture_output=True,
                          text=True, check=True, timeout=60)
    given = [one["setting"] for one in json.loads(done.stdout)["remedies"]]
    assert given[0] == "dynamic=True@Net.forward"
    understood(given[0])


@pytest.mark.parametrize("reason, version, setting", [
    ("Unsupported Tensor.item() call with capture_scalar_outputs=False", "2.13.0", "config.capture_scalar_outputs=True"),
    ("Dynamic shape operator\n  Explanation: Operator `aten.nonzero.default`'s output", "2.13.0",
     "config.capture_dynamic_output_shape_ops=True"),
    ("Attempted to wrap RNN, GRU, or LSTM", "2.13.0", "config.allow_rnn=True"),
    ("Call to `torch._dynamo.graph_break()`\n  Explanation: User-inserted", "2.13.0", None)])
def test_each_graph_break_has_the_setting_that_avoids_it(remedies, understood, tmp_path, reason, version, setting):
    p = Torch(tmp_path / "t.db", version)
    p.compile()
    p.breaks(reason)
    one, = [remedy for remedy in remedies(p) if "line 14" in remedy["text"]]
    assert one["setting"] == setting
    if setting:
        understood(setting)


@pytest.mark.parametrize("reason, version, setting", [
    ("recompile_limit (3) reached", "2.13.0", "config.recompile_limit=7"),
    ("cache_size_limit (3) reached", "2.6.0", "config.cache_size_limit=7"),
    ("accumulated_recompile_limit (3) reached", "2.13.0", "config.accumulated_recompile_limit=7")])
def test_a_limit_has_a_setting_that_is_high_enough(remedies, understood, tmp_path, reason, version, setting):
    p = Torch(tmp_path / "t.db", version)
    p.sizes(4, 5, 6)
    p.limit(reason, calls=4)
    one, = [remedy for remedy in remedies(p) if remedy["name"] == "raise the limit"]
    assert one["setting"] == setting
    understood(setting)


def test_limits_of_the_programs_own_compiler_have_settings(remedies, understood, tmp_path):
    for reason, setting in (("recompile_limit", "limit=9"), ("accumulated_limit", "accumulated_limit=9")):
        p = Plant(tmp_path / f"{reason}.db")
        p.sequence("EQUALS_MATCH", "L['n']", [2, 3])
        p.compile(outcome="declined", reason=reason)
        p.db.execute("UPDATE compile SET outcome = 'limit' WHERE compile_id = ?", (p.ids["compile"],))
        for _ in range(7):
            p.call("limit")
        one, = [remedy for remedy in remedies(p) if remedy["name"] == "raise the limit"]
        assert one["setting"] == setting
        understood(setting)


def test_the_settings_of_all_rules_are_valid(remedies, understood, tmp_path):
    """The traces are those that the tests of `why` plant."""
    count = 0
    for i, (kind, source, values, text, *_) in enumerate(CAUSES):
        p = Torch(tmp_path / f"{i}.db")
        p.sequence(kind, source, values)
        for one in remedies(p):
            if one["setting"]:
                understood(one["setting"])
                count += 1
    assert count >= 10
