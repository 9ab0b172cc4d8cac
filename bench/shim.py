"""The figure `shim`: what a decision of the shim costs a call, and what it keeps in memory.

inproc_shim.py is the program that is measured. Without recording and with it are measured in one process, in turns.
"""
import os

from figures import figure, trace_path
from interpreters import BENCH, Failed
from tables import at_most

INPROC = os.path.join(BENCH, "inproc_shim.py")


def measure(python, options, what, times, dyntrace=None):
    arguments = [INPROC, what, "--yardstick", python.yardstick, "--package", os.path.join(python.extension, "python"),
                 "--cpu", str(options.cpu), "--rounds", str(options.rounds), "--times", str(times)]
    return python.run(arguments, report=True, dyntrace=dyntrace, stats=dyntrace is not None, keep_off=options.cpu)


def best_ns(report):
    return {mode: min(seconds) / report["calls"] * 1e9 for mode, seconds in report["seconds"].items()}


@figure("shim", "The shim's decisions, ns a call", [
    "python", "figure", "not recorded", "recorded", "held to", "measured", "target", ""], [
    "ns a call in all; the last columns hold one number against its target: `over plain` is over a plain call, recorded",
    "6 guards: types, buffers (dtype, shape, strides) and length of two array arguments, and that they are not one object",
    "100 guards: 8 layers of a model, 83 access paths; Python guard: the 6 conditions as a function of f_locals",
    "memory: what the resident set grows by; `entry` counts all that the shim keeps for a code object with one entry"])
def shim(table, python, options):
    """Hits, skips, the cost of recording them, and memory."""
    times = max(2000, 50000 // options.divisor)
    with trace_path() as path:
        run = measure(python, options, "calls", times, dyntrace=["-o", path])
    report = run["report"]
    table.raw.append({"python": python.version, "stats": run["stats"], **report})
    ns = best_ns(report)
    plain = ns["plain"]

    def add(what, mode, held="", held_to=("", "", "")):
        table.add(python.version, what, f"{ns[mode]:.0f}" if mode in ns else "-",
                  f"{ns[mode + '+rec']:.0f}" if mode + "+rec" in ns else "-", held, *held_to)

    def hit(what, mode, most):
        add(what, mode, "over plain", at_most(ns[mode + "+rec"] - plain, most, "{:.0f} ns"))
        table.add(python.version, what, "", "", "recording adds", *at_most(ns[mode + "+rec"] - ns[mode], 80, "{:.0f} ns"))

    add("plain call", "plain")
    add("pass-through hook", "pass")
    add("skip-marked code", "skip", "not recorded : pass-through", at_most(ns["skip"] / ns["pass"], 1.3))
    hit("hit, 6 guards, array.array", "six", 250)
    if "numpy" in ns:
        hit("hit, 6 guards, numpy.ndarray", "numpy", 250)
    hit("hit, 100 guards, nested object", "hundred", 1500)
    add("hit, 1 Python guard", "python", "over plain", (f"{ns['python+rec'] - plain:.0f} ns", "-", ""))
    add_torch(table, python, options, times, ns["six+rec"] - plain)
    add_memory(table, python, options)
    table.notes.append(f"{python.version}: the recorder took {run['stats']['collector_cpu_s']:.2f} s of processor time for all calls together")
    if run["stats"]["waits"]:
        table.notes.append(f"{python.version}: the program waited {run['stats']['waits']} times for the collector, "
                           f"{run['stats']['wait_ns'] / 1e6:.1f} ms")


def add_torch(table, python, options, times, on_arrays):
    """ON_ARRAYS: our recorded hit with 6 guards on two arrays, over a plain call; torch's hit has about as many guards."""
    what = "hit, 6 guards, torch.Tensor"
    if not python.has_module("torch"):
        table.add(python.version, what, "-", "-", "torch's own hit", "not installed", "-", "")
        return
    with trace_path() as path:
        try:
            report = measure(python, options, "torch", times, dyntrace=["-o", path])["report"]
        except Failed as error:  # another torch: all other rows are still true
            table.notes.append(f"{python.version}: torch: {str(error).strip().splitlines()[-1]}")
            return
    table.raw.append({"python": python.version, **report})
    ns = best_ns(report)
    ours = ns["tensor+rec"] - ns["plain"]
    own = ns["torch"] - ns["body"]  # without what runs after a hit
    table.add(python.version, what, f"{ns['tensor']:.0f}", f"{ns['tensor+rec']:.0f}", "over plain", f"{ours:.0f} ns", "-", "")
    table.add(python.version, "hit, 6 guards, array.array", "", "", "over plain : torch's own hit", *at_most(on_arrays / own, 0.2))
    table.add(python.version, what, "", "", "over plain : torch's own hit", f"{ours / own:.2f}", "-", "")
    table.add(python.version, f"torch {report['version']}, its own hit", f"{ns['torch']:.0f}", "-", "over its compiled code",
              f"{own:.0f} ns", "-", "")
    table.add(python.version, "the same, called through torch.compile", f"{ns['torch.compile']:.0f}", "-",
              "over its compiled code", f"{ns['torch.compile'] - ns['body']:.0f} ns", "-", "")


def add_memory(table, python, options):
    count = max(600, 10000 // options.divisor)
    report = measure(python, options, "memory", count)["report"]
    table.raw.append({"python": python.version, **report})
    for name, what in (("entry", "a code object's entry"), ("more", "one more entry of it"),
                       ("six", "a guard of the 6 on arrays"), ("hundred", "a guard of the 100")):
        table.add(python.version, "memory: " + what, "", "", "", f"{report['bytes'][name]:.0f} B", "-", "")
