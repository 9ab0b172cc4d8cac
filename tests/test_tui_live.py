"""dyntrace run --live: the program's input, ending it from the screen, its events per second, and programs with their own
screen."""
import re
import time

import pytest

from shared import PYTHONS
from terminal import Terminal, needs_tmux

pytestmark = [pytest.mark.one_python, needs_tmux]

BUSY = """
import sys, time
def step(n):
    return n
began = time.time()
while time.time() < began + 60:
    for i in range(1000):
        step(i)
    time.sleep(0.01)
"""


SLOW = """
import time
from dyntrace.eval_frame import set_eval_frame
def train():
    return 1
def compiler(frame, entry, state):
    if frame.f_code is train.__code__:
        time.sleep(4)
    return None
set_eval_frame(compiler)
train()
print("trained")
time.sleep(60)
"""


def live(dyntrace, tmp_path, program, before="", size=(110, 24)):
    (tmp_path / "p.py").write_text(program)
    return Terminal(tmp_path, *size, f"{before}{dyntrace} run --live --python {PYTHONS[0]} p.py; echo status $?")


def test_the_program_keeps_a_standard_input_that_is_a_pipe(dyntrace, tmp_path):
    with live(dyntrace, tmp_path, "import time\nprint('got', input())\ntime.sleep(1)\n", "echo hello | ") as terminal:
        terminal.wait(lambda screen: "the program has ended, exit 0" in screen)
        terminal.type("O")
        terminal.wait(lambda screen: "got hello" in screen)
        terminal.type("Q")
        terminal.wait(lambda screen: re.search("^status 0", screen, re.M))


def test_a_program_that_ends_at_once_is_shown(dyntrace, tmp_path):
    """`run` finishes the trace while the screen opens it."""
    with Terminal(tmp_path, 110, 24, f"{dyntrace} run --live -o t.db true") as terminal:
        terminal.wait(lambda screen: "the program has ended, exit 0" in screen)
        terminal.type("Q")


def test_long_output_lines_are_wrapped(dyntrace, tmp_path):
    with live(dyntrace, tmp_path, "print('begin' + ' %03d' % 7 * 60 + ' end')\nprint('x' * 110)\nprint('last')\n") as terminal:
        terminal.wait(lambda screen: "the program has ended" in screen)
        terminal.type("O")
        screen = terminal.wait(lambda screen: "> output" in screen and "last" in screen)
        assert "begin 007" in screen and " 007 end" in screen and "x" * 110 in screen
        terminal.type("Q")


def test_a_typed_line_reaches_the_program(dyntrace, tmp_path):
    with live(dyntrace, tmp_path, "import sys\nprint('got', input())\nprint('then', sys.stdin.read())\n") as terminal:
        terminal.wait(lambda screen: "(live) > overview" in screen)
        terminal.type("O", "i")
        terminal.wait(lambda screen: "to the program" in screen)
        terminal.type("a", "b", "c", "Enter")
        terminal.wait(lambda screen: "got abc" in screen)
        terminal.type("i", "^", "D", "Enter")
        terminal.wait(lambda screen: "the program has ended, exit 0" in screen)
        terminal.type("Q")
        terminal.wait(lambda screen: re.search("^status 0", screen, re.M))


def test_the_program_gets_the_terminal_after_the_screen(dyntrace, tmp_path):
    with live(dyntrace, tmp_path, "print('got', input())\n") as terminal:
        terminal.wait(lambda screen: "(live) > overview" in screen)
        terminal.type("Q")
        time.sleep(1)
        terminal.type("x", "y", "Enter")
        terminal.wait(lambda screen: "got xy" in screen and re.search("^status 0", screen, re.M))


@pytest.mark.parametrize("keys, end, status", [("I", "exit 130|signal 2|exit 1", None), ("K", "signal 15", 143), ("KK", "signal (15|9)", None)])
def test_the_program_is_ended_from_the_screen(dyntrace, tmp_path, keys, end, status):
    with live(dyntrace, tmp_path, BUSY) as terminal:
        terminal.wait(lambda screen: re.search(r"^calls [1-9].*/s", screen, re.M))
        for key in keys:
            terminal.type(key, "y", "Enter")
        # If the first K was quick, the last Enter opens the process, whose page says how it ended.
        terminal.wait(lambda screen: re.search(f"the program has ended, ({end})|^ ({end}) .* at ", screen, re.M))
        terminal.type("Q")
        screen = terminal.wait(lambda screen: re.search(r"^status \d", screen, re.M))
        assert status is None or f"status {status}" in screen


