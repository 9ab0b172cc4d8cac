"""dyntrace tui: keys go in, and the screen comes out as text. It is compared with the page in golden/tui/, or its rows
with tui_rows.py. A real terminal (tmux) shows the same text. After an intended change: DYNTRACE_RENEW=1 pytest
tests/test_tui.py, then read the diff."""
import contextlib
import csv
import os
import re
import shutil
import signal
import subprocess
import sqlite3
import time
from pathlib import Path

import pytest

from crash_help import holders, rows, until
from shared import environment, golden
from terminal import Terminal, VIEWS, dump, needs_tmux, rows_of, run
from tui_rows import ROWS
from tui_trace import SCHEMA, SOURCE, make_trace

pytestmark = pytest.mark.one_python

SIZES = ("80x24", "40x12", "120x40", "200x50")
SINGULAR = re.compile(r"(?<![\w./:-])1 (?:calls|hits|guards|lookups|entries|frames|checks|threads|processes|times|recompiles|graph breaks)\b")
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f\x80-\x9f\u200b-\u200f\u202a-\u202e]")


def well_formed(screen, size):
    assert screen.count("\n") == int(size.split("x")[1]), (size, screen)
    assert not CONTROLS.search(screen) and not SINGULAR.search(screen), (size, screen)
    return screen


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("size", ["80x24", "200x50"])
def test_each_view_is_well_formed_at_other_sizes(dyntrace, place, name, size):
    well_formed(dump(dyntrace, place, VIEWS[name], size), size)


@pytest.mark.parametrize("name", VIEWS)
def test_each_view_shows_its_golden_page_or_its_rows(dyntrace, place, name):
    """The screen has its size, no control characters and no "1 calls"; 12 are compared as a whole, the
    others by row."""
    sizes = ("120x40", "40x12") if name in ROWS else SIZES
    screens = {size: well_formed(dump(dyntrace, place, VIEWS[name], size), size) for size in sizes}
    if name not in ROWS:
        text = "".join(f"==== {size}: {VIEWS[name]}\n{screens[size]}" for size in SIZES)
        text = re.sub(r"(?<=try )/\S*/t\.db", "t.db", text)
        if name == "what-if":  # how many lines the trace's path takes differs
            text = re.sub(r"(what-if +\d+/)\d+", r"\1N", text)
        text = re.sub(r"(?<=\n)\n+", lambda empty: f"({len(empty[0])} empty lines)\n", text)
        golden(f"tui/{name}", text)
        return
    rows = [" ".join(line.split()) for line in screens["120x40"].splitlines()]
    for row in ROWS[name]:
        assert row in rows, (row, screens["120x40"])


def test_the_documents_list_every_key_and_view(dyntrace, place):
    out = dump(dyntrace, place, "?", "200x200")
    text = (Path(__file__).resolve().parents[1] / "docs" / "tui.md").read_text()
    named = re.findall(r"^  (\S.{14}) (.*?)  :(\S+)$", "\n".join(line[1:] for line in out.splitlines()), re.M)
    assert len(named) > 50
    for keys, words, name in named:
        assert f"| `{keys.strip()}` | {words} | `:{name}` |" in text
    for name in VIEWS:
        if name in ("functions", "ledger", "replay", "what-if", "flame"):
            assert f"| `{name}` |" in text


def test_all_documents_use_the_same_names_of_keys(dyntrace):
    """KEY_CODES in tui/keys.h is what --keys knows; --help and the page list all of them."""
    top = Path(__file__).resolve().parents[1]
    names = re.findall(r'^    X\(K_\w+, "(\S+)",', (top / "src/tui/keys.h").read_text(), re.M)
    assert len(names) == 19
    for text in ((top / "docs/tui.md").read_text(),
                 subprocess.run([dyntrace, "tui", "--help"], capture_output=True, text=True, check=True).stdout):
        assert not [name for name in (*names, "Space", "C-l") if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]


def test_going_back_in_the_tui_restores_the_cursor_position(dyntrace, place):
    before = dump(dyntrace, place, "5 j j j j Right")
    assert dump(dyntrace, place, "5 j j j j Right Left Enter Esc Right") == before
    assert dump(dyntrace, place, "5 j j j j Right 2 G Enter Esc Esc") == before


