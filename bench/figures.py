"""The figures: what is measured, how, and which bound each is held against.

Each figure is a table, and a function that measures one interpreter's rows of
it. What is compared is measured in one run, in turns; a figure is the best of
its rounds, since what else happens on a machine only ever adds time. `noise` is
how far the median round lay above the best.
"""
import argparse
import collections
import os
import sqlite3
import statistics
import tempfile
from contextlib import contextmanager
from typing import Callable, List, NamedTuple

from interpreters import BENCH, Failed
from mix import ROUND
from programs import PROGRAMS
from tables import at_least, at_most, verdict

INPROC = os.path.join(BENCH, "inproc.py")
MIX = os.path.join(BENCH, "mix.py")
EXTRA_NS = 12  # a program also passes if recording adds at most so many ns a frame: for frames so short that a ratio is noise
MAX_OF_SETPROFILE = 0.65
MAX_FILTERED = 1.05


class Figure(NamedTuple):
    title: str
    columns: List[str]
    notes: List[str]
    needs_dyntrace: bool
    measure: Callable  # measure(table, python, options) adds rows to the table


FIGURES = {}


def figure(name, title, columns, notes=(), needs_dyntrace=True):
    def enter(function):
        FIGURES[name] = Figure(title, columns, list(notes), needs_dyntrace, function)
        return function
    return enter


@contextmanager
def trace_path():
    with tempfile.TemporaryDirectory(prefix="dyntrace-bench-") as directory:
        yield os.path.join(directory, "trace.db")


def chosen_programs(options):
    return [program for program in PROGRAMS.values() if not options.programs or program.name in options.programs]


