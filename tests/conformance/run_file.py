"""Run one of PyTorch's test files as `python FILE` would, and write down what every test did while it happens.

usage: run_file.py FILE REPORT [SELECTION]      SELECTION: a file with {"only": [ids] or null, "leave_out": [ids]}

Runs in: the process under test, the same way with and without dyntrace. The report is a line of JSON per event, written
at once: whatever ends the process, the last line says in which test. unittest's own report would be lost with it, and the
verbose output is mixed with what the tests print.
"""
import json
import sys
import time
import unittest

kept = []


def report_to(path):
    """A result class for unittest that also reports to the file at PATH."""
    report = open(path, "a", encoding="utf-8", buffering=1)

    def say(**event):
        report.write(json.dumps(event) + "\n")
        report.flush()

    def last_line(error):
        kind, value = error[0], error[1]
        try:
            said = str(value).strip().splitlines()
        except Exception:
            said = []
        return (kind.__name__ + (": " + said[0] if said else ""))[:300]

    class Result(unittest.TextTestResult):
        def startTest(self, test):
            say(event="start", test=test.id())
            self.began = time.monotonic()
            super().startTest(test)

        def stopTest(self, test):
            super().stopTest(test)
            say(event="stop", test=test.id(), seconds=round(time.monotonic() - self.began, 2))

        def outcome(self, test, what, why=""):
            say(event="outcome", test=test.id(), outcome=what, why=why)

        def addSuccess(self, test):
            super().addSuccess(test)
            self.outcome(test, "ok")

        def addError(self, test, error):
            super().addError(test, error)
            self.outcome(test, "FAILED", last_line(error))

        def addFailure(self, test, error):
            super().addFailure(test, error)
            self.outcome(test, "FAILED", last_line(error))

        def addSkip(self, test, reason):
            super().addSkip(test, reason)
            self.outcome(test, "skipped", reason[:200])

        def addExpectedFailure(self, test, error):
            super().addExpectedFailure(test, error)
            self.outcome(test, "expected failure", last_line(error))

        def addUnexpectedSuccess(self, test):
            super().addUnexpectedSuccess(test)
            self.outcome(test, "unexpected success")

        def addSubTest(self, test, subtest, error):
            super().addSubTest(test, subtest, error)
            if error is not None:
                self.outcome(test, "FAILED", last_line(error))

    return Result, say


def every_test(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from every_test(item)
        else:
            yield item


def select(selection, say):
    """Have unittest.main run only what SELECTION asks for. Suites and their order stay: class fixtures depend on them."""
    create = unittest.TestProgram.createTests

    def filtered(suite):
        kept = type(suite)()
        for item in suite:
            if isinstance(item, unittest.TestSuite):
                kept.addTest(filtered(item))
            elif (selection["only"] is None or item.id() in selection["only"]) and item.id() not in selection["leave_out"]:
                kept.addTest(item)
        return kept

    def create_tests(self, *args, **kwargs):
        create(self, *args, **kwargs)
        self.test = filtered(self.test)
        say(event="tests", count=sum(1 for _ in every_test(self.test)))

    unittest.TestProgram.createTests = create_tests


def main():
    path, report = sys.argv[1:3]
    selection = {"only": None, "leave_out": []}
    if len(sys.argv) > 3:
        with open(sys.argv[3], encoding="utf-8") as file:
            selection = json.load(file)
    result, say = report_to(report)
    unittest.TextTestRunner.resultclass = result
    select(selection, say)
    sys.argv[:] = [path]
    sys.path[0] = path.rpartition("/")[0]
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    # The tests find a __main__ of their own. Ours stays alive: the result class reads its globals.
    theirs = type(sys)("__main__")
    theirs.__file__, theirs.__builtins__ = path, __builtins__
    kept.append(sys.modules["__main__"])
    sys.modules["__main__"] = theirs
    exec(code, vars(theirs))


main()