def test_enter_on_a_count_lists_the_counted_rows(dyntrace, place):
    rows = sqlite3.connect(place / "t.db").execute("SELECT count(*) FROM lookup WHERE code_id = 2 AND outcome = 1").fetchone()[0]
    out = dump(dyntrace, place, "2 Right Right Enter")
    assert "> ledger step" in out.splitlines()[0] and out.splitlines()[0].endswith(f"1/{rows}")


def test_enter_on_calls_lists_their_frames(dyntrace, place):
    frames = sqlite3.connect(place / "t.db").execute("SELECT count(*) FROM frame WHERE code_id = 2").fetchone()[0]
    for keys in ("2 Right Enter", "2 Enter g j Enter"):
        out = dump(dyntrace, place, keys, "200x60").splitlines()
        assert "> frames step" in out[0] and out[0].endswith(f"1/{frames}") and "frame_id" in out[1]
        assert re.search(r"^> *\d+ .* step ", out[2])


def test_the_recorded_figure_beside_a_prediction_leads_to_calls(dyntrace, place):
    rows = sqlite3.connect(place / "t.db").execute("SELECT count(*) FROM lookup WHERE code_id = 2").fetchone()[0]
    for way, place_of_step in ((":what-if Space recompile_limit=2 Enter", "n"), ("3 Enter j Enter w", "n")):
        first = dump(dyntrace, place, f"{way} /recorded Enter {place_of_step} Enter", "200x60").splitlines()[0]
        assert "> ledger" in first and first.endswith(f"/{rows}")


