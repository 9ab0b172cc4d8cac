"""The figure `spans`: what `dyntrace.span` and `run --args` cost, beside `with lock:` and a plain call.

inproc_spans.py is the program that is measured.
"""
import os

from figures import figure, trace_path
from interpreters import BENCH
from tables import at_most

INPROC = os.path.join(BENCH, "inproc_spans.py")


def measure(python, options, dyntrace=None):
    arguments = [INPROC, "--package", os.path.join(python.extension, "python"), "--cpu", str(options.cpu),
                 "--rounds", str(10 * options.rounds), "--times", str(max(200, 5000 // options.divisor))]
    run = python.run(arguments, report=True, dyntrace=dyntrace, stats=dyntrace is not None, keep_off=options.cpu)
    ns = run["report"]["ns"]
    return {name: value - ns["empty"] for name, value in ns.items()}, run.get("stats")


@figure("spans", "Spans and recorded arguments, ns each", ["python", "what", "not recorded", "recorded", "target", ""], [
    "without the loop; `with lock:` is that of a threading.Lock, for comparison",
    "recorded: with the frames of these functions, as `dyntrace run --args noted` records them; short rounds, which the ring holds"])
def spans(table, python, options):
    """Spans while nothing records and while they are recorded, and calls with arguments."""
    off, _ = measure(python, options)
    with trace_path() as path:
        on, stats = measure(python, options, dyntrace=["-o", path, "--args", "noted"])
    table.raw.append({"python": python.version, "off": off, "on": on, "stats": stats})
    table.notes.append(f"{python.version}: the recorder took {stats['collector_cpu_s']:.2f} s of processor time for all rows together")

    def add(what, name, most=None):
        target = at_most(off[name], most, "{:.0f} ns")[1:] if most else ("", "")
        table.add(python.version, what, f"{off[name]:.0f}", f"{on[name]:.0f}", *target)

    add("with lock:", "with_lock")
    add('with span("request"):', "with_name", 100)
    add('with span("request", id=271):', "with_attributes", 100)
    add("a plain call", "call_plain")
    add("a call with @span", "call_spanned")
    add("a call of two arguments", "call_unnoted")
    add("the same with --args", "call_noted")
