"""dyntrace tui: one call, and all calls of a function, on real recordings. The screen is compared with SQL on the same
frames."""
import random
import re
import sqlite3
import subprocess

import pytest

from frame_rows import frame_rows
from shared import PYTHONS
from terminal import dump
from tui_trace import make_trace

pytestmark = pytest.mark.one_python

PROGRAM = """
import threading
def leaf(n):
    return n
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def wide(n):
    for i in range(n):
        leaf(i)
    for i in range(30):
        fib(12)
def steps(n):
    for i in range(n):
        yield leaf(i)
def fails():
    raise ValueError
def slow(n):
    for i in range(n * 2000):
        pass
def helper():
    for i in range(20):
        wide(20)
def main():
    thread = threading.Thread(target=helper, name="helper")
    thread.start()
    wide(500)
    for n in (3, 1, 9, 2):
        slow(n)
    list(steps(3))
    try:
        fails()
    except ValueError:
        pass
    thread.join()
main()
"""


@pytest.fixture(scope="module")
def folder(dyntrace, tmp_path_factory):
    path = tmp_path_factory.mktemp("calls")
    (path / "p.py").write_text(PROGRAM)
    subprocess.run([dyntrace, "run", "-o", "t.db", "--python", PYTHONS[0], "p.py"], cwd=path, check=True, capture_output=True)
    return path


@pytest.fixture
def ask(folder):
    return lambda sql, *values: sqlite3.connect(folder / "t.db").execute(sql, values).fetchall()


def lines(dyntrace, folder, keys, size="120x50"):
    return [line.rstrip() for line in dump(dyntrace, folder, keys, size).splitlines()]


def part(screen, title):
    """The lines below a heading."""
    at = next(i for i, line in enumerate(screen) if line[1:].startswith(title))
    return [line[1:] for line in screen[at + 1:at + 1 + screen[at + 1:].index("")]]


def ns(text):
    number, unit = text.split()
    return float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


def call(ask, name, order="f.frame_id"):
    return ask(f"SELECT f.frame_id FROM frames f WHERE qualname = ? ORDER BY {order} LIMIT 1", name)[0][0]


@pytest.mark.parametrize("name, order", [("wide", "duration_ns DESC"), ("wide", "f.frame_id"), ("wide", "f.frame_id DESC"), ("fib", "duration_ns DESC"),
                                         ("main", "f.frame_id"), ("<module>", "filename NOT GLOB '*p.py'"), ("leaf", "f.frame_id")])
def test_a_call_lists_its_callees(dyntrace, folder, ask, name, order):
    """Only direct callees are listed. Frames of another thread lie between theirs."""
    frame = call(ask, name, order)
    wanted = {(function, str(calls)) for function, calls in
              ask("SELECT c.qualname, COUNT(*) FROM frame f JOIN code c USING(code_id) WHERE f.parent_id = ? GROUP BY 1", frame)}
    screen = lines(dyntrace, folder, f":call Space {frame} Enter", "240x60")
    heading = next(line for line in screen if line[1:].startswith("Inside: "))
    count = sum(int(calls) for _, calls in wanted)
    assert f"Inside: {count or 'no'} call" in heading
    if wanted:
        found = [re.match(r".{14} +(\d+) x (\S+) ", line) for line in part(screen, "Inside: ")]
        assert {(match[2], match[1]) for match in found} == wanted


@pytest.mark.parametrize("seed", range(3))
def test_the_list_of_callees_skips_their_subtrees(dyntrace, tmp_path, seed):
    """The subtrees have all sizes. Frames of another thread lie between theirs."""
    choose = random.Random(seed)
    make_trace(tmp_path / "t.db", lookups=8, hostile=False)
    rows, stacks, wanted, clock = [], [[], []], 0, 10

    def push(thread, code):
        rows.append([len(rows) + 1, thread + 1, stacks[thread][-1] if stacks[thread] else None, code, clock, None])
        stacks[thread].append(len(rows))

    for thread in (0, 1):
        push(thread, 1)
    for _ in range(3000):
        clock += 10
        push(0, 2)
        wanted += 1
        size = choose.choice([0, 1, 40, 70, 90, 90, 90, 200, choose.randrange(500)]) if choose.random() < 0.1 else 90 * (seed == 2)
        for _ in range(size):
            clock += 3
            thread = int(choose.random() < 0.3)
            while len(stacks[thread]) > choose.randrange(2, 9) - thread:
                rows[stacks[thread].pop() - 1][5] = clock
            clock += 1
            push(thread, 3)
        clock += 5
        while len(stacks[0]) > 1:
            rows[stacks[0].pop() - 1][5] = clock
    with frame_rows(sqlite3.connect(tmp_path / "t.db")) as db:
        db.executescript("DELETE FROM frame; DELETE FROM lookup")
        db.executemany("INSERT INTO frame_rows VALUES (?, ?, ?, ?, 0, 0, ?, ?, NULL, 0)", [(*row[:5], row[5] or clock + 10) for row in rows])
    screen = lines(dyntrace, tmp_path, ":call Space 1 Enter", "240x60")
    assert [re.match(r".{14} +(\S+) x (\S+) ", line).groups() for line in part(screen, "Inside: ")] == [(str(wanted), "step")]


