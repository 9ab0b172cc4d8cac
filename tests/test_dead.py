"""Frames that were open when their process died end at its death: in every view, query, export and picture, and in the
totals."""
import json

import pytest

from crash_help import run_as_known
from shared import PYTHONS, holds, table
from test_export import folded

DIES = """
import os, threading, time

def hang():
    time.sleep(30)

def die():
    time.sleep(.1)
    os.write(1, b"%d\\n" % os.getpid())
    os.read(0, 1) # run_as_known
    os.kill(os.getpid(), 9)

def lives():
    time.sleep(2)

pid = os.fork()
if not pid:
    threading.Thread(target=hang, daemon=True).start()
    die()
os.waitpid(pid, 0)
lives()
"""


@pytest.fixture(scope="module")
def dead(dyntrace, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dead")
    (folder / "dies.py").write_text(DIES)
    words = [dyntrace, "run", "-o", folder / "t.db", "--python", PYTHONS[0], "--"]
    run_as_known([*words, folder / "dies.py"], folder / "t.db")
    return holds(folder / "t.db")


def lengths(run, dead):
    """Return for die() and hang() the time from their start to the end of their process. The parent lives on."""
    rows = table(run("sql", dead, """
        SELECT c.qualname, p.end_ns - f.start_ns AS ns,
               (SELECT max(end_ns) FROM process) - f.start_ns AS whole
        FROM frame f JOIN code c USING (code_id) JOIN thread t USING (thread_id)
        JOIN process p ON p.process_id = t.process_id
        WHERE c.qualname IN ('die', 'hang') AND f.end_ns IS NULL""").stdout)
    found = {row["qualname"]: int(row["ns"]) for row in rows}
    assert set(found) == {"die", "hang"}
    assert all(100e6 < int(row["ns"]) < int(row["whole"]) for row in rows), rows
    return found


def test_views_and_queries_end_open_frames_at_the_death_of_their_process(run, dead):
    wanted = lengths(run, dead)
    for sql in ("SELECT qualname, duration_ns AS ns FROM frames WHERE end_ns IS NULL AND qualname IN ('die', 'hang')",
                "SELECT qualname, total_ns AS ns FROM hot_functions WHERE qualname IN ('die', 'hang')"):
        assert {row["qualname"]: int(row["ns"]) for row in table(run("sql", dead, sql).stdout)} == wanted, sql
    slowest = {row["qualname"]: float(row["ms"]) for row in table(run("sql", dead, "slowest-frames").stdout)}
    assert all(slowest[name] == pytest.approx(ns / 1e6, abs=1e-3) for name, ns in wanted.items())
    last = {}
    for row in table(run("sql", dead, "threads").stdout):
        seconds = float(row["last_s"]) - float(row["first_s"])
        last[row["name"]] = max(seconds, last.get(row["name"], 0))
    assert wanted["hang"] / 1e9 < last["Thread-1 (hang)"] < last["MainThread"]
    report = json.loads(run("report", dead, "--json").stdout)
    assert {f["qualname"]: f["total_ns"] for f in report["hot_functions"] if f["qualname"] in wanted} == wanted


def test_exports_end_open_frames_at_the_death_of_their_process(run, dead, tmp_path):
    wanted = lengths(run, dead)
    innermost = {}
    for stack, ns in folded(run("export", dead, "--format", "folded", "-o", "-").stdout).items():
        innermost[stack[-1].split(" ")[0]] = innermost.get(stack[-1].split(" ")[0], 0) + ns
    assert {name: innermost[name] for name in wanted} == wanted
    events = json.loads(run("export", dead, "--format", "perfetto", "-o", "-").stdout)["traceEvents"]
    assert {e["name"]: round(e["dur"] * 1e3) for e in events if e["name"] in wanted and e.get("cat") == "frame"} == wanted
    document = json.loads(run("export", dead, "--format", "speedscope", "-o", "-").stdout)
    names = [frame["name"] for frame in document["shared"]["frames"]]
    found = {}
    for profile in document["profiles"]:
        for event in profile["events"]:
            name = names[event["frame"]]
            found[name] = found.get(name, 0) + (event["at"] if event["type"] == "C" else -event["at"])
    unit = {"nanoseconds": 1, "microseconds": 1e3}[document["profiles"][0]["unit"]]
    assert {name: round(found[name] * unit) for name in wanted} == wanted
    rows = [json.loads(line) for line in run("export", dead, "--format", "jsonl", "--table", "frames", "-o", "-").stdout.splitlines()]
    assert {row["qualname"]: row["duration_ns"] for row in rows if row["qualname"] in wanted and row["end_ns"] is None} == wanted


def test_tui_and_html_end_frames_when_the_process_died(run, dead):
    """The call tree and the page show milliseconds, not the seconds to the end of the session."""
    wanted = lengths(run, dead)
    page = run("tui", dead, "--screen", "140x40", "--dump", "--keys", "2fdie\n").stdout
    line, = [line for line in page.splitlines() if " die " in line or line.strip().startswith("die ")]
    assert f"{wanted['die'] / 1e6:.0f}" in line.replace(".", " ").split() or f"{wanted['die'] / 1e6:.1f} ms" in line or \
        f"{wanted['die'] / 1e6:.0f} ms" in line, line
    html = run("report", dead, "--html", "-").stdout
    assert str(wanted["hang"]) in html and str(wanted["die"]) in html
