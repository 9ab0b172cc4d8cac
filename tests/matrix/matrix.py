#!/usr/bin/env python3
"""Run tests/with_torch with each pair of torch and CPython that we say to support; print and keep what came of it.

usage: matrix.py [--keep] [--wheels DIR] [--results DIR] [--python PY]... [--tests ARG]... [--docs FILE] [PAIR...]

    matrix.py                                  every pair of VERSIONS and the Pythons here; hours
    matrix.py 2.8.0-3.12 2.11.0-3.12           these two
    matrix.py /usr/bin/python3                 the torch that this Python has (Debian's python3-torch), as it is
    matrix.py --slow 2.8.0-3.12                the tests marked slow, to what is kept of the others; half an hour to two
    matrix.py --slow --tests=tests/with_torch/test_caches.py 2.8.0-3.12   these of them
    matrix.py none                             nothing: the table of what was run before

For each pair, one after the other:

    1. build/torch-VERSION-PYTHON, an environment with that torch for the CPU (environment.py), unless it lies there
    2. the extension for that Python
    3. tests/with_torch, without those marked slow (--slow: these): every program plain, in shim mode and observed, and beside
       sys.monitoring; results, torch's counters and the ledger of calls must be the same
    4. build/torch-matrix/VERSION-PYTHON.json: date, commit, outcomes; then the environment is removed (--keep: not)

A pair needs 3 GB while its wheel is unpacked, 2 GB after; there is one at a time. Whatever has no wheel is a row that says so.

exit status: 0 all tests of all pairs asked for passed, 1 not, 2 bad usage. Needs the standard library only, pip, gcc and binutils.
"""
import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import environment

ROOT = Path(__file__).resolve().parents[2]
WHOLE = ["tests/with_torch", "capture/tests/with_torch"]
BUILD = ROOT / "build"
VERSIONS = ["2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.0", "2.13.0", "2.14.1", "2.15.0"]
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
BEGIN, END = "<!-- torch-matrix: made by `make torch-matrix` -->\n", "<!-- /torch-matrix -->\n"


def say(text):
    print(f"== {datetime.datetime.now():%H:%M:%S} {text}", flush=True)


def interpreters(named):
    """Minor version -> path, those NAMED first."""
    home = Path.home() / ".pyenv" / "versions"
    found = {}
    for path in [*named, *(shutil.which(f"python{minor}") for minor in PYTHONS), *sorted(map(str, home.glob("3.*/bin/python3")))]:
        if path:
            done = subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"],
                                  capture_output=True, text=True, cwd="/")
            minor, _, executable = done.stdout.strip().partition(" ")
            if executable:
                found.setdefault(minor, executable)
    return found


def facts_of(python):
    """What PYTHON, which has a torch, is."""
    ask = "import json, platform, torch; print(json.dumps([torch.__version__.split('+')[0], platform.python_version()]))"
    return json.loads(subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True, cwd="/").stdout)


def mode_by_default(dyntrace, python, folder):
    """What `dyntrace run` does by itself with this torch: a mode, and why if it says so."""
    trace = folder / "default.db"
    code = "import torch; torch.compile(lambda x: x + 1, backend='eager')(torch.ones(3))"
    subprocess.run([dyntrace, "run", "--force", "--frames", "user", "-o", trace, "--python", python, "--", "-c", code],
                   check=True, capture_output=True, cwd=folder)
    done = subprocess.run([dyntrace, "sql", "--json", trace, "SELECT torch_mode, torch_note FROM process"],
                          capture_output=True, text=True, check=True)
    row = json.loads(done.stdout)[0]
    return row["torch_mode"], row["torch_note"]


def outcomes_of(report):
    """pytest's junit file -> {test: [outcome, seconds, why]}"""
    found = {}
    for case in xml.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        outcome, why = "passed", ""
        for child in case:
            if child.tag in ("failure", "error", "skipped"):
                outcome, why = {"skipped": "skipped"}.get(child.tag, "failed"), (child.get("message") or "").split("\n")[0][:300]
        if found.get(name, [""])[0] != "failed":        # a test may pass and its fixture fail
            found[name] = [outcome, float(case.get("time", 0)), why]
    return found


def run_pair(python, name, options, before):
    """The tests with PYTHON -> what is kept of them, with those that ran BEFORE."""
    folder = BUILD / "torch-matrix" / f"work-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    subprocess.run(["make", "-s", f"PYTHONS={python}", *options.make], check=True, cwd=ROOT)
    dyntrace = BUILD / "dyntrace"
    mode, note = mode_by_default(dyntrace, python, folder)
    report = folder / "report.xml"
    environ = dict(os.environ, DYNTRACE=str(dyntrace), DYNTRACE_TORCH_PYTHON=python)
    say(f"{name}: tests, {mode} by default")
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    with open(folder / "log", "w", encoding="utf-8") as log:
        subprocess.run([*pytest, "-m", "slow" if options.slow else "not slow", f"--junitxml={report}",
                        *(options.tests or WHOLE)], cwd=ROOT, env=environ, stdout=log, stderr=subprocess.STDOUT)
    listed = subprocess.run([*pytest, "--collect-only", *WHOLE], cwd=ROOT, env=environ, capture_output=True, text=True).stdout
    there = {module + test for module, test in re.findall(r"^(?:capture/)?tests/with_torch/(\w+)\.py(::.+)$", listed, re.M)}
    version, minor = facts_of(python)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    tests = outcomes_of(report)
    for test, (outcome, _, why) in tests.items():
        if outcome == "failed":
            say(f"{name}: FAILED {test}: {why}")
    part = options.tests
    if options.slow or options.tests:       # some tests more of a pair whose others were run
        part = before.get("part", part)
        tests = {**{test: came for test, came in before.get("tests", {}).items() if test in there}, **tests}
    (folder / "log").replace(options.results / f"{name}.log")
    shutil.rmtree(folder, ignore_errors=True)
    return {"torch": version, "python": minor, "date": f"{datetime.date.today()}", "commit": commit, "default": mode, "note": note,
            "part": part, "slow": options.slow or before.get("slow", False) and bool(options.tests),
            "not_run": len(there - set(tests)), "tests": tests}