def test_all_views_show_the_same_recompiles_and_shares(dyntrace, place):
    """Compared are the first screen, the lists that it leads to, and SQL on the trace's views."""
    def sql(query):
        return subprocess.run([dyntrace, "sql", "t.db", query], cwd=place, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()

    first = dump(dyntrace, place, "", "200x60")
    recompiles, = map(int, sql("SELECT SUM(is_recompile) FROM compiles"))
    assert re.search(rf"^.{recompiles} recompiles$", first, re.M) and recompiles == 2
    for keys in ("3", "2"):
        name = f"recompiles-{keys}.csv"
        (place / name).unlink(missing_ok=True)
        dump(dyntrace, place, f"{keys} :export Space {name} Enter")
        with (place / name).open(newline="") as file:
            assert sum(int(row["recompiles"]) for row in csv.DictReader(file)) == recompiles
    hit, eager = map(float, sql("SELECT 100.0 * SUM(hits) / SUM(calls), 100.0 * SUM(ran_as_python) / SUM(calls) FROM shares"))
    assert f"{hit:.1f} % hit" in first and f"{eager:.1f} % ran eagerly" in first


def test_one_key_leads_from_the_first_screen_to_the_cause(dyntrace, record, tmp_path):
    """A new user types `dyntrace run`, `dyntrace tui` and Enter."""
    shapes = Path(__file__).resolve().parent.parent / "examples" / "shapes.py"
    trace = record([shapes])
    out = dump(dyntrace, tmp_path, "Enter j Enter", trace=str(trace.path), size="100x30")
    assert "> compile total" in out and re.search(r"values size\[0\]: expected \d+", out)


def test_a_click_chooses_a_lane_and_a_moment(dyntrace, place):
    before = dump(dyntrace, place, "7").splitlines()
    y = next(y for y, line in enumerate(before) if line.startswith(" loader"))
    after = dump(dyntrace, place, f"7 Click:20,{y + 1}")
    assert after == dump(dyntrace, place, "7 j g" + " l" * 20) and "\n>loader" in after
    assert dump(dyntrace, place, f"7 Click:20,{y + 1} Click:0,2") == "\n".join(before) + "\n"
    assert dump(dyntrace, place, "7 Click:20,20") == dump(dyntrace, place, "7 g" + " l" * 20)


def test_sql_is_read_only_and_says_so(dyntrace, place):
    assert "only" in dump(dyntrace, place, ":sql Space DELETE Space FROM Space lookup Enter")
    assert "only" in dump(dyntrace, place, ":sql Space ATTACH Space 'x' Space AS Space y Enter")
    assert "stdev_of_nothing" in dump(dyntrace, place, "5 f stdev_of_nothing(1)>2 Enter", "200x60")


def test_export_writes_the_shown_rows(dyntrace, place):
    for name in ("ledger.csv", "one.csv", "half.csv", "text.txt"):
        (place / name).unlink(missing_ok=True)
    assert "50 rows written" in dump(dyntrace, place, "5 f limit Enter e Enter", trace="plain.db")
    assert "one.csv: 1 row written" in dump(dyntrace, place, "5 f lookup_id=1 Enter e C-u one.csv Enter", trace="plain.db")
    lines = (place / "ledger.csv").read_text().splitlines()
    assert len(lines) == 51 and lines[0].startswith("lookup_id,at,outcome,function")
    assert "exists already" in dump(dyntrace, place, "5 e Enter")
    assert len((place / "ledger.csv").read_text().splitlines()) == 51
    assert "lines written" in dump(dyntrace, place, "2 Enter :export Space text.txt Enter")
    assert "\x01" not in (place / "text.txt").read_text() and "Cache entries" in (place / "text.txt").read_text()
    limited = subprocess.run(["bash", "-c", f"ulimit -f 8; exec {dyntrace} tui plain.db --dump --keys '5 :export Space half.csv Enter'"], cwd=place,
                             capture_output=True, text=True, env=environment())
    assert "not exported" in limited.stdout and "File too large" in limited.stdout and not (place / "half.csv").exists()
    assert not list(place.glob("half.csv*"))


def test_dot_commands_work_in_the_sql_view(dyntrace, place):
    assert "guard_check" in dump(dyntrace, place, ":sql Space .tables Enter")
    assert "as the system knew it" in dump(dyntrace, place, ":sql Space .schema Space thread Enter")
    assert "how they, or T, are made" in dump(dyntrace, place, ":sql Space .help Enter")
    assert "process-tree" in dump(dyntrace, place, ":sql Space .queries Enter")


def test_the_sql_shown_for_a_list_returns_the_rows_of_the_list(dyntrace, place):
    out = dump(dyntrace, place, "3 y", "1000x24")
    sql = out.splitlines()[-1]
    assert sql.startswith("copied: SELECT * FROM (WITH decided")


def test_missing_or_changed_source_is_reported(dyntrace, place, tmp_path):
    shutil.copy(place / "t.db", tmp_path / "t.db")
    assert "cannot be read here: No such file" in dump(dyntrace, tmp_path, "2 Enter G")
    (tmp_path / "model.py").write_text(SOURCE)
    assert "changed after this was recorded" in dump(dyntrace, tmp_path, "2 Enter", "80x60")
    (tmp_path / "model.py").write_text("short\n")
    assert "has changed since" in dump(dyntrace, tmp_path, "2 Enter G")
    (tmp_path / "model.py").unlink()
    os.mkfifo(tmp_path / "model.py")
    assert "not a regular file" in dump(dyntrace, tmp_path, "2 Enter G")


def test_the_tui_uses_ascii_if_locale_or_user_ask(dyntrace, place):
    for out in (dump(dyntrace, place, "8", env=environment(LC_ALL="C")),
                run(dyntrace, place, "t.db", "--dump", "--ascii", "--keys", "2 Enter").stdout):
        assert out.isascii()


def test_an_empty_trace_shows_every_view(dyntrace, place, tmp_path):
    db = sqlite3.connect(tmp_path / "bare.db")
    db.executescript(SCHEMA)
    db.close()
    for keys in VIEWS.values():
        assert dump(dyntrace, tmp_path, keys, trace="bare.db").count("\n") == 24
    assert "nothing was compiled again" in dump(dyntrace, tmp_path, "3", trace="bare.db")


@pytest.mark.parametrize("arguments, words", [
    (["nothing.db", "--dump"], "nothing.db: No such file"),
    (["empty.db", "--dump"], "not"),
    (["text.db", "--dump"], "not an SQLite database"),
    (["newer.db", "--dump"], "made by a newer dyntrace"),
    (["t.db"], "not a terminal"),
    (["plain.db", "plain.db"], "not a terminal"),
    (["t.db", "--screen", "80"], "not a size"),
    (["t.db", "--screen", "80x24"], "--screen is for --dump"),
    (["t.db", "--nonsense"], "no such option"),
    (["t.db", "--keys"], "--keys needs a value"),
])
def test_errors_are_reported_in_one_line(dyntrace, place, arguments, words):
    (place / "empty.db").write_bytes(b"")
    (place / "text.db").write_text("no database at all, but long enough to be looked at " * 30)
    if not (place / "newer.db").exists():
        db = sqlite3.connect(make_trace(place / "newer.db", 10))
        db.execute("UPDATE meta SET value = 99 WHERE key = 'schema_version'")
        db.commit()
        db.close()
    done = run(dyntrace, place, *arguments, status=2, stdin=subprocess.DEVNULL)
    assert words in done.stderr and done.stderr.count("\n") == 1 and not done.stdout


# ---- in a real terminal ----------------------------------------------------------------------------------------------


@needs_tmux
@pytest.mark.parametrize("size", [pytest.param(size, marks=pytest.mark.slow if at > 1 else ()) for at, size in enumerate(SIZES)])
def test_the_terminal_shows_the_same_screen_as_the_option_dump(dyntrace, place, size):
    columns, rows = map(int, size.split("x"))
    with Terminal(place, columns, rows, f"{dyntrace} tui plain.db") as terminal:
        terminal.wait(lambda screen: "plain.db > overview" in screen)
        path = ""
        for step in ("", "Enter", "Escape", "2", "Enter", "Escape", "5", "3", "Enter", "6", "8", "0", "?"):
            if step:
                terminal.type(step)
                path += " " + step.replace("Escape", "Esc")
            wanted = rows_of(dump(dyntrace, place, path, size, trace="plain.db"))
            terminal.wait(lambda screen: rows_of(screen) == wanted)


@needs_tmux
def test_wide_and_combining_characters_are_aligned(dyntrace, place):
    with Terminal(place, 100, 30, f"{dyntrace} tui t.db") as terminal:
        terminal.wait(lambda screen: "t.db > overview" in screen)
        terminal.type("2")
        wanted = rows_of(dump(dyntrace, place, "2", "100x30"))
        terminal.wait(lambda screen: rows_of(screen) == wanted)


@needs_tmux
def test_the_terminal_is_restored_at_the_end(dyntrace, place):
    crash = [] if b"__asan_init" in Path(dyntrace).read_bytes() else [signal.SIGSEGV]  # a sanitizer takes that one itself
    editor = place / "slow_editor.sh"
    editor.write_text("#!/bin/sh\nsleep 0.5\n")
    editor.chmod(0o755)
    for how in ("q", "Q", "oQ", signal.SIGTERM, signal.SIGHUP, *crash):  # oQ: Q is typed while the editor is there
        with Terminal(place, 80, 24, f"stty -g > before; {dyntrace} tui plain.db; echo status $?; stty -g > after; cmp before after && echo the same",
                      EDITOR=str(editor)) as terminal:
            terminal.wait(lambda screen: "plain.db > overview" in screen)
            terminal.type("4")
            terminal.wait(lambda screen: "operator" in screen and "overview > breaks" in screen)
            if isinstance(how, str):
                terminal.type(*"q"[how != "q":], how)
            else:
                shell = terminal.tmux("list-panes", "-F", "#{pane_pid}").strip()
                found = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
                os.kill(int(found[0]), how)
            screen = terminal.wait(lambda screen: "ready>" in screen.rstrip().split("\n")[-1])
            assert "the same" in screen and f"status {0 if isinstance(how, str) else 128 + how}" in screen
            assert "overview" not in screen  # the other screen is gone


@needs_tmux
def test_a_stopped_screen_is_drawn_anew(dyntrace, place):
    """Ctrl-Z and a signal stop it. Keys that are typed before the screen is drawn again are not lost."""
    with Terminal(place, 80, 24, f"{dyntrace} tui plain.db") as terminal:
        terminal.wait(lambda screen: "plain.db > overview" in screen)
        terminal.type("5")
        terminal.wait(lambda screen: ">         1" in screen)
        for line in (2, 4):
            if line == 2:
                terminal.type("C-z")
            else:
                shell = terminal.tmux("list-panes", "-F", "#{pane_pid}").strip()
                os.kill(int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0]), signal.SIGTSTP)
            terminal.wait(lambda screen: "Stopped" in screen and "ready>" in screen and "ledger" not in screen)
            terminal.type("fg", "Enter", "j")
            terminal.wait(lambda screen: f">         {line} " in screen)
            terminal.type("j")
            terminal.wait(lambda screen: f">         {line + 1} " in screen)


