"""The program of the figure `forks`: what it takes to start children and to wait for them.

    inproc_forks.py --report FILE --way WAY --slices N [--cpu N]

Each slice starts SLICE children, one after the other. `wall_s` is the time that a slice took, `cpu_s` the processor time of this
process and its children. Without slices the report says what the program costs by itself.
"""
import argparse
import json
import multiprocessing
import os
import resource
import subprocess
import time

SLICE = 50
TRUE = "/bin/true"

parser = argparse.ArgumentParser()
parser.add_argument("--report", required=True)
parser.add_argument("--way", required=True)
parser.add_argument("--slices", type=int, required=True)
parser.add_argument("--cpu", type=int)
options = parser.parse_args()
if options.cpu is not None:
    os.sched_setaffinity(0, {options.cpu})


def square(number):
    return number * number


def fork():
    pid = os.fork()
    if pid == 0:
        square(3)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def fork_and_exec():
    pid = os.fork()
    if pid == 0:
        os.execv(TRUE, [TRUE])
    return os.waitpid(pid, 0)[1]


def subprocess_run():
    return subprocess.run([TRUE]).returncode


def process_of_multiprocessing():
    process = forking.Process(target=square, args=(3,))
    process.start()
    process.join()
    return process.exitcode


def cpu_s():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


forking = multiprocessing.get_context("fork")
start = {"fork": fork, "exec": fork_and_exec, "subprocess": subprocess_run, "multiprocessing": process_of_multiprocessing}[options.way]
good = True
slices = []
for _ in range(options.slices):
    began, cpu_began = time.monotonic(), cpu_s()
    for _ in range(SLICE):
        good &= start() == 0
    slices.append({"wall_s": time.monotonic() - began, "cpu_s": cpu_s() - cpu_began})
with open(options.report, "w") as file:
    json.dump({"good": good, "slices": slices, "children": SLICE * options.slices}, file)
