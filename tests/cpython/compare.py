#!/usr/bin/env python3
"""Run CPython's own test modules with and without `dyntrace run`; compare what every test did.

usage: compare.py [--python PY]... [--quick | --modules NAME...] [--baseline-dir DIR] [--json OUT] ...

For each interpreter and module:

    plain     PY -m test -v MODULE                                       (or a stored result, see --baseline-dir)
    traced    dyntrace run --force -o T.db -- PY -m test -v MODULE       then T.db is checked and deleted

A run is a table {item: outcome}. Items are the tests by id, plus three about the module as a whole: how the process
ended, what the test runner concluded, and errors outside any test (setUpClass, import). Two runs agree when the tables
are equal, so a test that tracing turns into a skip is a difference as much as one that it makes fail.

An item that differs is run again, whole module, up to --reruns times on each side, until some outcome has been seen on both
sides: then it is called flaky, "traced side only" if the plain runs all agreed. What stays apart is a real difference.

exit status: 0 same failing sets and sound traces, 1 a real difference or an unsound trace, 2 bad usage.
Needs the standard library only. README.md beside this file has the reasons.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import sound  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

MODULES = """
    test_generators test_coroutines test_asyncgen test_exceptions test_traceback test_sys test_sys_settrace
    test_sys_setprofile test_threading test_fork1 test_subprocess test_multiprocessing_fork test_multiprocessing_spawn
    test_concurrent_futures test_asyncio test_contextlib test_functools test_inspect test_gc test_weakref test_faulthandler
    test_signal test_runpy test_site test_cmd_line test_code
""".split()

# Half a minute plain and about a minute traced, per interpreter: everything that takes less than three seconds, and
# threading. What only the full list has: pools and spawned children, asyncio, subprocess, signals, faulthandler.
QUICK = """
    test_generators test_coroutines test_asyncgen test_exceptions test_traceback test_sys test_sys_settrace
    test_sys_setprofile test_threading test_fork1 test_contextlib test_functools test_inspect test_gc test_weakref
    test_runpy test_site test_cmd_line test_code
