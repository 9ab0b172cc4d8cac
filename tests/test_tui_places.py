"""dyntrace tui: views as places, the screen split, and one moment that all views show."""
import re
import sqlite3
import subprocess

import pytest

from shared import PYTHONS
from terminal import dump

pytestmark = pytest.mark.one_python

THREADS = """
import threading, time
def wait(n):
    time.sleep(n)
def early():
    wait(0.01)
def late():
    wait(0.01)
def run(function, name):
    thread = threading.Thread(target=function, name=name)
    thread.start()
    thread.join()
for i in range(6):
    run(early, f"early-{i}")
time.sleep(0.5)
for i in range(3):
    run(late, f"late-{i}")
"""


@pytest.fixture(scope="module")
def threads(dyntrace, tmp_path_factory):
    path = tmp_path_factory.mktemp("threads")
    (path / "p.py").write_text(THREADS)
    subprocess.run([dyntrace, "run", "-o", "t.db", "--python", PYTHONS[0], "p.py"], cwd=path, check=True, capture_output=True)
    return path


def screen(dyntrace, place, keys, size="100x30", trace="plain.db"):
    return dump(dyntrace, place, keys, size, trace=trace).splitlines()


def way(lines):
    """Return the views in the top line."""
    return re.findall(r" > (\S+)", lines[0])


def test_a_number_key_restores_filter_order_and_line(dyntrace, place):
    before = screen(dyntrace, place, "2 f Net Enter")
    assert screen(dyntrace, place, "2 f Net Enter 3 2") == before
    assert screen(dyntrace, place, "2 f Net Enter Enter 4 2") == before
    assert screen(dyntrace, place, "2 Right Right s j 5 3 2")[1:-1] == screen(dyntrace, place, "2 Right Right s j")[1:-1]
    assert way(screen(dyntrace, place, "2 1 2 1 2 Esc")) == ["overview"]
    assert "the first view" in screen(dyntrace, place, "2 1 2 1 2 Esc Esc")[-1]


def test_the_same_number_key_resets_the_view(dyntrace, place):
    assert screen(dyntrace, place, "2 f Net Enter 2") == screen(dyntrace, place, "2")
    assert screen(dyntrace, place, "5 j j j 5") == screen(dyntrace, place, "5")


def test_a_view_that_was_left_keeps_its_filter(dyntrace, place):
    """View 3, with its filter, is no longer on the path after another view was opened."""
    kept = screen(dyntrace, place, "2 3 f L['x'] Enter")
    assert screen(dyntrace, place, "2 3 f L['x'] Enter 2 Enter 3")[1:] == kept[1:]
    assert way(screen(dyntrace, place, "2 3 f L['x'] Enter 2 Enter 3")) == ["overview", "recompiles"]
    assert way(screen(dyntrace, place, "2 3 f L['x'] Enter 2 Enter 3 Esc")) == ["overview", "functions", "function"]


def test_the_key_back_restores_the_last_view(dyntrace, place):
    assert way(screen(dyntrace, place, "2 Enter Enter j j")) == ["overview", "functions", "function", "ledger"]
    assert screen(dyntrace, place, "2 Enter Enter j j Esc") == screen(dyntrace, place, "2 Enter")
    assert screen(dyntrace, place, "2 j Enter Esc") == screen(dyntrace, place, "2 j")
    assert way(screen(dyntrace, place, "2 Enter Enter Esc Esc j Enter Esc")) == ["overview", "functions"]
    assert "this is the first view" in screen(dyntrace, place, "Esc")[-1]


def test_the_path_of_views_can_be_clicked(dyntrace, place):
    first = screen(dyntrace, place, "2 Enter Enter")[0]
    at = first.index("functions")
    assert screen(dyntrace, place, f"2 Enter Enter Click:{at},0") == screen(dyntrace, place, "2")
    assert way(screen(dyntrace, place, f"2 Enter Enter Click:{first.index('overview')},0")) == ["overview"]
    assert screen(dyntrace, place, "2 Enter Enter Click:1,0") == screen(dyntrace, place, "2 Enter Enter")


