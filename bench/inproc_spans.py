"""The program of the figure `spans`: nanoseconds of spans and of calls with recorded arguments, best of short rounds.

    inproc_spans.py --report FILE --package DIR --times N --rounds N [--cpu N]
"""
import argparse
import json
import os
import sys
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("--report", required=True)
parser.add_argument("--package", required=True)
parser.add_argument("--times", type=int, required=True)
parser.add_argument("--rounds", type=int, required=True)
parser.add_argument("--cpu", type=int)
options = parser.parse_args()
sys.path.insert(0, options.package)
if options.cpu is not None:
    os.sched_setaffinity(0, {options.cpu})

import dyntrace  # noqa: E402

span = dyntrace.span
lock = threading.Lock()


@dyntrace.span
def spanned():
    pass


def plain():
    pass


def noted(number, name):  # run --args noted
    return number


def unnoted(number, name):
    return number


def empty(times):
    for _ in times:
        pass


def with_attributes(times):
    for _ in times:
        with span("request", id=271):
            pass


def with_name(times):
    for _ in times:
        with span("request"):
            pass


def with_lock(times):
    for _ in times:
        with lock:
            pass


def call_spanned(times):
    for _ in times:
        spanned()


def call_plain(times):
    for _ in times:
        plain()


def call_noted(times):
    for _ in times:
        noted(3, "a name")


def call_unnoted(times):
    for _ in times:
        unnoted(3, "a name")


ns = {}
for function in (empty, with_attributes, with_name, with_lock, call_spanned, call_plain, call_noted, call_unnoted):
    best = float("inf")
    for _ in range(options.rounds):
        began = time.perf_counter_ns()
        function(range(options.times))
        best = min(best, time.perf_counter_ns() - began)
    ns[function.__name__] = best / options.times
with open(options.report, "w") as file:
    json.dump({"good": True, "ns": ns}, file)
