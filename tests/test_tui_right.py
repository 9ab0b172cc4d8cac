"""dyntrace tui shows the truth about real recordings: the order of all rows, how processes died, what is damaged."""
import re
import shutil
import sqlite3
import subprocess
import time

import pytest

from frame_rows import frame_rows
from crash_help import run_as_known
from planted import size_changes
from shared import PYTHONS
from terminal import Terminal, dump, needs_tmux, rows_of
from tui_trace import make_trace

pytestmark = pytest.mark.one_python

CALLS = """
def spin(n):
    for _ in range(n):
        pass
def work(n):
    spin(n)
for i in range(101_000):
    work(1)
work(500_000)
"""

DYING = """
import os, signal, time
def die(how):
    os.write(1, b"%d\\n" % os.getpid())
    os.read(0, 1) # run_as_known
    os.kill(os.getpid(), how)
    while True:
        pass
def child(how):
    die(how)
for how in (signal.SIGKILL, signal.SIGSEGV):
    pid = os.fork()
    if not pid:
        child(how)
    os.waitpid(pid, 0)
"""


@pytest.fixture(scope="module")
def folder(dyntrace, tmp_path_factory):
    """A folder with recordings, each made once: folder("calls.db", CALLS)."""
    path = tmp_path_factory.mktemp("right")

    def made(name, program):
        if not (path / name).exists():
            (path / f"{name}.py").write_text(program)
            words = [dyntrace, "run", "-o", name, "--python", PYTHONS[0], f"{name}.py"]
            run_as_known(words, path / name, cwd=path)
        return path
    return made


def lines(dyntrace, place, keys, trace, size="120x24", **rest):
    return [line.rstrip() for line in dump(dyntrace, place, keys, size, trace=trace, **rest).splitlines()]


def test_the_slowest_call_is_first_of_all_calls(dyntrace, folder):
    place = folder("calls.db", CALLS)
    ((slowest, calls),) = sqlite3.connect(place / "calls.db").execute(
        "SELECT frame_id, (SELECT COUNT(*) FROM frames WHERE qualname = 'work') FROM frames WHERE qualname = 'work' ORDER BY duration_ns DESC LIMIT 1")
    assert calls == 101_001
    out = lines(dyntrace, place, "2 /work Enter Right Enter Right Right s", "calls.db")
    assert out[2].replace(">", "").split()[0] == str(slowest)
    assert "call↓" in out[1] and "1/101 k" in out[0] and "+" not in out[0]


def test_sorting_and_filtering_use_all_rows_of_a_users_query(dyntrace, folder):
    place = folder("calls.db", CALLS)
    query = ":sql Space SELECT Space frame_id,'f'||frame_id Space AS Space name,duration_ns Space FROM Space frames Space WHERE Space qualname='work' Enter"
    db = sqlite3.connect(place / "calls.db")
    slowest, = db.execute("SELECT frame_id FROM frames WHERE qualname = 'work' ORDER BY duration_ns DESC LIMIT 1").fetchone()
    last, = db.execute("SELECT MAX(frame_id) FROM frames WHERE qualname = 'work'").fetchone()
    assert str(slowest) in lines(dyntrace, place, f"{query} Right Right s", "calls.db")[2]
    assert lines(dyntrace, place, f"{query} f f{last} Enter", "calls.db")[2].replace(">", "").split()[0] == str(last)


def test_all_frames_are_shown_although_300000_are_drawn_first(dyntrace, folder):
    """The first 300,000 are drawn at once, then the others are read."""
    place = folder("many.db", CALLS.replace("101_000", "160_000"))
    start, end = sqlite3.connect(place / "many.db").execute("SELECT start_ns, end_ns FROM frames WHERE qualname = 'spin' ORDER BY frame_id DESC LIMIT 1").fetchone()
    assert any(re.search(r" 160 k +. work$", line) for line in lines(dyntrace, place, "8", "many.db"))
    assert lines(dyntrace, place, f"7 @ {(start + end) // 2}ns Enter", "many.db")[-2].endswith("spin < work < <module>")