@needs_tmux
def test_keys_typed_while_rows_load_wait_for_them(dyntrace, place):
    count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000000) SELECT MAX(i) - 2000000 + {} AS code_id FROM n"
    with Terminal(place, 80, 24, f"{dyntrace} tui plain.db", EDITOR=str(place / "slow_editor.sh")) as terminal:
        terminal.wait(lambda screen: "plain.db > overview" in screen)
        for leads, code in (("step  model.py:5", 2), ("helper  model.py:16", 5)):
            terminal.type(f":sql {count.format(code)}", "Enter", "j", "Enter")
            terminal.wait(lambda screen: f"> function {leads.split()[0]}" in screen and leads in screen)
        terminal.type("1", f":sql {count.format(2)}", "Enter", "Enter", "j")
        terminal.wait(lambda screen: "waiting for what is being asked" in screen)
        terminal.type("Escape")  # gives both keys up
        terminal.wait(lambda screen: "1/1" in screen and "waiting" not in screen and "> sql" in screen)
        terminal.type("1", f":sql {count.format(2)}", "Enter", "Enter", "2")  # nobody waits for what one leaves
        terminal.wait(lambda screen: "> functions" in screen and "torch_dynamo" in screen)
        for line in ":1", "/2":  # what was typed waits, and its Enter opens nothing
            terminal.type("1", f":sql {count.format(2)}", "Enter", line, "Enter", "s")
            screen = terminal.wait(lambda screen: "1/1" in screen and "by code_id" in screen)
            assert "> sql" in screen.splitlines()[0] and "not found" not in screen
        terminal.type("1", f":sql {count.format(2)}", "Enter", "/2", "Enter", "Escape", ":losses", "Enter")
        terminal.wait(lambda screen: "> losses" in screen)
        (place / "dyntrace.txt").unlink(missing_ok=True)
        terminal.type("1", f":dyntrace sql '{count.format(2)}'", "Enter", "e", "Enter")
        terminal.wait(lambda screen: "dyntrace.txt: 2 lines written" in screen)
        assert "code_id" in (place / "dyntrace.txt").read_text()


