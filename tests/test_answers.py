"""Every command gives the same answer to the same question: each is run on one trace, and the answers are compared.
docs/answers.md defines the words."""
import json
import re
import sqlite3

import pytest

from planted import OUTCOMES
from shared import table

pytestmark = pytest.mark.one_python


def ask(run, path):
    """Return shares and recompiles as each command that has them prints them."""
    found = {}
    report = json.loads(run("report", path, "--json").stdout)
    found["report"] = report["hit_rate"], report["eager_share"], sum(f["recompiles"] for f in report["compiles"])
    asked = sum(o["calls"] for name, o in report["outcomes"].items() if name != "plain")
    assert found["report"][0] == pytest.approx(report["outcomes"]["hit"]["calls"] / asked, abs=1e-5)
    page = run("report", path).stdout
    line, = [line for line in page.splitlines() if "% ran as Python" in line]
    found["report in words"] = line
    return found, report


@pytest.fixture
def thirteen(plant):
    """13 lookups: 3 hits, 2 compiled, 5 at the limit, 2 declined, 1 that was forbidden."""
    p = plant()
    first = p.compile()
    p.compile([dict(entry=0, kind="TYPE_MATCH", source="L['x']", expected="int", actual="str")])
    for _ in range(3):
        p.call("hit", first)
    for outcome in ["limit"] * 5 + ["declined"] * 2 + ["run_only"]:
        p.call(outcome)
    return p.done()


def test_every_command_prints_the_same_shares_of_hits_and_eager_calls(run, thirteen):
    """For one trace report once printed that 58.3 % ran as Python, check 61.5 %, and why 0 %."""
    found, report = ask(run, thirteen)
    assert found["report"] == (pytest.approx(3 / 13, abs=1e-5), pytest.approx(8 / 13, abs=1e-5), 1)
    assert found["report in words"] == "23.1 % hits, 61.5 % ran as Python, of 13 calls"
    assert "23.1 %</td>" in run("report", thirteen, "--html", "-").stdout and "<b>61.5 %</b>ran as Python" in run("report", thirteen, "--html", "-").stdout
    checked, = json.loads(run("check", thirteen, "--max-eager-share", "1", "--json").stdout)["checks"]
    assert checked["found"] == pytest.approx(8 / 13)
    why = run("why", "f", thirteen).stdout
    assert "13 calls: 38.5 % ran compiled code, 61.5 % ran as Python" in why and "2 compiles (1 recompile)" in why
    whatif = json.loads(run("replay", thirteen, "--what-if", "recompile_limit=8", "--json").stdout)
    assert '"eager": 8' in json.dumps(whatif)
    eager = table(run("sql", thirteen, "eager-calls").stdout)
    assert sum(int(row["calls"]) for row in eager) == 8
    share, = table(run("sql", thirteen, "SELECT * FROM shares").stdout)
    assert (share["calls"], share["hits"], share["ran_as_python"]) == ("13", "3", "8") and float(share["eager_share"]) == pytest.approx(8 / 13)
    calls, = table(run("sql", thirteen, "SELECT SUM(counted) AS n, SUM(is_hit) AS hits, SUM(missed) AS missed FROM calls").stdout)
    assert (calls["n"], calls["hits"], calls["missed"]) == ("13", "3", "10")
    assert len(table(run("sql", thirteen, "SELECT * FROM recompiles").stdout)) == 1


def test_skipped_functions_are_counted_only_when_named(run, plant):
    p = plant()
    p.compile()
    p.call("hit", 1)
    p.insert("code", code_id=3, process_id=1, filename="/lib/x.py", qualname="turned", first_line=1, kind="function")
    p.insert("compile", compile_id=90, code_id=3, start_ns=5, end_ns=6, outcome="skipped")
    for i in range(4):
        p.insert("lookup", lookup_id=900 + i, frame_id=900 + i, thread_id=1, code_id=3, start_ns=5, duration_ns=1, outcome=OUTCOMES.index("declined"))
    path = p.done()
    found, report = ask(run, path)
    assert found["report"] == (0.5, 0, 0) and report["turned_away"]["calls"] == 4 and report["outcomes"]["declined"]["calls"] == 0
    assert "not counted: 4 calls of functions that the compiler turned away unread" in run("report", path).stdout
    assert run("check", path, "--max-eager-share", "0").returncode == 0
    assert run("check", path, "--max-eager-share", "0.9", "--function", "turned").returncode == 1
    assert table(run("sql", path, "eager-calls").stdout) == []
    share, = table(run("sql", path, "SELECT calls, turned_away FROM shares").stdout)
    assert share == {"calls": "2", "turned_away": "4"}


