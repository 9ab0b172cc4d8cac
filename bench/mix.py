"""A mix of call-heavy programs of a chosen length, for the end-to-end figures.

It writes into --report how long the work took, and the time at the very end of
the program: in the atexit function that was registered first, which Python
calls last.

    python3 mix.py --rounds N [--hook pass --yardstick DIR] [--report FILE]
    python3 mix.py --count --yardstick DIR      prints the frames of one round
"""
import argparse
import atexit
import json
import os
import sys
import time

from programs import PROGRAMS

# How many units of each program a round has. With these numbers every kind of
# call occurs in every second of a run.
ROUND = {"fib": 20, "methods": 50, "scheduler": 4, "constraints": 12, "json": 30, "pprint": 15, "generators": 20}


def work(rounds):
    good = True
    for _ in range(rounds):
        for name, times in ROUND.items():
            program = PROGRAMS[name]
            good = program.check(program.run(times)) and good
    return good


def main():
    parser = argparse.ArgumentParser(description="A mix of call-heavy programs.")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--hook", choices=["none", "pass"], default="none")
    parser.add_argument("--count", action="store_true", help="print the frames of one round")
    parser.add_argument("--yardstick", help="directory of the module _yardstick")
    parser.add_argument("--cpu", type=int, help="run on this processor only")
    parser.add_argument("--report", help="where to write the figures, as JSON")
    options = parser.parse_args()

    if options.cpu is not None:
        os.sched_setaffinity(0, {options.cpu})
    if options.yardstick:
        sys.path.insert(0, options.yardstick)
        import _yardstick
    if options.count:
        # Count profile events, because a bare hook misses frames on 3.13. Calls
        # that only create a generator have no such event, so the count is a
        # little lower than the number of frames in a trace.
        _yardstick.use("profile_count")
        work(1)
        _yardstick.use("none")
        print(_yardstick.counted())
        return
    if options.hook == "pass":
        _yardstick.use("pass")

    report = {}
    if options.report:
        atexit.register(finish, options.report, report)
    start = time.monotonic_ns()
    report["good"] = work(options.rounds)
    report["work_s"] = (time.monotonic_ns() - start) / 1e9


def finish(path, report):
    with open(path, "w") as file:
        report["end_ns"] = time.monotonic_ns()
        json.dump(report, file)


if __name__ == "__main__":
    main()
