"""What `why` says where nothing is to be changed, where only an edit helps, and what compiled code does not notice.

The programs are the functions of programs/advice.py; where a remedy has counts, test_torch_remedies.py has its program."""
import json
import os
import subprocess
from pathlib import Path

import pytest

from shared import run_whole

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).resolve().parent / "programs" / "advice.py"
LINES = PROGRAM.read_text().splitlines()


def record(dyntrace, python, path, program, *more):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "PYTHON"))}
    environment.update(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    done = run_whole([dyntrace, "run", "-o", path, "--torch", "shim", "--python", python, *more, "--", program], 400,
                     cwd=path.parent, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.fixture(scope="module")
def trace(dyntrace, python, tmp_path_factory):
    path = tmp_path_factory.mktemp("advice") / "t.db"
    record(dyntrace, python, path, PROGRAM, "--frames", "decided")
    return path


@pytest.fixture
def why(dyntrace, trace):
    """why(name) -> (page, what --json says)"""
    def why(name, path=trace):
        pages = []
        for more in ([], ["--json"]):
            done = subprocess.run([dyntrace, "why", name, path, *more], capture_output=True, text=True, timeout=60)
            assert (done.returncode, done.stderr) == (0, "")
            pages.append(done.stdout)
        return pages[0], json.loads(pages[1])
    return why


def has_isolate(found):
    return tuple(map(int, found["torch"]["version"].split(".")[:2])) >= (2, 13)


NORMAL = {
    "transforms_f": ("transforms", ["none; vmap 1; vmap 1 in vmap 2"]),
    "train_and_evaluate_f": ("grad mode", ["training and evaluation need an entry each"]),
    "closures_f": ("many functions", ["3 of which were compiled", "which was not reached"]),
    "scheduled_f": ("optimizer", ["the work is in SGD.step", "`dyntrace why SGD.step`"]),
}


@pytest.mark.parametrize("name", NORMAL)
def test_normal_behaviour_of_torch_is_explained_without_a_setting(why, name):
    page, found = why(name)
    if not has_isolate(found):
        pytest.skip("the texts of older torches' guards and breaks differ")
    rule, words = NORMAL[name]
    one, = [remedy for remedy in found["remedies"] if remedy["name"] == rule]
    assert one["status"] == "normal" and all(word in one["text"] for word in words), one["text"]
    assert one["setting"] is None and one["compiles"] is None
    assert f"\n  Normal: {one['text'][:60]}" in page
    assert "isolate_recompiles" not in page.partition("Its calls")[0]


def test_compiles_for_training_and_for_evaluation_get_no_remedy(why):
    """Training and evaluation differ in grad mode and in the module's flag `training`. They need two compiles."""
    page, found = why("train_and_evaluate_f")
    assert len(found["compiles"]) == 2 and "  1. " not in page.partition("Its calls")[0]


def test_why_explains_a_size_marked_dynamic_but_needed_as_a_number(why):
    page, found = why("marked_f")
    first = found["remedies"][0]
    line = LINES.index("        return (x + weight).sum(1)") + 1
    assert first["name"] == "give the reason" and "maybe_mark_dynamic" in first["text"]
    assert "x.size(0)" in first["text"] and f"advice.py:{line}" in first["text"]


def test_why_advises_to_keep_a_number_that_range_needs_constant(why):
    page, found = why("ranges_f")
    line = LINES.index("        for i in range(start + 1, end):") + 1
    names = [remedy["name"] for remedy in found["remedies"]]
    assert names[0] == "constant number" and names[-1] == "raise the limit"
    assert f"advice.py:{line}" in found["remedies"][0]["text"]
    assert not any("torch.tensor(" in remedy["text"] for remedy in found["remedies"])


def test_raising_the_limit_is_advised_first_where_inputs_come_back(why):
    _, found = why("come_back_f")
    place = [remedy["name"] for remedy in found["remedies"]].index("raise the limit")
    assert place == 0 or found["remedies"][0]["status"] == "exact"


def test_why_warns_of_module_hooks_that_no_guard_checks(dyntrace, python, tmp_path, why):
    program = tmp_path / "late.py"
    program.write_text("""
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
    def forward(self, x):
        return self.lin(x) + 1
net, ran = Net(), []
f = torch.compile(net, backend="eager")
with torch.no_grad():
    f(torch.ones(2, 4)), f(torch.ones(2, 4))
    net.lin.register_forward_hook(lambda *more: ran.append(1))
    f(torch.ones(2, 4))
print(len(ran))
""")
    done = record(dyntrace, python, tmp_path / "t.db", program)
    page, found = why("Net.forward", tmp_path / "t.db")
    told = [remedy for remedy in found["remedies"] if remedy["status"] == "not guarded"]
    assert len(told) == (done.stdout == "0\n") # this torch guards hooks, or compiled code does not run one
    if told:
        assert "\n  Not guarded by this torch: Module.register_forward_hook was called after Net.forward" in page
        assert "Nothing to improve" not in page


def test_a_method_that_torch_compile_leaves_out_is_a_finding_of_its_own(why, dyntrace, python, tmp_path):
    """torch.compile(model) compiles forward alone. What forward itself calls, compiled or disabled, is no finding."""
    path = tmp_path / "encode.db"
    record(dyntrace, python, path, PROGRAM.with_name("encode_method.py"), "--frames", "user")
    done = subprocess.run([dyntrace, "report", path], capture_output=True, text=True, timeout=60)
    assert "Autoencoder.encode: 10 calls ran without torch.compile, which compiles only forward of a module" in done.stdout
    assert "Autoencoder.count:" not in done.stdout
    page, found = why("Autoencoder.encode", path)
    assert found["remedies"][0]["name"] == "method", found["remedies"]
    assert "Compile Autoencoder.encode by itself" in page