GIVEN_UP = """
import os
from dyntrace.eval_frame import set_eval_frame, skip_code
from dyntrace.types import GuardedCode

def good(x):
    return x + 1

def bad(x):
    return x + 2

def excluded(x):
    return x + 3

def compiler(frame, entry, state):
    if frame.f_code is good.__code__:
        return GuardedCode(frame.f_code.replace(), lambda f_locals: True)
    return None # declined for good

skip_code(excluded.__code__)
set_eval_frame(compiler)
for i in range(10):
    good(i), bad(i), excluded(i)
set_eval_frame(None)
pid = os.fork()
if not pid:
    set_eval_frame(compiler)
    for i in range(5):
        bad(i)
    set_eval_frame(None)
for i in range(7):
    bad(i)
if not pid:
    os._exit(0)
os.waitpid(pid, 0)
"""


def test_calls_of_given_up_functions_are_counted(record, run, python, tmp_path):
    """If the first call makes torch skip a function for ever, all its calls are counted, in each process. Functions that
    the program excluded are not counted."""
    (tmp_path / "up.py").write_text(GIVEN_UP)
    path = record([tmp_path / "up.py"], python=python).path
    shares = {row["pid"]: (row["calls"], row["hits"], row["ran_as_python"]) for row in table(run("sql", path, "SELECT * FROM shares").stdout)}
    assert sorted(shares.values()) == [("20", "9", "10"), ("5", "0", "5")]
    outcomes = table(run("sql", path, "SELECT qualname, outcome, COUNT(*) AS n FROM calls GROUP BY 1, 2 ORDER BY 1, 2").stdout)
    assert [(r["qualname"], r["outcome"], r["n"]) for r in outcomes] == [("bad", "declined", "1"), ("bad", "skip", "14"), ("good", "compiled", "1"),
                                                                        ("good", "hit", "9")]
    found, report = ask(run, path)
    assert found["report"][1] == pytest.approx(15 / 25) and report["outcomes"]["skip"]["calls"] == 14
    checks, = json.loads(run("check", path, "--max-eager-share", "1", "--json").stdout)["checks"]
    assert checks["found"] == 1 # the child's
    assert "29 calls, 15 that wanted compiled code: 0 % ran compiled code, 100 % ran as Python" in run("why", "bad", path).stdout
    assert "10 calls: none needed a lookup" in run("why", "excluded", path).stdout
    assert sum(int(row["calls"]) for row in table(run("sql", path, "eager-calls").stdout)) == 15


LEDGER = """
import threading
from dyntrace.eval_frame import set_eval_frame, skip_code
from dyntrace.types import GuardedCode

def good(x):
    return x + 1

def excluded(x):
    return x + 3

def compiler(frame, entry, state):
    return GuardedCode(frame.f_code.replace(), lambda f_locals: True) if frame.f_code is good.__code__ else None

def elsewhere():
    set_eval_frame(compiler)
    ready.set(), stop.wait()
    set_eval_frame(None)

skip_code(excluded.__code__)
set_eval_frame(compiler)
for i in range(4):
    good(i), excluded(i)
set_eval_frame(None)
ready, stop = threading.Event(), threading.Event()
other = threading.Thread(target=elsewhere)
other.start()
ready.wait()
for i in range(4):
    good(i), excluded(i)
stop.set()
other.join()
"""


def test_the_view_call_ledger_has_every_call(record, run, python, tmp_path):
    """The view also has calls without a lookup: calls of code that is marked skip, and calls while the compiler is off."""
    (tmp_path / "ledger.py").write_text(LEDGER)
    path = record([tmp_path / "ledger.py"], python=python).path
    rows = table(run("sql", path, "SELECT qualname, outcome, COUNT(*) AS n, COUNT(lookup_id) AS lookups, COUNT(DISTINCT frame_id) AS calls,"
                                  " SUM(frame_ns > 0) AS timed FROM call_ledger WHERE qualname IN ('good', 'excluded') GROUP BY 1, 2 ORDER BY 1, 2").stdout)
    assert [(r["qualname"], r["outcome"], r["n"], r["lookups"]) for r in rows] == [
        ("excluded", "skip", "4", "0"), ("good", "compiled", "1", "1"), ("good", "disabled", "4", "0"), ("good", "hit", "3", "3")]
    assert all(r["calls"] == r["timed"] == r["n"] for r in rows)
    done = run("tui", path, "--dump", "--keys", "9 f where Space qualname='good' Enter")
    assert done.returncode == 0 and not done.stderr and "4 of " in done.stdout, done


