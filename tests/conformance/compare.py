#!/usr/bin/env python3
"""Run PyTorch's own test/dynamo files on torch's shim and on dyntrace's; compare what every test did.

usage: compare.py --source TREE [--python PY] [--files NAME... | --files all] [--torch MODE]... [--json OUT] ...

For each file and mode (shim; observe when asked for):

    native    PY run_file.py FILE                                        (or a stored result: see --baseline-dir)
    ours      dyntrace run --torch MODE --force -o T.db -- PY run_file.py FILE       then T.db is checked and deleted

A run is a table {test id: outcome}. Two runs agree when the tables are equal: a test that is skipped or disappears only
with dyntrace counts as much as one that fails. A test that fails on both sides is no difference.

A process that dies or hangs in a test is that test's outcome; a further process goes on with the rest. A test that
differs is run alone on both sides. If it then agrees, the whole file is run once more on each side that had only one run:
what has been seen on both sides is called flaky, what stays apart is a difference.

exit status: 0 same outcomes and sound traces, 1 a difference or an unsound trace, 2 bad usage or nothing to run with.
Needs the standard library only. README.md beside this file has the reasons.
"""
import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import sound  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# What a shim can get wrong, most telling first. A file that a tree lacks is left out. README.md has what each takes.
DEFAULT = """
    test_frame_init test_recompiles test_recompile_ux test_skip_guard_eval_unsafe test_resume test_guard_manager
    test_nops test_decorators test_exceptions test_generator test_ctx_manager test_hooks test_fullgraph test_modules
    test_subgraphs test_profiler test_misc test_repros test_functions
""".split()

# Left out of the default list, on both sides: minutes of sympy, and nothing about a shim.
SLOW = {"test_repros": ["ReproTests.test_many_overlapping_inputs_does_not_explode_guards"]}

PASS, SKIP, FAIL = "ok", "skipped", "FAILED"
GOOD = (PASS, SKIP, "expected failure")
NOT_RUN = "not run"


# ---------------------------------------------------------------- one run

class Run:
    """What one run of a file did: {test: outcome}, why some failed, seconds, the end of its output, what its trace says."""

    def __init__(self, outcomes, why, seconds, tail="", trace=None):
        self.outcomes, self.why, self.seconds, self.tail, self.trace = outcomes, why, seconds, tail, trace

    def failing(self):
        return [test for test, outcome in self.outcomes.items() if outcome not in GOOD]

    def count(self, *outcomes):
        return sum(1 for seen in self.outcomes.values() if seen in outcomes)

    def as_json(self):
        return {"seconds": round(self.seconds, 1), "outcomes": self.outcomes, "why": self.why, "tail": self.tail, "trace": self.trace}

    @classmethod
    def from_json(cls, stored):
        return cls(stored["outcomes"], stored["why"], stored["seconds"], stored["tail"], stored["trace"])


class Report:
    """The lines that run_file.py has written so far."""

    def __init__(self, path):
        self.path, self.read = path, 0
        self.outcomes, self.why, self.count = {}, {}, None
        self.running, self.since = None, time.monotonic()

    def refresh(self):
        try:
            with open(self.path, encoding="utf-8") as file:
                file.seek(self.read)
                while (line := file.readline()).endswith("\n"):
                    self.read = file.tell()
                    self.take(json.loads(line))
        except OSError:
            pass

    def take(self, line):
        if line["event"] == "tests":
            self.count = line["count"]
            return
        test = tidy(line["test"])
        if line["event"] == "outcome":
            order = (SKIP, PASS, "expected failure", "unexpected success", FAIL)
            before = self.outcomes.get(test)
            if before is None or order.index(line["outcome"]) > order.index(before):
                self.outcomes[test] = line["outcome"]
            if line["outcome"] == FAIL:
                self.why.setdefault(test, tidy(line["why"]))
        else:
            self.running, self.since = (test if line["event"] == "start" else None), time.monotonic()

    def died(self, end):
        """The process is gone without having finished: say so where it was. False if that was in no test."""
        if self.running is None:
            return False
        self.outcomes[self.running], self.why[self.running] = FAIL, end
        self.running = None
        return True