@needs_tmux
def test_a_resized_screen_is_drawn_anew(dyntrace, place):
    with Terminal(place, 100, 30, f"{dyntrace} tui plain.db") as terminal:
        terminal.wait(lambda screen: "plain.db > overview" in screen)
        terminal.type("2")
        for columns, rows in ((40, 12), (120, 40), (39, 11), (80, 24)):
            terminal.tmux("resize-window", "-x", str(columns), "-y", str(rows))
            wanted = rows_of(dump(dyntrace, place, "2", f"{columns}x{rows}", trace="plain.db"))
            terminal.wait(lambda screen: rows_of(screen) == wanted)


@needs_tmux
def test_the_tui_refuses_unsuitable_terminals(dyntrace, place):
    for term, words in (("no-such-terminal", "is not known here"), ("dumb", "cannot move its cursor")):
        with Terminal(place, 80, 24, f"TERM={term} {dyntrace} tui plain.db; echo status $?") as terminal:
            screen = terminal.wait(lambda screen: re.search(r"^status \d", screen, re.M))
            assert words in screen.replace("\n", "") and "status 2" in screen


@needs_tmux
def test_colours_are_used_only_if_wanted(dyntrace, place):
    for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "vt100"}, False)):
        with Terminal(place, 80, 24, f"{dyntrace} tui plain.db", **env) as terminal:
            terminal.wait(lambda screen: "plain.db > overview" in screen and "hit  " in screen)
            assert bool(re.search(r"\x1b\[[0-9;]*(3[1-7]|38;5)", terminal.tmux("capture-pane", "-p", "-e"))) == coloured


@needs_tmux
def test_the_tui_reads_keys_from_the_terminal_when_stdin_is_a_pipe(dyntrace, place):
    with Terminal(place, 80, 24, f"echo 5 | {dyntrace} tui plain.db") as terminal:
        terminal.wait(lambda screen: "plain.db > overview" in screen)
        terminal.type("5")
        terminal.wait(lambda screen: "> ledger" in screen)


