"""dyntrace tui: the output of the other commands on the trace, with lines that lead on; exports; another trace."""
import json
import re
import shutil
import sqlite3
import subprocess
import time

import pytest

from shared import PYTHONS, ROOT
from terminal import Terminal, dump, needs_tmux

pytestmark = pytest.mark.one_python


@pytest.fixture(scope="module")
def folder(dyntrace, tmp_path_factory):
    """a.db and b.db: a program with a compiler, and the same program with one more size."""
    path = tmp_path_factory.mktemp("commands")
    program = (ROOT / "examples/shapes.py").read_text()
    for name, text in (("a.db", program), ("b.db", program.replace("(16, 18, 20, 20, 16)", "(16, 18, 20, 22, 16)"))):
        (path / "p.py").write_text(text)
        subprocess.run([dyntrace, "run", "-o", name, "--python", PYTHONS[0], "p.py"], cwd=path, check=True, capture_output=True)
    return path


def screen(dyntrace, folder, keys, trace="a.db", size="150x30"):
    return dump(dyntrace, folder, keys, size, trace=trace)


def test_rows_that_exceed_a_limit_lead_to_their_compiles(dyntrace, folder):
    out = screen(dyntrace, folder, ":check Space --max-recompiles Space 0 Enter")
    assert "exit status 1" in out and len(re.findall(r"^.max-recompiles +0 +2 ", out, re.M)) == 2
    assert "> compile total 0/1" in screen(dyntrace, folder, ":check Space --max-recompiles Space 0 Enter j Enter").splitlines()[0]
    assert "recompiles" in screen(dyntrace, folder, ":check Space --max-recompiles Space 9 Enter")


def test_two_traces_are_compared_side_by_side(dyntrace, folder):
    out = screen(dyntrace, folder, ":diff Space b.db Enter")
    assert re.search(r"^.kind +function +where +what +a +b$", out, re.M) and re.search(r"^.outcome +total +p.py:7 +compiled +3 +4$", out, re.M)
    assert re.search(r"^.outcome +total +p.py:7 +compiled +3 +4$", screen(dyntrace, folder, ":diff Space b.db Enter", size="96x30"), re.M)
    assert "> function total" in screen(dyntrace, folder, ":diff Space b.db Enter /compiled Enter Enter").splitlines()[0]
    other = screen(dyntrace, folder, ":diff Space b.db Enter /compiled Enter Right Enter").splitlines()
    assert "> dyntrace in 'b.db' why 'total'" in other[0] and "3 recompiles" in "".join(other)
    assert "No such file" in screen(dyntrace, folder, ":diff Space nothing.db Enter")


@pytest.mark.parametrize("command, words", [("fsck", "rules hold"), ("verify", "5 lookups decided again"), ("report", "steady since"), ("why Space total", "recompile"),
                                            ("show Space total", "total"), ("dyntrace Space export Space --format Space folded", "_find_and_l")])
def test_the_tui_shows_the_output_of_other_commands(dyntrace, folder, command, words):
    assert words in screen(dyntrace, folder, f":{command} Enter")


def test_an_empty_command_opens_the_report(dyntrace, folder):
    out = screen(dyntrace, folder, ":check Enter i C-u Space Enter")
    assert "steady since" in out
    assert re.search(r"^ calls +total +self", out, re.M)  # each table in columns of its own


def test_the_command_open_shows_another_trace(dyntrace, folder):
    out = screen(dyntrace, folder, "2 j Enter :open Space b.db Enter").splitlines()
    assert out[0].strip() == "b.db > overview" or out[0].startswith(" b.db > overview ")
    assert "3 recompiles" in "\n".join(out)
    assert "No such file" in screen(dyntrace, folder, ":open Space nothing.db Enter") and "a.db > overview" in screen(dyntrace, folder, ":open Space nothing.db Enter")
    assert "> ledger" in screen(dyntrace, folder, ":open Space b.db Enter 5 :open Space a.db Enter 5")


def test_the_shown_time_range_is_exported(dyntrace, folder):
    for name in ("whole it.json", "part.json", "flame.json", "one.json"):
        (folder / name).unlink(missing_ok=True)
    first, last = sqlite3.connect(folder / "a.db").execute("SELECT MIN(start_ns), MAX(start_ns) FROM frames WHERE qualname = 'total'").fetchone()
    screen(dyntrace, folder, "7 :export Space whole Space it.json Enter")
    screen(dyntrace, folder, f"7 @ {first}ns Enter + + :export Space part.json Enter")
    counts = [len([e for e in json.loads((folder / name).read_text())["traceEvents"] if e["ph"] == "X"]) for name in ("whole it.json", "part.json")]
    assert 0 < counts[1] < counts[0]
    screen(dyntrace, folder, "8 :export Space flame.json Enter")
    assert "speedscope" in json.loads((folder / "flame.json").read_text())["$schema"]
    assert "exists" in screen(dyntrace, folder, "8 :export Space flame.json Enter")
    screen(dyntrace, folder, "8 /compiler Enter + :export Space one.json Enter")
    whole, one = (json.loads((folder / name).read_text()) for name in ("flame.json", "one.json"))
    first = {one["shared"]["frames"][profile["events"][0]["frame"]]["name"] for profile in one["profiles"]}
    assert any("compiler" in name for name in first) and len(one["profiles"][0]["events"]) < len(whole["profiles"][0]["events"])


def test_names_with_quotes_are_one_word_of_a_command(dyntrace, folder):
    """Texts of a trace, and typed texts, are never taken for options of a command."""
    name = "it's ' -o stolen \"--help"
    for trace in "quoted.db", "other.db":
        (folder / trace).unlink(missing_ok=True)
        shutil.copy(folder / ("a.db" if trace == "quoted.db" else "b.db"), folder / trace)
        with sqlite3.connect(folder / trace) as db:
            db.execute("UPDATE code SET qualname = ? WHERE qualname = 'total'", [name])
    (folder / "it's \"one.json").unlink(missing_ok=True)
    screen(dyntrace, folder, "8 /stolen Enter + :export Space it's Space \"one.json Enter", "quoted.db")
    one = json.loads((folder / "it's \"one.json").read_text())
    assert {one["shared"]["frames"][profile["events"][0]["frame"]]["name"] for profile in one["profiles"]} and not (folder / "stolen").exists()
    assert "3 recompiles" in screen(dyntrace, folder, ":diff Space other.db Enter /stolen Enter Right Enter", "quoted.db")


def test_output_of_a_command_is_escaped(dyntrace, place):
    out = screen(dyntrace, place, ":report Enter", "t.db")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\x80-\x9f\u200b-\u200f\u202a-\u202e]", out)


@needs_tmux
def test_a_command_that_takes_long_is_ended(dyntrace, folder, tmp_path):
    """Ctrl-C, or going back, ends its process."""
    shutil.copy(folder / "a.db", tmp_path / "a.db")
    with Terminal(tmp_path, 100, 24, f"{dyntrace} tui a.db; echo status $?") as terminal:
        terminal.wait(lambda screen: "a.db > overview" in screen)
        terminal.type(":", *"replay", "Space", "x", "Escape")
        time.sleep(0.3)
        terminal.type(*":dyntrace", "Space", *"sql", "Enter")
        terminal.wait(lambda screen: "> dyntrace sql" in screen)
        terminal.type("Q")
        terminal.wait(lambda screen: "status 0" in screen)
