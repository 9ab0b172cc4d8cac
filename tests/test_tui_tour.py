"""Every key in every view of the TUI. The keys are those of its own key table, as `?` prints it, and the views are those of
test_tui.py, which must be all that `?` lists: what is bound tomorrow is toured without a word here. Ctrl-Z and $EDITOR, which
need a terminal, are typed into each view in one; and there each key comes once as the bytes that a terminal sends.

`make tui-tour` runs this with ASan and UBSan, then under valgrind: neither may find an error or a leak. It tours every state of
a view that test_tui.py has; `./dev slow` tours each view once, `./dev test` one view of each kind."""
import os
import re
import shlex
import time

import pytest

from terminal import Terminal, VIEWS, dump, needs_tmux, rows_of

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
    "@": ["@ 0.7 Enter", "@ -1s Enter", "@ x Enter", "@ Esc"],
    "v": ["v j j v", "v Enter v", "v Tab Click:5,14 v"],
    "Click": ["Click:5,1", "Click:5,5 Click:5,5", "Click:30,12", "Click:30,0", "Click:30,23"],
}
# Commands that leave the view on top; after all others it is opened anew.
STAY = set("""up down left right page-up page-down half-up half-down first last next-part previous-part search-next search-previous
    copy-sql edit zoom-in zoom-out zoom-all step step-back cancel refresh follow redraw stop wheel-up wheel-down""".split())
STOPS = not os.environ.get("DYNTRACE_CHECKED")  # valgrind takes no heed of SIGTSTP: the screen is given up and taken again, that is all
END = "Q"  # ends the program at once, so it is the last one
# The same views sorted, filtered, searched, zoomed, stopped: toured by `make tui-tour` only, which says so by DYNTRACE_TOUR.
AGAIN = set("""functions-sorted functions-filter function-source entry-bytecode ledger-end ledger-filter ledger-search timeline-zoomed
    replay-miss replay-filter what-if-asked sql-error sql""".split())
# Views of each kind: a page, a list, pictures, one with a prompt, lines that an editor opens.
SHELL = {"overview", "functions", "function", "timeline", "flame-graph", "replay", "sql-result", "prompt"}
WHOLE = bool(os.environ.get("DYNTRACE_TOUR"))


@pytest.fixture(scope="module")
def table(dyntrace, place):
    """The key table: {name of a command: its keys}."""
    help_ = dump(dyntrace, place, "?", "200x200").split("Views, by name")[0]
    rows = re.findall(r"^[ >]  (\S.{14}) .*  :([a-z0-9-]+)$", help_, re.M)
    assert len(rows) == sum("  :" in line for line in help_.splitlines()) > 50 and ("Q              ", "quit") in rows
    return {name: keys.split() for keys, name in rows}


def anew(start):
    """The keys of a view that is as new, whatever was done in it."""
    return re.sub(r"^(\d)", r"\1 \1", start)


def opened(screen):
    """A screen without the way to it: of the views before it there is room for some only."""
    first, *rest = screen.splitlines()
    return [re.sub(r"^.* > |  +", " ", first), *rest]


TOURED = [name for name in VIEWS if WHOLE or name not in AGAIN]


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if WHOLE or name in SHELL else pytest.mark.slow) for name in TOURED])
def test_every_key_works_in_every_view_and_leaves_nothing_behind(dyntrace, place, table, name):
    start = VIEWS[name]
    again = f"Esc 1 1 {anew(start)}" if start else "2 1 1"  # a number typed twice begins anew
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


def test_the_test_tour_visits_all_views_of_the_tui(dyntrace, place):
    listed = dump(dyntrace, place, "?", "200x200").split("Views, by name")[1].split("What is typed")[0]
    reached = {re.findall(r" > ([a-z-]+)", dump(dyntrace, place, keys, "200x60").splitlines()[0])[-1] for keys in VIEWS.values()}
    assert reached == set(re.findall(r"^[ >]  (\S+) ", listed, re.M))


# How tmux types what has another name here.
TYPED = {"Esc": "Escape", "PgUp": "PPage", "PgDn": "NPage", "S-Tab": "BTab", "Backspace": "BSpace", "Delete": "DC"}
MOUSE = {"Click": (0, 1), "WheelUp": (64, 1), "WheelDown": (65, 1)}  # button, how often


@needs_tmux
@pytest.mark.parametrize("name", [name for name in VIEWS if WHOLE or name in SHELL])
def test_shell_and_editor_open_from_every_view(dyntrace, place, name):
    start, end = VIEWS[name], "Escape" if name == "prompt" else "C-l"
    wanted = [rows_of(dump(dyntrace, place, f"{start} {key}", trace="plain.db")) for key in ("", "C-z", "C-z o")]
    editor = place / "editor.sh"
    editor.write_text("#!/bin/sh\necho edited $1\n")
    editor.chmod(0o755)
    with Terminal(place, 80, 24, f"{dyntrace} tui plain.db --keys {shlex.quote(start)}" + "; echo status $?" * (not STOPS), EDITOR=str(editor), TERM="xterm-256color") as terminal:
        terminal.wait(lambda screen: rows_of(screen) == wanted[0])
        terminal.type("C-z")
        if STOPS:
            terminal.wait(lambda screen: "Stopped" in screen and "ready>" in screen)
            terminal.type("fg; echo status $?", "Enter")
        terminal.wait(lambda screen: rows_of(screen) == wanted[1])
        terminal.type("o")
        opens = bool(re.match(r"vi \+\d+ ", wanted[2][-1]))  # what a script is told that would be run
        terminal.wait(lambda screen: rows_of(screen) == wanted[1 if opens else 2])
        terminal.type(end)
        if end == "Escape":
            time.sleep(0.5)  # or it is the first byte of Alt-Q
        terminal.type("Q")
        screen = terminal.wait(lambda screen: re.search(r"^\S*status \d", screen, re.M))  # a Q typed early stands before it; the view `dyntrace` has a status of its own
        assert "status 0" in screen and ("edited +" in screen) == opens


@pytest.mark.slow
@needs_tmux
def test_every_key_works_as_a_terminal_sends_it(dyntrace, place, table):
    """Each key does in a terminal what it does in --keys."""
    with Terminal(place, 80, 24, f"{dyntrace} tui plain.db") as terminal:
        terminal.wait(lambda screen: "plain.db > overview" in screen)
        path = "2"
        terminal.type("2")
        for key in [key for keys in table.values() for key in keys if key not in (END, "C-z")]:
            leaves = ["Esc"] if f"{key} Esc" in MORE.get(key, []) else []  # a prompt
            for each in (key, *leaves):
                path += f" {each}:10,6" if each in MOUSE else f" {each}"
                if each in MOUSE:
                    time.sleep(0.5)  # or it is part of a double click
                    terminal.mouse(MOUSE[each][0], 10, 6, MOUSE[each][1])
                else:
                    terminal.type(TYPED.get(each, each))
                wanted = rows_of(dump(dyntrace, place, path, trace="plain.db"))
                try:
                    terminal.wait(lambda screen: rows_of(screen) == wanted)
                except AssertionError as error:
                    raise AssertionError("\n".join([f"{path}: wanted", *wanted, str(error)])) from None
