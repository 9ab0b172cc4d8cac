"""The figure `torch`: what dyntrace costs a program that uses torch.compile, beside torch alone.

inproc_torch.py is the program that is measured. It runs without us, on our evaluator (--torch shim) and observed on
torch's own (--torch observe), in processes that take turns, so that each ratio is of torch with us to torch without.
No module here may be named torch: the measured program would import it.
"""
import os
import sqlite3
import statistics

from figures import figure, trace_path
from interpreters import BENCH, Failed, Interpreter
from tables import at_most

INPROC = os.path.join(BENCH, "inproc_torch.py")
MODES = {  # mode -> options of `dyntrace run`
    "shim": ["--torch", "shim"],
    "observe": ["--torch", "observe"],
    "shim, user": ["--torch", "shim", "--frames", "user"],
    "observe, user": ["--torch", "observe", "--frames", "user"],
    "shim, decided": ["--torch", "shim", "--frames", "decided"],
    "observe, decided": ["--torch", "observe", "--frames", "decided"],
}
CALLS = {"in small": "call in a region, x + 1", "in module": "call in a region, 12 linear layers",
         "out small": "call from outside, x + 1", "out module": "call from outside, 12 linear layers"}
MAX_CALL = {"shim": 1.0, "observe": 1.05}
MAX_START = 1.1
MAX_COMPILES = 1.05
MAX_MEMORY_MB = 32


@figure("torch", "torch.compile, beside torch without us", [
    "python", "figure", "mode", "without", "with", "ratio", "target", "", "medians", "noise"], [
    "calls: a hit on code compiled by a backend that does nothing, us a call, recorded; best of the slices",
    "`decided`, `user`: with --frames decided or user; else every frame of torch's own that a call runs is recorded, too, about 20",
    "in a region: the callback is in force and the caller skipped; from outside: through what torch.compile returned",
    "start: import torch and torch._dynamo; processor time of the process, and time from the command to their end",
    "compiles: processor time of the process for 50 different compiles, each one's best summed",
    "recorder: processor time of the recorder for such a process, from its start to the finished trace",
    "memory: resident in the traced process after a million frames; what it has beyond files, and all of it",
    "medians: the same ratio of the median slices; noise: how far the median lay above the best without us"],
    needs_dyntrace=False)
