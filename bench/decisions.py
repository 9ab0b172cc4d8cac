"""The figure `decisions`: how many decisions of the shim a second reach the trace, and what the recorder takes for one.

inproc_decisions.py is the program that is measured.
"""
import os
import sqlite3

from figures import figure, trace_path
from interpreters import BENCH, DYNTRACE, Failed
from tables import at_least, at_most, verdict

INPROC = os.path.join(BENCH, "inproc_decisions.py")
FUNCTIONS = 100
QUESTION_S = 1  # `why`


@figure("decisions", "The shim's decisions, one guard each, as fast as they come", [
    "python", "figure", "measured", "target", ""], [
    f"calls of {FUNCTIONS} functions that hit; each is a frame, a lookup and a guard check",
    "trace complete after: from the program's last atexit call to the exit of `dyntrace run`",
    "lookups a second: over the program's work and that wait"])
def decisions(table, python, options):
    """Measure long runs: does the collector keep up, and is the trace right?"""
    wanted = 10_000_000 // options.divisor
    runs = []
    with trace_path() as path:
        for _ in range(options.long_rounds):
            os.sync()  # a run leaves over a gigabyte to be written to the disk, which must not slow down the next run
            run = python.run([INPROC, "--calls", str(wanted), "--functions", str(FUNCTIONS), "--cpu", str(options.cpu),
                              "--package", os.path.join(python.extension, "python")],
                             report=True, dyntrace=["-o", path], stats=True, keep_off=options.cpu)
            run["lag_s"] = (run["end_ns"] - run["report"]["end_ns"]) / 1e9
            runs.append(run)
        size = os.path.getsize(path)
        why_s = python.run(["why", path, "target7"], program=DYNTRACE)["wall_s"]
        with sqlite3.connect(path) as db:
            found, = db.execute("SELECT COUNT(*) FROM lookup WHERE outcome = 1").fetchone()
            integrity, = db.execute("PRAGMA integrity_check").fetchone()
    table.raw.append({"python": python.version, "runs": runs})

    def say(what, measured, aim="-", mark=""):
        table.add(python.version, what, measured, aim, mark)

    made = wanted + FUNCTIONS * 10 - FUNCTIONS
    say("lookups", f"{found / 1e6:.1f} M")
    say("program", f"{min(run['report']['work_s'] for run in runs) / wanted * 1e9:.0f} ns a call")
    say("lookups a second", *at_least(max(wanted / (run["report"]["work_s"] + run["lag_s"]) for run in runs) / 1e6, 5, "{:.1f} M"))
    say("trace complete after", *at_most(min(run["lag_s"] for run in runs) * 1e3, 100, "{:.0f} ms"))
    say("collector, processor time a lookup", *at_most(min(run["stats"]["collector_cpu_s"] for run in runs) / wanted * 1e9, 200, "{:.0f} ns"))
    say("bytes a lookup", f"{size / wanted:.0f}")
    say("`why`, of one function", *at_most(why_s, QUESTION_S, "{:.2f} s"))
    say("waits of the program for the collector", f"{runs[-1]['stats']['waits']}, {runs[-1]['stats']['wait_ns'] / 1e6:.1f} ms")
    say("rows of lookup", found, made, verdict(found == made))
    say("PRAGMA integrity_check", integrity, "ok", verdict(integrity == "ok"))
    if integrity != "ok" or found != made:
        raise Failed(f"{python.version}: the trace is wrong: {found} hits of {made}, integrity {integrity}")