def tidy(text):
    """Text that two runs can share: without __main__, addresses (ids are decimal ones) and temporary directories."""
    text = re.sub(r"0x[0-9a-fA-F]+|\b\d{13,}\b", "0x..", text)
    return re.sub(r"\b__main__\.|torch-conformance-\w+", "", text)


def run_file(command, path, only, left_out, options, patience):
    """Run PATH by COMMAND (a list ending in an interpreter; a function of the scratch directory), all tests or ONLY those, and
    none of LEFT_OUT. Returns a Run. COMMAND runs again for the rest when a test takes the process down."""
    with tempfile.TemporaryDirectory(prefix="torch-conformance-", dir=options.scratch) as scratch:
        report = Report(os.path.join(scratch, "report"))
        tail, trace, seconds = "", None, 0
        for attempt in range(options.restarts + 1):
            end, text, took, found = run_process(command, path, only, left_out, report, scratch, attempt, options, patience)
            trace, seconds = add_traces(trace, found), seconds + took
            tail = text[-4000:] if end != "exit 0" else tail
            if end in ("exit 0", "exit 1") and report.running is None:
                break  # unittest ended by itself, and its status says no more than the table
            if not report.died(end):
                # Not in a test: at import, in a class fixture, at exit, or nothing of ours was there to report.
                report.outcomes["<process>"], report.why["<process>"] = FAIL, end
                break
        if not report.outcomes and report.count is None:  # an import error is an exit 1 like any other
            report.outcomes["<import>"], report.why["<import>"] = FAIL, last_error(text) or end
    return Run(report.outcomes, report.why, seconds, tail, trace)


def last_error(text):
    lines = [line for line in text.splitlines() if re.match(r"\w[\w.]*(Error|Exception|Interrupt)\b|dyntrace: ", line)]
    return tidy(lines[-1]) if lines else ""


