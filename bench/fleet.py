"""The figure `fleet`: what commands take on the traces of a job of many ranks, of which one in a thousand has a fault.

A job is hosts of 10 ranks. A rank has 40 functions that were compiled, some of them again for another size or for a flag, with ten guards an
entry, graph breaks, 300 lookups with their guard checks, and 1200 frames, of which 20 are collectives in which it waits for 6 ms. One trace is made
by SQL for each kind of rank, as `dyntrace fsck` wants it; the others are copies of its file in which rank, host and times are set. They are kept in build/.
"""
import os
import shutil
import sqlite3
import sys
import tempfile

from answers import ENGINES_PYTHON, measure
from figures import figure
from interpreters import BENCH, Failed
from made import made_trace
from tables import at_most

ROOT = os.path.dirname(BENCH)
DYNTRACE = os.path.join(ROOT, "build", "dyntrace")
HOST_RANKS, FUNCTIONS, GUARDS, FRAMES, CRASH_AT, LIMIT = 10, 40, 10, 1200, 720, 4  # LIMIT: entries of a function
COLLECTIVES, WAIT_NS, COMPILE_NS = 20, 6000000, 5000000
FAULTS = ("shape", "flag", "crash")
VERSION = 5  # increment it when the functions below change, so that the traces are made again
MEMORY_MB = 200
MERGE_MS = 3  # the target for `merge`, for each trace without rows


def compile_fill(db, entry, code, frame, at, end, now, others):
    """Add a compile of CODE for its present inputs NOW, (size, flag), and its entry. OTHERS has (entry, its inputs, its failed guard)
    of each older entry."""
    label = f"{code - 1}/{len(others)}"
    db.execute("INSERT INTO compile VALUES (?, ?, ?, 1, ?, ?, ?, 'compiled', ?, NULL, NULL)", (entry, frame, code, label, at, end, entry))
    db.execute("INSERT INTO cache_entry VALUES (?, ?, ?, ?, 'inductor', NULL, ?, ?, NULL, NULL)", (entry, code, entry, label, GUARDS, end))
    guards = [("EQUALS_MATCH", f"L['self'].a{g}", f"L['self'].a{g} == {g}") for g in range(GUARDS - 2)]
    guards += [("EQUALS_MATCH", "G['FLAG']", f"G['FLAG'] == {now[1]}"), ("TENSOR_MATCH", "L['x']", f"L['x'] is Tensor float32 size ({now[0]}, 64)")]
    db.executemany("INSERT INTO guard VALUES (?, ?, ?, ?, ?, ?, NULL)", [(guard_id(entry, g), entry, g, *guard) for g, guard in enumerate(guards)])
    for other, then, g in others:
        what = ("L['x'].size()[0]", "size", 0, str(then[0]), str(now[0])) if g == GUARDS - 1 else ("G['FLAG']", "value", None, str(then[1]), str(now[1]))
        db.execute("INSERT INTO recompile_cause VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?, ?, NULL, 'observed')", (entry, other, guard_id(other, g), guards[g][0], *what))
    if code % 10 == 0:
        db.execute("INSERT INTO graph_break VALUES (?, ?, ?, ?, 8, 'call of print', NULL, NULL)", (entry, entry, code, code * 7 + 3))


def guard_id(entry, ordinal):
    return (entry - 1) * GUARDS + ordinal + 1


def inputs(code, call, fault):
    """Return the inputs (size, flag) of call number CALL of CODE. Every fourth function gets two sizes. One function gets a new size in
    each call, so it reaches the limit."""
    size = 8 + call if code == FUNCTIONS - 1 else 8 << (code % 4 == 0 and call % 2)
    return 12 if fault == "shape" and code == 8 and call == 2 else size, 7 if fault == "flag" and code == 5 and call > 1 else 1