@needs_tmux
def test_a_trace_deleted_or_replaced_while_it_is_shown_is_reported(dyntrace, place, tmp_path):
    for change, words in ((lambda path: path.unlink(), "was deleted"), (lambda path: shutil.copy(place / "t.db", path.with_suffix(".new")) and
                                                                        os.replace(path.with_suffix(".new"), path), "was replaced")):
        shutil.copy(place / "plain.db", tmp_path / "p.db")
        with Terminal(tmp_path, 80, 24, f"{dyntrace} tui p.db") as terminal:
            terminal.wait(lambda screen: "p.db > overview" in screen)
            change(tmp_path / "p.db")
            terminal.wait(lambda screen: words in screen)
            terminal.type("2")
            terminal.wait(lambda screen: "> functions" in screen and "step" in screen)
            if words == "was replaced":
                assert "evil" not in terminal.screen()
                terminal.type("R")
                terminal.wait(lambda screen: "evil" in screen)


@needs_tmux
def test_a_reload_waits_for_running_queries(dyntrace, place, tmp_path):
    shutil.copy(place / "plain.db", tmp_path / "p.db")
    slow = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000000)"
            " SELECT 7 + MAX(qualname LIKE '%evil%') AS seven, MAX(i) - 2000000 AS zero FROM code, (SELECT MAX(i) AS i FROM n)")
    with Terminal(tmp_path, 80, 24, f"{dyntrace} tui p.db") as terminal:
        terminal.wait(lambda screen: "p.db > overview" in screen)
        shutil.copy(place / "t.db", tmp_path / "new.db")
        os.replace(tmp_path / "new.db", tmp_path / "p.db")
        terminal.wait(lambda screen: "was replaced" in screen)
        terminal.type(f":sql {slow}", "Enter", "R")
        terminal.wait(lambda screen: re.search(r"^>? *8 +0 *$", screen, re.M))


@needs_tmux
def test_the_editor_opens_at_the_line(dyntrace, place):
    editor = place / "editor.sh"
    editor.write_text("#!/bin/sh\necho \"$@\" > edited\n")
    editor.chmod(0o755)
    (place / "edited").unlink(missing_ok=True)
    with Terminal(place, 80, 24, f"{dyntrace} tui plain.db", EDITOR=str(editor)) as terminal:
        terminal.wait(lambda screen: "plain.db > overview" in screen)
        terminal.type("4")
        terminal.wait(lambda screen: "> breaks" in screen and "step" in screen)
        terminal.type("o")
        end = time.time() + 10
        while not (place / "edited").exists() and time.time() < end:
            time.sleep(0.05)
        terminal.wait(lambda screen: "> breaks" in screen)
    assert (place / "edited").read_text() == "+7 ./model.py\n"


SLOW = """
import sys, time
from pathlib import Path
def work(n):
    return n
for i in range(10000):
    print("step", i, flush=True)
    work(i)
    if Path("stop").exists():
        break
    time.sleep(0.02)
print("bye")
sys.exit(7)
"""


