"""The predictions of `why` for its remedies come true, for programs with their own compiler: programs/remedy_cases.py
runs unchanged and with each remedy applied, and the counts are compared. Torch's are in
with_torch/test_torch_remedies.py."""
import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parent / "programs" / "remedy_cases.py"
# function: remedy, words of it, has it a figure: where a what-if does what the remedy does, and the trace decides each call. To fill
# in a key or to pad is not to drop the guard, and code that was never compiled may not compile.
EXPECTED = {
    "size_f": ("dynamic dimension", "dynamic_sizes=[0]", True),
    "dtype_f": ("one dtype", "Cast x", True),
    "length_f": ("one length", "Keep the length of items", False),
    "keys_f": ("one set of keys", "Keep the keys of batch", False),
    "none_f": ("one value", "mask", False),
    "flag_f": ("one value", "Keep flag fixed", False),
    "number_f": ("hoist", "n was 2, 3, 4", False),
    "string_f": ("one value", "Hoist mode", False),
    "global_f": ("hoist", "Set the global SCALE once", True),
    "function_f": ("define once", "Define the function act once", True),
    "object_f": ("one object", "Make thing once", True),
    "type_f": ("one type", "Pass one type as thing", False),
    "attribute_f": ("attribute", "in __init__", False),
    "limit_f": ("raise the limit", "to 6 at most", False),
    "reset_f": ("no reset", "Do not reset the cache", False),
}


@pytest.fixture(scope="module")
def traces(dyntrace, tmp_path_factory):
    folder = tmp_path_factory.mktemp("remedies")
    for state in ("needs", "mended"):
        subprocess.run([dyntrace, "run", "-o", folder / f"{state}.db", "--python", sys.executable, "--", PROGRAM, state], check=True, timeout=100)
    return folder


def counted(found):
    return sum(c["cache_entry_id"] is not None for c in found["compiles"]), found["shares"]["ran_as_python"]


@pytest.mark.parametrize("function", EXPECTED)
def test_predicted_counts_equal_those_measured_with_the_remedy(dyntrace, traces, function):
    name, words, figure = EXPECTED[function]
    found, mended = (json.loads(subprocess.run([dyntrace, "why", function, traces / f"{state}.db", "--json"], capture_output=True, check=True,
                                               timeout=60).stdout) for state in ("needs", "mended"))
    given, = [r for r in found["remedies"] if r["name"] == name and words in r["text"]]
    now, then = counted(found), counted(mended)
    assert then != now and then[::-1] < now[::-1]
    assert (given["predicted_compiles"] is not None) == figure and given["status"] == ("exact" if figure else "not measured")
    if figure:
        assert (given["compiles"], given["eager"]) == now and (given["predicted_compiles"], given["predicted_eager"]) == then
