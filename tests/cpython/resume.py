#!/usr/bin/env python3
"""CPython's own test modules, and test suites from PyPI, with their functions split in two: `make resume-torture`.

usage: resume.py [--python PY]... [--build DIR] [--modules NAME... | --quick] [--packages NAME...] [--seeds N|every...] [--random COUNT]

For each interpreter and module, or package, the tests that fail must be the same

    with a callback that replaces nothing, or frames by copies (a test that wants its own code object fails then),
    with functions split at a random point, and every second resume function again (--seeds: each number other points),
    with functions of up to 200 instructions split at every point in turn (--seeds: every)

and COUNT random programs (tests/programs/shim_random.py) do the same split as not. Packages are installed with pip, their
tests from the source distribution where the wheel has none. Needs no pytest but for packages, which pip fetches as well.

exit status: 0 the same, 1 not.
"""
import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from compare import MODULES, QUICK, Interpreter, forget_ignored_signals

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = ROOT / "tests" / "programs"

# Tests that tell a split from none by what a split is, each with its reason.
KNOWN = {
    "test_for_2 (test.test_coroutines.": "counts references to a constant, which the split code has, too",
    "test_bug1055820c (test.test_gc.": "counts what is allocated until the next collection",
    "test_bug1055820d (test.test_gc.": "the same",
    "test_get_count (test.test_gc.": "the same",
    "test_get_objects_arguments (test.test_gc.": "counts all objects; a split makes some",
    "test_heap_size (test.test_gc.": "the same",
    "test_frame (test.test_gc.": "a frame object taken before the split is not the frame of the rest",
    "test_print (test.test_traceback.TestTracebackException": "the same, of a traceback: the values have moved on",
    "test_walk_stack (test.test_traceback.TestStack": "the same: 3.14's traceback.walk_stack() takes one when it is called, not when it is read",
    "test_format_locals (test.test_traceback.TestStack": "the same",
    "test_custom_format_frame (test.test_traceback.TestStack": "the same",
    "test_colorized_traceback_from_exception_group (test.test_traceback.": "the same: split behind a handler, the traceback of what that handled",
    "test_recursive_traceback_cpython_internal (test.test_traceback.": "3.11: the limit may be met in the call of the resume function",
    "test_recursive_traceback_python (test.test_traceback.": "the same",
    "test_getallocatedblocks (test.test_sys.": "counts what is allocated; a split makes some",
    "test_refcount (test.test_sys.": "counts references to None; a split makes some",
    "test_proper_refcounts (test.test_asyncio.test_tasks.": "counts references: 3.14 borrows one on the stack, which a resume function owns",
    "test_objecttypes (test.test_sys.": "sys.getsizeof(frame): more variables",
    "test_origin_tracking (test.test_coroutines.": "3.11 counts frames there that have not started",
    "test_origin_tracking_warning (test.test_coroutines.": "the same",
}

# Modules about trace functions, which see one more call and return for each split.
LEFT_OUT = {"test_sys_settrace", "test_sys_setprofile"}


