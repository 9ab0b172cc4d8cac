#!/usr/bin/env python3
"""Random programs whose threads run in parallel, recorded: none crashes, hangs or gives another result than it says itself,
and every trace is sound and has the frames that the program counted.

usage: threads.py --dyntrace PATH --python PY [--python PY]... [--seconds N] [--seed N]

Each program is made from a seed: some threads do random acts (call, raise, recurse, resume generators, run coroutines, open
spans, make code, start threads, fork, start a program, pause and resume), all at once. It runs under `dyntrace run`, or begins
and ends recordings itself while its threads run. A seed that fails is printed with the command that repeats it.

Meant for free-threaded builds (make threads-fuzz). Under ThreadSanitizer the interpreter has to be built with it, too
(./configure --disable-gil --with-thread-sanitizer): without that every access of CPython's would be a report.
"""
import argparse
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEAD = '''
import asyncio, os, subprocess, sys, threading, time, warnings
warnings.simplefilter("ignore")
import dyntrace
def leaf(x): return x
def call(n):
    for i in range(n): leaf(i)
def raises(n): raise ValueError(n)
def catch(n):
    for i in range(n):
        try: raises(i)
        except ValueError: leaf(i)
def down(n):
    if n: down(n - 1)
    else: leaf(0)
def numbers(n):
    for i in range(n): yield leaf(i)
def resume(n):
    assert sum(numbers(n)) == n * (n - 1) // 2
async def adds(x):
    await asyncio.sleep(0)
    return leaf(x)
async def all_of(n): return sum(await asyncio.gather(*(adds(i) for i in range(n))))
def coroutines(n):
    assert asyncio.run(all_of(n)) == n * (n - 1) // 2
shared = dyntrace.span("shared")
def spans(n):
    for i in range(n):
        with shared, dyntrace.span("own", i=i): leaf(i)
def make(n):
    made = {"leaf": leaf}
    exec(f"def made(x):\\n    leaf(x)\\n    return x + {n}", made)
    assert made["made"](1) == 1 + n
def start(n):
    thread = threading.Thread(target=leaf, args=(n,))
    thread.start()
    thread.join()
def leave(n):
    thread = threading.Thread(target=sys.exit)
    thread.start()
    thread.join()
def fork(n):
    pid = os.fork()
    if not pid:
        leaf(n)
        os._exit(n % 100)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == n % 100
def program(n):
    assert subprocess.run([sys.executable, "-c", "pass"]).returncode == 0
data, table = [1, 2, 3], {"a": 1}
def takes(items, names): leaf(0)
def change(n):
    data.append([n]); table[str(n % 9)] = {"n": n}
    takes(data, table)
    if len(data) > 20: data.clear()
    table.pop(str((n + 5) % 9), None)
def again(n):
    dyntrace._native.native.pause()
    dyntrace._native.native.resume()
'''

CALLS = {"call": lambda n: n, "catch": lambda n: n, "down": lambda n: 1, "resume": lambda n: n, "coroutines": lambda n: n,
         "spans": lambda n: n, "make": lambda n: 1, "start": lambda n: 1, "leave": lambda n: 0, "fork": lambda n: 1,
         "program": lambda n: 0, "change": lambda n: 1}
RARE = {"fork", "program", "coroutines"}


def program_of(seed, records):
    """(text, calls of leaf) of the program with this SEED; with RECORDS it records itself, and pauses."""
    chosen = random.Random(seed)
    acts = sorted(CALLS) + (["again"] if records else [])
    threads, expected = [], 0
    for _ in range(chosen.randint(2, 6)):
        lines = []
        for _ in range(chosen.randint(3, 25)):
            act = chosen.choice(acts)
            if act in RARE and chosen.random() < 0.7:
                act = "call"
            n = chosen.randint(1, 60)
            lines.append(f"    {act}({n})")
            expected += CALLS.get(act, lambda n: 0)(n)
        threads.append(lines)
    text = HEAD
    for n, lines in enumerate(threads):
        text += f"def thread_{n}():\n    gate.wait()\n" + "\n".join(lines) + "\n    done.append(1)\n"
    text += f"gate, done = threading.Barrier({len(threads)}), []\n"
    text += "threads = [threading.Thread(target=globals()[f'thread_{n}']) for n in range(%d)]\n" % len(threads)
    if records:
        text += """
def rounds():
    for n in range(6):
        with dyntrace.record(f"own{n}.db", args=["takes"]): time.sleep(0.01)
recorder = threading.Thread(target=rounds)
recorder.start()
"""
    text += "for thread in threads: thread.start()\nfor thread in threads: thread.join()\n"
    if records:
        text += "recorder.join()\n"
    return text + "assert len(done) == len(threads)\nprint('whole')\n", expected


def ask(trace, sql):
    with sqlite3.connect(f"file:{trace}?mode=ro", uri=True) as db:
        return db.execute(sql).fetchone()[0]


def failure(options, python, seed, place):
    """Run the program with SEED in the empty folder PLACE. Returns what is wrong, or None."""
    records = seed % 3 == 0
    text, expected = program_of(seed, records)
    path = place / "p.py"
    path.write_text(text)
    words = [options.dyntrace, "run", "-o", place / "t.db", "--args", "takes", "--python", python, "--", path]
    env = dict(os.environ)
    if records:
        words = [python, path]
        env["PYTHONPATH"] = str(Path(options.dyntrace).resolve().parent / "lib" / "python")
    try:
        done = subprocess.run(list(map(str, words)), cwd=place, env=env, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return "it hangs"
    if (done.returncode, done.stdout) != (0, "whole\n") or done.stderr:
        return f"status {done.returncode}, said {done.stdout!r} {done.stderr[-3000:]!r}"
    for trace in sorted(place.glob("*.db")):
        checked = subprocess.run([options.dyntrace, "fsck", str(trace)], capture_output=True, text=True)
        if checked.returncode:
            return f"{trace.name}: {checked.stdout}{checked.stderr}"
    if records:
        return None
    found = ask(place / "t.db", "SELECT count(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'leaf' AND end_ns IS NOT NULL")
    lost = ask(place / "t.db", "SELECT count(*) FROM loss")
    return None if (found, lost) == (expected, 0) else f"{found} frames of leaf, {expected} calls, {lost} losses"


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--dyntrace", default="build/dyntrace")
    asked.add_argument("--python", action="append", required=True)
    asked.add_argument("--seconds", type=float, default=60)
    asked.add_argument("--seed", type=int, help="this one only")
    options = asked.parse_args()
    options.dyntrace = os.path.abspath(options.dyntrace)
    end = time.monotonic() + options.seconds
    ran, bad = 0, []
    while time.monotonic() < end and len(bad) < 5:
        seed = options.seed if options.seed is not None else random.randrange(1 << 30)
        python = options.python[ran % len(options.python)]
        place = Path(tempfile.mkdtemp(prefix="threads-fuzz-"))
        why = failure(options, python, seed, place)
        ran += 1
        if why:
            bad.append(seed)
            print(f"seed {seed}: {why}\n  python3 tests/fuzz/threads.py --python {python} --seed {seed}", flush=True)
        shutil.rmtree(place)
        if options.seed is not None:
            break
    print(f"{ran} programs, {len(bad)} failed")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
