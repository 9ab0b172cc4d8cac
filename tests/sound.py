"""Is a trace sound that a whole test suite left? What the comparisons with CPython's and PyTorch's own tests ask."""
import os
import sqlite3

PARENTS_SOUND = """
    SELECT COUNT(*) FILTER (WHERE p.frame_id IS NULL),
           COUNT(*) FILTER (WHERE p.frame_id >= f.frame_id),
           COUNT(*) FILTER (WHERE p.thread_id <> f.thread_id),
           COUNT(*) FILTER (WHERE f.start_ns < p.start_ns OR f.end_ns > p.end_ns),
           COUNT(*) FILTER (WHERE f.end_ns IS NULL AND p.end_ns IS NOT NULL)
      FROM frame f LEFT JOIN frame p ON p.frame_id = f.parent_id
     WHERE f.parent_id IS NOT NULL AND f.frame_id BETWEEN ? AND ?"""
PARENT_FAULTS = ("parent missing", "parent not older", "parent on another thread", "outside its parent's time",
                 "open inside a finished parent")
SLICE = 2_000_000


def check(path, found, most_rows, more):
    """Add to FOUND, a dict, the file's "bytes" and its "faults"; MORE(trace) looks at the open database and gives faults of its
    own. Above MOST_ROWS ids, parents are checked on evenly spread slices; integrity_check always reads the whole file."""
    try:
        found["bytes"] = os.path.getsize(path)
        trace = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        trace.text_factory = lambda raw: raw.decode("utf-8", "replace")
    except (OSError, sqlite3.Error) as error:
        found["faults"].append(f"no trace: {error}")
        return found
    try:
        verdict = [row[0] for row in trace.execute("PRAGMA integrity_check(5)")]
        if verdict != ["ok"]:
            found["faults"].append("integrity_check: " + "; ".join(verdict))
        last = trace.execute("SELECT MAX(frame_id) FROM frame").fetchone()[0] or 0
        step = SLICE * max(1, last // max(most_rows, SLICE))
        totals = [0] * len(PARENT_FAULTS)
        for first in range(1, last + 1, step):
            row = trace.execute(PARENTS_SOUND, (first, first + SLICE - 1)).fetchone()
            totals = [total + more_ for total, more_ in zip(totals, row)]
        found["faults"] += [f"{total} frames: {fault}" for fault, total in zip(PARENT_FAULTS, totals) if total]
        found["faults"] += more(trace)
    except sqlite3.Error as error:
        found["faults"].append(f"unreadable trace: {error}")
    finally:
        trace.close()
    return found
