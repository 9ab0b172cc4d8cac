"""The soak: a service runs for half an hour under `dyntrace run --keep 100M`, which must need constant memory and keep its bound.

    python3 tests/soak.py --dyntrace build/dyntrace --python PY [--seconds 1800] [--rate 40000] [--keep 100M] [--out FOLDER]
                          [--week]

Looks every second at the collector's memory and at the files, reads the live trace every half minute, then compares the trace with
what the program counted. Prints the figures, and ends with 1 if one is wrong. `make soak` runs it.

With --week dyntrace was built with CLOCK_TIMES (clock.h), so that its clock passes a week in those seconds, and the service does as
often what it does once a minute. `make soak-week` runs that.
"""
import argparse
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from crash_help import collector_of  # noqa: E402


WEEK_MINUTES = 7 * 24 * 60
CODE_BYTES = 160  # in the recorder's memory, of a code object


def memory_kb(pid):
    """(resident, of that anonymous) in KB."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(lines["VmRSS"].split()[0]), int(lines["RssAnon"].split()[0])


def files_bytes(trace):
    total = 0
    for path in trace.parent.glob(trace.name + "*"):
        with contextlib.suppress(OSError):
            total += path.stat().st_size
    return total


def ask(trace, sql):
    with contextlib.closing(sqlite3.connect(f"file:{trace}?mode=ro", uri=True, timeout=10)) as db:
        return db.execute(sql).fetchone()


LIVE = """SELECT (SELECT COUNT(*) FROM lookup), (SELECT COALESCE(SUM(lookups), 0) FROM lookup_count), (SELECT COUNT(*) FROM compile),
                 (SELECT SUM(calls) FROM code_total), (SELECT value FROM meta WHERE key = 'kept_from_ns')"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dyntrace", default="build/dyntrace")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--rate", type=float, default=40000)
    parser.add_argument("--keep", default="100M")
    parser.add_argument("--week", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("options", nargs="*")
    given = parser.parse_args()
    out = Path(given.out or tempfile.mkdtemp(prefix="soak-"))
    out.mkdir(exist_ok=True)
    trace = out / "soak.db"
    count = WEEK_MINUTES if given.week else int(given.seconds / 60)
    times = WEEK_MINUTES * 60 / given.seconds if given.week else 1
    run = subprocess.Popen([given.dyntrace, "run", "--force", "-o", trace, "--keep", given.keep, *given.options, "--python", given.python,
                            HERE / "programs/soak_work.py", str(given.seconds), str(given.rate), str(count)],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    begin = time.monotonic()
    samples, most, turn = [], 0, 0
    with open(out / "samples.tsv", "w") as table:
        print("s", "rss_kb", "anon_kb", "bytes", "lookups", "dropped", "compiles", "calls", "window_s", sep="\t", file=table)
        while run.poll() is None:
            time.sleep(0.2)
            most = max(most, files_bytes(trace))
            turn += 1
            if turn % 5 and run.poll() is None:
                continue
            pid = collector_of(run.pid)
            with contextlib.suppress(OSError, KeyError, TypeError, sqlite3.Error):
                seconds = time.monotonic() - begin
                rss, anonymous = memory_kb(pid)
                live = ask(trace, LIVE) if turn % 150 == 0 else ("", "", "", "", None)
                window = "" if live[4] is None else f"{seconds * times - live[4] / 1e9:.1f}"
                samples.append((seconds, rss, anonymous, files_bytes(trace)))
                print(f"{seconds:.1f}", rss, anonymous, samples[-1][3], *live[:4], window, sep="\t", file=table, flush=True)
    text, error = run.communicate()
    wrong = []

    def check(what, is_right):
        print(("" if is_right else "WRONG: ") + what)
        if not is_right:
            wrong.append(what)

    bound = float(given.keep[:-1]) * 1000 ** ("KMGT".index(given.keep[-1]) + 1) if given.keep[-1] in "KMGT" else None
    check(f"exit {run.returncode}, stderr {error!r}", run.returncode == 0 and not error)
    counted = json.loads(text)
    totals = {name: ask(trace, f"SELECT SUM(calls) FROM code_total JOIN code USING (code_id) WHERE qualname = '{name}'")[0]
              for name in ("leaf", "request", "model", "raises")}
    for name, calls in totals.items():
        check(f"calls of {name}: {calls}, the program counted {counted[name]}", calls == counted[name])
    for name in ("minute", "made"):
        calls = ask(trace, f"SELECT SUM(calls) FROM code_total JOIN code USING (code_id) WHERE qualname = '{name}'")[0] or 0
        check(f"calls of {name}: {calls}, the program counted {counted['minute']}", calls == counted["minute"])
    lasted = ask(trace, "SELECT MAX(end_ns) - MIN(start_ns) FROM process")[0] / 1e9
    check(f"by the trace it took {lasted / 86400:.2f} days", abs(lasted / times - given.seconds) < 60)
    processes = ask(trace, "SELECT COUNT(*) FROM process")[0]
    check(f"processes: {processes}", processes == 1 + counted["minute"])
    compiles = ask(trace, "SELECT COUNT(*) FROM compile WHERE outcome = 'compiled'")[0]
    check(f"compiles: {compiles}, the program counted {counted['compiles']}", compiles == counted["compiles"])
    kept = ask(trace, "SELECT COUNT(*) FROM lookup WHERE outcome = 2")[0]
    check(f"lookups that compiled: {kept}", kept == counted["compiles"])
    model = "code_id IN (SELECT code_id FROM code WHERE qualname = 'model')"
    lookups = ask(trace, f"SELECT (SELECT COUNT(*) FROM lookup WHERE {model}) + (SELECT COALESCE(SUM(lookups), 0) FROM lookup_count WHERE {model})")[0]
    check(f"lookups, dropped ones counted: {lookups}, calls of model {counted['model']}", lookups == counted["model"])
    check(f"losses: {ask(trace, 'SELECT COALESCE(SUM(events), 0) FROM loss')[0]}", ask(trace, "SELECT COUNT(*) FROM loss WHERE events > 0 OR events IS NULL") == (0,))
    last = ask(trace, "SELECT MAX(frame_id) FROM frame")[0]
    print(f"traffic: {last / 128 * 4096 / 1e9:.2f} GB of frames, {counted['leaf'] / 1e6:.1f} million calls of leaf, in {samples[-1][0]:.0f} s")
    if bound:
        check(f"files at most {most / 1e6:.1f} MB of {bound / 1e6:.0f} MB", most <= bound * 1.05)
    rest = samples[len(samples) // 4:]
    first = max(sample[2] for sample in rest[:len(rest) // 3])
    last_kb = max(sample[2] for sample in rest[-(len(rest) // 3):])
    # The recorder keeps some bytes for each code object. Each forked child adds a few: CPython's own functions that run after a fork.
    kept_kb = ask(trace, "SELECT COUNT(*) FROM code")[0] * CODE_BYTES // 1024
    check(f"anonymous memory: {first} KB at most in the second quarter, {last_kb} KB in the last; resident {rest[-1][1]} KB; "
          f"of it {kept_kb} KB at most are for code objects", last_kb <= first * 1.05 + 512 + kept_kb)
    done = subprocess.run([given.dyntrace, "fsck", trace], capture_output=True, text=True)
    check(done.stdout.strip() + done.stderr.strip(), done.returncode == 0)
    cpu = ask(trace, "SELECT value FROM meta WHERE key = 'recorder_cpu_ns'")[0]
    print(f"the recorder took {cpu / 1e9:.1f} s of processor time; samples are in {out}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