def test_enter_on_a_callee_lists_its_calls_by_this_caller(dyntrace, folder, ask):
    frame = call(ask, "wide", "duration_ns DESC")
    callees, = ask("SELECT COUNT(*) FROM frame f JOIN code c USING(code_id) WHERE f.parent_id = ? AND c.qualname = 'leaf'", frame)[0]
    screen = lines(dyntrace, folder, f":call Space {frame} Enter /x_leaf Enter".replace("_", " Space "))
    assert "> frames leaf" in lines(dyntrace, folder, f":call Space {frame} Enter /leaf Enter Enter")[0]
    assert lines(dyntrace, folder, f":call Space {frame} Enter /leaf Enter Enter")[0].endswith(f"1/{callees}"), screen


def test_enter_on_a_caller_opens_the_calling_call(dyntrace, folder, ask):
    frame, caller = ask("SELECT f.frame_id, f.parent_id FROM frames f WHERE qualname = 'slow' LIMIT 1")[0]
    screen = lines(dyntrace, folder, f":call Space {frame} Enter")
    callers = [line.split()[0] for line in part(screen, "Called by")]
    assert callers == ["main", "<module>"]
    assert f"> call main #{caller}" in lines(dyntrace, folder, f":call Space {frame} Enter /main Space Space Enter Enter")[0]


def test_the_keys_p_and_n_lead_to_the_next_slower_and_faster_call(dyntrace, folder, ask):
    ids = [frame for frame, in ask("SELECT frame_id FROM frames WHERE qualname = 'slow' ORDER BY duration_ns DESC, frame_id")]
    for at, frame in enumerate(ids):
        screen = lines(dyntrace, folder, f":call Space {frame} Enter")
        assert f" by time    {at + 1} of {len(ids)}, the slowest first" in screen[4]
        assert f"slow #{ids[max(at - 1, 0)]}" in lines(dyntrace, folder, f":call Space {frame} Enter p")[0]
        assert f"slow #{ids[min(at + 1, len(ids) - 1)]}" in lines(dyntrace, folder, f":call Space {frame} Enter n")[0]
    assert f"slow #{ids[2]}" in lines(dyntrace, folder, f":call Space {ids[0]} Enter n n n p")[0]


def test_the_key_u_leads_from_a_call_to_its_caller(dyntrace, folder, ask):
    """The key works on every line about a call. Esc leads back."""
    frame, caller = ask("SELECT f.frame_id, f.parent_id FROM frames f WHERE qualname = 'slow' LIMIT 1")[0]
    top, = ask("SELECT parent_id FROM frame WHERE frame_id = ?", caller)[0]
    assert f"> call main #{caller}" in lines(dyntrace, folder, f":call Space {frame} Enter u")[0]
    assert f"> call main #{caller}" in lines(dyntrace, folder, f":frames Space frame_id={frame} Enter u")[0]
    assert f"> call <module> #{top}" in lines(dyntrace, folder, f":call Space {frame} Enter u u")[0]
    assert f"> call slow #{frame}" in lines(dyntrace, folder, f":call Space {frame} Enter u u Esc Esc")[0]
    bottom = lines(dyntrace, folder, f":call Space {frame} Enter u u u u u u")
    assert "#" in bottom[0] and bottom[-1] == "no call made this one: it is at the bottom of a stack"
    assert lines(dyntrace, folder, "2 u")[-1] == "this line is not about one call"


def test_a_call_shows_how_it_began_and_ended(dyntrace, folder, ask):
    frame = call(ask, "fails")
    assert "ended by an exception" in lines(dyntrace, folder, f":call Space {frame} Enter")[3]
    first, second, *rest = [frame for frame, in ask("SELECT frame_id FROM frames WHERE qualname = 'steps' ORDER BY frame_id")]
    assert "began" not in "".join(lines(dyntrace, folder, f":call Space {first} Enter")[:6])
    screen = lines(dyntrace, folder, f":call Space {second} Enter")
    assert "then suspended by a yield" in screen[3]
    assert "as a generator or coroutine that carried on after a yield" in screen[4] and "generator" in screen[1]
    helped = ask("SELECT frame_id FROM frames WHERE qualname = 'wide' AND thread = 'helper' LIMIT 1")[0][0]
    assert " helper of process " in lines(dyntrace, folder, f":call Space {helped} Enter")[2]


