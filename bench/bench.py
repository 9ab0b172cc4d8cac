#!/usr/bin/env python3
"""Measures what dyntrace costs, beside yardsticks, and prints tables.

    make bench                              everything, for the python3 on PATH
    bench/bench.py --quick                  seconds instead of minutes: does it still run?
    bench/bench.py --only frames --only fib --python python3.12 --python python3.13
    bench/bench.py --markdown --json figures.json

Every figure stands beside its yardstick from the same run and beside its
target. A target that is missed is marked, but never an error: only a wrong
result, or a measurement that cannot be made, makes the exit status 1.

The programs are in programs/, what a figure measures is said in figures.py and
shim.py and the like, and the yardsticks are in yardstick.c. The measured program is pinned to one
processor (--cpu) and the collector to the others, so two processors at least,
otherwise idle, are needed for figures worth quoting.
"""
import argparse
import json
import os
import platform
import sys
import time

sys.dont_write_bytecode = True

import answers  # noqa: F401  enters its figure
import capture  # noqa: F401  enters its figure
import decisions  # noqa: F401  enters its figure
import fleet  # noqa: F401  enters its figure
import forks  # noqa: F401  enters its figure
import recorder  # noqa: F401  enters its figure
import replay  # noqa: F401  enters its figure
import shim  # noqa: F401  enters its figure
import spans  # noqa: F401  enters its figure
import tui  # noqa: F401  enters its figure
import with_torch  # noqa: F401  enters its figure
from figures import FIGURES
from interpreters import Failed, Interpreter
from programs import PROGRAMS
from tables import Table


def main():
    options = parse_arguments()
    failures = []
    pythons = []
    for name in options.python:
        try:
            python = Interpreter(name)
            python.build_yardstick()
            pythons.append(python)
        except Failed as error:
            failures.append(str(error))

    machine = describe_machine(options)
    tables = []
    print("\n".join(f"{key}: {value}" for key, value in machine.items()) + "\n", flush=True)
    for name in options.figures:
        figure = FIGURES[name]
        table = Table(name, figure.title, figure.columns, figure.notes)
        tables.append(table)
        for python in pythons:
            if figure.needs_dyntrace and not python.extension:
                table.notes.append(f"{python.version}: dyntrace is not built for it")
                continue
            try:
                figure.measure(table, python, options)
            except Failed as error:  # the others' rows are still worth having
                table.notes.append(f"{python.version}: FAILED, see the end")
                failures.append(f"{name}: {error}")
        print(table.markdown() if options.markdown else table.text(), flush=True)

    if options.json:
        with open(options.json, "w") as file:
            json.dump({"machine": machine, "tables": [table.as_dict() for table in tables], "failures": failures}, file, indent=1)
    for failure in failures:
        print(f"bench: {failure}", file=sys.stderr)
    return 1 if failures else 0


def describe_machine(options):
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), model)
    except OSError:
        pass
    return {
        "machine": f"{model}, {len(os.sched_getaffinity(0))} processors, Linux {platform.release()}",
        "load": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "date": time.strftime("%Y-%m-%d"),
        "rounds": f"best of {options.rounds}, the program on processor {options.cpu}",
    }


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measures what dyntrace costs, beside yardsticks, and prints tables.")
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it runs")
    parser.add_argument("--only", action="append", default=[], choices=[*FIGURES, *PROGRAMS], metavar="NAME",
                        help="a figure (%s) or a program (%s); may be repeated" % (", ".join(FIGURES), ", ".join(PROGRAMS)))
    parser.add_argument("--python", action="append", metavar="PY", help="an interpreter; may be repeated (default: $PYTHONS, or python3)")
    parser.add_argument("--rounds", type=int, help="rounds of each per-frame timing")
    parser.add_argument("--cpu", type=int, default=min(os.sched_getaffinity(0)), help="processor of the measured program")
    parser.add_argument("--json", metavar="OUT", help="write all figures there too")
    parser.add_argument("--markdown", action="store_true", help="print tables for docs/costs.md")
    options = parser.parse_args()

    options.python = options.python or os.environ.get("PYTHONS", "python3").split()
    options.figures = [name for name in options.only if name in FIGURES] or list(FIGURES)
    options.programs = [name for name in options.only if name in PROGRAMS]
    quick = options.quick
    options.rounds = options.rounds or (2 if quick else 9)
    options.divisor = 20 if quick else 1           # of each program's own length
    options.mix_frames = 600e3 if quick else 42e6  # past 1 GiB
    options.long_rounds = 1 if quick else 3
    options.tool_frames = 600e3 if quick else 3.7e6
    options.processes = 1 if quick else 3
    options.starts = 3 if quick else 15
    return options


if __name__ == "__main__":
    sys.exit(main())
