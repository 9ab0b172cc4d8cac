"""Run modules of CPython's own tests with their frames replaced by copies, split in two, or under a hook that replaces nothing.

usage: shim_cpython.py MODE MODULE... [-TEST...]

A -TEST is left out. One line of JSON: {"ran": N, "replaced": N, "bad": [test ids], "off": [test ids]}

    declined   nothing is replaced
    replaced   by a copy
    split=N    by dyntrace.resume.split() at a random point, and resume functions again, or not; N: another number, other points
    every      functions of up to 200 instructions at every point in turn: each resume function is split at the point after its own
    captured   all functions are captured (dyntrace.compile), those without arrays as well; a module that is named twice runs what was made

The callback is set again before each test: an exception from it (a test that exhausts the stack) turns it off. Those are "off", and
ALONE, whose functions are not split.
"""

import functools
import gc
import io
import json
import operator
import sys
import unittest

from capture_help import Everything
from resume_help import Splitting

from dyntrace.eval_frame import get_eval_frame_callback, set_eval_frame
from dyntrace.types import ConvertFrameReturn, FrameAction, FrameExecStrategy, GuardedCode

OTHERS = ("functools.py", "contextlib.py", "traceback.py", "tasks.py")  # what the tests are about
ALONE = (
    "test_setrecursionlimit",  # lowers it to what it needs: a callback in Python, and unittest behind it, has no room there
    "test_lru_reentrancy_with_len",  # replaces builtins.len, which the callback calls as well
    "test_current_frames",  # compares a frame from before the split, and leaves its thread waiting where that fails
)
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


def resumed(splitting, frame, entry, state):
    global count
    code = frame.f_code
    if "/test/" not in code.co_filename and not code.co_filename.endswith(OTHERS):
        return DECLINED
    made = None if sys.gettrace() or sys.getprofile() else splitting.instead(code)  # they would see a second call
    if made is None:
        return DECLINED
    count += 1
    return GuardedCode(made, true)


def declined(frame, entry, state):
    return DECLINED


def main(mode, *modules):
    class Loader(unittest.TestLoader):
        def getTestCaseNames(self, case):
            return [name for name in super().getTestCaseNames(case) if "-" + name not in modules]
    suite = unittest.TestSuite(Loader().loadTestsFromName("test." + m) for m in modules if m[0] != "-")
    everything = Everything() if mode == "captured" else None
    callbacks = {"replaced": replaced, "declined": declined, "captured": everything and everything.callback}
    splits = mode not in callbacks
    callback = functools.partial(resumed, Splitting(mode)) if splits else callbacks[mode]

    class Result(unittest.TextTestResult):
        def startTest(self, test):
            super().startTest(test)
            gc.freeze()  # tests collect garbage, of which splits are none, however many there are
            set_eval_frame(None if splits and str(test).startswith(ALONE) else callback)

        def stopTest(self, test):
            if not get_eval_frame_callback():
                off.append(str(test))
            if mode == "captured":
                set_eval_frame(None)  # the runner is no test
            super().stopTest(test)
    off = []
    runner = unittest.TextTestRunner(stream=io.StringIO(), verbosity=0, resultclass=Result)
    set_eval_frame(None if mode == "captured" else callback)
    try:
        result = runner.run(suite)
    finally:
        set_eval_frame(None)
    for test, why in result.failures + result.errors:
        print(test, why, sep="\n", file=sys.stderr)
    bad = sorted({str(getattr(test, "test_case", test)) for test, _ in result.failures + result.errors} |  # not a subtest's
                 {str(t) for t in result.unexpectedSuccesses})
    print(json.dumps({"ran": result.testsRun, "replaced": everything.count if everything else count, "bad": bad, "off": off}))


if __name__ == "__main__":
    main(*sys.argv[1:])