def test_number_keys_replace_the_end_of_the_path_of_views(dyntrace, place):
    assert way(screen(dyntrace, place, "2 3 4 5 6 7 8 9 0")) == ["overview", "processes"]
    assert way(screen(dyntrace, place, "2 Enter 3 Enter")) == ["overview", "recompiles", "causes"]
    assert way(screen(dyntrace, place, "2 Enter 3 Enter Esc Esc")) == ["overview", "functions", "function"]
    first = screen(dyntrace, place, "2 Enter 3 Enter")[0]
    assert way(screen(dyntrace, place, f"2 Enter 3 Enter Click:{first.index('recompiles')},0")) == ["overview", "recompiles"]
    assert way(screen(dyntrace, place, f"2 Enter 3 Enter Click:{first.index('overview')},0")) == ["overview"]
    assert way(screen(dyntrace, place, "2 Enter 3 Enter", "40x12"))[-1] == "causes"


@pytest.mark.parametrize("size", ["40x12", "80x24", "100x30", "200x50"])
def test_the_last_line_says_how_to_quit(dyntrace, place, size):
    assert "q quits" in screen(dyntrace, place, "", size)[-1]
    for keys in ("2", "2 Enter", "3", "4", "5", "5 Enter", "6", "7", "8", "8 Tab", "9", "0", "?", ":trials Enter", ":losses Enter", "3 Enter w"):
        assert "Q quits" in screen(dyntrace, place, keys, size)[-1], keys


def test_the_last_line_can_be_clicked(dyntrace, place):
    def at(keys, words):
        return f"{keys} Click:{screen(dyntrace, place, keys)[-1].index(words)},29"
    for keys, words, same in (("2", "Enter", "2 Enter"), ("2", "opens", "2 Enter"), ("2 Enter", "Esc", "2 Enter Esc"), ("2 Enter", "back", "2 Enter Esc"), ("2", "? keys", "2 ?"), ("2 Right Right", "s sort", "2 Right Right s"),
                              ("7", "+ -", "7 +"), ("7 +", "- *", "7 + -"), ("7 +", "* zoom", "7 + *"), ("2", "v beside", "2 v"), ("8", "Tab tree", "8 Tab"),
                              ("8", "Space fold", "8 Space"), ("2", "1-9 views", "2 ?"), ("2", "/ search", "2 /")):
        assert screen(dyntrace, place, at(keys, words)) == screen(dyntrace, place, same), (keys, words)
    gap = screen(dyntrace, place, "2")[-1].index("  Enter")
    assert screen(dyntrace, place, f"2 Click:{gap},29 Click:99,29") == screen(dyntrace, place, "2")
    assert screen(dyntrace, place, "Esc Click:1,29") == screen(dyntrace, place, "")  # a message is no key