def environment(build, *more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYENV", "DYNTRACE"))}
    return dict(kept, PYTHONPATH=os.pathsep.join([str(build / "lib" / "python"), str(PROGRAMS), *map(str, more)]))


def answer(words, build, patience, cwd=None, more=()):
    """The JSON of the last line, or a sentence."""
    with tempfile.TemporaryDirectory(prefix="resume-") as scratch, tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=cwd or scratch,
                                   env=environment(build, *more), start_new_session=True)
        try:
            status = process.wait(patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return f"still running after {patience} s"
        output.seek(0)
        lines = output.read().splitlines()
        for line in reversed(lines):
            if '{"ran"' in line:  # perhaps behind what a test printed
                return json.loads(line[line.index('{"ran"'):])
        return f"status {status}: " + " | ".join(lines[-6:])[-800:]


def differences(plain, split, allowed, known):
    """What SPLIT, but for ALLOWED and KNOWN, did otherwise than PLAIN, as lines."""
    if isinstance(split, str):
        return [split]
    off = set(split["off"])
    lines = [f"fails: {test}" for test in split["bad"] if test not in allowed | off and not test.startswith(tuple(known))]
    lines += [f"passes: {test}" for test in plain["bad"] if test not in set(split["bad"]) | off]
    return lines + [f"{split['ran']} tests, not {plain['ran']}"] * (split["ran"] != plain["ran"])


def compare(name, run, modes, known):
    """RUN(mode) for each of MODES; what differs from the run that replaces nothing, as lines. That is looked at again: a copy may do the
    same, and some tests fail now and then."""
    plain = run("declined")
    if isinstance(plain, str):
        print(f"{name}: left out: {plain}", flush=True)
        return []
    if not plain["ran"]:
        print(f"{name}: no test ran", flush=True)
        return [name]
    allowed, copied, wrong, words, once = set(plain["bad"]), None, [], [f"plain {plain['ran']} run, {len(plain['bad'])} fail"], []
    for mode in modes:
        split = run(mode)
        lines = differences(plain, split, allowed, known)
        if isinstance(split, str):
            wrong += [f"{mode}: {line}" for line in lines]
            continue
        if lines and not copied:
            copied = run("replaced")
            allowed |= set(copied["bad"]) if isinstance(copied, dict) else set()
            lines = differences(plain, split, allowed, known)
        if lines:
            second = differences(plain, run(mode), allowed, known)
            once += [f"{mode}, once of two times: {line}" for line in lines if line not in second]
            wrong += [f"{mode}: {line}" for line in lines if line in second]
        words.append(f"{mode} {split['replaced']} replaced" + (f", {len(split['off'])} off" if split["off"] else ""))
    print("\n    ".join([f"{name}: {' | '.join(words)} | {'DIFFERS' if wrong else 'same'}", *wrong, *once]), flush=True)
    return wrong


def install(python, name, folder):
    """Where NAME's tests are; None: there are none. FOLDER: on its path."""
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
    env = {key: value for key, value in os.environ.items() if not key.startswith("DYNTRACE")}
    subprocess.run([*pip, "install", "--target", folder, name, "pytest", "hypothesis"], check=True, env=env, capture_output=True)
    for place in (folder / name.replace("-", "_")).glob("**/tests"):
        if any(place.glob("test_*.py")):
            return place
    source = folder / "source"
    subprocess.run([*pip, "download", "--no-deps", "--no-binary", name, "-d", source, name], check=True, env=env, capture_output=True)
    for archive in source.glob("*.tar.gz"):
        with tarfile.open(archive) as file:
            file.extractall(source)
    return next((place for place in sorted(source.glob("*/tests")) if any(place.glob("**/test_*.py"))), None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", action="append")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--modules", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--packages", nargs="*", default=[])
    parser.add_argument("--seeds", nargs="*", default=["1", "every"])
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--patience", type=int, default=1800)
    options = parser.parse_args()
    build, wrong = options.build.resolve(), []
    modes = [seed if seed == "every" else f"split={seed}" for seed in options.seeds]
    forget_ignored_signals()
    for python in options.python or [sys.executable]:
        interpreter = Interpreter(python, None)
        python, version = interpreter.path, interpreter.version
        for module in options.modules if options.modules is not None else QUICK if options.quick else MODULES:
            if module in LEFT_OUT and options.modules is None:
                continue
            hangs = [f"-{test}" for test in [interpreter.left_out(module)] if test]
            wrong += compare(f"{version} {module}", lambda mode: answer([python, PROGRAMS / "shim_cpython.py", mode, module, *hangs], build,
                                                                        options.patience), modes, KNOWN)
        for name in options.packages:
            with tempfile.TemporaryDirectory(prefix="resume-") as folder:
                try:
                    place = install(python, name, Path(folder))
                except subprocess.CalledProcessError as error:
                    wrong.append(f"{version} {name}: {error.stderr.decode()[-800:]}")
                    print(wrong[-1], flush=True)
                    continue
                if not place:
                    print(f"{version} {name}: left out: no tests found", flush=True)
                    continue
                wrong += compare(f"{version} {name}", lambda mode: answer(
                    [python, PROGRAMS / "resume_pytest.py", mode, place], build, options.patience, place.parent, [folder, place.parent]), modes, KNOWN)
        for mode in (["split", "every"] if "every" in options.seeds else ["split"]) if options.random else ():
            done = subprocess.run([python, PROGRAMS / "shim_random.py", "0", str(options.random), mode], capture_output=True, text=True,
                                  env=environment(build))
            print(f"{version} random, {mode}: {done.stdout.splitlines()[-1] if done.stdout else done.stderr[-2000:]}", flush=True)
            if done.returncode:
                wrong.append(done.stdout[-8000:] + done.stderr[-4000:])
                print(wrong[-1], flush=True)
    print(f"resume-torture: {len(wrong)} differences", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
