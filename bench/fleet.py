"""The figure `fleet`: what commands take on the traces of a job of many ranks, of which one in a thousand has a fault.

A job is hosts of 10 ranks. A rank has 40 functions that were compiled, some of them again for another size or for a flag, with ten guards an
entry, graph breaks, 300 lookups and guard checks, and 1200 frames, of which 20 are collectives in which it waits for 6 ms. One trace is made
by SQL for each kind of rank; the others are copies of its file in which rank, host and times are set. They are kept in build/.
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
HOST_RANKS, FUNCTIONS, GUARDS, LOOKUPS, FRAMES = 10, 40, 10, 300, 1200
COLLECTIVES, WAIT_NS = 20, 6000000
FAULTS = ("shape", "flag", "crash")
VERSION = 2  # of what is below: traces of another one are made anew
MEMORY_MB = 200
MERGE_MS = 3  # a trace, besides its rows


def began(i):
    """Frame I: frames follow each other, and every so often one waits."""
    return i * 800000 + (i - 1) * COLLECTIVES // FRAMES * WAIT_NS


def rank_fill(db, fault):
    """A rank: function f is compiled at f * 10 ms, every fourth again for a size, every tenth breaks."""
    put = db.executemany
    put("INSERT INTO meta VALUES (?, ?)", [("dyntrace_version", "0.1.0"), ("state", "complete"), ("started_unix_ns", 1), ("host", "h"), ("job", "bench"),
                                          ("command", '["train.py"]'), ("clock", "tsc"), ("values", "all"), ("span_ns", 1200000000), ("frame_count", FRAMES),
                                          ("open_frame_count", 0), ("clock_offset_ns", 0), ("clock_doubt_ns", 12000000)])
    db.execute("INSERT INTO process(process_id, pid, rank, argv, executable, python_version, mode, start_ns, end_ns, exit_code, exit_signal)"
               " VALUES (1, 1, 0, '[\"train.py\"]', '/usr/bin/python3', '3.12.1', 'all', 0, 1200000000, ?, ?)",
               (None if fault == "crash" else 0, 9 if fault == "crash" else None))
    if fault == "bare":
        return
    db.execute("INSERT INTO thread VALUES (1, 1, 1, 'MainThread')")
    put("INSERT INTO code VALUES (?, 1, ?, ?, ?, 'function', NULL, ?)",
        [(f, f"/job/model_{f % 8}.py", f"Block{f}.forward", f * 7, f * 77) for f in range(1, FUNCTIONS + 1)])
    put("INSERT INTO code_total VALUES (?, ?, ?, ?, 0)", [(f, FRAMES // FUNCTIONS, f * 1000000, f * 500000) for f in range(1, FUNCTIONS + 1)])
    db.execute("INSERT INTO code VALUES (?, 1, '/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py', 'all_reduce', 2800, 'function',"
               " NULL, 1)", [FUNCTIONS + 1])
    db.execute("INSERT INTO code_total VALUES (?, ?, ?, ?, 0)", (FUNCTIONS + 1, COLLECTIVES, COLLECTIVES * WAIT_NS, COLLECTIVES * WAIT_NS))
    compiles = [(f, 8, None, None) for f in range(1, FUNCTIONS + 1)] + [(f, 16, "L['x'].size()[0]", "size") for f in range(4, FUNCTIONS + 1, 4)]
    compiles += {"shape": [(8, 12, "L['x'].size()[0]", "size")], "flag": [(5, 8, "G['FLAG']", "value")]}.get(fault, [])
    for compile_id, (f, size, source, aspect) in enumerate(compiles[:30] if fault == "crash" else compiles, 1):
        at = compile_id * 10**7
        label = f"{f - 1}/{sum(c[0] == f for c in compiles[:compile_id - 1])}"
        db.execute("INSERT INTO compile VALUES (?, ?, ?, 1, ?, ?, ?, 'compiled', ?, NULL, NULL)", (compile_id, compile_id, f, label, at, at + 5000000, compile_id))
        db.execute("INSERT INTO cache_entry VALUES (?, ?, ?, ?, 'inductor', NULL, ?, ?, NULL, NULL)", (compile_id, f, compile_id, label, GUARDS, at + 5000000))
        put("INSERT INTO guard VALUES (?, ?, ?, ?, ?, ?, NULL)",
            [(compile_id * GUARDS + g, compile_id, g, *(("TENSOR_MATCH", "L['x']", f"L['x'] is Tensor float32 size ({size}, 64)") if g == GUARDS - 1 else
                                                        ("EQUALS_MATCH", f"L['self'].a{g}", f"L['self'].a{g} == {g}"))) for g in range(GUARDS)])
        if source:
            db.execute("INSERT INTO recompile_cause VALUES (?, (SELECT MIN(cache_entry_id) FROM cache_entry WHERE code_id = ?), 0, NULL, NULL, ?, ?, ?, '8', ?,"
                       " NULL, 'observed')", (compile_id, f, source, aspect, 0 if aspect == "size" else None, str(size)))
        if f % 10 == 0:
            db.execute("INSERT INTO graph_break VALUES (?, ?, ?, ?, 8, 'call of print', NULL, NULL)", (compile_id, compile_id, f, f * 7 + 3))
    put("INSERT INTO frame VALUES (?, 1, NULL, ?, 0, ?, ?, ?, NULL, 0)",
        [(i, FUNCTIONS + 1, 0, began(i), began(i) + WAIT_NS) if i % (FRAMES // COLLECTIVES) == 0 else
         (i, i % FUNCTIONS + 1, 1 if i % 4 == 0 else 0, began(i), began(i) + 300000) for i in range(1, FRAMES + 1)])
    put("INSERT INTO lookup VALUES (?, ?, 1, ?, ?, 400, ?, ?, 1, NULL)",
        [(i, i * 4, i % FUNCTIONS + 1, began(i * 4), 5 if i % 97 == 0 else 1, None if i % 97 == 0 else min(i % FUNCTIONS + 1, 30))
         for i in range(1, LOOKUPS + 1)])
    put("INSERT INTO guard_check VALUES (?, ?, 0, ?, 'pass', NULL, ?, 300)", [(i, i, min(i % FUNCTIONS + 1, 30), GUARDS) for i in range(1, LOOKUPS + 1)])


def job(ranks, bare=False):
    """The directory of a job's traces; BARE: without rows but for those of the process."""
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


