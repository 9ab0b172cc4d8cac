"""The programs of the seed pages, with only their imports changed, print the output that the pages have.
tests/seeds/001.py is the program of page 001; 001_*.txt are its outputs."""
import os
import subprocess
from pathlib import Path

import pytest

SEEDS = Path(__file__).resolve().parent / "seeds"
PACKAGE = Path(os.environ.get("DYNTRACE", Path(__file__).resolve().parent.parent / "build" / "dyntrace")).parent / "lib" / "python"


@pytest.fixture(params=["alone", "recorded"])
def run(request, python, record):
    """run(arguments of Python) -> its output, alone or under `dyntrace run`."""
    def alone(command):
        environment = dict(os.environ, PYTHONPATH=str(PACKAGE))
        done = subprocess.run([python, *map(str, command)], capture_output=True, text=True, env=environment, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def recorded(command):
        return record(command, python=python).out
    return alone if request.param == "alone" else recorded


@pytest.mark.parametrize("which", ["skip", "hit", "miss"])
def test_each_example_program_prints_what_its_page_says(run, tmp_path, which):
    program = tmp_path / "program.py"
    text = (SEEDS / "001.py").read_text()
    program.write_text(text + f"\n\ntest_always_{which}_callback()\n")
    assert run([program]) == (SEEDS / f"001_{which}.txt").read_text()


def test_the_seed_programs_run_one_after_the_other(run, tmp_path):
    """The caches are kept between the programs: no program may depend on an empty cache."""
    program = tmp_path / "program.py"
    program.write_text((SEEDS / "001.py").read_text() + "\n\ntest_always_hit_callback()\ntest_always_hit_callback()\n")
    hit = (SEEDS / "001_hit.txt").read_text()
    out = run([program])
    assert out.startswith(hit)
    assert out[len(hit):] == "".join(f"calling the {n}-th function: __main__.{f}\nthe function has 1 cache entries now.\n"
                                     "number of caches in the last call: 0\n" for n, f in ((1, "f"), (2, "g"))) \
        + "guard called with 1 args.\n" * 3


@pytest.mark.parametrize("library", ["parser", "server", "config", "message"])
def test_calls_that_build_an_object_are_in_the_order_of_setprofile(run, library):
    """The last example, with objects of the standard library: every function at its first call, in the order that
    sys.setprofile reports."""
    program = SEEDS / "001_library.py"
    skip = run([program, library, "skip"])
    assert skip == run([program, library, "profiled"])
    assert skip.count("\n") > 10
    # Compiled and run from the cache, it does the same; guards run from the second call of a function on.
    hit = run([program, library, "hit"])
    calls = [line for line in hit.splitlines() if line.startswith("calling")]
    assert [c.split(": ")[1] for c in calls] == [c.split(": ")[1] for c in skip.splitlines() if c.startswith("calling")]
    miss = run([program, library, "miss"])
    assert miss.count("calling") >= hit.count("calling")