def test_calls_with_large_ids_are_listed(dyntrace, place, tmp_path):
    """Merged traces have large ids. The TUI keeps ids in few bytes."""
    shutil.copy(place / "plain.db", tmp_path / "large.db")
    with frame_rows(sqlite3.connect(tmp_path / "large.db")) as db:
        db.execute("UPDATE frame_rows SET frame_id = frame_id + 5000000000, parent_id = parent_id + 5000000000")
        count, last = db.execute("SELECT COUNT(*), MAX(frame_id) FROM frame").fetchone()
    screen = lines(dyntrace, tmp_path, ":frames Enter G", "large.db")
    assert screen[0].endswith(f"{count}/{count}") and f">{last}" in screen[-2].replace(" ", "")
    assert f"#{last}" in lines(dyntrace, tmp_path, ":frames Enter G Enter", "large.db")[0]
    assert f">{last}" in "".join(lines(dyntrace, tmp_path, ":frames Enter s s s @ 3s Enter", "large.db")).replace(" ", "")


def test_calls_are_filtered_by_a_condition(dyntrace, folder):
    out = lines(dyntrace, folder("calls.db", CALLS), "2 f work Enter Enter g j Enter f call>3000000 Space AND Space function='work' Enter", "calls.db")
    assert "> frames work" in out[0] and re.search(r"1/\d+$", out[0]) and "ms" in out[2]


def test_a_sorted_list_begins_with_its_first_row(dyntrace, folder):
    place = folder("calls.db", CALLS)
    out = lines(dyntrace, place, "2 G s", "calls.db")
    assert " 1/" in out[0] and out[2].startswith("><module>")


def test_how_processes_died_is_on_the_first_screen(dyntrace, folder):
    place = folder("dying.db", DYING)
    first = lines(dyntrace, place, "", "dying.db", "100x24")
    assert " 2 of 3 processes died by a signal" in first
    found = [re.match(r"[ >]  (\d+) signal (9 \(SIGKILL\)|11 \(SIGSEGV\)) at [\d.]+ s in die  .*dying.db.py:3$", line) for line in first]
    assert [match[2] for match in found if match] == ["9 (SIGKILL)", "11 (SIGSEGV)"]
    assert first[next(i for i, match in enumerate(found) if match)][0] == ">"
    assert re.fullmatch(r" ?vi \+3 .*dying.db.py", lines(dyntrace, place, "o", "dying.db")[-1])
    page = lines(dyntrace, place, "Enter", "dying.db", "100x24")
    at = next(i for i, line in enumerate(page) if "Open when it ended" in line)
    assert [line.split()[0] for line in page[at + 1:at + 4]] == ["die", "child", "<module>"]
    assert "signal 9 (SIGKILL)" in "".join(lines(dyntrace, place, "0", "dying.db", "100x24"))