def test_the_view_cache_events_has_each_birth_hit_and_miss(run, thirteen):
    events = table(run("sql", thirteen, "SELECT event, COUNT(*) AS n FROM cache_events GROUP BY 1 ORDER BY 1").stdout)
    assert {row["event"]: row["n"] for row in events} == {"born": "2", "hit": "3", "miss": "10"}


def test_a_compile_after_a_fork_is_a_recompile_if_the_parent_had_compiled(run, plant):
    """A parent compiles f. Of two forked workers each compiles f for another input, and one compiles g for the first
    time."""
    p = plant()
    p.compile()
    for worker in (2, 3):
        p.insert("process", process_id=worker, pid=100 + worker, parent_process_id=1, start_ns=p.now + 10)
        p.insert("thread", thread_id=worker, process_id=worker, os_tid=100 + worker)
        p.insert("compile", compile_id=10 * worker, code_id=1, thread_id=worker, start_ns=p.now + 20, end_ns=p.now + 30, outcome="compiled",
                 cache_entry_id=10 * worker)
    p.insert("compile", compile_id=40, code_id=2, thread_id=2, start_ns=p.now + 20, end_ns=p.now + 30, outcome="compiled", cache_entry_id=40)
    p.insert("compile", compile_id=41, code_id=2, thread_id=3, start_ns=p.now + 20, end_ns=p.now + 30, outcome="compiled", cache_entry_id=41)
    path = p.done()
    rows = table(run("sql", path, "SELECT compile_id, process_id, pid, qualname FROM recompiles ORDER BY 1").stdout)
    assert [(r["compile_id"], r["pid"], r["qualname"]) for r in rows] == [("20", "102", "f"), ("30", "103", "f")]
    assert run("check", path, "--max-recompiles", "1").returncode == 0
    rows = table(run("check", path, "--max-recompiles", "0").stdout)
    assert [(r["pid"], r["function"], r["found"]) for r in rows] == [("102", "f", "1"), ("103", "f", "1")]
    assert sum(f["recompiles"] for f in json.loads(run("report", path, "--json").stdout)["compiles"]) == 2
    assert "(2 recompiles)" in run("why", "f", path).stdout and "(0 recompiles)" in run("why", "main", path).stdout


FORKS = """
import multiprocessing, os, sys
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode

def f(x):
    return x + 1

def compiler(frame, entry, state):
    if frame.f_code is not f.__code__:
        return None
    kind = type(frame.f_locals["x"])
    return GuardedCode(frame.f_code.replace(), lambda f_locals: type(f_locals["x"]) is kind)

def work(n):
    return f(n)

if __name__ == "__main__":
    {body}
"""


def test_compiles_in_forked_pool_workers_are_no_recompiles(record, run, python, tmp_path):
    """The initializer of a Pool sets a callback. Each worker compiles f once, which is not a recompile."""
    (tmp_path / "pool.py").write_text(FORKS.format(body="""
    with multiprocessing.get_context("fork").Pool(4, initializer=set_eval_frame, initargs=(compiler,)) as pool:
        pool.map(work, range(40), chunksize=1)
        pool.close()
        pool.join()
"""))
    path = record([tmp_path / "pool.py"], python=python).path
    with sqlite3.connect(path) as db:
        made, processes, again = db.execute("SELECT COUNT(*), COUNT(DISTINCT process_id), SUM(is_recompile) FROM compiles"
                                            " WHERE cache_entry_id IS NOT NULL").fetchone()
    db.close()
    assert made == processes >= 1 and again == 0
    assert run("check", path, "--max-recompiles", "0").returncode == 0
    assert run("check", path, "--max-compiles", "1").returncode == 0
    assert "(0 recompiles)" in run("why", "f", path).stdout
    assert "; 0 recompiles" in run("report", path).stdout


def test_shares_are_computed_for_each_process(record, run, python, tmp_path):
    """The parent's calls hit, and all calls of its forked child run as Python. The eager share of the child is 100 %."""
    (tmp_path / "two.py").write_text(FORKS.format(body="""
    import dyntrace
    dyntrace.config.recompile_limit = 1
    set_eval_frame(compiler)
    for i in range(10):
        f(i)
    pid = os.fork()
    if not pid:
        for i in range(10):
            f(float(i))
        os._exit(0)
    os.waitpid(pid, 0)
"""))
    path = record([tmp_path / "two.py"], python=python).path
    done = run("check", path, "--max-eager-share", "0.6", "--function", "f")
    assert done.returncode == 1, done.stdout
    row, = table(done.stdout)
    assert (row["found"], row["function"], row["calls"], row["why"]) == ("1", "f", "10", "10 limit")
    shares = table(run("sql", path, "SELECT pid, 1.0 * SUM(ran_as_python) / SUM(counted) AS eager_share FROM calls WHERE qualname = 'f'"
                       " GROUP BY process_id ORDER BY process_id").stdout)
    assert [float(s["eager_share"]) for s in shares] == [0, 1] and row["pid"] == shares[1]["pid"]