def frames_fill(db, fault):
    """Add frames one after the other. Every sixtieth waits in a collective, every fourth is a call with a lookup. Returns (when the
    last frame ended, the number of frames, the number of open frames)."""
    entries, totals, at = {code: [] for code in range(1, FUNCTIONS + 1)}, {}, 0
    compiled = looked = checked = 0
    for i in range(1, CRASH_AT + 1 if fault == "crash" else FRAMES + 1):
        at += 500000
        wait, asks = i % (FRAMES // COLLECTIVES) == 0, i % 4 == 1
        code = FUNCTIONS + 1 if wait else (i // 4 if asks else i) % FUNCTIONS + 1
        took, outcome, entry = WAIT_NS if wait else 300000, 0, None
        if asks:
            now, failed = inputs(code, i // 4 // FUNCTIONS, fault), []
            looked += 1
            for other, then in reversed(entries[code]):
                g = None if then == now else GUARDS - 2 if then[1] != now[1] else GUARDS - 1
                checked += 1
                db.execute("INSERT INTO guard_check VALUES (?, ?, ?, ?, ?, ?, ?, 300)", (checked, looked, len(failed), other, *(
                    ("pass", None, GUARDS) if g is None else ("fail", guard_id(other, g), g + 1))))
                if g is None:
                    outcome, entry = 1, other
                    entries[code].remove((other, then))  # move the entry to the end: it is tried first from now on
                    entries[code].append((other, then))
                    break
                failed.append((other, then, g))
            tries = len(failed) + (entry is not None)
            if entry is None and len(failed) < LIMIT:
                compiled, outcome, took = compiled + 1, 2, took + COMPILE_NS
                compile_fill(db, compiled, code, i, at + 300, at + 300 + COMPILE_NS, now, failed)
                entries[code].append((compiled, now))
                entry = compiled
            outcome = outcome or 5
            db.execute("INSERT INTO lookup VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, NULL)",
                       (looked, i, code, at, tries * 300 + 100 + (COMPILE_NS + 300 if outcome == 2 else 0), outcome, entry, tries))
        is_open = fault == "crash" and i == CRASH_AT
        db.execute("INSERT INTO frame(frame_id, thread_id, code_id, outcome, start_ns, took_ns, cache_entry_id, exit) VALUES (?, 1, ?, ?, ?, ?, ?, ?)",
                   (i, code, outcome, at, *((None, None, None) if is_open else (took, entry, 0))))
        calls, spent = totals.get(code, (0, 0))
        totals[code], at = (calls + 1, spent + took), at + took
    db.executemany("INSERT INTO code_total(code_id, calls, total_ns, self_ns, raised) VALUES (?, ?, ?, ?, 0)", [(code, calls, spent, spent) for code, (calls, spent) in totals.items()])
    return at, i, int(fault == "crash")


def rank_fill(db, fault):
    """Fill DB with the trace of a rank that has the FAULT ("none": no fault; "bare": no rows except that of the process)."""
    span, frames, still_open = WAIT_NS, 0, 0
    if fault != "bare":
        db.execute("INSERT INTO thread VALUES (1, 1, 1, 'MainThread')")
        db.executemany("INSERT INTO code VALUES (?, 1, ?, ?, ?, 'function', NULL, ?)",
                       [(f, f"/job/model_{f % 8}.py", f"Block{f}.forward", f * 7, f * 77) for f in range(1, FUNCTIONS + 1)] +
                       [(FUNCTIONS + 1, "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", "all_reduce", 2800, 1)])
        span, frames, still_open = frames_fill(db, fault)
    db.executemany("INSERT INTO meta VALUES (?, ?)", [("dyntrace_version", "0.1.0"), ("state", "complete"), ("started_unix_ns", 1), ("host", "h"), ("job", "bench"),
                                                      ("command", '["train.py"]'), ("clock", "tsc"), ("values", "all"), ("span_ns", span), ("frame_count", frames),
                                                      ("open_frame_count", still_open), ("clock_offset_ns", 0), ("clock_doubt_ns", 12000000)])
    db.execute("INSERT INTO process(process_id, pid, rank, argv, executable, python_version, mode, start_ns, end_ns, exit_code, exit_signal)"
               " VALUES (1, 1, 0, '[\"train.py\"]', '/usr/bin/python3', '3.12.1', 'all', 0, ?, ?, ?)",
               (span, None if fault == "crash" else 0, 9 if fault == "crash" else None))


def job(ranks, bare=False):
    """Return the directory with the traces of a job of RANKS ranks, which is made if it does not exist. BARE: traces without rows."""
    folder = os.path.join(ROOT, "build", f"bench-fleet-{'bare-' if bare else ''}{ranks}-{VERSION}")
    if os.path.exists(folder):
        return folder
    kinds = {fault: made_trace(f"bench-rank-{fault}-{VERSION}", lambda db, fault=fault: rank_fill(db, fault)) for fault in ("none", "bare", *FAULTS)}
    os.makedirs(folder + ".part", exist_ok=True)
    for rank in range(ranks):
        host = rank // HOST_RANKS
        fault = "bare" if bare else FAULTS[rank // 1000 % 3] if rank % 1000 == 500 else "none"
        path = shutil.copyfile(kinds[fault], os.path.join(folder + ".part", f"host{host:04}-{rank}-{1000 + rank}.db"))
        db = sqlite3.connect(path, isolation_level=None)
        db.executescript(f"""PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; BEGIN;
            REPLACE INTO meta VALUES ('host', 'host{host:04}'), ('rank', '{rank}'), ('local_rank', '{rank % HOST_RANKS}'), ('world_size', '{ranks}'),
                ('started_unix_ns', {1700000000000000000 + rank * 7919 % 1000 * 1000000});
            UPDATE process SET rank = {rank}, pid = {1000 + rank}; COMMIT""")
        db.close()
    os.rename(folder + ".part", folder)
    return folder


COMMANDS = [  # the most important first, because all of them take long with many ranks
    ("report DIR", ["report", "{job}"]), ("ranks DIR", ["ranks", "{job}"]),
    ("merge of traces without rows", ["merge", "{bare}", "-o", "{out}/b.db"]), ("merge", ["merge", "{job}", "-o", "{out}/m.db"]),
    ("export --format parquet", ["export", "{job}", "--format", "parquet", "-o", "{out}/dataset", "--python", "{engines}"]),
    ("duckdb, five questions", "{out}/dataset"), ("chdb, five questions", "{out}/dataset"),
    ("merge --decisions-only", ["merge", "{job}", "--decisions-only", "-o", "{out}/one.db"]), ("datasette, five questions to that", "{out}/one.db"),
    ("duckdb, five questions to that", "{out}/one.db"), ("chdb, five questions to that", "{out}/one.db"),
    ("sql DIR, a count of each", ["sql", "{job}", "SELECT COUNT(*) FROM recompiles"]), ("check DIR", ["check", "{job}", "--max-recompiles", "1000000"]),
    ("fsck DIR", ["fsck", "{job}"]), ("why DIR", ["why", "Block5.forward", "{job}"]), ("diff DIR DIR", ["diff", "{job}", "{job}"]), ("pyspark, five questions", "{out}/dataset"),
]
LIMIT_S = "900"  # the most seconds for each command


@figure("fleet", "Commands on the traces of a job", ["python", "ranks", "command", "s", "processor ms a trace", "target", "", "resident MB", "target", ""], [
    f"a rank has {FRAMES} frames, {FRAMES // 4} lookups and {FUNCTIONS + FUNCTIONS // 4 + LIMIT - 1} compiles (--quick: a fiftieth of the ranks)",
    f"DYNTRACE_RANKS='100 10000': of so many ranks; what takes more than {LIMIT_S} s is ended. dyntrace with at most 64 files open, under nice 19;",
    "export and engines, five questions each, where `make engines` has put them; memory is that of the largest process"], needs_dyntrace=False)
def fleet(table, python, options):
    for ranks in [200] if options.divisor > 1 else map(int, os.environ.get("DYNTRACE_RANKS", "100 1000").split()):
        with tempfile.TemporaryDirectory(prefix="dyntrace-bench-", dir="/var/tmp") as out:
            words = {"job": job(ranks), "bare": job(ranks, bare=True), "out": out, "engines": ENGINES_PYTHON}
            for name, argv in COMMANDS:
                mine = not isinstance(argv, str)
                if not (mine and name != "export --format parquet" or os.path.exists(ENGINES_PYTHON)):
                    continue
                argv = [DYNTRACE, *argv] if mine else [ENGINES_PYTHON, os.path.join(ROOT, "schemas", "engines", "ask.py"), name.split(",")[0], argv]
                try:
                    cpu, wall, memory = measure(["timeout", LIMIT_S, "nice", "-n", "19", "sh", "-c", 'ulimit -n "$0"; exec "$@"', "64" if mine else "1024",
                                                 *(word.format(**words) for word in argv)], times=1)
                except Failed as error:
                    print(error, file=sys.stderr)
                    continue
                spent = cpu / ranks * 1000
                table.add(python.version, ranks, name, f"{wall:.1f}", *(at_most(spent, MERGE_MS, "{:.2f}") if "without" in name else (f"{spent:.2f}", "", "")),
                          *(at_most(memory, MEMORY_MB, "{:.0f}") if mine else (f"{memory:.0f}", "", "")))
                table.raw.append({"command": name, "ranks": ranks, "cpu_s": cpu, "wall_s": wall, "memory_mb": memory})
                print(*table.rows[-1], file=sys.stderr)  # it takes long
                for made in ("b.db", "m.db"):
                    if os.path.exists(os.path.join(out, made)):
                        os.unlink(os.path.join(out, made))