def time_modes(python, program, options, modes, dyntrace=None, load=None):
    """Run PROGRAM by inproc.py in each of MODES. Returns its report: {"frames": n, "seconds": {mode: [...]}}"""
    arguments = [INPROC, program.name, "--yardstick", python.yardstick, "--cpu", str(options.cpu), "--rounds",
                 str(options.rounds), "--times", str(max(1, program.times // options.divisor)), "--modes", ",".join(modes)]
    if load:
        arguments += ["--load", load]
    if dyntrace is None:
        return python.run(arguments, report=True)["report"]
    with trace_path() as path:
        run = python.run(arguments, report=True, dyntrace=["-o", path] + dyntrace, stats=True,
                         keep_off=options.cpu)
        return {**run["report"], "stats": run["stats"]}


def shorter(options):
    """Return options for many rounds of a few milliseconds, of which some are not disturbed by other programs."""
    return argparse.Namespace(**{**vars(options), "rounds": options.rounds * 6, "divisor": options.divisor * 30})


def best_ns(report):
    """Return the nanoseconds a frame in the best round of each mode."""
    return {mode: min(seconds) / report["frames"] * 1e9 for mode, seconds in report["seconds"].items()}


def recorder_ns(stats):
    """Return the processor time of the recorder's own processes, in nanoseconds a frame."""
    return stats["collector_cpu_s"] / max(1, stats["frames"]) * 1e9


def noise(report, mode):
    seconds = report["seconds"][mode]
    return f"{(statistics.median(seconds) / min(seconds) - 1) * 100:.0f} %"


def rounds_for(python, frames_wanted):
    """Return how many rounds of the mix have about FRAMES_WANTED frames."""
    one = int(python.run([MIX, "--count", "--yardstick", python.yardstick])["output"])
    return max(1, round(frames_wanted / one))


def inspect(path):
    """Return (the result of integrity_check, the number of frames) of the trace at PATH."""
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            integrity, = connection.execute("PRAGMA integrity_check").fetchone()
            rows, = connection.execute("SELECT count(*) FROM frame").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise Failed(f"{path}: {error}") from error
    return integrity, rows


@figure("frames", "Recording every frame, ns a frame", [
    "python", "program", "frames", "no hook", "pass-through", "stamping", "recording", "setprofile", "noise",
    "rec:pass", "target", "extra ns", "two reads", "rec:setprofile", "", "waits", "coarse", "coarse:pass", "recorder"], [
    "recorder: processor time of the recorder's own processes, which no other column has in it, ns a recorded frame",
    "pass-through: a PEP 523 hook that only calls the interpreter's evaluator; setprofile: an empty C profile function",
    f"pass: rec:pass within its target or at most {EXTRA_NS} ns above pass-through, and rec:setprofile <= {MAX_OF_SETPROFILE}",
    "stamping: pass-through that writes the counter down at both ends, and nothing else: the least that exact times cost",
    "two reads: what reading the counter twice takes, and how much that is of the extra; more than all of it where other work hides it",
    "coarse: recording with --clock coarse, in a process of its own, beside the pass-through hook there",
    "waits: how often, in all rounds together, the program had to wait for a collector that did not keep up",
    "on 3.13 `no hook` and `pass-through` run with __init__ calls made visible, as recording needs them"],
    needs_dyntrace=False)
def frames(table, python, options):
    """Measure what recording costs each frame. If dyntrace is not built, measure only the yardsticks."""
    options = shorter(options)
    for program in chosen_programs(options):
        if python.extension:
            report = time_modes(python, program, options, ["none", "pass", "stamp", "record", "setprofile"], dyntrace=[])
        else:
            report = time_modes(python, program, options, ["none", "pass", "stamp", "setprofile"])
        ns = best_ns(report)
        row = [python.version, program.name, report["frames"], f"{ns['none']:.1f}", f"{ns['pass']:.1f}",
               f"{ns['stamp']:.1f}"]
        if "record" in ns:
            ratio, extra, share = ns["record"] / ns["pass"], ns["record"] - ns["pass"], ns["record"] / ns["setprofile"]
            good = share <= MAX_OF_SETPROFILE and (
                program.target is None or ratio <= program.target or extra <= EXTRA_NS)
            coarse = best_ns(time_modes(python, program, options, ["pass", "record"], dyntrace=["--clock", "coarse"]))
            row += [f"{ns['record']:.1f}", f"{ns['setprofile']:.1f}", noise(report, "pass"), f"{ratio:.2f}",
                    f"<= {program.target:.2f}" if program.target else "-", f"{extra:.1f}",
                    f"{2 * report['read_ns']:.1f}, {200 * report['read_ns'] / extra:.0f} %", f"{share:.2f}", verdict(good),
                    report["stats"]["waits"], f"{coarse['record']:.1f}", f"{coarse['record'] / coarse['pass']:.2f}",
                    f"{recorder_ns(report['stats']):.0f}"]
        else:
            row += ["-", f"{ns['setprofile']:.1f}", noise(report, "pass"), "-", "-", "-", "-", "-", "not built", "-", "-", "-", "-"]
        table.add(*row)
        table.raw.append({"python": python.version, **report})


@figure("filtered", "Frames excluded by a filter, ns a frame", [
    "python", "program", "pass-through", "excluded", "noise", "excluded:pass", "target", "", "recorder ms"], [
    "recorder ms: processor time of the recorder's own processes for the whole run",
    "dyntrace run --frames user --exclude '*/bench/programs/*': nothing of these programs is recorded"])
def filtered(table, python, options):
    """Measure the cost of frames that the user has excluded."""
    for program in chosen_programs(options):
        report = time_modes(python, program, options, ["pass", "record"],
                            dyntrace=["--frames", "user", "--exclude", "*/bench/programs/*"])
        ns = best_ns(report)
        table.add(python.version, program.name, f"{ns['pass']:.1f}", f"{ns['record']:.1f}", noise(report, "pass"),
                  *at_most(ns["record"] / ns["pass"], MAX_FILTERED), f"{report['stats']['collector_cpu_s'] * 1e3:.0f}")
        table.raw.append({"python": python.version, **report})


@figure("objects", "Objects whose class has a Python __init__, ns an object", [
    "python", "no hook", "pass-through, as it comes", "pass-through, all seen", "recording", "noise", "rec:all seen", "target",
    "", "rec:as it comes", "excluded", "excluded:as it comes", "target", "", "recorder"], [
    "recorder: processor time of the recorder's own processes, ns a recorded frame",
    "3.13 specialises calls of such a class so that no hook sees them; dyntrace has its own way, which `all seen` goes as well",
    "as it comes: in a process without dyntrace. Different processes, in turns"])
def objects(table, python, options):
    """Measure calls of a class with a Python __init__: recorded, which needs a slower way of calling, and excluded."""
    program = PROGRAMS["objects"]
    options = shorter(options)
    exclude = ["--frames", "user", "--exclude", "*/bench/programs/*"]
    bare, seen, out = [], [], []
    for _ in range(options.processes):
        bare.append(time_modes(python, program, options, ["none", "pass"]))
        seen.append(time_modes(python, program, options, ["pass", "record"], dyntrace=[]))
        out.append(time_modes(python, program, options, ["record"], dyntrace=exclude))
    made = seen[0]["frames"] - 1  # from a process with dyntrace, because a bare hook may see no __init__
    ns = {name: min(min(report["seconds"][mode]) for report in reports) / made * 1e9 for name, reports, mode in (
        ("none", bare, "none"), ("bare", bare, "pass"), ("pass", seen, "pass"), ("record", seen, "record"), ("out", out, "record"))}
    table.add(python.version, *(f"{ns[name]:.1f}" for name in ("none", "bare", "pass", "record")), noise(seen[0], "pass"),
              *at_most(ns["record"] / ns["pass"], program.target), f"{ns['record'] / ns['bare']:.2f}",
              f"{ns['out']:.1f}", *at_most(ns["out"] / ns["bare"], MAX_FILTERED), f"{min(recorder_ns(report['stats']) for report in seen):.0f}")
    table.raw.append({"python": python.version, "bare": bare, "seen": seen, "excluded": out})


@figure("import", "`import _dyntrace`, nothing recorded, ns a frame", [
    "python", "program", "without", "with", "noise", "with:without", "target"], [
    "different processes, in turns; what differs from 1.00 is noise"])
def imported(table, python, options):
    """Measure what `import _dyntrace` alone costs the frames that follow: it should be nothing."""
    for program in [p for p in chosen_programs(options) if p.name in ("fib", "methods", "generators")]:
        without, with_it = [], []
        for _ in range(options.processes):
            report = time_modes(python, program, options, ["none"])
            without += report["seconds"]["none"]
            report = time_modes(python, program, options, ["none"], load=python.extension)
            with_it += report["seconds"]["none"]
        both = {"frames": report["frames"], "seconds": {"without": without, "with": with_it}}
        ns = best_ns(both)
        table.add(python.version, program.name, f"{ns['without']:.1f}", f"{ns['with']:.1f}", noise(both, "without"),
                  f"{ns['with'] / ns['without']:.2f}", "1.00")
        table.raw.append({"python": python.version, "program": program.name, **both})


@figure("endtoend", "End to end, a mix of call-heavy programs", [
    "python", "figure", "measured", "target", ""], [
    f"the mix: {', '.join(ROUND)}",
    "trace complete after: from the program's last atexit call to the exit of `dyntrace run`",
    "frames a second: over the program's work and that wait",
    "on 3.13 the bare pass-through hook never sees specialised __init__ calls, which recording does"])
def endtoend(table, python, options):
    """Measure one long run: does the collector keep up, and is the trace right?"""
    rounds = rounds_for(python, options.mix_frames)
    base = [MIX, "--rounds", str(rounds), "--cpu", str(options.cpu)]
    plain, hooked, recorded = [], [], []
    with trace_path() as path:
        for _ in range(options.long_rounds):
            plain.append(python.run(base, report=True))
            hooked.append(python.run(base + ["--hook", "pass", "--yardstick", python.yardstick], report=True))
            recorded.append(python.run(base, report=True, dyntrace=["-o", path], stats=True, keep_off=options.cpu))
            recorded[-1]["lag_s"] = (recorded[-1]["end_ns"] - recorded[-1]["report"]["end_ns"]) / 1e9
        size = os.path.getsize(path)
        integrity, rows = inspect(path)
    table.raw.append({"python": python.version, "rounds": rounds, "plain": plain, "hooked": hooked, "recorded": recorded,
                      "size": size, "rows": rows, "integrity": integrity})

    def work(runs):
        return min(run["report"]["work_s"] for run in runs)

    def say(what, measured, target="-", mark=""):
        table.add(python.version, what, measured, target, mark)

    counted = recorded[-1]["stats"]["frames"]
    stats = [run["stats"] for run in recorded]
    speed = max(run["stats"]["frames"] / (run["report"]["work_s"] + run["lag_s"]) for run in recorded)
    collector_ns = min(map(recorder_ns, stats))
    collector_mb = max(s["collector_peak_rss_kb"] for s in stats) / 1024
    say("frames", f"{counted / 1e6:.1f} M")
    say("program, no hook", f"{work(plain):.2f} s")
    say("program, pass-through", f"{work(hooked):.2f} s")
    say("program, recording", f"{work(recorded):.2f} s")
    say("recording : pass-through", *at_most(work(recorded) / work(hooked), 1.25))
    say("trace complete after", *at_most(min(run["lag_s"] for run in recorded) * 1e3, 100, "{:.0f} ms"))
    say("frames a second", *at_least(speed / 1e6, 10, "{:.1f} M"))
    say("collector, processor time a frame", *at_most(collector_ns, 50, "{:.0f} ns"))
    say("collector, peak resident", *at_most(collector_mb, 150, "{:.0f} MB"))
    say("waits of the program for the collector", f"{stats[-1]['waits']}, {stats[-1]['wait_ns'] / 1e6:.1f} ms")
    say("trace", f"{size / 2**20:.0f} MiB")
    say("bytes a frame", *at_most(size / max(1, rows), 40, "{:.1f}"))
    say("rows of frame", rows, counted, verdict(rows == counted))
    say("PRAGMA integrity_check" + (" (past 1 GiB)" if size > 2**30 else ""), integrity, "ok", verdict(integrity == "ok"))
    if integrity != "ok" or rows != counted:
        raise Failed(f"{python.version}: the trace is wrong: {rows} rows of {counted}, integrity {integrity}")


@figure("tools", "Beside other tools, the same mix", [
    "python", "tool", "frames", "program", ": plain", "file complete after", "bytes"], [
    "file complete after: from the start of the command until its file can be read",
    "cProfile keeps totals per function only; memray records allocations, not calls"],
    needs_dyntrace=False)
def tools(table, python, options):
    """Run the same program under other tools that people use."""
    rounds = rounds_for(python, options.tool_frames)
    about = f"{options.tool_frames / 1e6:.1f} M"
    program = [MIX, "--rounds", str(rounds), "--cpu", str(options.cpu)]
    with trace_path() as path:
        entries = str(int(options.tool_frames * 1.5))
        ways = [("plain", None, program),
                ("cProfile", "cProfile", ["-m", "cProfile", "-o", path] + program),
                ("VizTracer", "viztracer", ["-m", "viztracer", "--quiet", "--tracer_entries", entries,
                                            "-o", path + ".json", "--"] + program),
                ("memray", "memray", ["-m", "memray", "run", "--quiet", "--force", "-o", path] + program),
                ("dyntrace", None, program)]
        plain_s = None
        for tool, module, arguments in ways:
            if module and not python.has_module(module):
                table.add(python.version, tool, about, "-", "-", "not installed", "-")
                continue
            if tool == "dyntrace" and not python.extension:
                table.add(python.version, tool, about, "-", "-", "not built", "-")
                continue
            runs = []
            while len(runs) < options.long_rounds and (not runs or runs[0]["wall_s"] < 10):
                runs.append(python.run(arguments, report=True, dyntrace=["-o", path] if tool == "dyntrace" else None))
            work = min(run["report"]["work_s"] for run in runs)
            plain_s = plain_s or work
            made = [p for p in (path, path + ".json") if os.path.exists(p)]
            size = sum(os.path.getsize(p) for p in made)
            for p in made:
                os.unlink(p)
            table.add(python.version, tool, about, f"{work:.2f} s", f"{work / plain_s:.1f}",
                      f"{min(run['wall_s'] for run in runs):.2f} s", f"{size / 1e6:.1f} MB" if made else "-")
            table.raw.append({"python": python.version, "tool": tool, "bytes": size, "runs": runs})


@figure("startup", "Start-up and end, ms", [
    "command", "alone", "python -X importtime", "dyntrace run", "added", "median added", "run / alone", "recorder"], [
    "recorder: processor time of the recorder's own processes, least"])
def startup(table, python, options):
    """Measure what `dyntrace run` adds to a program that does nothing. The yardstick is -X importtime, a tool inside CPython."""
    for command, arguments, program in ((f"{python.version} -c pass", ["-c", "pass"], None), ("/bin/true", [], "/bin/true")):
        ms = collections.defaultdict(list)
        with trace_path() as path:
            for _ in range(options.starts):
                ms["alone"].append(python.run(arguments, program=program)["wall_s"] * 1e3)
                run = python.run(arguments, dyntrace=["-o", path], program=program, stats=True)
                ms["recorded"].append(run["wall_s"] * 1e3)
                ms["recorder"].append(run["stats"]["collector_cpu_s"] * 1e3)
                if not program:
                    ms["yardstick"].append(python.run(["-X", "importtime", *arguments])["wall_s"] * 1e3)
        alone, recorded = min(ms["alone"]), min(ms["recorded"])
        table.add(command, f"{alone:.1f}", f"{min(ms['yardstick']):.1f}" if ms["yardstick"] else "-", f"{recorded:.1f}",
                  f"{recorded - alone:.1f}", f"{statistics.median(ms['recorded']) - statistics.median(ms['alone']):.1f}", f"{recorded / alone:.2f}",
                  f"{min(ms['recorder']):.1f}")
        table.raw.append({"command": command, **ms})