""".split()

# Differences that a bare pass-through PEP 523 hook makes as well, or one that keeps something for each code object in
# co_extra, as that PEP has it; each with its reason: {pattern of the item: reason}. Reported as "any hook", counted as real
# only with --strict. Nothing belongs here that such a hook was not seen to do.
ANY_HOOK = {
    r"test\.test_sys\.TestSysJIT\.test_jit_is_active":
        "3.14 and 3.15 built with the JIT: CPython runs no jitted code while any hook is installed, and sys._jit.is_active() says so",
    r"test\.test_code\.CodeTest\.test_stateless":
        "3.14 and later: code with data in co_extra is no longer stateless (_PyCode_CheckNoInternalState); docs/limits.md has what follows",
}

# Tests that an interpreter's own bug hangs at random, plainly too: {module: (test left out on both sides, the question
# to that interpreter whether it has the bug, reason)}.
HANGS = {
    "test_concurrent_futures": (
        "test_shutdown_deadlock_pickle",
        "import inspect, concurrent.futures.process as p\n"
        "print('shutdown_lock' in inspect.signature(p._SafeQueue).parameters and hasattr(p._ExecutorManagerThread, '_join_executor_internals'))",
        "gh-125451, mended in 3.12.8 and 3.13.1: the manager joins the feeder thread while it holds the lock that the feeder waits for"),
}

PASS, SKIP, FAIL = "ok", "skipped", "FAILED"
NOT_RUN = "not run"


# ---------------------------------------------------------------- one run

class Run:
    """What one run of a module did: {item: outcome}, the seconds it took, and the end of its output."""

    def __init__(self, outcomes, seconds, tail="", trace=None):
        self.outcomes, self.seconds, self.tail, self.trace = outcomes, seconds, tail, trace

    def failing(self):
        return {item: outcome for item, outcome in self.outcomes.items()
                if outcome not in (PASS, SKIP) and outcome not in GOOD_ENDS}

    def count(self, outcome):
        return sum(1 for item, seen in self.outcomes.items() if seen == outcome)

    def as_json(self):
        return {"seconds": round(self.seconds, 2), "outcomes": self.outcomes, "tail": self.tail, "trace": self.trace}

    @classmethod
    def from_json(cls, stored):
        return cls(stored["outcomes"], stored["seconds"], stored.get("tail", ""), stored.get("trace"))


GOOD_ENDS = {"exit 0", "SUCCESS", "no errors"}
END, VERDICT, OUTSIDE = "<process>", "<runner>", "<outside tests>"


def run_module(command, module, timeout, home=None):
    """Run COMMAND (a list ending in an interpreter) -m test MODULE in an empty directory. Returns a Run."""
    with tempfile.TemporaryDirectory(prefix="cpython-compare-") as scratch:
        report = os.path.join(scratch, "report.xml")
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("PYTHON", "DYNTRACE", "PYENV"))}
        environment["TMPDIR"] = scratch
        if home:
            environment["PYTHONHOME"] = home
        argv = command + ["-m", "test", "-v", "--junit-xml", report, *module.split()]
        began = time.monotonic()
        with open(os.path.join(scratch, "output"), "w+b") as output:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                     cwd=scratch, env=environment, start_new_session=True)
            end = wait_or_kill(child, timeout)
            seconds = time.monotonic() - began
            output.seek(0)
            text = output.read().decode("utf-8", "replace")
        outcomes = read_outcomes(report, text)
    outcomes[END] = end
    return Run(outcomes, seconds, text[-3000:] if end != "exit 0" else "")


def wait_or_kill(child, timeout):
    """How CHILD ended, in words. Past the timeout its session is killed: politely first, so that `dyntrace run`
    can close its trace."""
    try:
        status = child.wait(timeout)
        end = signal.Signals(-status).name if status < 0 else f"exit {status}"
    except subprocess.TimeoutExpired:
        end = f"still running after {timeout:.0f} s"
        for number, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
            try:
                os.killpg(child.pid, number)
                child.wait(patience)
                break
            except (subprocess.TimeoutExpired, ProcessLookupError):
                continue
    try:  # whatever the tests left behind in their session
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return end


def read_outcomes(report, text):
    """{item: outcome} from the JUnit report (every test that ran, skips) and the verbose output (what failed).

    Neither is enough. The report leaves out the name of a test whose subtests failed, all errors in setUpClass, and
    everything when the process dies; the output mixes what tests print with what the runner says, so only its
    headings, a line of 70 "=" followed by "FAIL: name (id)", are believed."""
    outcomes, outside = {}, 0
    try:
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            name = case.get("name")
            if not name:
                continue
            found = PASS
            if case.find("skipped") is not None:
                found = SKIP
            elif case.find("failure") is not None or case.find("error") is not None:
                found = FAIL
            elif case.get("outcome") == "UNEXPECTED_SUCCESS":
                found = FAIL
            keep_worst(outcomes, tidy(name), found)
    except (OSError, xml.etree.ElementTree.ParseError):
        # The process died before the report: the lines "name (id) ... ok" say what finished, the last one where it was.
        for method, where, result in re.findall(r"^(\w+) \(([\w.]+)\)(?:\n[^\n]*)? \.\.\. (ok|FAIL|ERROR|skipped)", text, re.M):
            keep_worst(outcomes, join_id(method, where), {"ok": PASS, "skipped": SKIP}.get(result, FAIL))
    for kind, heading in re.findall(r"^={70}\n(FAIL|ERROR|UNEXPECTED SUCCESS): ([^\n]*)", text, re.M):
        match = re.match(r"(\w+) \(([\w.]+)\)", heading)
        if match and match[1].startswith("test"):
            keep_worst(outcomes, join_id(match[1], match[2]), FAIL)
        elif heading.startswith("Doctest: "):
            keep_worst(outcomes, tidy(heading[len("Doctest: "):]), FAIL)
        else:
            keep_worst(outcomes, f"<{tidy(heading)}>", FAIL)
            outside += 1
    verdict = re.findall(r"^== Tests result: (.*?) ==$", text, re.M) or re.findall(r"^Result: (.*)$", text, re.M)
    outcomes[VERDICT] = verdict[-1] if verdict else "none"
    outcomes[OUTSIDE] = f"{outside} errors" if outside else "no errors"
    return outcomes


def join_id(method, where):
    """"test_x", "test.test_m.C.test_x" or (3.10) "test.test_m.C" -> "test.test_m.C.test_x" """
    return where if where.endswith("." + method) else f"{where}.{method}"


def tidy(name):
    """A name that two runs can share: without addresses, process ids and temporary directories."""
    name = re.sub(r"0x[0-9a-fA-F]+", "0x..", name)
    return re.sub(r"(test_python_(worker_)?)\w+|cpython-compare-\w+", r"\1..", name)


def keep_worst(outcomes, item, outcome):
    order = (SKIP, PASS, FAIL)
    before = outcomes.get(item)
    if before is None or order.index(outcome) > order.index(before):
        outcomes[item] = outcome


# ---------------------------------------------------------------- the trace


def check_trace(path, most_rows):
    """{"frames", "processes", "losses", "faults": [...]} of one trace, as in sound.check."""
    found = {"frames": 0, "processes": 0, "losses": 0, "bytes": 0, "faults": []}

    def more(trace):
        found["frames"] = trace.execute("SELECT COUNT(*) FROM frame").fetchone()[0]
        found["processes"] = trace.execute("SELECT COUNT(*) FROM process").fetchone()[0]
        found["losses"] = trace.execute("SELECT COALESCE(SUM(events), 0) FROM loss WHERE cause NOT LIKE 'child:%'").fetchone()[0]
        return [] if found["frames"] else ["no frames recorded"]
    return sound.check(path, found, most_rows, more)


# ---------------------------------------------------------------- both sides of a module

class Interpreter:
    """A Python under test: its path, its version ("3.13.0"), and where its plain results are kept."""

    def __init__(self, path, baseline_directory, children=False):
        found = shutil.which(os.path.expanduser(path))
        if not found:
            sys.exit(usage_error(f"{path}: no such interpreter"))
        self.path = os.path.abspath(found)
        answer = subprocess.run(
            [self.path, "-c", "import sys, platform, json, os.path, importlib.util as u\n"
             "s = u.find_spec('test')\n"
             "print(json.dumps([platform.python_version(), sys.version, os.path.dirname(s.origin) if s and s.origin else '',\n"
             "                  f'{sys.prefix}:{sys.exec_prefix}']))"],
            stdout=subprocess.PIPE, cwd="/", check=True).stdout
        self.version, self.banner, self.tests, self.prefixes = json.loads(answer)
        self.home = self.prefixes if children else None
        self.baseline = Path(baseline_directory, self.version + ("-children" if children else "")) if baseline_directory else None

    def left_out(self, module):
        """The test of MODULE that hangs in this interpreter by itself, or None."""
        test, question, _ = HANGS.get(module, (None, None, None))
        if test and subprocess.run([self.path, "-c", question], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   cwd="/").stdout.strip() == b"True":
            return test
        return None

    def has(self, module):
        return os.path.exists(f"{self.tests}/{module}.py") or os.path.exists(f"{self.tests}/{module}/__init__.py")

    def stored(self, module):
        """Plain runs of MODULE kept from earlier, oldest first; none if another build of Python made them."""
        try:
            kept = json.loads((self.baseline / f"{module}.json").read_text())
        except (OSError, ValueError, TypeError):
            return []
        return [Run.from_json(run) for run in kept["runs"]] if kept.get("python") == self.banner else []

    def store(self, module, runs):
        if self.baseline:
            self.baseline.mkdir(parents=True, exist_ok=True)
            target = self.baseline / f"{module}.json"
            draft = target.with_suffix(".tmp")
            draft.write_text(json.dumps({"python": self.banner, "module": module,
                                         "runs": [run.as_json() for run in runs]}, indent=1))
            draft.replace(target)


class Comparison:
    """Everything learnt about one module under one interpreter."""

    def __init__(self, interpreter, module, options):
        self.interpreter, self.module, self.options = interpreter, module, options
        self.plain, self.traced = interpreter.stored(module) if not options.fresh else [], []
        self.left_out = interpreter.left_out(module)
        if self.left_out:  # a result kept from before it was known has that test
            for run in self.plain:
                run.outcomes = {item: outcome for item, outcome in run.outcomes.items() if not item.endswith("." + self.left_out)}
        self.real, self.flaky, self.any_hook = {}, {}, {}

    def run_plain(self):
        self.plain.append(run_module([self.interpreter.path, *self.options.python_option], self.words(), self.options.timeout,
                                     self.interpreter.home))
        self.interpreter.store(self.module, self.plain)

    def run_traced(self):
        with tempfile.TemporaryDirectory(prefix="compare-trace-", dir=self.options.trace_dir) as directory:
            trace = os.path.join(directory, "trace.db")
            command = [self.options.dyntrace, "run", "--force", "-o", trace, *self.options.dyntrace_option, "--",
                       self.interpreter.path, *self.options.python_option]
            patience = max(self.options.timeout, 3 * max(run.seconds for run in self.plain))
            run = run_module(command, self.words(), patience, self.interpreter.home)
            if not self.options.no_check:
                run.trace = check_trace(trace, self.options.check_rows)
        self.traced.append(run)

    def words(self):
        use = ["-u", self.options.use] if self.options.use else []
        ignore = ["-i", self.left_out] if self.left_out else []
        return " ".join([*use, *ignore, self.module])

    def differing(self):
        """{item: (outcomes plain, outcomes traced)} for the items that no plain and traced run agree on."""
        items = dict.fromkeys(item for run in self.plain[:1] + self.traced for item in run.outcomes)
        seen = {item: ([run.outcomes.get(item, NOT_RUN) for run in self.plain],
                       [run.outcomes.get(item, NOT_RUN) for run in self.traced]) for item in items}
        return {item: sides for item, sides in seen.items() if not set(sides[0]) & set(sides[1])}

    def compare(self):
        if not self.plain:
            self.run_plain()
        if self.options.baseline_only:
            return self
        self.run_traced()
        first = self.differing()
        for again in range(self.options.reruns):
            if not self.differing():
                break
            self.run_traced()
            if self.differing() and len(self.plain) < self.options.reruns + 1:
                self.run_plain()
        self.real = self.differing()
        self.flaky = {item: ([run.outcomes.get(item, NOT_RUN) for run in self.plain],
                             [run.outcomes.get(item, NOT_RUN) for run in self.traced])
                      for item in first if item not in self.real}
        if not self.options.strict:
            self.set_apart_any_hook()
        return self

    def set_apart_any_hook(self):
        """Move what any hook does from real to any_hook; and how the module ended, if that is all that remains."""
        explained = [item for item in self.real if any(re.fullmatch(pattern, item) for pattern in ANY_HOOK)]
        if explained and set(self.real) - set(explained) <= {END, VERDICT} and self.traced[-1].outcomes[END] == "exit 2":
            explained = list(self.real)
        self.any_hook = {item: self.real.pop(item) for item in explained}

    def faults(self):
        return [fault for run in self.traced for fault in (run.trace or {}).get("faults", [])]

    def sound(self):
        return not self.real and not self.faults()

    def summary(self):
        """One line: what the two sides did."""
        parts = [f"{self.interpreter.version:8} {self.module:28}"]
        for label, runs in (("plain", self.plain), ("traced", self.traced)):
            if runs:
                run = runs[0]
                failing = run.failing()
                parts.append(f"{label} {run.count(PASS):5} ok {run.count(SKIP):3} skipped {len(failing):2} failing {run.seconds:6.1f} s")
        if self.traced and self.traced[0].trace:
            trace = self.traced[0].trace
            parts.append(f"{trace['frames']:,} frames in {trace['processes']} processes"
                         + (f", {trace['losses']} LOST" if trace["losses"] else ""))
        if self.traced:
            apart = [f"{len(table)} {name}" for table, name in ((self.flaky, "flaky"), (self.any_hook, "as under any hook")) if table]
            parts.append("DIFFERENT" if self.real else "UNSOUND TRACE" if self.faults() else
                         " but ".join(["same", *apart]))
        elif self.plain[0].outcomes[END] not in ("exit 0", "exit 2"):
            parts.append(self.plain[0].outcomes[END])
        return " | ".join(parts)

    def details(self):
        """Lines under the summary: both failing sets, then what differs."""
        lines = []
        if self.left_out:
            lines.append(f"  left out on both sides: {self.left_out}: {HANGS[self.module][2]}")
        for label, runs in (("plain", self.plain), ("traced", self.traced)):
            if runs and runs[0].failing():
                lines.append(f"  failing {label}:")
                lines += [f"    {item}: {outcome}" for item, outcome in sorted(runs[0].failing().items())]
        ours = {item: sides for item, sides in self.flaky.items() if len(set(sides[0])) == 1}
        theirs = {item: sides for item, sides in self.flaky.items() if item not in ours}
        for title, table in (("REAL DIFFERENCE", self.real), ("any hook", self.any_hook), ("flaky, traced side only", ours), ("flaky", theirs)):
            missing = [item for item, (plain, traced) in sorted(table.items()) if set(traced) == {NOT_RUN}]
            for item, (plain, traced) in sorted(table.items()):
                if len(missing) <= 5 or item not in missing:
                    lines.append(f"  {title}: {item}: plain {', '.join(plain)}; traced {', '.join(traced)}")
            if len(missing) > 5:  # the process died: one line says it
                lines.append(f"  {title}: {len(missing)} tests never ran traced, first {missing[0]}")
        lines += [f"  TRACE: {fault}" for fault in self.faults()]
        if self.real and self.options.verbose:
            lines += ["  | " + line for line in self.traced[-1].tail.splitlines()[-40:]]
        return lines

    def as_json(self):
        return {"python": self.interpreter.version, "executable": self.interpreter.path, "module": self.module,
                "plain": [run.as_json() for run in self.plain], "traced": [run.as_json() for run in self.traced],
                "real": self.real, "flaky": self.flaky, "any_hook": self.any_hook, "faults": self.faults()}


# ---------------------------------------------------------------- command line

def usage_error(text):
    print(f"compare.py: {text}", file=sys.stderr)
    return 2


def parse_arguments(argv):
    parser = argparse.ArgumentParser(description="Compare CPython's own tests with and without `dyntrace run`.")
    parser.add_argument("--python", action="append", metavar="PY", help="interpreter to test; repeatable (default: python3)")
    parser.add_argument("--quick", action="store_true", help="the fast modules only, under 3 minutes for one interpreter")
    parser.add_argument("--modules", nargs="+", metavar="NAME", help="these modules (default: the 25 of the issue)")
    parser.add_argument("--dyntrace", default=str(ROOT / "build" / "dyntrace"), metavar="PROGRAM")
    parser.add_argument("--dyntrace-option", action="append", default=[], metavar="OPTION", help="passed to `dyntrace run`; repeatable, write --dyntrace-option=--frames=user")
    parser.add_argument("--python-option", action="append", default=[], metavar="OPTION", help="passed to the interpreter before -m test; repeatable")
    parser.add_argument("--children", action="store_true", help="have the tests start their interpreters without -I and -E, so that these are recorded too")
    parser.add_argument("--use", metavar="RESOURCES", help="regrtest resources to enable, as its -u")
    parser.add_argument("--baseline-dir", metavar="DIR", help="keep plain results here and use those found")
    parser.add_argument("--baseline-only", action="store_true", help="collect plain results, trace nothing")
    parser.add_argument("--fresh", action="store_true", help="run the plain side again even if a result is kept")
    parser.add_argument("--timeout", type=float, default=600, metavar="S", help="for one module on one side (default 600; traced: at least 3 times the plain run)")
    parser.add_argument("--reruns", type=int, default=2, metavar="N", help="times a differing module is run again on each side (default 2)")
    parser.add_argument("--strict", action="store_true", help="count as real even what any PEP 523 hook does")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="modules at a time (default 1; more makes timing tests flaky)")
    parser.add_argument("--no-check", action="store_true", help="do not check the traces")
    parser.add_argument("--check-rows", type=int, default=20_000_000, metavar="N", help="check parents of about this many frames of a trace (default 20 million)")
    parser.add_argument("--trace-dir", metavar="DIR", help="where traces live until checked (default: TMPDIR)")
    parser.add_argument("--json", metavar="OUT", help="write everything to this file as well")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the end of the output of a module that differs")
    options = parser.parse_args(argv)
    if options.quick and options.modules:
        parser.error("--quick and --modules exclude each other")
    options.modules = options.modules or (QUICK if options.quick else MODULES)
    if options.baseline_only and not options.baseline_dir:
        parser.error("--baseline-only needs --baseline-dir")
    if not options.baseline_only and not os.access(options.dyntrace, os.X_OK):
        parser.error(f"{options.dyntrace}: not built; run make")
    return options


def forget_ignored_signals():
    """A shell starts background jobs with SIGINT ignored, and ignored is inherited: tests that interrupt themselves hang."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)