@needs_tmux
def test_run_live_says_how_the_program_ended(dyntrace, tmp_path):
    (tmp_path / "p.py").write_text("import os, signal, time\ntime.sleep(1)\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    with Terminal(tmp_path, 100, 24, f"{dyntrace} run --live --python {PYTHONS[0]} p.py; echo status $?") as terminal:
        terminal.wait(lambda screen: "the program has ended, signal 11 (SIGSEGV): the trace is complete" in screen)
        terminal.type("Q")


@needs_tmux
def test_unknown_escape_sequences_do_nothing(dyntrace, folder):
    place = folder("dying.db", DYING)
    with Terminal(place, 80, 24, f"{dyntrace} tui dying.db") as terminal:
        terminal.wait(lambda screen: "dying.db > overview" in screen)
        terminal.type("2")
        wanted = rows_of(dump(dyntrace, place, "2 j", trace="dying.db"))
        for sequence in (b"\x1b[1;5D", b"\x1b[99;9~", b"\x1bOz", b"\x1b[15;5~"):
            terminal.tmux("send-keys", "-H", *(f"{byte:x}" for byte in sequence))
            time.sleep(0.2)  # what they would have done
        terminal.type("j")
        terminal.wait(lambda screen: rows_of(screen) == wanted)


def damaged(path, table):
    """The first page of TABLE is no page."""
    make_trace(path)
    db = sqlite3.connect(path)
    (root,), (size,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone(), db.execute("PRAGMA page_size").fetchone()
    db.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)


@pytest.mark.parametrize("table", ["lookup", "code_total", "guard_check"])
def test_damage_of_the_trace_is_reported_on_the_first_screen(dyntrace, tmp_path, table):
    damaged(tmp_path / "t.db", table)
    for keys in ("", "j j"):
        out = lines(dyntrace, tmp_path, keys, "t.db", "100x40", status=2)
        assert out[1].strip(" >") == "this is not all: the file is damaged; `dyntrace fsck` tells more"
        assert "  ..." not in [line.rstrip()[1:] for line in out]


def test_an_empty_list_says_what_it_is_about(dyntrace, place):
    """A guard that never failed has an empty list of failures. Its checks exist, and Enter shows them."""
    out = lines(dyntrace, place, "6 /fc Enter Enter", "plain.db")
    assert "> checks" in out[0] and re.search(r" 1/\d{3}$", out[0])
    out = lines(dyntrace, place, "6 /fc Enter Right Right Right Right Enter", "plain.db")
    assert "> checks" in out[0] and "no check was recorded" not in "".join(out) and "there are none here; :checks has those of the whole trace" in out[3]


@pytest.fixture
def twice_failed(tmp_path):
    """The second recompile of step was decided by another guard for each of the two older entries; and a check's
    failing guard stands behind those that ran."""
    db = sqlite3.connect(make_trace(tmp_path / "t.db"))
    db.execute("UPDATE recompile_cause SET source = 'L[''other'']', kind = 'EQUALS_MATCH' WHERE compile_id = 3 AND cache_entry_id = 1")
    db.execute("UPDATE guard_check SET guards_run = 2 WHERE cache_entry_id = 1 AND result = 'fail'")
    db.commit()
    return tmp_path


def test_the_list_of_recompiles_sums_to_its_heading(dyntrace, twice_failed):
    first = dump(dyntrace, twice_failed, "", "120x50")
    assert re.search(r"^.2 recompiles$", first, re.M)
    assert sum(int(n) for n in re.findall(r"^. *(\d+) x step: ", first, re.M)) == 2
    out = lines(dyntrace, twice_failed, "3", "t.db")
    assert out[2].replace(">", " ").split()[:2] == ["step", "2"] and out[0].endswith("1/1")
    assert lines(dyntrace, twice_failed, "3 Enter", "t.db")[0].endswith("1/2")
    assert lines(dyntrace, twice_failed, "2 Right Right Right Right Enter", "t.db")[0].endswith("1/2")


def test_the_page_of_a_function_counts_older_entries_once(dyntrace, plant):
    """Several guards of three older entries failed, some twice. The page counts the two other entries, not the guards."""
    p = plant()
    size_changes(p)
    for entry, _, _ in p.entries[:3]:
        for ordinal in (0, 0, 1):
            p.db.execute("INSERT INTO recompile_cause SELECT compile_id, cache_entry_id, ?, guard_id, kind, source, aspect, 1, 'size[1] = 3', 'size[1] = 4', text, how "
                         "FROM recompile_cause WHERE compile_id = 4 AND cache_entry_id = ? LIMIT 1", (ordinal, entry))
    path = p.done()
    out = dump(dyntrace, path.parent, ":functions Space function Space = Space 'f' Enter Enter", "160x50", trace=path.name)
    page = "".join(re.findall(r"^. +0/3 .*$", out, re.M))
    assert "x size[0]: expected 16 (0/0), actual 22, +2 entries, same guard" in page, out


def test_a_failed_guard_counts_as_a_guard_that_ran(dyntrace, twice_failed):
    out = dump(dyntrace, twice_failed, ":entry Space 1 Enter", "120x50")
    rows = re.findall(r"^. +\d+ +(\d+) +(\d+)  .*(?:MATCH|STATE)", out, re.M)
    assert len(rows) == 4 and all(int(ran) >= int(failed) for ran, failed in rows) and any(int(failed) for _, failed in rows)


@pytest.mark.slow
@needs_tmux
def test_a_prediction_can_be_cancelled(dyntrace, tmp_path):
    make_trace(tmp_path / "t.db", 300_000, hostile=False)
    with Terminal(tmp_path, 80, 24, f"{dyntrace} tui t.db; echo status $?") as terminal:
        terminal.wait(lambda screen: "2 recompiles" in screen)
        terminal.type("w")
        terminal.wait(lambda screen: "> what-if" in screen)
        terminal.type("C-c")
        terminal.wait(lambda screen: "this is not all: cancelled" in screen)
        terminal.type("w")  # asks for a setting
        terminal.type("b", "e", "s", "t", "Enter", "Q")
        terminal.wait(lambda screen: "status 0" in screen)


def moment(screen):
    return screen.splitlines()[-2].split()[0]


def test_zoom_keeps_the_cursor_in_place(dyntrace, place):
    for start in ("7 Right Right", "7 Right Right Right Right", "7 G Left Left"):
        before = moment(dump(dyntrace, place, start, trace="plain.db"))
        for zoom in ("+", "+ + +", "+ + + - - -", "-"):
            assert moment(dump(dyntrace, place, f"{start} {zoom}", trace="plain.db")) == before, (start, zoom)


def test_the_number_of_calls_too_deep_to_draw_is_shown(dyntrace, folder):
    place = folder("deep.db", "import time\ndef down(n):\n    return down(n - 1) if n else time.sleep(0.1)\ndown(30)\n")
    with sqlite3.connect(place / "deep.db") as db:
        at, = db.execute("SELECT MAX(start_ns) + 50000000 FROM frames WHERE qualname = 'down'").fetchone()
    db.close()
    for size in (16, 24):
        out = lines(dyntrace, place, f"7 @ {at}ns Enter", "deep.db", f"80x{size}")
        shown = sum(re.match("│(down|<module>)", line) is not None for line in out)
        assert f"+{32 - shown} deeper: v" in "".join(out) and 0 < shown < 32


def test_calls_of_a_200_deep_stack_that_are_not_drawn_are_counted(dyntrace, folder):
    place = folder("deeper.db", "import time\ndef down(n):\n    return down(n - 1) if n else time.sleep(0.1)\ndown(200)\n")
    with sqlite3.connect(place / "deeper.db") as db:
        at, = db.execute("SELECT MAX(start_ns) + 50000000 FROM frames WHERE qualname = 'down'").fetchone()
    db.close()
    out = lines(dyntrace, place, f"7 @ {at}ns Enter", "deeper.db", "80x24")
    shown = sum(re.match("│(down|<module>)", line) is not None for line in out)
    assert shown > 10 and f"+{202 - shown} deeper: v" in "".join(out)


def test_names_in_a_deep_call_tree_are_visible(dyntrace, folder):
    """Names are visible near the top, and around the cursor at any depth."""
    place = folder("sinks.db", "import time\ndef sink(n):\n    return sink(n - 1) if n else time.sleep(0.1)\nsink(200)\n")
    for size in ("120x24", "80x24", "40x12"):
        for keys in ("8", "8 /sink Enter" + " N" * 3 + " k k", "8 G"):
            out = lines(dyntrace, place, keys, "sinks.db", size)
            assert all(re.search(r"[▾▸ ] (\[\d+\] )?[\w<'.-]{4,}", line[20:]) for line in out[2:-1] if line), out
        assert "[200] " in "".join(lines(dyntrace, place, "8 /sink Enter N", "sinks.db", size))


def test_the_list_of_callers_does_not_begin_with_the_call_itself(dyntrace, place):
    out = lines(dyntrace, place, "5 Enter", "plain.db")
    at = next(i for i, line in enumerate(out) if "Called by" in line)
    assert "lines are where functions begin" in out[at] and out[at + 1].split()[0] == "<module>" and "step" in out[0]


def test_filters_accept_units_and_columns(dyntrace, place):
    plain = dump(dyntrace, place, "2 f total>10000000 Space AND Space calls>40 Enter", trace="plain.db").splitlines()
    units = dump(dyntrace, place, "2 f total>10ms Space AND Space calls>0.04k Enter", trace="plain.db").splitlines()
    assert plain[2:] == units[2:] and "step" in units[2] and "where: total>10ms" in units[0]
    assert dump(dyntrace, place, "2 f tot Tab", trace="plain.db").splitlines()[-1].strip() == "filter: total"
    assert dump(dyntrace, place, "6 f tim Tab", trace="plain.db").splitlines()[-1].strip() == 'filter: "time (est.)"'
    assert dump(dyntrace, place, "2 f ca Tab", trace="plain.db").splitlines()[-1].strip() == "filter: calls"
    told = "".join(lines(dyntrace, place, "2 f nosuch>1 Enter", "plain.db", "200x12"))
    assert "no such column: nosuch; text stands in '...'; there are function, calls, hits" in told
    assert "step" in dump(dyntrace, place, "2 f function='step' Enter", trace="plain.db").splitlines()[2]
    for condition in ("where LIKE '%model.py:5'", "where='model.py:5'", "1 IN (SELECT 1 FROM code where code_id = 1) AND where != 'x'"):  # a word of SQL, too
        found = lines(dyntrace, place, f"2 f {condition.replace(' ', ' Space ')} Enter", "plain.db")
        assert any(row.split()[:1] == ["step"] or row.split()[:1] == [">step"] for row in found[2:]), found
    long = "x" * 130
    assert "nothing fits" in dump(dyntrace, place, f":sql Space SELECT Space '{long}a' Enter f {long}b Enter", "80x24", "plain.db")


def test_one_call_is_printed_in_singular(dyntrace, place):
    assert "<module>  1 call  model.py:1" in dump(dyntrace, place, "", "100x40", trace="plain.db")


@pytest.mark.parametrize("keys, line", [
    ("/size[0] Enter o", 5), ("/step:7 Enter o", 7), ("9 o", None), ("6 o", 5), (":checks Enter o", 5), (":entries Enter o", 5), ("7 n o", None),
    ("3 Enter w o", 5), (":what-if Space recompile_limit=2 Enter /recorded Enter n o", 5), (":sql Space SELECT Space 1,compile_id Space FROM Space compile Enter Right o", 5), ("5 Enter /<module> Enter o", 1), ("3 Enter Enter o", 5)])
def test_the_source_opens_from_every_line_that_has_one(dyntrace, place, keys, line):
    told = dump(dyntrace, place, keys, trace="plain.db").splitlines()[-1].strip()
    assert re.fullmatch(rf"vi \+{line or r'[0-9]+'} (./)?model.py", told), told


def test_a_plain_program_has_no_lines_about_compiles(dyntrace, folder):
    first = lines(dyntrace, folder("calls.db", CALLS), "", "calls.db", "100x40")
    assert not [line for line in first if "ompile" in line and "anything" not in line and "nothing that compiles" not in line and "wanted compiled code" not in line or "recompiles" in line]
    at = next(i for i, line in enumerate(first) if "Most own time" in line)
    assert len([line for line in first[at + 1:] if " call" in line]) > 4


def test_empty_columns_are_hidden(dyntrace, folder, place):
    """For a program without a compiler the times are visible at 80 columns."""
    plain = folder("calls.db", CALLS)
    assert lines(dyntrace, plain, "2", "calls.db", "80x24")[1].split()[:6] == ["function", "calls", "self", "total", "per", "call"]
    assert "by self ↓" in lines(dyntrace, plain, "2 Right Right s", "calls.db", "80x24")[0]
    assert "nothing fits" not in "".join(lines(dyntrace, plain, "2 f hits Space IS Space NULL Enter", "calls.db", "80x24"))
    assert "hits" in lines(dyntrace, place, "2", "plain.db", "80x24")[1]


def test_a_named_query_is_chosen_by_arrows(dyntrace, place):
    shown = lines(dyntrace, place, "! Esc j j", "plain.db", "80x12")
    name = shown[next(i for i, line in enumerate(shown) if line.startswith(">"))][1:].split()[0]
    assert f"> sql {name}" in lines(dyntrace, place, "! Esc j j Enter", "plain.db")[0]
    assert lines(dyntrace, place, "! Esc G", "plain.db", "80x12")[-2].startswith(">")


def test_expected_and_actual_values_are_shown_from_their_first_difference(dyntrace, tmp_path):
    db = sqlite3.connect(make_trace(tmp_path / "t.db"))
    same = "a_long_module_name." * 6
    db.execute("UPDATE recompile_cause SET expected = ? || 'wanted', actual = ? || 'seen'", (same, same))
    db.commit()
    db.close()
    row = lines(dyntrace, tmp_path, "3 Enter", "t.db", "120x24")[2]
    assert "wanted" in row and "seen" in row and "at (s)" in lines(dyntrace, tmp_path, "3 Enter", "t.db", "120x24")[1]


def test_long_lines_of_the_replay_are_wrapped(dyntrace, tmp_path):
    db = sqlite3.connect(make_trace(tmp_path / "t.db"))
    inputs = ", ".join(f"input_{i}: str 'value_{i}'" for i in range(30))
    db.execute("UPDATE signature SET text = ?", [inputs])
    db.execute("UPDATE lookup SET signature_id = 1")
    db.commit()
    db.close()
    shown = " ".join(dump(dyntrace, tmp_path, "9 i lookup Space 2 Enter", "60x40").split())
    assert f"inputs: {inputs}"[:110] in shown and "\\x01" not in shown


def test_a_function_without_a_name_is_visible(dyntrace, tmp_path):
    db = sqlite3.connect(make_trace(tmp_path / "t.db"))
    db.execute("UPDATE code SET qualname = '' WHERE code_id = 2")
    db.commit()
    db.close()
    assert any(line.startswith((">''", " ''")) for line in lines(dyntrace, tmp_path, "2", "t.db"))
    assert any(line.endswith(" ''") for line in lines(dyntrace, tmp_path, "8", "t.db"))
    first = lines(dyntrace, tmp_path, "", "t.db", "100x50")
    assert any(" x '': x size[0]: expected" in line for line in first)
    assert any(line.startswith(" 1. '' was compiled again") for line in first)
    assert any(line.endswith("; dyntrace why model.py:5") for line in first), first
    assert lines(dyntrace, tmp_path, ":function Space 2 Enter", "t.db")[1].strip(" >").startswith("''")


def test_a_url_is_printed_whole_if_it_fits(dyntrace, tmp_path):
    url = "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0059.html"
    make_trace(tmp_path / "t.db")
    with sqlite3.connect(tmp_path / "t.db") as db:
        db.execute("UPDATE graph_break SET reason = ?", [f"broken\n  For more details about this graph break, please visit: {url}"])
    db.close()
    for columns in (72, 80, 150):
        assert sum(url in line for line in dump(dyntrace, tmp_path, "4 Enter", f"{columns}x40").splitlines()) == 1
    for columns in (40, 50):  # no line has: it goes on in the next
        assert url in re.sub(r"\s", "", dump(dyntrace, tmp_path, "4 Enter", f"{columns}x60"))


def test_the_first_screen_has_values_whole_at_80_columns(dyntrace, tmp_path):
    db = sqlite3.connect(make_trace(tmp_path / "t.db"))
    db.execute("UPDATE recompile_cause SET expected = 'function main.<locals>.<lambda> (train.py:44)', actual = 'function main.<locals>.<lambda> (train.py:43)'")
    db.commit()
    db.close()
    told = " ".join(dump(dyntrace, tmp_path, "", "80x40").split())
    assert "expected function main.<locals>.<lambda> (train.py:44), actual function main.<locals>.<lambda> (train.py:43)" in told


def test_the_first_screen_has_as_many_functions_as_there_is_room_for(dyntrace, folder):
    place = folder("calls.db", CALLS)
    functions, = sqlite3.connect(place / "calls.db").execute("SELECT COUNT(DISTINCT code_id) FROM code_total").fetchone()
    assert functions > 30
    for rows in (24, 32, 40):
        out = lines(dyntrace, place, "", "calls.db", f"100x{rows}")
        shown = [line for line in out if line.strip()]
        assert shown[-2] == "   all functions" and len(out) - len(shown) <= 1  # where the next one wraps


def test_equal_causes_are_printed_as_one_line(dyntrace, place):
    out = lines(dyntrace, place, "2 Enter", "plain.db")
    at = next(i for i, line in enumerate(out) if line == " Recompiles")
    assert "x size[0]: expected 16 (0/0), actual 20, +1 entry, same guard" in out[at + 3]
    assert out[at + 4].strip() == "needed by model.py:6" and not out[at + 5]
