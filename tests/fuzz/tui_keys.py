#!/usr/bin/env python3
"""Types random keys into `dyntrace tui` and looks at what comes of it.

    make tui-fuzz FUZZ_SECONDS=600
    tests/fuzz/tui_keys.py DYNTRACE SECONDS [SEED]

Each run types some hundred keys on a screen of random size, on traces with hostile names, without lookups, or empty. It must
end with status 0 and print a screen of exactly that many lines, none wider than the screen, with no control character.
A run that fails is printed as the command that repeats it."""
import os
import random
import subprocess
import sys
import tempfile
import time
import unicodedata
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import sqlite3

from frame_rows import frame_rows
from tui_trace import SCHEMA, SOURCE, make_trace

KEYS = ("Enter Esc Tab S-Tab Space Up Down Left Right PgUp PgDn Home End Backspace Delete F1 C-a C-b C-c C-d C-e C-f C-g C-k C-l C-n C-p C-u"
        " C-w WheelUp WheelDown").split()
TYPED = ["/step Enter", "/日 Enter", "f step Enter", "f calls Space > Space 3 Enter", "f Enter", "f outcome Space = Space 'limit' Enter", ":12 Enter", ":fl Tab Enter",
         ":timeline Enter", ":flame Enter", ":sql Space SELECT Space * Space FROM Space lookup Enter", ":sql Space SELECT Space 1 Enter",
         ":sql Space hot-functions Enter", ":sql Space DROP Space TABLE Space x Enter", ":sql Space (( Enter", "! SEL Tab Space x'00', Space NULL, Space 1e999 Enter",
         ":function Space 2 Enter", ":entry Space 1 Enter", ":compile Space 99 Enter", ":call Space 7 Enter", ":break Space 1 Enter", ":losses Enter",
         ":entries Enter", ":causes Enter", ":compiles Enter", ":checks Enter", ":nonsense Enter", "f ' Enter", "f x( Space IN Space Enter", ":999999999999 Enter",
         "@ 0.7 Enter", ":+100ms Enter", ":-1s Enter", ":9e18ns Enter", ":call Space -3 Enter", ":frames Enter", ":check Space --max-recompiles Space 0 Enter",
         ":verify Enter", ":open Space plain.db Enter", "7 f main Enter", "/Main Enter"]
RARE = ("Resize:40x12", "Resize:80x24", "Resize:200x60", "Resize:3x2", "Resize:1x1", "Resize:41x13")


def bare(path):
    db = sqlite3.connect(path)
    db.executescript(SCHEMA)
    db.close()
    return path


def plain(path):
    """Frames only: nothing was compiled."""
    make_trace(path, 50)
    db = sqlite3.connect(path)
    for table in ("guard_check", "lookup", "compile", "recompile_cause", "graph_break", "cache_entry", "guard_order"):
        db.execute(f"DELETE FROM {table}")
    db.commit()
    db.close()
    return path


def wild(path):
    """Every number somewhere else, texts where numbers should be."""
    make_trace(path, 200)
    db = frame_rows(sqlite3.connect(path))
    for statement in ("UPDATE lookup SET start_ns = start_ns * 4000000000 WHERE lookup_id % 7 = 0", "UPDATE lookup SET outcome = 77 WHERE lookup_id % 11 = 0",
                      "UPDATE lookup SET thread_id = 'x' WHERE lookup_id % 13 = 0", "UPDATE frame_rows SET parent_id = frame_id + 5 WHERE frame_id % 9 = 0",
                      "UPDATE frame_rows SET start_ns = -start_ns WHERE frame_id % 5 = 0", "UPDATE frame_rows SET end_ns = 'never' WHERE frame_id % 17 = 0",
                      "UPDATE meta SET value = '-5' WHERE key = 'span_ns'", "UPDATE guard_order SET ordinals = '[not json'",
                      "UPDATE guard SET ordinal = 9223372036854775807 WHERE guard_id = 11", "UPDATE code SET first_line = -3 WHERE code_id = 2",
                      "UPDATE compile SET end_ns = NULL", "UPDATE process SET parent_process_id = 2 WHERE process_id = 1",
                      "UPDATE code_total SET self_ns = 9223372036854775807, total_ns = 9223372036854775807", "UPDATE code SET qualname = zeroblob(10) WHERE code_id = 5",
                      "UPDATE graph_break SET line = NULL, reason = NULL"):
        db.execute(statement)
    db.commit()
    db.close()
    return path


def width(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def script(random_):
    keys = []
    for _ in range(random_.randrange(20, 300)):
        choice = random_.random()
        if choice < 0.5:
            keys.append(random_.choice(KEYS))
        elif choice < 0.72:
            keys.append(random_.choice("kjhlgGnNsSRFyobwrt+-*[]{}i0123456789?pvm'@>MvIK"))
        elif choice < 0.9:
            keys.append(random_.choice(TYPED))
        elif choice < 0.97:
            keys.append(f"Click:{random_.randrange(-1, 210)},{random_.randrange(-1, 70)}")
        else:
            keys.append(random_.choice(RARE))
    return " ".join(keys)


def trial(dyntrace, trace, keys, columns, rows, folder):
    """What is wrong with this run, or None."""
    command = [dyntrace, "tui", trace, "--dump", "--screen", f"{columns}x{rows}", "--keys", keys]
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "ASAN_OPTIONS": "detect_leaks=1", "EDITOR": "true"}
    try:
        done = subprocess.run(command, capture_output=True, timeout=120, cwd=folder, env=environment)
    except subprocess.TimeoutExpired:
        return "it did not end", command
    out = done.stdout.decode(errors="replace")
    for word in reversed(keys.split()):
        if word.startswith("Resize:"):
            columns, rows = map(int, word[7:].split("x"))
            break
    if done.returncode or done.stderr:
        return f"status {done.returncode}: {done.stderr.decode(errors='replace')[-3000:]}", command
    lines = out.split("\n")
    quit_early = "Q" in keys or "q" in keys
    if len(lines) - 1 != rows and not quit_early:
        return f"{len(lines) - 1} lines, not {rows}", command
    for line in lines:
        if width(line) > columns and not quit_early:
            return f"a line of {width(line)} columns on a screen of {columns}: {line!r}", command
        if any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in line):
            return f"control characters: {line!r}", command
    return None


def main():
    dyntrace, seconds = str(Path(sys.argv[1]).resolve()), float(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model.py").write_text(SOURCE)
        traces = [make_trace(f"{folder}/a.db"), bare(f"{folder}/bare.db"), plain(f"{folder}/plain.db"), wild(f"{folder}/wild.db")]
        end, runs, first = time.time() + seconds, 0, seed
        while time.time() < end:
            random_ = random.Random(seed)
            trace = random_.choice([traces[0], traces[0], *traces])
            columns, rows = random_.choice([(80, 24), (40, 12), (200, 60), (random_.randrange(1, 120), random_.randrange(1, 50))])
            wrong = trial(dyntrace, trace, script(random_), columns, rows, folder)
            if wrong:
                print(f"seed {seed}: {wrong[0]}\n{' '.join(map(repr, wrong[1]))}", file=sys.stderr)
                return 1
            seed += 1
            runs += 1
        print(f"tui-fuzz: {runs} scripts of keys from seed {first}, nothing wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main())
