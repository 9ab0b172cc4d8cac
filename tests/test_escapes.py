"""On a terminal no command prints what could control it: escape sequences, C1 controls, bidirectional overrides, bytes
that are not UTF-8. Every text of every table is hostile here."""
import fcntl
import json
import os
import pty
import re
import shutil
import sqlite3
import struct
import subprocess
import termios

import pytest

import tui_trace
from shared import ROOT, Screen, script
from terminal import VIEWS

pytestmark = pytest.mark.one_python

EVIL = "\x1b]0;pwn\x07\x1b[2J\x1b]52;c;AAAA\x1b\\\x1bc\x9b2J\x9d0;pwn\x9c\x90q\u202egnp\u2066\u061c\u200e\u200f\u2028\x7f\r\b\x0e\x85evil"
BROKEN = b"\x9b2J\xff\xc2\x1b]0;x\x07\xe2\x80"  # not UTF-8, and a sequence cut short at its end
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\udc80-\udcff]")
# What our own words may be set in: colours, and the line of progress, which is taken away again.
OWN = re.compile(r"\x1b\[[0-9;]*m|\r[^\r\n\x1b]{0,100}\x1b\[K|\r\x1b\[K|\r+(?=\n)")
# These words are ours: a trace in which they are others is another trace, or none.
WORDS = {("meta", "key"), ("meta", "value"), ("enum", "name"), ("enum", "domain"), ("enum", "kind")}


def spoil(path, how):
    """APPENDED: each text goes on with EVIL. REPLACED: it is EVIL, also where there was none. BROKEN: bytes that are no UTF-8."""
    db = sqlite3.connect(path)
    db.text_factory = bytes
    db.create_function("as_json", 1, lambda text: json.dumps([str(text), EVIL]))
    tables = [name.decode() for name, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND rootpage > 0")]
    spoilt = 0
    for table in tables:
        for _, column, kind, *_ in db.execute(f'PRAGMA table_info("{table}")').fetchall():
            column, kind = column.decode(), kind.decode().upper()
            if "TEXT" not in kind or (table, column) in WORDS or table == "enum":
                continue
            value = "CAST(CAST(%s AS BLOB) || ? AS TEXT)" if how == "broken" else "%s || ?" if how == "appended" else "?"
            value = value.replace("%s", f'"{column}"')
            where = "1" if how == "replaced" else f'"{column}" IS NOT NULL'
            if table == "code" and column == "qualname":
                where += " AND qualname <> 'step'"  # what is asked for by name
            if column in ("argv", "attributes") and how == "appended":
                db.execute(f'UPDATE "{table}" SET "{column}" = as_json("{column}")')
            else:
                spoilt += db.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = {value} WHERE {where}', (BROKEN if how == "broken" else EVIL,)).rowcount
    for key, value in ("command", json.dumps(["python", EVIL])), ("host", EVIL), ("note", EVIL), ("dyntrace_version", EVIL), (EVIL, EVIL):
        db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
    assert spoilt > 200
    db.commit()
    db.close()


WAYS = ["appended", "replaced", "broken"]
# For sweeps of many commands in one test: ./dev slow has the other two.
one_way = pytest.mark.parametrize(
    "place",
    ["appended", *(pytest.param(way, marks=pytest.mark.slow) for way in WAYS[1:])],
    indirect=True,
)


@pytest.fixture(scope="module", params=WAYS)
def place(request, tmp_path_factory):
    place = tmp_path_factory.mktemp("escapes")
    (place / "model.py").write_text(tui_trace.SOURCE)
    for name in "t.db", "u.db":
        tui_trace.make_trace(place / name, lookups=60 if name == "t.db" else 90, hostile=True)
        with sqlite3.connect(place / name) as db:
            db.executescript("""
                INSERT OR IGNORE INTO graph(graph_id, compile_id, name, node_count) VALUES (901, 1, 'g', 1);
                INSERT OR IGNORE INTO graph_node(graph_id, ordinal, opcode, name, target, args, kwargs) VALUES (901, 0, 'call', 'n', 't', 'a', 'k');
                INSERT OR IGNORE INTO listing(compile_id, kind, text) VALUES (1, 'original_bytecode', 'x'), (1, 'guards', 'y'), (1, 'mine', 'z');
                INSERT OR IGNORE INTO compile_phase(compile_id, name, start_ns, end_ns, label) VALUES (1, 'p', 1, 2, '0/0');
                INSERT INTO loss(process_id, thread_id, at_ns, events, cause) VALUES (1, 1, 5, 7, 'because');
                INSERT INTO code_mark(code_id, at_ns, action, recursive_action, reason) VALUES (2, 5, 'skip', 'default', 'because');
            """)
        db.close()
        spoil(place / name, request.param)
    return place


def columns_of(db):
    return [name for name, in db.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY 1")]


def printed(dyntrace, place, words, **rest):
    """What a terminal gets, byte for byte."""
    fd, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 130, 0, 0))
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    with subprocess.Popen([dyntrace, *map(str, words)], cwd=place, stdin=subprocess.DEVNULL, stdout=end, stderr=end, close_fds=True,
                          env={**env, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "COLUMNS": "130"}) as child:
        os.close(end)
        data = b""
        while True:
            try:
                more = os.read(fd, 65536)
            except OSError:
                break
            if not more:
                break
            data += more
        status = child.wait(60)
    os.close(fd)
    assert status in (0, 1, 2, 3), (words, status, data[-500:])
    return data.decode("utf-8", "surrogateescape")