@pytest.mark.parametrize("key, question", [("I", "interrupt the program (SIGINT)? y/n:"), ("K", "end the program (SIGTERM)? y/n:")])
def test_no_single_key_ends_the_program(dyntrace, tmp_path, key, question):
    with live(dyntrace, tmp_path, BUSY) as terminal:
        terminal.wait(lambda screen: re.search(r"^calls [1-9].*/s", screen, re.M))
        for answer in ("n", "Enter"), ("Enter",), ("Escape",), (key, "Enter"), ("Q", "Enter"):
            terminal.type(key)
            terminal.wait(lambda screen: question in screen)
            terminal.type(*answer)
            terminal.wait(lambda screen: question not in screen)
        time.sleep(1)
        assert re.search(r"^calls [1-9].*/s", terminal.wait(lambda screen: "calls" in screen), re.M)
        if key == "K":  # what was not confirmed does not count: the next is SIGTERM still
            terminal.type("K")
            terminal.wait(lambda screen: question in screen)
            terminal.type("y", "Enter")
            terminal.wait(lambda screen: "told to end (SIGTERM); again: SIGKILL" in screen or "has ended, signal 15" in screen)
        else:
            terminal.type(":kill", "Enter")
            terminal.wait(lambda screen: "end the program (SIGTERM)? y/n:" in screen)
            terminal.type("yes", "Enter")
        terminal.wait(lambda screen: "the program has ended, signal 15" in screen)
        terminal.type("Q")


def test_events_per_second_and_memory_are_shown(dyntrace, tmp_path):
    with live(dyntrace, tmp_path, BUSY) as terminal:
        line = terminal.wait(lambda screen: re.search(r"^calls [\d.]+( [kM])?/s [·▁-█]{3,} .*hits 0/s .*compiles 0/s .*recompiles 0/s .*memory \d+ MB$", screen, re.M))
        assert line
        terminal.type(":frames", "Enter")
        terminal.wait(lambda screen: "> frames" in screen and "those of a recording that goes on are stored at its end" in screen)
        terminal.type("K", "y", "Enter")
        terminal.wait(lambda screen: "the program has ended" in screen and not re.search(r"^calls .*/s", screen, re.M))
        terminal.type("K")
        terminal.wait(lambda screen: "it has ended" in screen)
        terminal.type("Q")


@pytest.mark.parametrize("columns, line", [(200, r"^calls .*/s [·▁-█]{15,} .*hits .*/s [·▁-█]{15,} .*memory \d+ MB$"),
                                           (80, r"^calls .*/s [·▁-█]{5,} .*hits 0/s  compiles .*memory \d+ MB$")])
def test_histories_of_calls_and_hits_fill_the_screens_width(dyntrace, tmp_path, columns, line):
    with live(dyntrace, tmp_path, BUSY, size=(columns, 24)) as terminal:
        terminal.wait(lambda screen: re.search(line, screen, re.M))
        terminal.type("K", "y", "Enter")
        terminal.wait(lambda screen: "the program has ended" in screen)
        terminal.type("Q")


def test_a_program_with_a_screen_of_its_own_is_recognised(dyntrace, tmp_path):
    with live(dyntrace, tmp_path, "import time\nprint('\\033[?1049h\\033[2Jmine', flush=True)\ntime.sleep(30)\n") as terminal:
        terminal.wait(lambda screen: "the program draws a screen of its own" in screen and "dyntrace tui --live" in screen)
        terminal.type("K", "y", "Enter")
        terminal.wait(lambda screen: "the program has ended" in screen)
        terminal.type("Q")


def test_a_compile_is_shown_while_it_runs(dyntrace, tmp_path):
    with live(dyntrace, tmp_path, SLOW) as terminal:
        terminal.wait(lambda screen: re.search(r"^compiling train for [123] s  calls .*/s", screen, re.M))
        terminal.wait(lambda screen: "trained" in screen and re.search(r"^calls .*/s", screen, re.M))
        terminal.type("K", "y", "Enter")
        terminal.wait(lambda screen: "the program has ended" in screen)
        terminal.type("Q")
