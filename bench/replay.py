"""The figure `replay`: what `dyntrace replay` takes on a trace of 10 M frames and 1 M lookups.

The trace is made here, once, and kept in build/: 4 threads, 100 functions with guards on the size of an input, each called
with 12 sizes, of which 8 are compiled before the limit is reached. Its decisions follow from one another, as recorded ones
do. Reading the trace counts.
"""
import os
import random
import subprocess
import tempfile
import time

from figures import figure
from interpreters import BENCH, Failed
from made import made_trace
from tables import at_least, at_most

ROOT = os.path.dirname(BENCH)
THREADS, FUNCTIONS, SIZES, LIMIT = 4, 100, 12, 8
FRAMES_OF_CALL = 10
CALL_NS = 20000
BATCH = 250       # a thread makes so many calls, then the next thread does
VERSION = 4       # increment it when fill() changes, so that the trace is made again
MEMORY_MB = 200


def big_trace(lookups):
    """Return the path of the trace, which is made if it does not exist. It has ten times as many frames as lookups."""
    return made_trace(f"bench-replay-{lookups}-{VERSION}", lambda db: fill(db, lookups))


def fill(db, lookups):
    choose = random.Random(7)
    span = lookups * CALL_NS
    db.executemany("INSERT INTO meta VALUES (?, ?)", [
        ("dyntrace_version", "bench"), ("state", "complete"), ("started_unix_ns", 1700000000000000000), ("host", "bench"),
        ("command", '["python", "bench.py"]'), ("clock", "tsc"), ("span_ns", span), ("frame_count", lookups * FRAMES_OF_CALL),
        ("open_frame_count", 0)])
    db.execute("INSERT INTO process(process_id, pid, argv, python_version, mode, start_ns, end_ns, exit_code) VALUES"
               " (1, 1000, '[\"python\"]', '3.11.7', 'all', 0, ?, 0)", [span])
    db.executemany("INSERT INTO thread VALUES (?, 1, ?, ?)", [(t + 1, 1000 + t, f"worker {t}") for t in range(THREADS)])
    db.executemany("INSERT INTO code VALUES (?, 1, ?, ?, ?, 'function', NULL, ?)",
                   [(c, f"/srv/app/module_{c % 40}.py", f"f{c}", c, c * 7919) for c in range(1, FUNCTIONS + FRAMES_OF_CALL)])
    db.executemany("INSERT INTO signature VALUES (?, ?)", [(size, f"x: array.array d[{size}], n: int 1") for size in range(1, SIZES + 1)])
    db.execute("""WITH RECURSIVE frames(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM frames WHERE i + 1 < :calls * :size)
        INSERT INTO frame(frame_id, thread_id, parent_distance, code_id, start_ns, took_ns)
        SELECT i + 1, i / :size / :batch % :threads + 1, NULLIF(i % :size, 0),
            CASE WHEN i % :size THEN :functions + i % :size ELSE i / :size % :functions + 1 END,
            i / :size * :ns + i % :size * 1000, CASE WHEN i % :size THEN 900 ELSE :ns - 100 END
        FROM frames""", {"calls": lookups, "size": FRAMES_OF_CALL, "batch": BATCH, "threads": THREADS, "functions": FUNCTIONS, "ns": CALL_NS})
    caches = [[] for _ in range(FUNCTIONS)]  # (entry, size) of each function's entries, in the order in which they are tried
    size_of = [1] * FUNCTIONS
    rows, checks, entries = [], [], 0

    def flush():
        db.executemany("INSERT INTO lookup VALUES (?, ?, ?, ?, ?, 400, ?, ?, ?, ?)", rows)
        db.executemany("INSERT INTO guard_check(lookup_id, position, cache_entry_id, result, failed_guard_id, guards_run, duration_ns)"
                       " VALUES (?, ?, ?, ?, ?, ?, ?)", checks)
        rows.clear()
        checks.clear()

    for i in range(lookups):
        f = i % FUNCTIONS
        if choose.random() < 0.05:  # most calls have the size of the call before, and large sizes are rare
            size_of[f] = min(SIZES, 1 + int(choose.expovariate(0.6)))
        cache, size, found, at = caches[f], size_of[f], None, i * CALL_NS + 100
        for position, (entry, its) in enumerate(cache):
            checks.append((i + 1, position, entry, "pass" if its == size else "fail", None if its == size else entry * 2 - 1,
                           2 if its == size else 1, 80 + position))
            if its == size:
                found = position
                break
        tried = len(cache) if found is None else found + 1
        if found is not None:
            cache.insert(0, cache.pop(found))
            rows.append((i + 1, i * FRAMES_OF_CALL + 1, i // BATCH % THREADS + 1, f + 1, at, 1, cache[0][0], tried, None))
        elif len(cache) == LIMIT:
            rows.append((i + 1, i * FRAMES_OF_CALL + 1, i // BATCH % THREADS + 1, f + 1, at, 5, None, tried, size))
        else:
            entries += 1
            label = f"{f}/{len(cache)}"
            db.execute("INSERT INTO cache_entry VALUES (?, ?, ?, ?, 'compiler', NULL, 2, ?, NULL, NULL)", [entries, f + 1, entries, label, at + 200])
            db.executemany("INSERT INTO guard VALUES (?, ?, ?, ?, ?, ?, NULL)", [
                (entries * 2 - 1, entries, 0, "TENSOR_MATCH", "L['x']", f"L['x'] is array.array d size ({size},) stride (8,)"),
                (entries * 2, entries, 1, "EQUALS_MATCH", "L['n']", "L['n'] == 1")])
            db.execute("INSERT INTO compile VALUES (?, ?, ?, ?, ?, ?, ?, 'compiled', ?, NULL, NULL)",
                       [entries, i * FRAMES_OF_CALL + 1, f + 1, i // BATCH % THREADS + 1, label, at + 100, at + 250, entries])
            db.executemany("INSERT INTO recompile_cause VALUES (?, ?, 0, ?, 'TENSOR_MATCH', 'L[''x'']', 'size', 0, ?, ?, NULL, 'observed')",
                           [(entries, entry, entry * 2 - 1, f"size[0] = {its}", f"size[0] = {size}") for entry, its in cache])
            if not cache:
                db.execute("INSERT INTO graph_break VALUES (?, ?, ?, 10, 8, 'call of print', NULL, NULL)", [entries, entries, f + 1])
            cache.insert(0, (entries, size))
            rows.append((i + 1, i * FRAMES_OF_CALL + 1, i // BATCH % THREADS + 1, f + 1, at, 2, entries, tried, size))
        if len(rows) == 10000:
            flush()
    flush()


def measure(argv, times, status=0):
    """Run a command several times. Returns (least processor seconds, least seconds, most resident MB)."""
    cpu, wall, memory = [], [], []
    for _ in range(times):
        with tempfile.TemporaryFile("w+") as error:
            begun = time.monotonic()
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=error)
            _, ended, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(ended)
            wall.append(time.monotonic() - begun)
            error.seek(0)
            if process.returncode != status:
                raise Failed(f"{' '.join(argv)}: exit {process.returncode}: {error.read().strip()}")
        cpu.append(used.ru_utime + used.ru_stime)
        memory.append(used.ru_maxrss / 1024)
    return min(cpu), min(wall), max(memory)


@figure("replay", "dyntrace replay on a large trace", ["python", "figure", "processor", "resident", "held to", "measured", "target", ""], [
    "processor: seconds of all threads, user and system; lookups a second are those of the clock, the trace read included",
    "all lookups verified or decided again in one run; `best` decides them once for each setting that it tries"])
def replay(table, python, options):
    lookups = 1_000_000 // options.divisor
    trace = big_trace(lookups)
    program = os.path.join(ROOT, "build", "dyntrace")
    times = options.processes

    def add(what, argv, target):
        cpu, wall, memory = measure([program, "replay", trace, *argv], times)
        table.raw.append({"what": what, "cpu": cpu, "wall": wall, "memory_mb": memory})
        table.add(python.version, what, f"{cpu:.2f} s", f"{memory:.0f} MB", "M lookups a second",
                  *(at_least(lookups / wall / 1e6, target) if target else (f"{lookups / wall / 1e6:.2f}", "-", "")))
        table.add(python.version, what, "", "", "resident MB", *at_most(memory, MEMORY_MB, "{:.0f}"))

    add("--verify", ["--verify"], 1)
    for knobs in ("recompile_limit=4", "recompile_limit=16", "dynamic=L['x'][0]"):
        add(f"--what-if {knobs}", ["--what-if", knobs], 1)
    add("--what-if best", ["--what-if", "best"], None)
