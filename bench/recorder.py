"""The figure `recorder`: the recorder's own time for a frame, and the bytes of a frame on the disk.

Processor time and bytes are those of a long recording. Instructions are counted by valgrind's callgrind, if that is
installed, only in the function that turns the words of a ring into rows, and in the functions that it calls. So they
contain neither the recorder's start nor its waiting for words.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile

from figures import chosen_programs, figure, trace_path
from interpreters import BENCH, DYNTRACE, Failed
from tables import at_most

NS, INSTRUCTIONS, BYTES = 40, 410, 24
PROGRAM = "import sys; sys.path.insert(0, %r); from programs import PROGRAMS; p = PROGRAMS[%r]; sys.exit(not p.check(p.run(%d)))"


@figure("recorder", "The recorder, a frame", [
    "python", "program", "frames", "processor ns", "target", "", "instructions", "target", "", "bytes", "target", ""], [
    "processor ns: of all the recorder's processes; instructions: to decode and store a frame, by callgrind (not measured without valgrind)",
    f"the targets are for fib; {NS} ns where 787 instructions took 77 ns: {INSTRUCTIONS} instructions"])
def recorder(table, python, options):
    """Measure the recorder. There is no yardstick: the figures serve to compare versions of dyntrace."""
    for program in chosen_programs(options):
        times = max(4, program.times * 4 // options.divisor)
        ns, size, frames = recorded(python, program, times, options)
        instructions = counted(python, program, max(4, program.times // 20))
        row = [python.version, program.name, frames]
        judged = program.name == "fib"
        row += at_most(ns, NS, "{:.0f}") if judged else (f"{ns:.0f}", "-", "")
        if instructions is None:
            row += ("not measured", "-", "")
        else:
            row += at_most(instructions, INSTRUCTIONS, "{:.0f}") if judged else (f"{instructions:.0f}", "-", "")
        row += at_most(size, BYTES, "{:.1f}") if judged else (f"{size:.1f}", "-", "")
        table.add(*row)
        table.raw.append({"python": python.version, "program": program.name, "frames": frames, "ns": ns,
                          "instructions": instructions, "bytes": size})


def arguments(program, times):
    return ["-c", PROGRAM % (BENCH, program.name, times)]


def recorded(python, program, times, options):
    """Run PROGRAM several times. Returns (least processor ns a frame, bytes a frame, number of frames)."""
    best = None
    with trace_path() as path:
        for _ in range(options.long_rounds):
            stats = python.run(arguments(program, times), dyntrace=["-o", path], stats=True, keep_off=options.cpu)["stats"]
            cpu = stats["collector_cpu_s"]
            best = cpu if best is None else min(best, cpu)
        return best / stats["frames"] * 1e9, os.path.getsize(path) / stats["frames"], stats["frames"]


def counted(python, program, times):
    """Return the recorder's instructions a frame, or None without valgrind. Only the recorder runs under valgrind."""
    if not shutil.which("valgrind"):
        return None
    with tempfile.TemporaryDirectory(prefix="dyntrace-bench-") as folder:
        stats = os.path.join(folder, "stats")
        command = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={folder}/count.%p", "--toggle-collect=decode_words", DYNTRACE, "run", "--force",
                   "-o", os.path.join(folder, "t.db"), "--", python.executable, *arguments(program, times)]
        environment = {**os.environ, "DYNTRACE_LIMITS": "off", "DYNTRACE_STATS": stats}
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        if done.returncode:
            raise Failed(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
        total = 0
        for file in glob.glob(os.path.join(folder, "count.*")):
            with open(file) as text:
                total += sum(map(int, re.findall(r"^totals: (\d+)", text.read(), re.M)))
        with open(stats) as file:
            return total / json.load(file)["frames"]
