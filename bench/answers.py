"""The figure `answers`: what the commands that read a trace take on a large one.

The trace has 10 M frames and 1 M lookups. It is made by SQL, once, and kept in build/: it has the shape of a program with
4 threads, 2000 functions, 100 of them compiled up to 8 times, and a guard check for each lookup. Every command is run
some times; processor time is the best of them, memory the worst.
"""
import os
import sqlite3
import subprocess
import tempfile
import time

from figures import figure
from interpreters import BENCH, Failed
from made import made_trace
from tables import at_most

ROOT = os.path.dirname(BENCH)
THREADS = 4
FRAMES_OF_CALL = 20  # one tree of calls
FUNCTIONS, COMPILED, ENTRIES, GUARDS = 2000, 100, 8, 12
CALL_NS = 20000
ENGINES_PYTHON = os.environ.get("DYNTRACE_ENGINES_PYTHON") or os.path.join(ROOT, "build", "engines", "bin", "python")
VERSION = 2          # increment it when fill() changes, so that the trace is made again


def big_trace(frames=10_000_000):
    """Return the path of the trace, which is made if it does not exist. It has a tenth as many lookups as frames."""
    return made_trace(f"bench-answers-{frames}-{VERSION}", lambda db: fill(db, frames // FRAMES_OF_CALL))


def shape():
    """Return (place, place of the caller, start, end) of each frame in one tree of calls. Three callees share their caller's time."""
    rows = [(0, None, 0, CALL_NS - 100)]
    for place in range(1, FRAMES_OF_CALL):
        caller = (place - 1) // 3
        _, _, start, end = rows[caller]
        part = (end - start) // 4
        begin = start + part // 2 + (place - 1) % 3 * part
        rows.append((place, caller, begin, begin + part - part // 8))
    order = sorted(range(FRAMES_OF_CALL), key=lambda place: rows[place][2])  # ids follow the start
    new = {old: place for place, old in enumerate(order)}
    return [(new[place], new.get(caller), start, end) for place, caller, start, end in (rows[old] for old in order)]


def fill(db, calls):
    """Fill DB with CALLS trees of frames, each with two lookups."""
    span = calls // THREADS * CALL_NS
    db.executemany("INSERT INTO meta VALUES (?, ?)", [
        ("dyntrace_version", "bench"), ("state", "complete"), ("started_unix_ns", 1700000000000000000), ("host", "bench"),
        ("command", '["python", "bench.py"]'), ("clock", "tsc"), ("span_ns", span), ("frame_count", calls * FRAMES_OF_CALL + THREADS),
        ("open_frame_count", 0)])
    db.execute("INSERT INTO process(process_id, pid, argv, python_version, mode, start_ns, end_ns, exit_code) VALUES"
               " (1, 1000, '[\"python\", \"bench.py\"]', '3.11.7', 'all', 0, ?, 0)", [span])
    db.executemany("INSERT INTO thread VALUES (?, 1, ?, ?)", [(t + 1, 1000 + t, f"worker {t}") for t in range(THREADS)])
    db.executemany("INSERT INTO code VALUES (?, 1, ?, ?, ?, 'function', NULL, ?)",
                   [(c, f"/srv/app/module_{c % 40}.py", f"Class{c % 100}.method_{c}", c % 900 + 1, c * 7919) for c in range(1, FUNCTIONS + 1)])
    # Frames 1 to THREADS are the outermost frames of the threads. Then come the trees of calls, which the threads make in turns.
    db.executemany("INSERT INTO frame(frame_id, thread_id, code_id, start_ns, took_ns) VALUES (?, ?, 1, 0, ?)",
                   [(t + 1, t + 1, span) for t in range(THREADS)])
    db.execute("CREATE TEMP TABLE shape(place INTEGER PRIMARY KEY, caller, start, end)")
    db.executemany("INSERT INTO shape VALUES (?, ?, ?, ?)", shape())
    each = {"calls": calls, "threads": THREADS, "size": FRAMES_OF_CALL, "functions": FUNCTIONS, "call_ns": CALL_NS,
            "compiled": COMPILED, "entries": ENTRIES}
    db.execute("""WITH RECURSIVE call(c) AS (SELECT 0 UNION ALL SELECT c + 1 FROM call WHERE c + 1 < :calls)
        INSERT INTO frame(frame_id, thread_id, parent_distance, code_id, outcome, start_ns, took_ns)
        SELECT :threads + 1 + c * :size + place, c % :threads + 1,
            CASE WHEN caller IS NULL THEN :threads + c * :size + place - c % :threads ELSE place - caller END,
            (place * 97 + c % 50) % :functions + 1, place IN (1, 4), c / :threads * :call_ns + start, end - start
        FROM call CROSS JOIN shape ORDER BY 1""", each)
    db.execute("""INSERT INTO code_total(code_id, calls, total_ns, self_ns, raised) SELECT code_id, calls, calls * 900, calls * 700, 0 FROM
        (SELECT code_id, :calls * :size / :functions AS calls FROM code)""", each)
    # Function f (1 to 100) has entries (f - 1) * 8 + 1 and following, which it got one after the other at its first lookups.
    db.executemany("INSERT INTO cache_entry VALUES (?, ?, ?, ?, 'inductor', NULL, ?, ?, NULL, NULL)",
                   [(e, (e - 1) // ENTRIES + 1, e, f"{(e - 1) // ENTRIES}/{(e - 1) % ENTRIES}", GUARDS, e * 1000)
                    for e in range(1, COMPILED * ENTRIES + 1)])
    db.executemany("INSERT INTO guard VALUES (?, ?, ?, ?, ?, ?, NULL)",
                   [((e - 1) * GUARDS + g + 1, e, g, "TENSOR_MATCH" if g == GUARDS - 1 else "TYPE_MATCH", f"L['x{g}']", f"check {g}")
                    for e in range(1, COMPILED * ENTRIES + 1) for g in range(GUARDS)])
    db.executemany("INSERT INTO compile VALUES (?, ?, ?, 1, ?, ?, ?, 'compiled', ?, NULL, NULL)",
                   [(e, e + THREADS, (e - 1) // ENTRIES + 1, f"{(e - 1) // ENTRIES}/{(e - 1) % ENTRIES}", e * 1000, e * 1000 + 900, e)
                    for e in range(1, COMPILED * ENTRIES + 1)])
    db.executemany("INSERT INTO recompile_cause VALUES (?, ?, 0, ?, 'TENSOR_MATCH', ?, 'size', 0, ?, ?, NULL, 'observed')",
                   [(e, e - 1, (e - 1) * GUARDS, f"L['x{GUARDS - 1}'].size()[0]", str(e - 1), str(e))
                    for e in range(1, COMPILED * ENTRIES + 1) if (e - 1) % ENTRIES])
    db.executemany("INSERT INTO graph_break VALUES (?, ?, ?, ?, 8, 'call of print', NULL, NULL)",
                   [(f, (f - 1) * ENTRIES + 1, f, f + 10) for f in range(1, COMPILED + 1)])
    # Two lookups in each call. The first lookup of an entry compiles it, later ones hit it.
    db.execute("""WITH RECURSIVE look(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM look WHERE i + 1 < 2 * :calls)
        INSERT INTO lookup SELECT i + 1, :threads + 1 + i / 2 * :size + CASE i % 2 WHEN 0 THEN 1 ELSE 4 END, i / 2 % :threads + 1,
            i % :compiled + 1, i / 2 / :threads * :call_ns + 100 + i % 2 * 5000, 400,
            CASE WHEN i < :compiled * :entries THEN 2 WHEN i % 97 = 0 THEN 5 ELSE 1 END,
            CASE WHEN i >= :compiled * :entries AND i % 97 = 0 THEN NULL
                 ELSE i % :compiled * :entries + min(i / :compiled, :entries - 1) + 1 END, 1, NULL
        FROM look""", each)
    db.execute("""INSERT INTO guard_check SELECT lookup_id, lookup_id, 0, COALESCE(cache_entry_id, (code_id - 1) * :entries + 1),
            CASE WHEN cache_entry_id IS NULL THEN 'fail' ELSE 'pass' END,
            CASE WHEN cache_entry_id IS NULL THEN ((code_id - 1) * :entries + 1) * 12 END, 12, 300 + lookup_id % 50 FROM lookup
        WHERE outcome <> 2""", each)


def measure(argv, times=3, status=(0,), stdout=subprocess.DEVNULL):
    """Run a command several times. Returns (least processor seconds, least seconds, most resident MB)."""
    cpu, wall, memory = [], [], []
    for _ in range(times):
        begun = time.monotonic()
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE)
        error = process.stderr.read()
        process.stderr.close()
        _, ended, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(ended)
        wall.append(time.monotonic() - begun)
        if process.returncode not in status:
            raise Failed(f"{' '.join(argv)}: exit {process.returncode}: {error.decode(errors='replace').strip()}")
        cpu.append(used.ru_utime + used.ru_stime)
        memory.append(used.ru_maxrss / 1024)
    return min(cpu), min(wall), max(memory)


# The commands to measure, each with the target for its seconds (None: no target for the time, only for the memory).
COMMANDS = [
    ("report", ["report", "{trace}"], 3),
    ("report --json", ["report", "{trace}", "--json"], 3),
    ("report --html", ["report", "{trace}", "--html", "{out}/r.html", "--force"], 3),
    ("why", ["why", "Class10.method_10", "{trace}"], 1),
    ("check", ["check", "{trace}", "--max-recompiles", "1000", "--max-graph-breaks", "100", "--max-guard-us", "5",
               "--max-eager-share", "0.5", "--require-compiled", "Class10.method_10"], 1),
    ("diff --lookups", ["diff", "{trace}", "{trace}", "--lookups"], None),
    ("export --format perfetto", ["export", "{trace}", "--format", "perfetto", "-o", "-"], None),
    ("export --format folded", ["export", "{trace}", "--format", "folded", "-o", "-"], None),
    ("export --format jsonl", ["export", "{trace}", "--format", "jsonl", "-o", "-"], None),
    ("export --format parquet", ["export", "{trace}", "--format", "parquet", "-o", "{out}/decisions", "--python", ENGINES_PYTHON], None),
    ("export --format parquet --frames", ["export", "{trace}", "--format", "parquet", "--frames", "-o", "{out}/dataset", "--python", ENGINES_PYTHON], None),
    ("merge", ["merge", "{trace}", "{small}", "-o", "{out}/m.db", "--force"], None),
]
MEMORY_MB = 200


@figure("answers", "Questions to a large trace", [
    "python", "command", "processor s", "s", "target", "", "resident MB", "target", ""], [
    "10 M frames, 1 M lookups and guard checks, 2000 functions (--quick: a fiftieth)",
    "processor s is held against the target, for what else runs on the machine does not count",
    "Parquet, by two processes, where `make engines` has put pyarrow"],
    needs_dyntrace=False)
def answers(table, python, options):
    """Measure the commands. They run no Python; the interpreter's version only labels the rows."""
    frames = 10_000_000 // (50 if options.divisor > 1 else 1)
    trace, small = big_trace(frames), other_host(big_trace(20_000))
    with tempfile.TemporaryDirectory(prefix="dyntrace-bench-") as out:
        for name, argv, most in COMMANDS:
            if ENGINES_PYTHON in argv and not os.path.exists(ENGINES_PYTHON):
                continue
            argv = [os.path.join(ROOT, "build", "dyntrace"), *(a.format(trace=trace, out=out, small=small) for a in argv)]
            cpu, wall, memory = measure(argv, times=1 if most is None else min(3, options.rounds))
            held = at_most(cpu, most) if most else (f"{cpu:.2f}", "-", "")
            table.add(python.version, name, held[0], f"{wall:.2f}", *held[1:], *at_most(memory, MEMORY_MB, "{:.0f}"))
            table.raw.append({"command": name, "cpu_s": cpu, "wall_s": wall, "memory_mb": memory})


def other_host(path):
    """Return the path of a copy of the trace that names another host, so that it can be merged with the original."""
    copy = path[:-3] + "-other.db"
    if not os.path.exists(copy):
        with open(path, "rb") as file, open(copy + ".part", "wb") as to:
            to.write(file.read())
        with sqlite3.connect(copy + ".part") as db:
            db.execute("UPDATE meta SET value = 'other' WHERE key = 'host'")
        db.close()
        os.rename(copy + ".part", copy)
    return copy