def what_is_in(kept):
    return json.loads(kept.read_text()) if kept.exists() else {}


def pair(name, options, pythons):
    """Run one pair and keep its result -> whether all is well."""
    kept = options.results / f"{name.replace('/', '_')}.json"
    if name.startswith("/"):
        version, minor = facts_of(name)
        kept = options.results / f"{version}-{minor.rpartition('.')[0]}.json"
        result = run_pair(name, kept.stem, options, what_is_in(kept))
    else:
        version, _, minor = name.partition("-")
        if minor not in pythons:
            say(f"{name}: no Python {minor} here (--python PATH)")
            return False
        place = BUILD / f"torch-{name}"
        python = str(place / "bin" / "python")
        ready = subprocess.run([python, "-c", "import torch, pytest"], cwd="/").returncode == 0 if os.path.exists(python) else False
        try:
            if not ready:
                say(f"{name}: making {place}")
                environment.make(version, pythons[minor], place, options.wheels)
            result = run_pair(python, name, options, what_is_in(kept))
        except environment.NoWheel as error:
            say(f"{name}: {error}")
            result = {"torch": version, "python": minor, "date": f"{datetime.date.today()}", "no_wheel": True}
        finally:
            if not options.keep:
                shutil.rmtree(place, ignore_errors=True)
    kept.write_text(json.dumps(result, indent=1) + "\n")
    return not any(outcome == "failed" for outcome, *_ in result.get("tests", {}).values())


# ---- the table ----

def count(tests, outcome, words=""):
    return sum(1 for name, one in tests.items() if one[0] == outcome and re.search(words, name))


def rows_of(results):
    """What was kept, as cells."""
    for path in sorted(results.glob("*.json"), key=lambda path: [int(part) for part in re.findall(r"\d+", path.stem)]):
        one = json.loads(path.read_text())
        if one.get("no_wheel"):
            yield [one["torch"], one["python"], "no wheel", "", "", "", "", "", one["date"]]
            continue
        tests = one["tests"]
        cells = []
        for words in (r"\[(shim-|.*-shim)|shim", r"\[(observe-|.*-observe)|observe", ""):
            passed, failed = count(tests, "passed", words), count(tests, "failed", words)
            cells.append(f"{passed}" + (f", **{failed} failed**" if failed else ""))
        part = f" ({' '.join(one['part'])})" if one["part"] else ""
        which = "quick" if not one.get("slow") else f"all but {one['not_run']}" if one["not_run"] else "all"
        yield [one["torch"], one["python"], one["default"], which, *cells, f"{count(tests, 'skipped')}", one["date"] + part]


def table(results):
    head = ["torch", "CPython", "by default", "tests", "in shim mode", "observed", "passed", "skipped", "run on"]
    rows = [head, ["-" * 3] * len(head), *rows_of(results)]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pairs", nargs="*", metavar="PAIR", help="VERSION-PYTHON, the path of a Python with torch, or none")
    parser.add_argument("--keep", action="store_true", help="keep the environments")
    parser.add_argument("--wheels", type=Path, help="keep wheels of torch in this folder, and take them from there")
    parser.add_argument("--results", type=Path, default=BUILD / "torch-matrix", help="where results are kept")
    parser.add_argument("--python", action="append", default=[], help="a Python to make environments from; again for more")
    parser.add_argument("--slow", action="store_true", help="run the tests marked slow, not the quick ones")
    parser.add_argument("--tests", action="append", help="an argument to pytest, instead of tests/with_torch and capture's; again for more")
    parser.add_argument("--make", action="append", default=[], help="an argument to make; again for more")
    parser.add_argument("--docs", type=Path, help="put the table into this file, between its marks")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    pythons = interpreters(options.python)
    bad = [name for name in options.pairs if name != "none" and not name.startswith("/") and not re.fullmatch(r"\d+\.\d+\.\d+-3\.\d+", name)]
    if bad:
        parser.error(f"{bad[0]}: not VERSION-PYTHON, as 2.8.0-3.12")
    wanted = options.pairs or [f"{version}-{minor}" for version in VERSIONS for minor in PYTHONS if minor in pythons]
    well = [pair(name, options, pythons) for name in wanted if name != "none"]
    shown = table(options.results)
    print(shown, end="")
    if options.docs:
        text = options.docs.read_text()
        before, _, rest = text.partition(BEGIN)
        if END not in rest:
            parser.error(f"{options.docs} has no marks for the table")
        options.docs.write_text(before + BEGIN + shown + END + rest.partition(END)[2])
    sys.exit(0 if all(well) else 1)


if __name__ == "__main__":
    main()