def with_torch(table, python, options):
    """Calls, starts, compiles and memory. For an interpreter without torch, $DYNTRACE_TORCH_PYTHON is measured."""
    named = os.environ.get("DYNTRACE_TORCH_PYTHON")
    if not python.has_module("torch") and named:
        python = Interpreter(named)
    if not python.has_module("torch"):
        table.notes.append(f"{python.version}: torch is not installed")
        return
    if not python.extension:
        table.notes.append(f"{python.version}: dyntrace is not built for it")
        return
    if any(raw["executable"] == python.executable for raw in table.raw):
        return
    calls = take_turns(table, python, options, ["calls", "--slices", str(max(20, 300 // options.divisor))])
    compiles = take_turns(table, python, options, ["compiles", "--compiles", str(max(5, 50 // options.divisor))])
    table.raw.append({"python": python.version, "executable": python.executable, "calls": calls, "compiles": compiles})

    def add(what, mode, own, ours, form, most):
        """Add a row. OWN has the measurements of the runs without dyntrace, OURS those with it."""
        table.add(python.version, what, mode, form.format(min(own)), form.format(min(ours)),
                  *at_most(min(ours) / min(own), most), f"{statistics.median(ours) / statistics.median(own):.2f}",
                  f"{(statistics.median(own) / min(own) - 1) * 100:.0f} %")

    for name, what in CALLS.items():
        for mode in MODES:
            add(what, mode, of_slices(calls["without"], name), of_slices(calls[mode], name), "{:.2f} us",
                MAX_CALL[mode.partition(",")[0]])
    for key, what in (("cpu_s", "start, processor time"), ("wall_s", "start, time")):
        for mode in ("shim", "observe"):
            own, ours = ([start_of(run)[key] for run in calls[m] + compiles[m]] for m in ("without", mode))
            add(what, mode, own, ours, "{:.2f} s", MAX_START)
    for backend in ("eager", "aot_eager"):
        own = of_compiles(compiles["without"], backend)
        for mode in MODES:
            ours = of_compiles(compiles[mode], backend)
            best, median = ([sum(map(function, each)) for each in (own, ours)] for function in (min, statistics.median))
            table.add(python.version, f"{len(own)} compiles, {backend}", mode, f"{best[0]:.3f} s", f"{best[1]:.3f} s",
                      *at_most(best[1] / best[0], MAX_COMPILES), f"{median[1] / median[0]:.2f}",
                      f"{(median[0] / best[0] - 1) * 100:.0f} %")
    for mode in MODES:
        recorder_s = min(run["stats"]["collector_cpu_s"] for run in compiles[mode])
        table.add(python.version, f"recorder of the compiles' process, {2 * len(own)} compiles", mode, "-", f"{recorder_s:.2f} s", *[""] * 5)
    for key, what in (("own", "memory, without files"), ("resident", "memory, resident")):
        own = statistics.median(run["report"]["memory"][key] for run in calls["without"]) / 1e6
        for mode in MODES:
            ours = statistics.median(run["report"]["memory"][key] for run in calls[mode]) / 1e6
            table.add(python.version, what, mode, f"{own:.0f} MB", f"{ours:.0f} MB",
                      *at_most(ours - own, MAX_MEMORY_MB, "{:.0f} MB"), "", "")
    version = calls["without"][0]["report"]["version"]
    table.notes.append(f"{python.version}: torch {version}, {processes(options)} processes of each")


def processes(options):
    return min(options.rounds, 5)  # not more, because each process imports torch, which takes long


def take_turns(table, python, options, arguments):
    """Run the program in each mode, and in the mode "without", in turns. Returns {mode: runs}. Each turn begins with another mode."""
    command = [INPROC, *arguments, "--cpu", str(options.cpu)]
    runs = {mode: [] for mode in ["without", *MODES]}
    for turn in range(processes(options)):
        order = list(runs)
        for mode in order[turn % len(order):] + order[:turn % len(order)]:
            if mode == "without":
                runs[mode].append(python.run(command, report=True, keep_off=options.cpu))
                continue
            with trace_path() as path:
                runs[mode].append(python.run(command, report=True, dyntrace=["-o", path, *MODES[mode]],
                                             stats=True, keep_off=options.cpu))
                lost = [f"{mode}: lost: {cause}" for cause in check_trace(path, mode)]
                table.notes += [note for note in lost if note not in table.notes]
    for mode in MODES:
        least = min(run["stats"]["collector_cpu_s"] for run in runs[mode])
        table.notes.append(f"{python.version}, {' '.join(arguments)}, {mode}: the recorder took {least:.2f} s of processor time a process")
    return runs


def check_trace(path, mode):
    """Return the causes of losses in the trace. Raises Failed if torch was not watched in MODE, or no compile was recorded: then a low
    cost would mean nothing."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        found, note = connection.execute("SELECT torch_mode, torch_note FROM process "
                                         "WHERE torch_mode IS NOT NULL").fetchone()
        compiled, = connection.execute("SELECT count(*) FROM compile").fetchone()
        lost = [cause for cause, in connection.execute("SELECT DISTINCT cause FROM loss WHERE cause NOT LIKE 'stall%'")]
    except (sqlite3.Error, TypeError) as error:
        raise Failed(f"{path}: {error}") from error
    finally:
        connection.close()
    if found != mode.partition(",")[0]:
        raise Failed(f"torch was not run as --torch {mode} says, but {found}: {note}")
    if not compiled:
        raise Failed(f"--torch {mode}: no compile was recorded")
    return lost


def of_slices(runs, name):
    """Return the microseconds a call in each slice."""
    return [one / 1e3 for run in runs for one in run["report"]["slices"][name]]


def of_compiles(runs, backend):
    """Return for each compile its seconds in each run."""
    return list(zip(*(run["report"]["seconds"][backend] for run in runs)))


def start_of(run):
    start = run["report"]["start"]
    return {"cpu_s": start["cpu_s"], "wall_s": (start["end_ns"] - run["start_ns"]) / 1e9}