COMMANDS = [  # what says most first, for of many ranks it takes long
    ("report DIR", ["report", "{job}"]), ("ranks DIR", ["ranks", "{job}"]),
    ("merge of traces without rows", ["merge", "{bare}", "-o", "{out}/b.db"]), ("merge", ["merge", "{job}", "-o", "{out}/m.db"]),
    ("export --format parquet", ["export", "{job}", "--format", "parquet", "-o", "{out}/dataset", "--python", "{engines}"]),
    ("duckdb, five questions", "{out}/dataset"), ("chdb, five questions", "{out}/dataset"),
    ("merge --decisions-only", ["merge", "{job}", "--decisions-only", "-o", "{out}/one.db"]), ("datasette, five questions to that", "{out}/one.db"),
    ("duckdb, five questions to that", "{out}/one.db"), ("chdb, five questions to that", "{out}/one.db"),
    ("sql DIR, a count of each", ["sql", "{job}", "SELECT COUNT(*) FROM recompiles"]), ("check DIR", ["check", "{job}", "--max-recompiles", "1000000"]),
    ("why DIR", ["why", "Block5.forward", "{job}"]), ("diff DIR DIR", ["diff", "{job}", "{job}"]), ("pyspark, five questions", "{out}/dataset"),
]
LIMIT_S = "900"  # of each


@figure("fleet", "Commands on the traces of a job", ["python", "ranks", "command", "s", "processor ms a trace", "target", "", "resident MB", "target", ""], [
    f"a rank has {FRAMES} frames, {LOOKUPS} lookups and {FUNCTIONS + FUNCTIONS // 4} compiles (--quick: a fiftieth of the ranks)",
    f"DYNTRACE_RANKS='100 10000': of so many ranks; what takes more than {LIMIT_S} s is ended. dyntrace with at most 64 files open, under nice 19;",
    "export and engines, five questions each, where `make engines` has put them; what Spark does it does in another process, whose processor",
    "time and memory are not in its row"], needs_dyntrace=False)
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
