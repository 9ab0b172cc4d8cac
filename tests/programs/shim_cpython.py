"""Run modules of CPython's own tests with their frames replaced by copies, or under a hook that replaces nothing.

usage: shim_cpython.py replaced|declined MODULE...      one line of JSON: {"ran": N, "replaced": N, "bad": [test ids]}

The callback is set again before each test: an exception from it (a test that exhausts the stack) turns it off.
"""

import functools
import io
import json
import operator
import sys
import unittest

from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import ConvertFrameReturn, FrameAction, FrameExecStrategy, GuardedCode

OTHERS = ("functools.py", "contextlib.py", "traceback.py", "tasks.py")  # what the tests are about
DECLINED = ConvertFrameReturn(FrameExecStrategy(FrameAction.SKIP, FrameAction.DEFAULT))
count = 0


# In C, so that it does not run into the recursion limit before the test does.
true = functools.partial(operator.is_not, None)


def replaced(frame, entry, state):
    global count
    code = frame.f_code
    if "/test/" not in code.co_filename and not code.co_filename.endswith(OTHERS):
        return DECLINED
    count += 1
    return GuardedCode(code.replace(co_name=code.co_name), true)


def declined(frame, entry, state):
    return DECLINED


def main(mode, *modules):
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromName("test." + m) for m in modules)
    callback = {"replaced": replaced, "declined": declined}[mode]

    class Result(unittest.TextTestResult):
        def startTest(self, test):
            super().startTest(test)
            set_eval_frame(callback)
    runner = unittest.TextTestRunner(stream=io.StringIO(), verbosity=0, resultclass=Result)
    set_eval_frame(callback)
    try:
        result = runner.run(suite)
    finally:
        set_eval_frame(None)
    bad = sorted({str(test) for test, _ in result.failures + result.errors} | {str(t) for t in result.unexpectedSuccesses})
    print(json.dumps({"ran": result.testsRun, "replaced": count, "bad": bad}))


if __name__ == "__main__":
    main(*sys.argv[1:])