@pytest.mark.parametrize("size", ["80x24", "120x40"])
def test_a_split_screen_follows_the_cursor(dyntrace, place, size):
    columns, rows = map(int, size.split("x"))
    for keys in ("2", "2 j", "2 j j"):
        both = screen(dyntrace, place, f"{keys} v", size)
        alone = screen(dyntrace, place, f"{keys} Enter", size)
        shown = [line[columns // 2 + 1:] for line in both[1:]] if columns >= 120 else both[1 + (rows - 2) // 2:]
        title = re.search(r"> function (\S+)", alone[0])[1]
        assert shown[0].split() == ["function", title]
        assert shown[1].strip(" >").split("  ")[0] == alone[1].strip(" >").split("  ")[0]
        assert screen(dyntrace, place, f"{keys} v v", size) == screen(dyntrace, place, keys, size)
    assert screen(dyntrace, place, "2 v Enter v", size) == screen(dyntrace, place, "2 Enter", size)


def test_a_view_in_the_other_half_opens_no_prompt(dyntrace, place):
    """Opened alone, the view sql asks for a query."""
    for steps in range(1, 6):
        out = screen(dyntrace, place, "? v /sql Enter" + " n" * steps, "120x40")
        assert "SQL: " not in out[-1]
        assert screen(dyntrace, place, "? v /sql Enter" + " n" * steps + " x Enter", "120x40")


def test_a_click_on_the_other_half_of_a_split_screen_moves_the_focus_there(dyntrace, place):
    assert way(screen(dyntrace, place, "2 v Click:90,20", "120x40")) == ["overview", "functions", "function"]
    assert screen(dyntrace, place, "2 v Click:5,5", "120x40") == screen(dyntrace, place, "2 v j j j", "120x40")


def test_the_last_line_and_the_help_describe_the_view(dyntrace, place):
    for keys, word in (("", "Tab next part"), ("2", "s sort"), ("7", "n N compile"), ("8", "M threads as one"), ("9", "s steps by what"), (":frames Enter Enter", "p slower")):
        assert word in screen(dyntrace, place, keys, "140x24")[-1]
        helped = screen(dyntrace, place, f"{keys} ?", "140x40")
        assert "In this view" in helped[1] and any(word.split()[0] in line for line in helped[2:10])
    assert "Esc back  ? keys" in screen(dyntrace, place, "7", "40x12")[-1]


def rows(place, sql, *values):
    return sqlite3.connect(place / "plain.db").execute(sql, values).fetchall()


@pytest.mark.parametrize("typed, ns", [(":0.7", 700_000_000), (":@0.7", 700_000_000), (":700ms", 700_000_000), ("@ 0.7", 700_000_000), ("@ 1", 1_000_000_000),])
def test_all_views_can_go_to_a_moment(dyntrace, place, typed, ns):
    lookup, = rows(place, "SELECT lookup_id FROM lookup WHERE start_ns <= ? ORDER BY start_ns DESC LIMIT 1", ns)[0]
    frame, = rows(place, "SELECT frame_id FROM frame WHERE start_ns <= ? ORDER BY start_ns DESC, frame_id DESC LIMIT 1", ns)[0]
    chosen = [line for line in screen(dyntrace, place, f"5 {typed} Enter") if line.startswith(">")]
    assert chosen[0].split()[1] == str(lookup)
    chosen = [line for line in screen(dyntrace, place, f":frames Enter {typed} Enter") if line.startswith(">")]
    assert chosen[0].split()[1] == str(frame)
    event = re.match(r" [a-z]+ \d+  event \d+ of \d+  (\S+) s ", screen(dyntrace, place, f"9 {typed} Enter")[1])
    assert 0 <= ns / 1e9 - float(event[1]) < 0.01
    out = screen(dyntrace, place, f"{typed} Enter")
    assert way(out)[-1] == "timeline" and out[-2].startswith(f"{ns / 1e9:.6f} s")


def test_the_chosen_moment_stays_when_the_view_changes(dyntrace, place):
    at = screen(dyntrace, place, "5 :0.7 Enter 7")[-2].split()[0]
    lookup, start = rows(place, "SELECT lookup_id, start_ns FROM lookup WHERE start_ns <= 700000000 ORDER BY start_ns DESC LIMIT 1")[0]
    assert at == f"{start / 1e9:.6f}"
    chosen = [line for line in screen(dyntrace, place, "5 7 :0.7 Enter 5") if line.startswith(">")]
    assert chosen[0].split()[1] == str(lookup)
    assert "0.700000 s" in screen(dyntrace, place, "9 7 :0.7 Enter 9")[1]
    at = next(line for line in screen(dyntrace, place, "7 :0.7 Enter 8") if line.startswith(">"))
    assert at.split()[-1] == "<module>"
    for typed in ("7 :0.2s Enter :+500ms Enter", ":1.2 Enter :-0.5s Enter"):
        assert screen(dyntrace, place, typed)[-2].startswith("0.700000 s")
    # going back finds the view as it was
    assert screen(dyntrace, place, "5 j j 7 l l l Esc")[1:-1] == screen(dyntrace, place, "5 j j")[1:-1]


def test_an_invalid_moment_is_reported(dyntrace, place):
    assert "not a moment such as" in screen(dyntrace, place, "@ x Enter")[-1]
    assert "no such command" in screen(dyntrace, place, ":0.x Enter")[-1]
    assert screen(dyntrace, place, "5 :3 Enter")[4].startswith(">") and screen(dyntrace, place, "5 :999999999999 Enter") == screen(dyntrace, place, "5 G")
    assert screen(dyntrace, place, "8 :999999999999 Enter") == screen(dyntrace, place, "8 G")


def test_the_split_timeline_shows_the_stack_at_the_chosen_moment(dyntrace, threads):
    db = sqlite3.connect(threads / "t.db")
    start, end = db.execute("SELECT start_ns, end_ns FROM frames WHERE qualname = 'late' LIMIT 1").fetchone()
    out = screen(dyntrace, threads, f"7 /late-0 Enter @ {(start + end) // 2}ns Enter v", "140x30", "t.db")
    beside = "\n".join(line[71:] for line in out)
    assert re.search(r"call wait #.*wait .*Called by.* late\s.* Thread.run\s.*Thread._bootstrap", beside, re.S)
    assert "Inside" not in beside and "Inside" in "\n".join(screen(dyntrace, threads, f"7 /late-0 Enter @ {(start + end) // 2}ns Enter v Enter", "140x30", "t.db"))
    assert "wait < late < Thread.run" in screen(dyntrace, threads, f"7 /late-0 Enter @ {(start + end) // 2}ns Enter", "140x30", "t.db")[-2]


def test_lanes_are_searched_and_filtered_and_idle_ones_are_hidden(dyntrace, threads):
    assert any(line.startswith(">late-2") for line in screen(dyntrace, threads, "7 /late-2 Enter", "100x40", "t.db"))
    assert any(line.startswith(">early-1") for line in screen(dyntrace, threads, "7 /early Enter n", "100x40", "t.db"))
    out = screen(dyntrace, threads, "7 f late Enter", "100x40", "t.db")
    assert "filter: late  3 of 10 lanes" in out[0] and not any("early" in line or "MainThread" in line for line in out)
    start, = sqlite3.connect(threads / "t.db").execute("SELECT start_ns FROM frames WHERE qualname = 'late' LIMIT 1").fetchone()
    out = screen(dyntrace, threads, f"7 @ {start}ns Enter + + +", "100x40", "t.db")
    assert "of 10 lanes" in out[0] and not any("early-0" in line for line in out)


def test_the_flame_graph_joins_threads(dyntrace, threads):
    calls = "\n".join(screen(dyntrace, threads, "8 M /early Enter", "100x40", "t.db"))
    assert "all threads" in calls and re.search(r"^>.* 6 +. early$", calls, re.M)
    assert screen(dyntrace, threads, "8 M M", "100x40", "t.db") == screen(dyntrace, threads, "8", "100x40", "t.db")


def test_the_call_tree_keeps_its_node_after_a_reload(dyntrace, threads):
    """The key R reads the tree again."""
    for keys in ("8 /late Enter", "8 /late Enter Tab", "8 M /early Enter", "8 /run Enter Space j", "8 /run Enter +", "8 Space j"):
        there = screen(dyntrace, threads, keys, "100x40", "t.db")
        assert screen(dyntrace, threads, f"{keys} R", "100x40", "t.db") == there
        assert there != screen(dyntrace, threads, re.split(" [/S]", keys)[0], "100x40", "t.db")


FIB = """
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def first():
    fib(25)
def second():
    fib(25)
first()
second()
"""


@pytest.mark.parametrize("size", ["80x24", "100x30", "200x50"])
def test_the_timeline_of_very_many_calls_draws_one_call_a_column(dyntrace, threads, size):
    """Each column shows one call with its callers, so that the timeline is readable before the user zooms in."""
    (threads / "fib.py").write_text(FIB)
    subprocess.run([dyntrace, "run", "-o", "fib.db", "--force", "--python", PYTHONS[0], "fib.py"], cwd=threads, check=True, capture_output=True)
    out = screen(dyntrace, threads, "7", size, "fib.db")
    assert "one call a column; + for each" in out[1] and "▁█ depth  │ calls below the chosen lane" in out[-3]
    at = next(n for n, line in enumerate(out) if "│<module>" in line)
    assert re.search("│first *│second", out[at + 1]) and out[at + 2].count("│fib") == 2 and out[at + 3].count("│fib") >= 2
    column = out[at + 1].index("│second") + 3
    moved = screen(dyntrace, threads, "7" + " l" * column, size, "fib.db")
    assert "fib < fib" in moved[-2] or "second < <module>" in moved[-2]
    call = screen(dyntrace, threads, "7" + " l" * column + " Enter", size, "fib.db")
    assert way(call)[-1] == "call" and "fib" in call[0]
    near = screen(dyntrace, threads, "7" + " l" * column + " +" * 16, size, "fib.db")
    assert "one call a column" not in near[1] and any("│fib" in line for line in near)


def test_the_timeline_has_a_legend_of_its_marks(dyntrace, place, threads):
    for size in ("80x24", "100x30", "200x50"):
        assert "▁█ depth  X limit  B broke  C compile  m miss  e eager  ▒ some eager  ▪ hits" in screen(dyntrace, place, "7", size)[-3]
        assert screen(dyntrace, threads, "7", size, "t.db")[-3].strip() == "▁█ depth  │ calls below the chosen lane"
    assert "depth" not in "".join(screen(dyntrace, place, "7", "40x12"))
    assert "#" not in screen(dyntrace, place, "7", "80x24")[-3]


def test_trials_have_a_view_of_their_own(dyntrace, place, tmp_path):
    (tmp_path / "t.db").write_bytes((place / "plain.db").read_bytes())
    with sqlite3.connect(tmp_path / "t.db") as db:
        code = db.execute("SELECT MIN(code_id) FROM code WHERE qualname = 'step'").fetchone()[0]
        for trial, setting, compiles, eager, same in ((1, "", 9, 4, None), (2, "dynamic=True", 2, 0, 1), (3, "config.recompile_limit=20", 9, 0, 0)):
            db.execute("INSERT INTO trial(trial_id, batch, setting, function_id, exit_code, output_same, compiles, recompiles, breaks, eager, hits, compile_ns, step_ns) "
                       "VALUES (?, 1, ?, ?, 0, ?, ?, 1, 0, ?, 5, 1000000, 20000)", (trial, setting, code, same, compiles, eager))
    db.close()
    out = screen(dyntrace, tmp_path, ":trials Enter", "120x40", "t.db")
    assert way(out) == ["overview", "trials"] and out[1].split()[:4] == ["trial", "setting", "note", "compiles"]
    assert [line.strip(" >").split()[:2] for line in out[2:5]] == [["1", "(unchanged)"], ["2", "dynamic=True"], ["3", "config.recompile_limit=20"]]
    assert " gain " in out[3] and "changes its" in out[4]
    assert way(screen(dyntrace, tmp_path, ":trials Enter Enter", "120x40", "t.db")) == ["overview", "trials", "function"]
    first = screen(dyntrace, tmp_path, "", "120x40", "t.db")
    row = next(n for n, line in enumerate(first) if "Trials: 2 runs" in line)
    assert way(screen(dyntrace, tmp_path, f"Click:3,{row} Enter", "120x40", "t.db")) == ["overview", "trials"]
    assert "no trials: dyntrace try runs the recorded command" in "".join(screen(dyntrace, place, ":trials Enter", "120x40"))