RECOMPILES = """
import os
from dyntrace import config
from dyntrace.eval_frame import _debug_get_cache_entry_list, reset_code, set_eval_frame
from dyntrace.guards import EQUALS_MATCH, GuardTree, L
from dyntrace.types import GuardedCode

config.recompile_limit = 3

def limited(x): return x           # 3 compiles, then the limit
def declining(x): return x         # one compile, then declined for a float, for good
def raising(x): return x           # two compiles, and one attempt that raised
def runs_only(x): return x         # one compile, then a miss where compiling is not allowed
def again(x): return x             # reset, and compiled again
def dying(x): return x             # each entry is invalidated after its call
def forked(x): return x            # one compile here; two in the child, which has the parent's entry

def compiler(frame, entry, state):
    name, x = frame.f_code.co_name, frame.f_locals.get("x")
    if frame.f_code not in WATCHED or name == "declining" and type(x) is float:
        return None
    if name == "raising" and x == 3:
        raise ValueError("three")
    return GuardedCode(frame.f_code.replace(), GuardTree([EQUALS_MATCH(L["x"], x)], example=frame.f_locals))

FUNCTIONS = limited, declining, raising, runs_only, again, dying, forked
WATCHED = [f.__code__ for f in FUNCTIONS]
set_eval_frame(compiler)
for i in range(6):
    limited(i)
for x in (1, 1.5, 2.5):
    declining(x)
for x in (1, 2):
    raising(x)
try:
    raising(3)
except ValueError:
    pass
set_eval_frame(compiler)
runs_only(1)
set_eval_frame(False)
runs_only(2), runs_only(1)
set_eval_frame(compiler)
again(1)
reset_code(again.__code__)
again(1), again(2)
for x in (1, 1, 1):
    dying(x)
    _debug_get_cache_entry_list(dying.__code__)[0].invalidate("test")
forked(1)
set_eval_frame(None)
pid = os.fork()
set_eval_frame(compiler)
if not pid:
    forked(2), forked(3)
set_eval_frame(None)
if not pid:
    os._exit(0)
os.waitpid(pid, 0)
"""
# What made code in a process whose cache had held an entry for it, and what made code at all.
AGAIN = {"limited": (2, 3), "declining": (0, 1), "raising": (1, 2), "runs_only": (0, 1), "again": (2, 3), "dying": (2, 3), "forked": (2, 3)}


def test_every_command_prints_the_same_number_of_recompiles(record, run, python, tmp_path):
    """The trace has limits, declined and failed compiles, run-only calls, resets, deaths, and entries inherited by a
    fork. A compile that reached a limit or raised is no recompile in any command, page or view."""
    (tmp_path / "again.py").write_text(RECOMPILES)
    path = record([tmp_path / "again.py"], python=python).path
    total, made = (sum(numbers[at] for numbers in AGAIN.values()) for at in (0, 1))
    sql = lambda text: table(run("sql", path, text).stdout)

    assert {r["qualname"]: (int(r["again"]), int(r["made"])) for r in sql(
        "SELECT qualname, SUM(is_recompile) AS again, COUNT(cache_entry_id) AS made FROM compiles WHERE qualname IN"
        " ('limited', 'declining', 'raising', 'runs_only', 'again', 'dying', 'forked') GROUP BY 1")} == AGAIN
    assert len(sql("SELECT * FROM recompiles")) == total
    report = json.loads(run("report", path, "--json").stdout)
    assert {f["qualname"]: (f["recompiles"], f["compiles"]) for f in report["compiles"]} == AGAIN
    assert f"; {total} recompiles" in run("report", path).stdout
    causes = {}
    for cause in report["recompile_causes"]:
        causes[cause["qualname"]] = causes.get(cause["qualname"], 0) + cause["recompiles"]
    assert all(causes.get(name, 0) <= again for name, (again, _) in AGAIN.items()) and sum(causes.values()) <= total
    checked = json.loads(run("check", path, "--max-recompiles", "0", "--max-compiles", "0", "--limit", "0", "--json").stdout)
    rows = [row for row in checked["rows"] if row["check"] == "max-recompiles"]
    assert len(rows) == total and {name: sum(row["function"] == name for row in rows) for name in AGAIN} == {
        name: numbers[0] for name, numbers in AGAIN.items()}
    assert sum(row["check"] == "max-compiles" for row in checked["rows"]) == made
    for name, (again, compiles) in AGAIN.items():
        why, page = json.loads(run("why", name, path, "--json").stdout), run("why", name, path).stdout
        assert (why["recompiles"], sum(bool(c["cache_entry_id"]) for c in why["compiles"])) == (again, compiles), name
        assert f"{compiles} compile{'s' * (compiles > 1)} ({again} recompile{'s' * (again != 1)})" in page, page
        assert sum(bool(c["recompile"]) for c in why["compiles"]) == again
        assert all(h["recompiles"] <= again for h in why["histories"]), why["histories"]
        assert all(int(n) <= again for n in re.findall(r"(\d+) recompiles?\b", page)), page
    asked = table(run("sql", path, "recompile-causes").stdout)
    assert {name: sum(int(r["recompiles"]) for r in asked if r["qualname"] == name) for name in AGAIN} == {
        name: numbers[0] for name, numbers in AGAIN.items()}
    for row in table(run("sql", path, "guards-by-source").stdout):
        assert int(row["recompiles"]) <= AGAIN[row["qualname"]][0], row
    assert sum(int(r["recompiles"]) for r in table(run("sql", path, "torch-processes").stdout)) == total
    found = json.loads(run("why", path, "--json").stdout)["findings"]
    assert {f["qualname"]: f["recompiles"] for f in found if f["recompiles"]} == {name: again for name, (again, _) in AGAIN.items() if again}
    events = json.loads(run("replay", path, "--to", "1", "--json").stdout)["events"]
    assert sum(json.loads(run("replay", path, "--to", n + 1, "--json").stdout).get("recompile", False) for n in range(events)) == total