def harmless(text, words):
    rest = OWN.sub("", text)
    found = FORBIDDEN.search(rest)
    assert not found, (words, rest[max(0, found.start() - 80):found.end() + 40])


READERS = [
    ["report", "t.db"], ["report", "t.db", "--json"], ["report", "t.db", "u.db"], ["why", "t.db"], ["why", "step", "t.db"], ["why", "step", "t.db", "--sql"],
    ["why", "step", "t.db", "--json"], ["why", "step", "t.db", "--ranks"], ["why", "step", "t.db", "--what-if"], ["why", "model.py:5", "t.db"], ["why", "nothing", "t.db"],
    ["why", "e", "t.db"], ["why", "helper", "t.db"], ["why", "*", "t.db"],
    ["show", "step", "t.db"], ["show", "step", "t.db", "--full"], ["show", "step", "t.db", "--json"], ["show", "*", "t.db"],
    ["replay", "t.db", "--to", "first lookup"], ["replay", "t.db", "--to", "first miss"], ["replay", "t.db", "--to", "last compile"], ["replay", "t.db", "--to", "last death", "--json"],
    ["replay", "t.db", "--verify"], ["replay", "t.db", "--what-if", "dynamic=all"], ["replay", "t.db", "--what-if", "best"], ["replay", "t.db", "--what-if", "recompile_limit=1", "--calls"],
    ["replay", "t.db", "--what-if", "recompile_limit=1", "--json"], ["replay", "t.db", "--what-if", "drop_guard=nothing"], ["tui", "t.db", "--dump", "--keys", "9 f function Space e Enter ] ]"],
    ["check", "t.db", "--max-recompiles", "0", "--max-compiles", "0", "--max-graph-breaks", "0", "--max-eager-share", "0%", "--max-guard-us", "0"],
    ["check", "t.db", "--max-recompiles", "0", "--json"], ["check", "t.db", "--require-compiled", "helper"], ["check", "t.db", "--require-compiled", "nothing*"],
    ["diff", "t.db", "u.db", "--lookups"], ["diff", "t.db", "u.db", "--json"], ["ranks", "t.db"], ["ranks", "t.db", "--json"], ["ranks", "t.db", "u.db"],
    ["fsck", "t.db"], ["fsck", "t.db", "--json"], ["sql", "--list"], ["sql", "t.db", "SELECT 1 AS 'a\x1b]0;x\x07\x9b\u202e'"], ["sql", "t.db", "SELECT nothing\x1b[2J"],
    ["sql", "t.db", "SELECT qualname, filename FROM code", "--no-header"], ["sql", "t.db", "u.db", "SELECT qualname FROM code"],
    ["merge", "t.db", "u.db", "-o", "merged.db", "--force"], ["tui", "nothing\x1b]0;x\x07.db", "--dump"],
    ["report", "no such\x1b]0;x\x07\x9b\u202e.db"], ["export", "t.db", "--format", "csv", "--table", "no\x1b]0;x\x07", "-o", "-"],
    *(["export", "t.db", "--format", form, "-o", "-"] for form in ("perfetto", "chrome", "speedscope", "folded", "csv", "jsonl")),
    ["export", "t.db", "--format", "csv", "--safe-csv", "-o", "-"], ["export", "t.db", "--format", "folded", "--function", "*", "-o", "/dev/stdout", "--force"],
    ["doctor", "/nowhere/\x1b]0;x\x07\u202e"],
]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_no_command_prints_terminal_escapes_from_a_trace(dyntrace, place, words):
    text = printed(dyntrace, place, words)
    harmless(text, words)


@one_way
def test_no_table_or_view_prints_terminal_escapes(dyntrace, place):
    """All tables and views of the trace, and all named queries."""
    db = sqlite3.connect(place / "t.db")
    names = columns_of(db)
    db.close()
    assert len(names) > 40
    for name in names:
        for words in (["sql", "t.db", f'SELECT * FROM "{name}" LIMIT 30'], ["sql", "t.db", f'SELECT * FROM "{name}" LIMIT 30', "--json"],
                      ["export", "t.db", "--format", "csv", "--table", name, "-o", "-"], ["export", "t.db", "--format", "jsonl", "--table", name, "-o", "-"]):
            harmless(printed(dyntrace, place, words), words)
    for query in sorted(path.stem for path in (ROOT / "schemas/queries").glob("*.sql")):
        harmless(printed(dyntrace, place, ["sql", "t.db", query]), query)


