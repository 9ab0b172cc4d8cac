"""The figure `capture`: what dyntrace.compile takes to capture a function, beside torch._dynamo, what a hit costs, and memory.

inproc_capture.py is the program that is measured. Both compile the same functions in one process, in turns, with backend="eager".
"""
import os

from figures import figure
from interpreters import BENCH, Interpreter
from tables import at_least, at_most

INPROC = os.path.join(BENCH, "inproc_capture.py")
LIBRARIES = ("numpy", "torch")


@figure("capture", 'dyntrace.compile(backend="eager"), beside torch._dynamo', [
    "python", "figure", "arrays", "ours", "torch._dynamo", "held to", "measured", "target", ""], [
    "capture: of a function of so many operations, processor time of its first call, best of the rounds, as all here; each round captures a new function",
    "hit: ns a call over a plain call of the same function, beside the same guards (GuardTree) and the same code in an entry of the shim's;"
    " and beside the function's own code there, which calls no graph",
    "memory: of a graph module with 1,000 nodes, code and nodes, as tracemalloc counts it"])
def capture(table, python, options):
    """For an interpreter without torch, $DYNTRACE_TORCH_PYTHON is measured."""
    named = os.environ.get("DYNTRACE_TORCH_PYTHON")
    if not python.has_module("torch") and named:
        python = Interpreter(named)
    for library in LIBRARIES:
        if not python.has_module(library):
            table.notes.append(f"{python.version}: {library} is not installed")
            continue
        if any(raw["executable"] == python.executable and raw["library"] == library for raw in table.raw):
            continue
        report = python.run([INPROC, library, "--package", os.path.join(python.extension, "python"), "--cpu", str(options.cpu),
                             "--rounds", str(max(3, options.rounds))], report=True, keep_off=options.cpu)["report"]
        table.raw.append({"python": python.version, "executable": python.executable, "library": library, **report})
        add(table, python, library, report)


def add(table, python, library, report):
    best = {side: {int(count): min(seconds) for count, seconds in counts.items()} for side, counts in report["seconds"].items()}
    for count, ours in best["ours"].items():
        theirs = best.get("torch", {}).get(count)
        table.add(python.version, f"capture, {count} operations", library, f"{ours * 1e3:.2f} ms", f"{theirs * 1e3:.1f} ms" if theirs else "-",
                  *(("torch._dynamo : ours", *at_least(theirs / ours, 20, "{:.0f}")) if theirs else ("", "", "", "")))
    most, least = max(best["ours"]), sorted(best["ours"])[-2]
    table.add(python.version, f"capture, {most} operations", library, "", "", "time : of a tenth", *at_most(best["ours"][most] / best["ours"][least], 12, "{:.1f}"))
    ns = {what: min(times) for what, times in report["hit"].items()}
    table.add(python.version, "hit", library, f"{ns['ours'] - ns['plain']:.0f} ns", f"{ns['torch'] - ns['plain']:.0f} ns" if "torch" in ns else "-",
              "ours : the shim's", *at_most((ns["ours"] - ns["plain"]) / (ns["same"] - ns["plain"]), 1.2))
    table.add(python.version, "hit, with the call of a graph", library, "", "", "ours : the shim's without",
              f"{(ns['ours'] - ns['plain']) / (ns['shim'] - ns['plain']):.2f}", "", "")
    table.add(python.version, "memory of 1,000 nodes", library, f"{report['bytes'] / 1e3:.0f} kB", "", "", *at_most(report["bytes"] / 2 ** 20, 1, "{:.2f} MB"))
    if report["guards"]:
        table.notes.append(f"{python.version}, {library}: the hit has {report['guards']} guards")