def test_diff_counts_each_reason_once_for_a_recompile(record, run, python, tmp_path):
    """Older entries that did not fit are not counted, nor are attempts that raised or reached a limit."""
    (tmp_path / "again.py").write_text(RECOMPILES)
    path = record([tmp_path / "again.py"], python=python).path
    (tmp_path / "again.py").write_text(RECOMPILES.replace("recompile_limit = 3", "recompile_limit = 2"))
    less = record([tmp_path / "again.py"], python=python).path
    found = {row["function"]: (row["a"], row["b"]) for row in table(run("diff", path, less).stdout) if row["kind"] == "reason"}
    assert found == {"limited": ("2", "1"), "forked": ("2", "1")}


def test_pages_and_ranks_print_the_same_number_of_recompiles(record, run, python, tmp_path, monkeypatch):
    """As the test above, for the TUI's pages, the HTML report, and two ranks that ran the program."""
    (tmp_path / "again.py").write_text(RECOMPILES)
    path = record([tmp_path / "again.py"], python=python).path
    total, made = (sum(numbers[at] for numbers in AGAIN.values()) for at in (0, 1))

    def page(keys):
        return run("tui", path, "--dump", "--screen", "200x60", "--keys", keys).stdout

    def column(text, name):
        """Sum by function the numbers below the heading NAME of a list. The column is right-aligned."""
        found, lines = {}, [line for line in text.splitlines() if line.strip()]
        head, = [at for at, line in enumerate(lines) if " function " in line and f" {name} " in line]
        end = lines[head].index(f" {name} ") + len(name) + 1
        for line in lines[head + 1:]:
            function = line[1:].split()[0] if line[1:].split() else ""
            if function in AGAIN:
                found[function] = found.get(function, 0) + int(line[:end].split()[-1])
        return found
    assert f" {total} recompiles\n" in page(":overview Enter")
    assert column(page(":functions Enter"), "recompiles") == {name: again for name, (again, _) in AGAIN.items()}
    assert column(page(":recompiles Enter"), "recompiles") == {name: again for name, (again, _) in AGAIN.items() if again}

    html = run("report", path, "--html", "-").stdout
    assert f"{made} compiles of {len(AGAIN)} code objects" in html and f"; {total} recompiles, " in html
    table_of = re.search(r'<table class="sort" id="t-compiles">(.*?)</table>', html, re.S)[1]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", table_of)]
    assert {row[0]: (int(row[3]), int(row[2])) for row in rows if row and row[0] in AGAIN} == AGAIN

    (tmp_path / "job").mkdir()
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("WORLD_SIZE", "2")
        record([tmp_path / "again.py"], "-o", tmp_path / "job" / f"{rank}.db", python=python)
    ranks = json.loads(run("ranks", tmp_path / "job", "--json").stdout)
    assert [(row["compiles"], row["recompiles"]) for row in ranks["table"]] == [(made, total)] * 2
