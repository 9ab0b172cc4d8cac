"""Calls that are all decided by the shim, as fast as they come: hits with one guard each. decisions.py starts it.

    python3 inproc_decisions.py --calls N --functions N --package DIR --report FILE
"""
import argparse
import atexit
import json
import os
import sys
import time
import types


def compiled(a):
    return a


def target(a):
    return a


def calls(functions, each):
    for f in functions:
        for _ in range(each):
            f(3); f(3); f(3); f(3); f(3); f(3); f(3); f(3); f(3); f(3)


def program(options):
    sys.path.insert(0, options.package)
    from dyntrace import guards
    from dyntrace.eval_frame import set_eval_frame
    from dyntrace.types import GuardedCode

    def callback(frame, entry, state):
        if not frame.f_code.co_name.startswith("target"):
            return None
        return GuardedCode(compiled.__code__, guards.GuardTree([guards.TYPE_MATCH(guards.L["a"])], frame.f_globals, frame.f_locals))

    functions = [types.FunctionType(target.__code__.replace(co_name=f"target{i}", co_qualname=f"target{i}"), globals()) for i in range(options.functions)]
    set_eval_frame(callback)
    calls(functions, 1)
    start = time.perf_counter()
    calls(functions, options.calls // options.functions // 10)
    report = {"good": True, "work_s": time.perf_counter() - start}
    set_eval_frame(None)
    return report


def finish(path, report):
    with open(path, "w") as file:
        report["end_ns"] = time.monotonic_ns()
        json.dump(report, file)


def main():
    parser = argparse.ArgumentParser(description="Calls that are all decided by the shim.")
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--functions", type=int, default=100)
    parser.add_argument("--package", required=True, help="directory of the package dyntrace")
    parser.add_argument("--cpu", type=int, help="run on this processor only")
    parser.add_argument("--report", help="where to write the figures, as JSON")
    options = parser.parse_args()
    if options.cpu is not None:
        os.sched_setaffinity(0, {options.cpu})
    report = {}
    if options.report:
        atexit.register(finish, options.report, report)
    report.update(program(options))


if __name__ == "__main__":
    main()
