"""Every key in every view of the TUI: on the screen in memory, and as the bytes that a terminal sends. The keys are those of
its own key table, as `?` prints it, and the views those of test_tui.py: what is bound tomorrow is toured without a word here.

`make tui-tour` runs this with ASan and UBSan, then under valgrind: neither may find an error or a leak."""
import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from pathlib import Path

import pytest
from test_tui import VIEWS, dump, environment, place  # noqa: F401 (a fixture is among them)

pytestmark = pytest.mark.one_python

# What is typed for a key that wants more than itself; all others are typed as they are.
MORE = {
    "/": ["/ e Enter", "/ nothing-has-this Enter", "/ Esc"],
    "f": ["f step Enter", "f 1=1 Enter", "f (( Enter", "f Esc"],
    ":": [": 3 Enter", ": nonsense Enter", ":fl Tab Enter", ": Backspace"],
    "!": ["! Esc", "! SELECT Space 1 Enter"],
    "i": ["i Esc", "i SELECT Space 2 Enter"],
    "e": ["e Enter", "e Esc"],
    "b": ["b Enter }", "b Esc"],
    "s": ["s s", "Right s"],
    "Click": ["Click:5,1", "Click:5,5 Click:5,5", "Click:30,12", "Click:30,0", "Click:30,23"],
    "Double": ["Double:6,5", "Double:6,1"],
}
# Commands that leave the view on top; after all others it is opened anew.
STAY = set("""up down left right page-up page-down half-up half-down first last next-part previous-part search-next search-previous
    copy-sql edit zoom-in zoom-out zoom-all step step-back run run-back cancel refresh follow redraw stop wheel-up wheel-down""".split())
END = "Q"  # ends the program at once, so it is the last one


@pytest.fixture(scope="module")
def table(dyntrace, place):  # noqa: F811
    """The key table: {name of a command: its keys}."""
    help_ = dump(dyntrace, place, "?", "200x200").split("Views, by name")[0]
    rows = re.findall(r"^[ >]  (\S.{14}) .*  :([a-z0-9-]+)$", help_, re.M)
    assert len(rows) == sum("  :" in line for line in help_.splitlines()) > 50 and rows[14] == ("Q              ", "quit")
    return {name: keys.split() for keys, name in rows}


def opened(screen):
    """A screen without the way to it: of the views before it there is room for some only."""
    first, *rest = screen.splitlines()
    return [re.sub(r"^.* > |  +", " ", first), *rest]


@pytest.mark.parametrize("name", VIEWS)
def test_every_key_in_every_view(dyntrace, place, table, name):  # noqa: F811
    start = VIEWS[name]
    again = f"Esc 1 {start}" if start else "2 1"  # never the first view, where q ends
    typed = [again]
    for command, keys in table.items():
        for way in [way for key in keys if key != END for way in MORE.get(key, [key])]:
            typed.append(way)
            if command not in STAY:
                typed.append(again)
    left = dump(dyntrace, place, " ".join([*typed, again]))
    assert opened(left) == opened(dump(dyntrace, place, start)), "the keys left something behind"
    close = "Esc" if name == "prompt" else ""
    for end in (END, *(["q", ":quit Enter"] if not start else [])):
        assert dump(dyntrace, place, f"{start} {close} {end} Resize:80x30").count("\n") == 24, f"{end} ended nothing"