def main(argv):
    options = parse_arguments(argv)
    forget_ignored_signals()
    interpreters = [Interpreter(path, options.baseline_dir, options.children) for path in options.python or ["python3"]]
    work, absent = [], []
    for interpreter in interpreters:
        for module in options.modules:
            (work if interpreter.has(module) else absent).append(Comparison(interpreter, module, options))
    for comparison in absent:
        print(f"{comparison.interpreter.version:8} {comparison.module:28} | not part of this installation")

    printing, done = threading.Lock(), []

    def one(comparison):
        comparison.compare()
        with printing:
            done.append(comparison)
            print("\n".join([comparison.summary(), *comparison.details()]), flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for finished in [pool.submit(one, comparison) for comparison in work]:
            finished.result()
    if options.json:
        Path(options.json).write_text(json.dumps([comparison.as_json() for comparison in done], indent=1))
    if not done:
        return usage_error("none of these modules is installed; Debian has them in libpython3.NN-testsuite")
    different = [comparison for comparison in done if not comparison.sound()]
    frames = sum((run.trace or {}).get("frames", 0) for comparison in done for run in comparison.traced)
    lost = sum((run.trace or {}).get("losses", 0) for comparison in done for run in comparison.traced)
    tests = sum(comparison.plain[0].count(PASS) for comparison in done)
    hook = sum(len(comparison.any_hook) for comparison in done)
    flaky = sum(len(comparison.flaky) for comparison in done)
    if options.baseline_only:
        print(f"{len(done)} modules, {tests:,} tests pass, {sum(len(c.plain[0].failing()) for c in done)} items fail plainly")
    else:
        print(f"{len(done)} modules, {tests:,} tests, {frames:,} frames, {lost} lost, {flaky} flaky, {hook} as under any hook: "
              + ("same outcomes with and without dyntrace" if not different else
                 "different or unsound: " + ", ".join(f"{c.interpreter.version} {c.module}" for c in different)))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
