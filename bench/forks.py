"""The figure `forks`: what a child process costs, in time and in processor time, the recorder's included.

inproc_forks.py is the program that is measured.
"""
import os
import statistics

from figures import figure, trace_path
from interpreters import BENCH
from tables import at_most

INPROC = os.path.join(BENCH, "inproc_forks.py")
WAYS = {"fork": "os.fork, os._exit", "exec": "os.fork, os.execv of /bin/true", "subprocess": "subprocess.run of /bin/true",
        "multiprocessing": "multiprocessing.Process, fork"}
MAX_ADDED_MS = 1.0


@figure("forks", "Children, ms each", [
    "python", "way", "alone", "recorded", "added", "target", "", "processor time alone", "recorded", "added", "and the recorder's",
    "noise"], [
    "children one after the other, in slices of 50: 3,000 of each way, 100 with --quick; best slice of runs that take turns",
    "processor time: of the program and its children, the best slice; the recorder's: of a whole run, without that of a run of no children"])
def forks(table, python, options):
    """Measure children that do almost nothing, started in four ways."""
    slices = max(2, 20 // options.divisor)
    for way, what in WAYS.items():
        command = [INPROC, "--way", way, "--cpu", str(options.cpu), "--slices"]
        alone, recorded, recorder_s = [], [], []
        for _ in range(options.long_rounds):
            alone += python.run(command + [str(slices)], report=True, keep_off=options.cpu)["report"]["slices"]
            run = recorded_run(python, options, command + [str(slices)])
            nothing = recorded_run(python, options, command + ["0"])
            recorded += run["report"]["slices"]
            recorder_s.append((run["stats"]["collector_cpu_s"] - nothing["stats"]["collector_cpu_s"])
                              / run["report"]["children"])
        each = run["report"]["children"] / slices
        ms = {(name, key): min(one[key] for one in runs) / each * 1e3
              for name, runs in (("alone", alone), ("recorded", recorded)) for key in ("wall_s", "cpu_s")}
        walls = [one["wall_s"] for one in alone]
        added = ms["recorded", "wall_s"] - ms["alone", "wall_s"]
        table.add(python.version, what, f"{ms['alone', 'wall_s']:.2f}", f"{ms['recorded', 'wall_s']:.2f}",
                  *at_most(added, MAX_ADDED_MS), f"{ms['alone', 'cpu_s']:.2f}", f"{ms['recorded', 'cpu_s']:.2f}",
                  f"{ms['recorded', 'cpu_s'] - ms['alone', 'cpu_s']:.2f}", f"{min(recorder_s) * 1e3:.2f}", f"{(statistics.median(walls) / min(walls) - 1) * 100:.0f} %")
        table.raw.append({"python": python.version, "way": way, "alone": alone, "recorded": recorded, "recorder_s": recorder_s})


def recorded_run(python, options, command):
    with trace_path() as path:
        return python.run(command, report=True, dyntrace=["-o", path], stats=True, keep_off=options.cpu)