def test_a_function_shows_durations_callers_and_callees(dyntrace, folder, ask):
    """Enter on each of these lines opens another view."""
    durations = [ns for ns, in ask("SELECT duration_ns FROM frames WHERE qualname = 'leaf' ORDER BY 1")]
    keys = "2 f function='leaf' Enter Enter"
    screen = lines(dyntrace, folder, keys)
    calls, p50, p95, longest = re.match(r" Durations of (\S+) calls: p50 ~(.*), p95 ~(.*), longest (.*)", next(line for line in screen if " Durations of" in line)).groups()
    assert int(calls) == len(durations)

    for shown, wanted in ((p50, durations[(len(durations) + 1) // 2 - 1]), (p95, durations[-(-len(durations) * 95 // 100) - 1]), (longest, durations[-1])):
        assert abs(ns(shown) - wanted) <= max(wanted * 0.02, 1), (shown, wanted)
    decades = part(screen, "Durations of")
    assert sum(int(line.split()[-1]) for line in decades) == len(durations)
    slowest = part(screen, "Slowest calls")
    assert len(slowest) == 5 and ns(" ".join(slowest[0].split()[:2])) >= ns(" ".join(slowest[4].split()[:2]))
    frame = call(ask, "leaf", "duration_ns DESC, frame_id")
    assert f"> call leaf #{frame}" in lines(dyntrace, folder, f"{keys} /Slowest Enter j Enter")[0]
    assert lines(dyntrace, folder, f"{keys} /Durations Enter j Enter")[0].endswith(f"1/{decades[0].split()[-1]}")
    callers = {name: calls for calls, name in (re.match(r" +(\d+) x (\S+)", line).groups() for line in part(screen, "Called from"))}
    wanted = ask("SELECT c.qualname, COUNT(*) FROM frames f JOIN frame p ON p.frame_id = f.parent_id JOIN code c ON c.code_id = p.code_id"
                 " WHERE f.qualname = 'leaf' GROUP BY 1")
    assert callers == {name: str(calls) for name, calls in wanted}


def test_time_of_recursive_calls_is_counted_once(dyntrace, folder, ask):
    """Of nested calls from the same place only the outermost counts, as in the function's total."""
    screen = lines(dyntrace, folder, "2 f function='fib' Enter Enter")
    rows = "\n".join(part(screen, "Called from"))
    outermost, = ask("SELECT SUM(f.end_ns - f.start_ns) FROM frame f JOIN frame p ON p.frame_id = f.parent_id JOIN frame o ON o.frame_id = p.parent_id"
                     " JOIN code c ON c.code_id = f.code_id WHERE c.qualname = 'fib' AND p.code_id = f.code_id AND o.code_id <> f.code_id")[0]
    assert [abs(ns(text) - outermost) < outermost * 0.01 for text in re.findall(r" x fib +(\S+ \S+)", rows)] == [True, True]


@pytest.mark.parametrize("size, beside", [("80x50", False), ("120x50", True)])
def test_callees_stand_beside_callers_where_there_is_room(dyntrace, folder, size, beside):
    keys = "2 f function='wide' Enter Enter /Called Enter j"
    screen = lines(dyntrace, folder, "2 f function='wide' Enter Enter", size)
    assert ("│" in "".join(part(screen, "Called from"))) == beside
    assert "> function main" in lines(dyntrace, folder, f"{keys} Enter", size)[0] or "> function helper" in lines(dyntrace, folder, f"{keys} Enter", size)[0]
    right = f"{keys} Right Enter" if beside else "2 f function='wide' Enter Enter Tab Tab Tab Tab j Enter"
    assert re.search("> function (fib|leaf)$", lines(dyntrace, folder, right, size)[0])
    if beside:
        row = next(i for i, line in enumerate(screen) if line.startswith(" Called from")) + 1
        assert re.search("> function (fib|leaf)$", lines(dyntrace, folder, f"2 f function='wide' Enter Enter Click:90,{row} Click:90,{row}", size)[0])


@pytest.mark.parametrize("keys", [":frames Enter", "8 j", ":frames Space function='slow' Enter Enter t"])
def test_every_row_of_a_call_opens_the_call(dyntrace, folder, keys):
    assert "> call " in lines(dyntrace, folder, f"{keys} Enter")[0]


def test_a_call_shows_its_decision(dyntrace, place):
    """The page is the same for its lookup and for its frame."""
    frame, lookup = sqlite3.connect(place / "plain.db").execute("SELECT frame_id, lookup_id FROM lookup WHERE outcome = 2 LIMIT 1").fetchone()
    by_lookup = dump(dyntrace, place, f"5 f lookup_id={lookup} Enter Enter", "100x60", trace="plain.db").splitlines()
    by_frame = dump(dyntrace, place, f":call Space {frame} Enter", "100x60", trace="plain.db").splitlines()
    assert by_lookup[1:] == by_frame[1:] and any(line.startswith(" decided    compiled") for line in by_frame)


def test_a_process_that_died_leads_to_the_calls_open_at_its_death(dyntrace, place):
    screen = dump(dyntrace, place, "0 j Enter /work Enter Enter", "100x40", trace="plain.db").splitlines()
    assert "> call work #2" in screen[0] and "still open when its process ended" in screen[3]