def run_process(command, path, only, left_out, report, scratch, attempt, options, patience):
    """(how it ended, its output, its seconds, what its trace says or None) of one process; REPORT grows meanwhile."""
    work = os.path.join(scratch, f"work{attempt}")
    os.mkdir(work)
    selection = os.path.join(scratch, "selection")
    with open(selection, "w", encoding="utf-8") as file:
        json.dump({"only": None if only is None else ["__main__." + test for test in only],
                   "leave_out": ["__main__." + test for test in [*left_out, *report.outcomes]]}, file)
    environment = {name: value for name, value in os.environ.items()
                   if name != "CI" and not name.startswith(("PYTHON", "DYNTRACE", "PYENV", "PYTORCH", "TORCH"))}
    environment["TMPDIR"] = work          # inductor's caches, too: no run may profit from another's
    environment["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    store = os.path.join(scratch, "trace.db")
    argv = command(store) + [str(HERE / "run_file.py"), str(path), report.path, selection]
    began = time.monotonic()
    with open(os.path.join(scratch, "output"), "w+b") as output:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=work, env=environment,
                                 start_new_session=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
        end = None
        report.since = time.monotonic()
        try:
            while end is None:
                try:
                    status = child.wait(0.2)
                    end = signal.Signals(-status).name if status < 0 else f"exit {status}"
                except subprocess.TimeoutExpired:
                    report.refresh()
                    if time.monotonic() - report.since > options.test_timeout and report.running:
                        end = f"still running after {options.test_timeout:.0f} s"
                    elif time.monotonic() - began > patience:
                        end = f"not finished after {patience:.0f} s"
                    if end:
                        stop(child)
        finally:
            if end is None:  # we are told to stop: so are they
                stop(child)
            kill_session(child)
        took = time.monotonic() - began
        report.refresh()
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    found = None
    if os.path.basename(argv[0]) == "dyntrace":
        # `dyntrace run` hands on a signal as 128+N.
        killed = re.fullmatch(r"exit (1[23]\d)", end)
        if killed:
            end = signal.Signals(int(killed[1]) - 128).name
        found = check_trace(store, options)
        for name in os.listdir(scratch):
            if name.startswith("trace.db"):
                os.unlink(os.path.join(scratch, name))
    return end, text, took, found


def stop(child):
    """End CHILD's session: politely first, so that `dyntrace run` can close its trace."""
    for number, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        try:
            os.killpg(child.pid, number)
            child.wait(patience)
            return
        except (subprocess.TimeoutExpired, ProcessLookupError):
            continue


def kill_session(child):
    """Whatever the tests left behind."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


# ---------------------------------------------------------------- the trace

# Every row says something that must not be: (what, query that counts).
MUST_BE_NONE = (
    ("hits without an entry", "SELECT COUNT(*) FROM lookup "
     "WHERE outcome = (SELECT value FROM enum WHERE kind = 'outcome' AND name = 'hit') AND cache_entry_id IS NULL"),
    ("guard checks of no lookup",
     "SELECT COUNT(*) FROM guard_check c LEFT JOIN lookup l USING (lookup_id) WHERE l.lookup_id IS NULL"),
    ("entries of no compile",
     "SELECT COUNT(*) FROM cache_entry e LEFT JOIN compile c USING (compile_id) "
     "WHERE e.compile_id IS NOT NULL AND c.compile_id IS NULL"),
)


def check_trace(path, options):
    """{"frames", "lookups", "compiles", "losses": {cause: events}, "modes": {mode: processes}, "notes", "faults"} of a trace."""
    found = {"frames": 0, "lookups": 0, "compiles": 0, "losses": {}, "modes": {}, "notes": [], "faults": [], "bytes": 0}

    def more(trace):
        for table in ("frame", "lookup", "compile"):
            found[table + "s"] = trace.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
        found["losses"] = dict(trace.execute("SELECT CAST(cause AS TEXT), SUM(COALESCE(events, 1)) FROM loss GROUP BY cause"))
        found["modes"] = dict(trace.execute("SELECT torch_mode, COUNT(*) FROM process WHERE torch_mode IS NOT NULL GROUP BY 1"))
        found["notes"] = [row[0] for row in trace.execute(
            "SELECT DISTINCT torch_note FROM process WHERE torch_note IS NOT NULL AND torch_note <> ''")]
        counts = [(what, trace.execute(query).fetchone()[0]) for what, query in MUST_BE_NONE]
        return [f"{count} {what}" for what, count in counts if count]
    return found if options.no_check else sound.check(path, found, options.check_rows, more)


def add_traces(one, other):
    """What two traces of the same run say together."""
    if one is None or other is None:
        return one or other
    both = dict(one)
    for name, value in other.items():
        if isinstance(value, dict):
            both[name] = {key: one[name].get(key, 0) + value.get(key, 0) for key in {**one[name], **value}}
        else:
            both[name] = one[name] + value
    return both


# ---------------------------------------------------------------- what to run it with

class Torch:
    """The interpreter under test and its torch."""

    QUESTION = """
import importlib.util, json, platform, sys
answer = {"python": platform.python_version(), "torch": None, "git": None, "lacks": [], "why": ""}
try:
    import torch
    answer["torch"], answer["git"] = torch.__version__, torch.version.git_version
    answer["lacks"] = [name for name in ("expecttest",) if importlib.util.find_spec(name) is None]
except Exception as error:
    answer["why"] = f"{type(error).__name__}: {error}"
print("\\n" + json.dumps(answer))
"""

    def __init__(self, path):
        found = shutil.which(os.path.expanduser(path))
        if not found:
            raise Unfit(f"{path}: no such interpreter: name one that has torch in TORCH_PYTHON")
        self.path = os.path.abspath(found)
        answer = subprocess.run([self.path, "-c", self.QUESTION], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/",
                                text=True)
        try:
            facts = json.loads(answer.stdout.strip().splitlines()[-1])
        except (IndexError, ValueError):
            raise Unfit(f"{path}: does not run: {(answer.stderr.strip().splitlines() or ['no output'])[-1]}") from None
        if not facts["torch"]:
            raise Unfit(f"{path}: has no torch ({facts['why']}): name an interpreter that has it in TORCH_PYTHON")
        if facts["lacks"]:
            lack = facts["lacks"][0]
            raise Unfit(f"{path}: has no {lack}, which PyTorch's tests need: {self.path} -m pip install {lack} "
                        f"(Debian: python3-{lack})")
        self.python, self.version, self.git = facts["python"], facts["torch"], facts["git"]
        self.minor = ".".join(self.version.split(".")[:2])

    def __str__(self):
        return f"torch {self.version} on CPython {self.python}"


class Tree:
    """PyTorch's sources: which test files there are and which torch they are made for."""

    def __init__(self, path, torch, any_version):
        self.path = Path(path).expanduser().resolve()
        self.tests = self.path / "test" / "dynamo"
        if not self.path.is_dir():
            raise Unfit(f"{path}: no such directory: set PYTORCH_SRC to a PyTorch source tree")
        if not any(self.tests.glob("test_*.py")):
            raise Unfit(f"{path}: not a PyTorch source tree: it has no test/dynamo/test_*.py")
        try:
            self.version = (self.path / "version.txt").read_text().strip()
        except OSError:
            self.version = None
        if not any_version:
            if self.version is None:
                raise Unfit(f"{path}: has no version.txt, so its version is not known: ANY_VERSION=1 takes its tests all the same")
            if ".".join(self.version.split(".")[:2]) != torch.minor:
                raise Unfit(f"{path}: the tests of torch {self.version} do not fit {torch}: get the sources of {torch.minor}, "
                            "or set ANY_VERSION=1 (many tests then fail, on both sides)")

    def names(self):
        return sorted(path.stem for path in self.tests.glob("test_*.py"))

    def digest(self, name):
        """Of a test file and of the files beside it that it imports."""
        text, seen = "", [name]
        for each in seen:
            try:
                source = (self.tests / f"{each}.py").read_text(encoding="utf-8")
            except OSError:
                continue
            text += f"{each}\0{source}\0"
            for line in re.findall(r"^\s*(?:from|import)\s+([^#\n]*)", source, re.M):
                seen += [word for word in re.findall(r"\w+", line)
                         if word not in seen and (self.tests / f"{word}.py").exists()]
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Unfit(Exception):
    """One line that says what is wrong and how to mend it."""


# ---------------------------------------------------------------- both sides of a file

class Comparison:
    """Everything learnt about one file in one mode."""

    def __init__(self, tree, torch, name, mode, options, left_out=()):
        self.tree, self.torch, self.mode, self.options = tree, torch, mode, options
        self.name, _, tests = name.partition(":")
        self.only = sorted(filter(None, tests.split(","))) or None
        self.left_out = list(left_out)
        self.path = tree.tests / f"{self.name}.py"
        self.native, self.ours, self.alone = [], [], {}
        self.real, self.flaky = {}, {}
        choice = "\0".join([*(self.only or []), *("-" + test for test in self.left_out)])
        where = hashlib.sha256(choice.encode()).hexdigest()[:8] if choice else "all"
        self.baseline = Path(options.baseline_dir, f"{torch.version}-{torch.python}",
                             f"{self.name}-{tree.digest(self.name)}-{where}.json")

    # Baselines: native runs of earlier sessions.

    def load(self):
        if self.options.fresh:
            return
        try:
            kept = json.loads(self.baseline.read_text())
        except (OSError, ValueError):
            return
        same_tests = (kept.get("only"), kept.get("left_out", [])) == (self.only, self.left_out)
        if same_tests and kept.get("torch_git") == self.torch.git:
            self.native = [Run.from_json(run) for run in kept["runs"]]

    def store(self):
        self.baseline.parent.mkdir(parents=True, exist_ok=True)
        draft = self.baseline.with_suffix(".tmp")
        draft.write_text(json.dumps(
            {"torch": self.torch.version, "torch_git": self.torch.git, "python": self.torch.python, "file": self.name,
             "only": self.only, "left_out": self.left_out, "runs": [run.as_json() for run in self.native]}, indent=1))
        draft.replace(self.baseline)

    # Runs.

    def native_command(self, _store):
        return [self.torch.path]

    def our_command(self, store):
        return [self.options.dyntrace, "run", "--torch", self.mode, "--force", "-o", store,
                *self.options.dyntrace_option, "--", self.torch.path]

    def run_native(self):
        self.native.append(run_file(self.native_command, self.path, self.only, self.left_out, self.options, self.options.timeout))
        self.store()

    def run_ours(self):
        patience = max(self.options.timeout, 3 * max(run.seconds for run in self.native))
        self.ours.append(run_file(self.our_command, self.path, self.only, self.left_out, self.options, patience))
        trace = self.ours[-1].trace
        if trace and not trace["faults"] and not self.options.no_check and set(trace["modes"]) != {self.mode}:
            modes = ", ".join(f"{mode} in {count}" for mode, count in sorted(trace["modes"].items())) or "in no process"
            if self.mode not in trace["modes"] and self.ours[-1].outcomes.keys() != {"<import>"}:
                trace["faults"].append(f"torch_mode is not {self.mode} but {modes}: {'; '.join(trace['notes'])}")

    def run_alone(self, test):
        """One test on both sides, in a process of its own: {"native": outcome, "ours": outcome}."""
        sides = {}
        for side, command in (("native", self.native_command), ("ours", self.our_command)):
            run = run_file(command, self.path, [test], [], self.options, self.options.timeout)
            sides[side] = run.outcomes.get(test, NOT_RUN)
            sides[side + " why"] = run.why.get(test, "")
        return sides

    def differing(self):
        """{test: (outcomes native, outcomes ours)} for the tests that no native and no traced run agree on."""
        tests = dict.fromkeys(test for run in self.native[:1] + self.ours for test in run.outcomes)
        seen = {test: ([run.outcomes.get(test, NOT_RUN) for run in self.native],
                       [run.outcomes.get(test, NOT_RUN) for run in self.ours]) for test in tests}
        return {test: sides for test, sides in seen.items() if not set(sides[0]) & set(sides[1])}

    def compare(self):
        self.load()
        if not self.native:
            self.run_native()
        if self.options.baseline_only:
            return self
        self.run_ours()
        first = self.differing()
        if first and not self.options.no_retry:
            # Alone: is it the test by itself? The whole file again: or its company?
            names = [test for test in first if not test.startswith("<") and re.fullmatch(r"\w+\.\w+", test)]
            self.alone = {test: self.run_alone(test) for test in names[:self.options.most_alone]}
            if any(sides["native"] == sides["ours"] for sides in self.alone.values()) or len(names) < len(first):
                self.run_ours()
                if self.differing() and len(self.native) == 1:
                    self.run_native()
        self.real = self.differing()
        self.flaky = {test: ([run.outcomes.get(test, NOT_RUN) for run in self.native],
                             [run.outcomes.get(test, NOT_RUN) for run in self.ours]) for test in first if test not in self.real}
        return self

    # What to say.

    def faults(self):
        return [fault for run in self.ours for fault in (run.trace or {}).get("faults", [])]

    def sound(self):
        return not self.real and not self.faults()

    def summary(self):
        """One line: what the two sides did."""
        parts = [f"{self.name:28}", f"{len(self.native[0].outcomes):4} tests"]
        for label, runs in (("native", self.native), (self.mode, self.ours)):
            if runs:
                run = runs[0]
                parts.append(f"{label} {run.count(PASS, 'expected failure'):4} ok {run.count(SKIP):3} skipped "
                             f"{len(run.failing()):3} failing {run.seconds:6.1f} s")
        if self.ours:
            trace = self.ours[0].trace or {}
            lost = sum(trace.get("losses", {}).values())
            if trace:
                parts.append(f"{trace['frames']:,} frames {trace['lookups']:,} lookups" + (f" {lost:,} LOST" if lost else ""))
            parts.append("DIFFERENT" if self.real else "UNSOUND TRACE" if self.faults() else
                         f"same but {len(self.flaky)} flaky" if self.flaky else
                         "same, but it does not import" if set(self.native[0].outcomes) == {"<import>"} else "same")
        return " | ".join(parts)

    def details(self):
        lines = [f"  left out on both sides: {test}" for test in self.left_out]
        for title, table in (("DIFFERENCE", self.real), ("flaky", self.flaky)):
            missing = [test for test, (_, ours) in sorted(table.items()) if set(ours) == {NOT_RUN}]
            for test, (native, ours) in sorted(table.items()):
                if test in missing[5:]:
                    continue
                lines.append(f"  {title}: {test}: native {', '.join(native)}; {self.mode} {', '.join(ours)}")
                why = [run.why[test] for run in self.ours + self.native if test in run.why]
                lines += [f"    {why[0]}"] if why else []
                if test in self.alone:
                    sides = self.alone[test]
                    lines.append(f"    alone: native {sides['native']}; {self.mode} {sides['ours']}")
            if len(missing) > 5:
                lines.append(f"  {title}: {len(missing) - 5} more tests never ran with dyntrace")
        lines += [f"  TRACE: {fault}" for fault in self.faults()]
        lines += [f"  lost: {events} events: {cause}" for run in self.ours[:1]
                  for cause, events in (run.trace or {}).get("losses", {}).items() if events or self.options.verbose]  # of no events: the program waited for the recorder
        if self.options.verbose:
            if self.ours:
                ours = self.ours[0].why
                lines += [f"  fails otherwise: {test}: native {why}; {self.mode} {ours[test]}"
                          for test, why in self.native[0].why.items()
                          if test in ours and test not in self.real and ours[test] != why]
            else:
                lines += [f"  failing: {test}: {why}" for test, why in self.native[0].why.items()]
            if self.real:
                lines += ["  | " + line for line in self.ours[-1].tail.splitlines()[-40:]]
        return lines

    def as_json(self):
        return {"torch": self.torch.version, "python": self.torch.python, "file": self.name, "mode": self.mode,
                "native": [run.as_json() for run in self.native], "ours": [run.as_json() for run in self.ours],
                "real": self.real, "flaky": self.flaky, "alone": self.alone, "faults": self.faults()}


# ---------------------------------------------------------------- command line

def parse_arguments(argv):
    parser = argparse.ArgumentParser(description="Compare PyTorch's own test/dynamo with and without dyntrace.")
    parser.add_argument("--source", default="", metavar="TREE", help="a PyTorch source tree (make: PYTORCH_SRC)")
    parser.add_argument("--python", default="python3", metavar="PY",
                        help="an interpreter that has torch (make: TORCH_PYTHON; default python3)")
    parser.add_argument("--any-version", action="store_true",
                        help="take the tree's tests even if made for another torch (make: ANY_VERSION=1)")
    parser.add_argument("--files", nargs="+", metavar="NAME",
                        help="test_misc, or test_misc:Class.test_a,Class.test_b, or all (default: the telling ones)")
    parser.add_argument("--torch", action="append", choices=("shim", "observe"), metavar="MODE",
                        help="shim or observe; repeatable (default: shim)")
    parser.add_argument("--dyntrace", default=str(ROOT / "build" / "dyntrace"), metavar="PROGRAM")
    parser.add_argument("--dyntrace-option", action="append", default=[], metavar="OPTION",
                        help="for `dyntrace run`; repeatable: --dyntrace-option=--frames=user")
    parser.add_argument("--baseline-dir", default=str(ROOT / "build" / "conformance"), metavar="DIR",
                        help="where native results are kept (default: build/conformance)")
    parser.add_argument("--baseline-only", action="store_true", help="collect native results, trace nothing")
    parser.add_argument("--fresh", action="store_true", help="run the native side again even if a result is kept")
    parser.add_argument("--timeout", type=float, default=1200, metavar="S",
                        help="for one file on one side (default 1200; with dyntrace: at least 3 times native)")
    parser.add_argument("--test-timeout", type=float, default=300, metavar="S", help="for one test (default 300)")
    parser.add_argument("--restarts", type=int, default=10, metavar="N",
                        help="processes to go on with after one died or hung in a test (default 10)")
    parser.add_argument("--most-alone", type=int, default=20, metavar="N",
                        help="differing tests of a file to run alone (default 20)")
    parser.add_argument("--no-retry", action="store_true", help="believe the first run")
    parser.add_argument("--no-check", action="store_true", help="do not check the traces")
    parser.add_argument("--check-rows", type=int, default=10_000_000, metavar="N",
                        help="check parents of about this many frames of a trace (default 10 million)")
    parser.add_argument("--scratch", metavar="DIR",
                        help="where traces and the tests' files live for a while (default: TMPDIR)")
    parser.add_argument("--json", metavar="OUT", help="write everything to this file as well")
    parser.add_argument("-v", "--verbose", action="store_true",
                        help="also: tests that fail otherwise, the end of the output of a file that differs")
    options = parser.parse_args(argv)
    options.torch = options.torch or ["shim"]
    options.dyntrace = os.path.abspath(options.dyntrace)  # the tests run in directories of their own
    options.baseline_dir = os.path.abspath(options.baseline_dir)
    return options


def main(argv):
    options = parse_arguments(argv)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it, and so would the tests
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if not options.source:
            raise Unfit("no PyTorch source tree: make conformance PYTORCH_SRC=/path/to/pytorch")
        torch = Torch(options.python)
        tree = Tree(options.source, torch, options.any_version)
        if not options.baseline_only and not os.access(options.dyntrace, os.X_OK):
            raise Unfit(f"{options.dyntrace}: not built: run make")
        here = tree.names()
        if options.files == ["all"]:
            options.files = here
        for name in options.files or []:
            if name.partition(":")[0] not in here:
                raise Unfit(f"{name}: {tree.path} has no test/dynamo/{name.partition(':')[0]}.py")
        names = options.files or [name for name in DEFAULT if name in here]
        modes = options.torch[:1] if options.baseline_only else options.torch
        work = [Comparison(tree, torch, name, mode, options, () if options.files else SLOW.get(name, ()))
                for name in names for mode in modes]
    except Unfit as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2

    print(f"{torch}, tests of {tree.version or 'an unknown version'} from {tree.path}", flush=True)
    for comparison in work:
        comparison.compare()
        print("\n".join([comparison.summary(), *comparison.details()]), flush=True)
        if options.json:
            Path(options.json).write_text(json.dumps([each.as_json() for each in work if each.native], indent=1))

    tests = sum(len(comparison.native[0].outcomes) for comparison in work)
    failing = sum(len(comparison.native[0].failing()) for comparison in work)
    if options.baseline_only:
        print(f"{len(work)} files, {tests:,} tests, {failing:,} fail natively")
        return 0
    different = [comparison for comparison in work if not comparison.sound()]
    lost = sum(sum((comparison.ours[0].trace or {}).get("losses", {}).values()) for comparison in work)
    ours = sum(len(comparison.ours[0].failing()) for comparison in work)
    print(f"{len(work)} files, {tests:,} tests, {failing:,} fail natively, {ours:,} with dyntrace, "
          f"{sum(len(comparison.flaky) for comparison in work)} flaky, {lost:,} events lost: "
          + ("same outcomes with and without dyntrace" if not different else
             "different or unsound: " + ", ".join(f"{comparison.name} ({comparison.mode})" for comparison in different)))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