@needs_tmux
def test_a_program_runs_while_its_recording_is_on_the_screen(dyntrace, python, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    with Terminal(tmp_path, 80, 24, f"{dyntrace} run --live --python {python} slow.py; echo status $?") as terminal:
        terminal.wait(lambda screen: "slow.db (live) > overview" in screen and re.search(r"^O: step \d", screen, re.M))
        terminal.type("2")
        terminal.wait(lambda screen: "> functions" in screen and re.search(r"^.work +\d", screen, re.M))
        terminal.type("O")
        terminal.wait(lambda screen: "> output" in screen and len(re.findall(r"^step \d+", screen, re.M)) > 5)
        terminal.type("Escape")
        first = re.search(r"^.work +(\d+)", terminal.wait(lambda screen: re.search(r"^.work +\d", screen, re.M)), re.M)[1]
        terminal.wait(lambda screen: int((re.search(r"^.work +(\d+)", screen, re.M) or [0, "0"])[1]) > int(first))
        (tmp_path / "stop").touch()
        terminal.wait(lambda screen: "the program has ended" in screen and "(live)" not in screen)
        terminal.type("8")
        terminal.wait(lambda screen: "> flame" in screen and "<module>" in screen)
        terminal.type("Q")
        screen = terminal.wait(lambda screen: "status" in screen)
        assert "bye" in screen and "status 7" in screen


def calls_of_work(tmp_path):
    return sum(n for n, in rows(tmp_path / "slow.db", "SELECT calls FROM code_total JOIN code USING (code_id) WHERE qualname = 'work'"))


@needs_tmux
def test_the_screen_survives_a_killed_collector(dyntrace, python, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    with Terminal(tmp_path, 80, 24, f"{dyntrace} run --live --python {python} slow.py; echo status $?") as terminal:
        terminal.wait(lambda screen: "slow.db (live) > overview" in screen and re.search(r"^O: step \d", screen, re.M))
        session = rows(tmp_path / "slow.db", "SELECT value FROM meta WHERE key = 'session'")[0][0]
        for _ in range(2):
            collector = until(lambda: holders(session), "there is a collector")[0]
            before = calls_of_work(tmp_path)
            os.kill(collector, signal.SIGKILL)
            until(lambda: calls_of_work(tmp_path) > before + 20, "the trace goes on")
        at = int(re.search(r"^O: step (\d+)", terminal.wait(lambda screen: re.search(r"^O: step \d", screen, re.M)), re.M)[1])
        terminal.wait(lambda screen: int((re.search(r"^O: step (\d+)", screen, re.M) or [0, "0"])[1]) > at)
        (tmp_path / "stop").touch()
        terminal.wait(lambda screen: "the program has ended" in screen and "(live)" not in screen)
        terminal.type("Q")
        screen = terminal.wait(lambda screen: "status" in screen)
        assert "status 7" in screen and "another took its place" in screen


@needs_tmux
def test_another_terminal_follows_a_recording(dyntrace, python, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    with subprocess.Popen([dyntrace, "run", "--python", python, "slow.py"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        while not (tmp_path / "slow.db").exists():
            time.sleep(0.05)
        with Terminal(tmp_path, 80, 24, f"{dyntrace} tui --live slow.db") as terminal:
            terminal.wait(lambda screen: "slow.db (live) > overview" in screen)
            terminal.type("2")
            terminal.wait(lambda screen: re.search(r"^.work +\d", screen, re.M))
            terminal.type("F")
            terminal.wait(lambda screen: "(held)" in screen)
            terminal.type("F")
            (tmp_path / "stop").touch()
            terminal.wait(lambda screen: "the program has ended" in screen)


def test_run_live_needs_a_terminal(dyntrace, python, tmp_path):
    done = subprocess.run([dyntrace, "run", "--live", "--python", python, "-c", "print(1)"], cwd=tmp_path, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and "--live needs a terminal" in done.stderr and not list(tmp_path.iterdir())


@needs_tmux
def test_a_mouse_click_chooses_and_opens_rows(dyntrace, place):
    with Terminal(place, 80, 24, f"{dyntrace} tui plain.db", TERM="xterm-256color") as terminal:
        terminal.wait(lambda screen: "plain.db > overview" in screen)
        terminal.type("8")
        folded = rows_of(dump(dyntrace, place, "8", trace="plain.db"))
        terminal.wait(lambda screen: rows_of(screen) == folded)
        y = next(y for y, line in enumerate(folded) if "step" in line)
        wanted = rows_of(dump(dyntrace, place, f"8 Click:10,{y} Click:10,{y}", trace="plain.db"))
        assert wanted != rows_of(dump(dyntrace, place, f"8 Click:10,{y}", trace="plain.db"))
        terminal.mouse(0, 10, y, times=2)  # a double click unfolds
        terminal.wait(lambda screen: rows_of(screen) == wanted)
        terminal.type("5")
        wanted = rows_of(dump(dyntrace, place, "8 5", trace="plain.db"))
        terminal.wait(lambda screen: rows_of(screen) == wanted)
        terminal.mouse(65, 10, 5)
        terminal.wait(lambda screen: re.search(r"^> +4 ", screen, re.M))
        terminal.mouse(0, 3, 8)
        terminal.wait(lambda screen: re.search(r"^> +7 ", screen, re.M))
        terminal.mouse(0, 3, 8, times=2)  # the first one opens the chosen line, and the second belongs to it
        terminal.wait(lambda screen: "> call" in screen.splitlines()[0])
        time.sleep(0.3)
        assert rows_of(terminal.screen()) == rows_of(dump(dyntrace, place, "8 5 j j j j j j Enter", trace="plain.db"))