@one_way
def test_no_tui_view_prints_terminal_escapes(dyntrace, place):
    for name, keys in VIEWS.items():
        words = ["tui", "t.db", "--dump", "--screen", "120x50", *(["--keys", keys] if keys else [])]
        harmless(printed(dyntrace, place, words), (name, words))


def test_the_tui_sends_no_escapes_of_the_trace_to_a_terminal(dyntrace, place, monkeypatch):
    """curses sends its own escape sequences, but none from the trace."""
    monkeypatch.chdir(place)
    for name in "overview", "functions", "function", "entry-bytecode", "compile", "break", "ledger", "call", "timeline", "flame-graph", "process", "losses":
        screen = Screen([dyntrace, "tui", "t.db", "--keys", f"{VIEWS[name]} Q"], size=(50, 130))
        text, status = screen.finish()
        assert status == 0 and len(text) > 500, (name, text)
        assert not re.search("\x1b\\]|\x1bc|\x1bP|[\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|pwn\x07", text), (name, text[-2000:])


def test_the_sql_prompt_prints_no_terminal_escapes(dyntrace, place, monkeypatch):
    monkeypatch.chdir(place)
    for words, lines in ((["sql", "t.db"], ["SELECT qualname, filename FROM code;", ".tables", "SELECT * FROM guard LIMIT 3;"]),):
        screen = Screen([dyntrace, *words], size=(40, 130))
        screen.wait("> ")
        for line in lines:
            screen.type(line + "\n")
        screen.type("\x04")
        text, _ = screen.finish()
        text = re.sub("\x1b\\[[0-9;?]*[A-HJKPXhlm@]|\r", "", text)  # libedit moves the cursor
        found = re.search("\x1b[\\]cP]|pwn\x07|[\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", text)
        assert not found, (words, text[max(0, found.start() - 100):found.end() + 50])


def test_csv_export_keeps_texts_unescaped_in_files_and_pipes(dyntrace, place):
    """Programs get the texts of the trace unchanged: CSV escapes nothing."""
    out = place / "frames.csv"
    to_file = subprocess.run([dyntrace, "export", "t.db", "--format", "csv", "--table", "code", "-o", out, "--force"], cwd=place, capture_output=True)
    piped = subprocess.run([dyntrace, "export", "t.db", "--format", "csv", "--table", "code", "-o", "-"], cwd=place, capture_output=True)
    assert to_file.returncode == piped.returncode == 0 and out.read_bytes() == piped.stdout
    db = sqlite3.connect(place / "t.db")
    db.text_factory = bytes
    for name, in db.execute("SELECT filename FROM code"):
        assert name.replace(b'"', b'""') in piped.stdout
    db.close()


def test_importing_a_hostile_log_prints_no_terminal_escapes(dyntrace, tmp_path):
    log = tmp_path / "dedicated_log_torch_trace_rank_0_x.log"
    head = "V1128 12:00:00.000000 77 torch/_logging/structured.py:22] "
    log.write_bytes(b"".join([head.encode() + json.dumps(record).encode() + b"\n" for record in (
        {"str": [EVIL, 0]}, {"dynamo_start": {"stack": [{"line": 1, "name": EVIL, "filename": 0}]}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0, "rank": 0},
        {"compilation_metrics": {"co_name": EVIL, "co_filename": EVIL, "fail_reason": EVIL, "fail_type": EVIL}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0, "rank": 0})])
        + EVIL.encode() + b"\n" + BROKEN + b"\n")
    odd = tmp_path / f"odd{EVIL.replace('/', '')}.log"
    shutil.copy(log, odd)
    for words in ["import", log, "-o", "a.db"], ["import", odd, "-o", f"b\x1b]0;x\x07\x9b\u202e.db"], ["import", odd, "-o", f"b\x1b]0;x\x07\x9b\u202e.db"], ["report", "a.db"]:
        harmless(printed(dyntrace, tmp_path, words), words)


def test_run_escapes_the_names_of_programs_and_files(dyntrace, tmp_path):
    script(tmp_path / "p.py", "pass")
    for words in (["run", "-o", "x\x1b]0;x\x07\x9b\u202e.db", "nothing\x1b]0;x\x07.py"], ["run", "-o", "x\x1b]0;x\x07\x9b\u202e.db", "p.py"], ["run", "-o", "x\x1b]0;x\x07\x9b\u202e.db", "p.py"],
                  ["run", "--python", "/\x1b]0;x\x07\u202e", "p.py"], ["run", "--frames", "\x1b]0;x\x07", "p.py"], ["\x1b]0;x\x07\u202e"], ["report", "--\x1b]0;x\x07"]):
        text = printed(dyntrace, tmp_path, words)
        text = "".join(line for line in text.splitlines(True) if "can't open file" not in line)  # Python's own
        harmless(text, words)
