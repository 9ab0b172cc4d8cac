"""`dyntrace report` of decisions, for a terminal, a program and a browser. The report's parts about frames, losses and
processes are in test_viewer.py. The page is checked by a parser, and by a headless Chromium if there is one."""
import html.parser
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

from planted import ROWS, make_trace, size_changes
from shared import Screen, golden, script

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
EVIL = "</title></script><script>document.title='owned'</script><img src=x onerror=owned()>\"'&\x1b]0;x\x07\u202e\n\t"


@pytest.fixture
def decided(plant):
    """f: 4 compiles, 5 hits, 7 calls at the limit, a graph break."""
    p = plant()
    size_changes(p)
    p.insert("graph_break", graph_break_id=1, compile_id=2, code_id=1, line=12, reason="call of print\n  Hint: do not",
             user_stack='File "/src/app.py", line 12, in f')
    p.insert("compile", compile_id=90, code_id=1, thread_id=1, label="0/4", start_ns=9000000, end_ns=9000000, outcome="limit", reason="cache_size_limit")
    p.db.executescript("""
    INSERT INTO meta VALUES ('state', 'complete'), ('host', 'box'), ('command', '["python", "app.py"]'), ('span_ns', 20000000),
        ('started_unix_ns', 1700000000000000000);
    INSERT INTO frame_rows VALUES (1, 1, NULL, 2, 0, 0, 0, 20000000, NULL, 0), (2, 1, 1, 1, 0, 2, 1000000, 3000000, 1, 0), (3, 1, 1, 1, 0, 1, 5000000, 6000000, 4, 0);""")
    return p.done()


def page_of(run, path, *more):
    out = path.parent / "page.html"
    done = run("report", path, "--html", out, "--force", *more)
    assert done.returncode == 0 and done.stdout == "" and done.stderr == "", done.stderr
    return out.read_text()


class Page(html.parser.HTMLParser):
    """Tags in balance; what elements and texts there are."""
    EMPTY = {"meta", "link", "input", "br", "img"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.texts, self.attributes = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, *a) for a in attributes]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, *a) for a in attributes]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))


def test_the_text_report_is_the_golden_page(run, decided, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    golden("report", run("report", decided.name).stdout)


def test_json_has_the_numbers_of_the_text(run, decided):
    found = json.loads(run("report", decided, "--json").stdout)
    assert {o: n["calls"] for o, n in found["outcomes"].items() if n["calls"]} == {"hit": 5, "compiled": 4, "limit": 7}
    assert (found["hit_rate"], found["eager_share"]) == (0.3125, 0.4375)
    cause, = found["recompile_causes"]
    assert (cause["recompiles"], cause["source"], cause["expected"], cause["seen"]) == (3, "L['x']", "size[0] = 16",
                                                                                     "size[0] = 18, size[0] = 20, size[0] = 22")
    assert len(found["recompiles"]) == 6 and {r["compile_id"] for r in found["recompiles"]} == {2, 3, 4}
    assert [(b["line"], b["times"], b["what"]) for b in found["graph_breaks"]] == [(12, 1, "call of print")]
    assert [(r["qualname"], r["times"]) for r in found["limits_reached"]] == [("f", 1)]
    bill, = found["guard_bill"]
    with sqlite3.connect(decided) as db:
        assert (bill["evaluations"], bill["failures"], bill["estimated_ns"]) == db.execute(
            "SELECT SUM(evaluations), SUM(failures), SUM(estimated_ns) FROM guard_bill").fetchone() == (39, 34, 3900)
    db.close()


def test_the_guard_times_of_report_equal_the_view(run, plant):
    """The trace has several guards and several outcomes. The view has a row for each evaluation of a guard."""
    p = plant()
    guards = [("TYPE_MATCH", "L['x']", "a"), ("TENSOR_MATCH", "L['x']", "b"), ("EQUALS_MATCH", "L['k']", "c")]
    p.entry(guards)
    entry, _, ids = p.entries[0]
    for n, failed in enumerate([None, None, 0, 1, 2, 2, None]):
        p.call("hit" if failed is None else "limit", entry if failed is None else None,
               [] if failed is None else [(entry, ids[failed])])
        p.db.execute("UPDATE guard_check SET guards_run = ?, duration_ns = ? WHERE guard_check_id = ?",
                     (3 if failed is None else failed + 1, 100 * n + 60, n + 1))
    path = p.done()
    found = json.loads(run("report", path, "--json").stdout)["guard_bill"]
    with sqlite3.connect(path) as db:
        views = db.execute("SELECT kind, source, evaluations, failures, CAST(estimated_ns AS INTEGER) FROM guard_bill ORDER BY 5 DESC").fetchall()
    db.close()
    assert [(b["kind"], b["source"], b["evaluations"], b["failures"], b["estimated_ns"]) for b in found] == views and len(views) == 3


def test_the_html_page_has_every_part(run, decided):
    text = page_of(run, decided)
    page = Page(text)
    sections = [value for tag, name, value in page.attributes if tag == "section" and name == "id"]
    assert sections == ["overview", "advice", "recompiles", "each-recompile", "breaks", "eager", "compiles", "limits", "own_functions", "longest", "functions",
                        "guard_costs", "guards", "timeline", "flame", "recording", "processes", "glossary"]
    links = [value for tag, name, value in page.attributes if tag == "a" and name == "href"]
    assert {"#overview", "#advice", "#recompiles", "#own_functions", "#functions", "#glossary"} <= set(links) <= {"#" + s for s in sections} and len(links) == len(set(links))
    texts = {t for _, t in page.texts}
    assert {"x size[0]", "18, 20, 22", "call of print", "cache_size_limit", "python app.py", "43.8 %", "31.2 %"} <= texts
    assert [t for tag, t in page.texts if tag == "b"] == ["1", "1", "16", "31.2 %", "43.8 %", "4", "2 ms", "3", "1", "3.9 us"]  # cards
    drawn, = [json.loads(t) for tag, t in page.texts if tag == "script" and t.startswith("{")]
    assert drawn["span"] == drawn["all"] == 20000000 and drawn["threads"] == {"1": ["thread 100 of 100", None, None]}
    assert drawn["codes"] == {"1": ["f", "/src/app.py", 10], "2": ["main", "/src/app.py", 90]}
    assert drawn["frames"] == [[1, 2, 0, 20000000, 0, 1], [1, 1, 1000000, 2000000, 1, 2], [1, 1, 5000000, 1000000, 1, 3]]  # the longest first
    assert drawn["boxes"] == [[0, 1, 20000000, 0], [1, 2, 20000000, 17000000], [2, 1, 3000000, 3000000]]
    assert [c[1:] for c in drawn["compiles"] if c[4] == "0/1"] == [[1, drawn["compiles"][1][2], 500000, "0/1", 1]]
    assert [drawn["outcomes"][m[4]] for m in drawn["misses"]] == ["compiled"] * 4 + ["limit"] * 7


def test_each_recompile_leads_to_its_guard_and_what_if(run, decided):
    with sqlite3.connect(decided) as db:
        db.execute("UPDATE guard SET user_stack = 'File \"/src/app.py\", line 11, in f' || char(10) || '    y = x + 1'")
    db.close()
    section = page_of(run, decided).split('id="each-recompile"')[1].split("</section>")[0]
    rows = re.findall(r"<tr>(<td.*?)</tr>", section, re.S)
    assert len(rows) == 6 and section.count("<th") <= 9  # a row for each older entry; columns, and thead: at 1400 px they have room
    for row in rows:
        text = html.unescape(row)
        assert "<summary>x size[0]: expected " in text and "needed by y = x + 1, src/app.py:11</summary>" in text and "TENSOR_MATCH L['x']" in text and "observed" in text
        assert "    y = x + 1" in text and "without it: dyntrace replay --what-if dynamic=L['x'][0]" in text
    one = json.loads(run("report", decided, "--json").stdout)["recompiles"][0]
    assert not [key for key in one if key.startswith("_")]


# ---- remedies and source lines ----------------------------------------------

PROGRAM = """import os

def f(x, n):
    y = x + 1

    if n > 3:
        print("<b>")
    return helper(y)

def helper(y):
    return y
"""


def make_advised(plant, folder, name="prog.py"):
    """f of prog.py: line 4 forced three recompiles, line 7 broke the graph, lines 4, 6 and helper's 11 need guards."""
    path = folder / name
    path.write_text(PROGRAM)
    p = plant(filename=str(path))
    size_changes(p)
    p.db.execute("UPDATE code SET first_line = 3 WHERE code_id = 1")
    stack = [f'File "{path}", line {line}, in {where}' for line, where in ((4, "f"), (6, "f"), (11, "helper"))]
    p.db.execute("UPDATE guard SET user_stack = ?", (stack[0],))
    for n, place in enumerate(stack[1:]):
        p.db.execute("INSERT INTO guard VALUES (?, 1, ?, 'EQUALS_MATCH', 'L[''n'']', 'n == 4', ?)", (900 + n, 50 + n, place))
    p.insert("graph_break", graph_break_id=1, compile_id=2, code_id=1, line=7, reason="call of <print>\n  Hint: do not", user_stack=f'File "{path}", line 7, in f')
    p.db.executemany("INSERT INTO meta VALUES (?, ?)", [("state", "complete"), ("host", os.uname().nodename), ("started_unix_ns", time.time_ns() + 60 * 10**9)])
    return path, p.done()


def test_a_count_of_one_is_printed_in_singular(run, plant):
    p = plant()
    p.compile()
    path = p.done()
    assert ", of 1 call\n" in run("report", path).stdout
    cards = re.findall(r'<div class="card[^>]*><b>([^<]*)</b>([^<]*)</div>', page_of(run, path))
    assert len(cards) > 4 and {"process", "thread", "call decided", "compile"} <= {what for number, what in cards if number == "1"}


def advice_of(text):
    """[(line, source, marks)] of the section, and the text around them."""
    section = re.search(r'<section id="advice">.*?</section>', text, re.S)[0]
    rows = re.findall(r'<tr[^>]*><td class="n">(.*?)</td><td><code>(.*?)</code>(.*?)</td></tr>', section, re.S)
    return [(line, html.unescape(source), [html.unescape(" ".join(mark.split())) for mark in re.findall(r'<span class="mark \w+">(.*?)</span>', marks, re.S)])
            for line, source, marks in rows], html.unescape(section)


def test_the_html_page_marks_the_lines_that_need_guards(run, plant, tmp_path):
    _, trace = make_advised(plant, tmp_path)
    rows, section = advice_of(page_of(run, trace))
    assert "What would have helped" in section and "not measured" in section or "exact" in section
    assert [(line, source) for line, source, _ in rows[:6]] == list(zip("345678", PROGRAM.split("\n")[2:8]))
    marks = {line: marks for line, _, marks in rows}
    assert marks["3"] == marks["5"] == marks["8"] == []
    assert marks["4"] == ["3 recompiles: x size[0]: expected 16, actual 18", "1 guard: x"]
    assert marks["6"] == ["1 guard: n"] and marks["7"] == ["graph break in 1 compile: call of <print>"]
    assert [row for row in rows if row[0].endswith("prog.py:11")] == [(rows[-1][0], "return y", ["1 guard: n"])]
    assert "1 line of functions compiled with it" in section


def test_the_html_page_has_no_lines_of_a_file_that_changed(run, plant, tmp_path):
    program, trace = make_advised(plant, tmp_path)
    with sqlite3.connect(trace) as db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'started_unix_ns'", (time.time_ns() - 3600 * 10**9,))
    db.close()
    rows, section = advice_of(page_of(run, trace))
    assert "Its source is not shown: the file was changed after the recording began." in section
    assert [row[1] for row in rows] == [""] * 4 and "y = x + 1" not in section  # marks, with file and line
    program.unlink()
    assert "Its source is not shown: the source file cannot be read here: No such file or directory." in advice_of(page_of(run, trace))[1]
    with sqlite3.connect(trace) as db:
        db.execute("UPDATE meta SET value = 'elsewhere' WHERE key = 'host'")
    db.close()
    assert "Its source is not shown: this was recorded on another machine." in advice_of(page_of(run, trace))[1]


@pytest.mark.parametrize("line, why", [
    (0, "the function has no line"), (None, "the function has no line"), (900, "the file has no such line any more")])
def test_the_html_page_shows_no_source_of_a_function_without_a_line_in_its_file(run, plant, tmp_path, line, why):
    _, trace = make_advised(plant, tmp_path)
    with sqlite3.connect(trace) as db:
        db.execute("UPDATE code SET first_line = ? WHERE qualname = 'f'", (line,))
    db.close()
    rows, section = advice_of(page_of(run, trace))
    assert f"Its source is not shown: {why}." in section and "4" not in [row[0] for row in rows]


def test_the_html_page_shows_a_long_function_only_around_its_marks(run, plant, tmp_path):
    program, trace = make_advised(plant, tmp_path)
    program.write_text("\n\ndef f(x, n):\n    y = x + 1\n" + "    y += 1\n" * 200 + "    return y\n")
    rows, section = advice_of(page_of(run, trace))
    assert [row[0] for row in rows if row[0].isdigit()] == [str(n) for n in [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]] and '<td class="soft">...</td>' in section


# ---- a browser is started ---------------------------------------------------

@pytest.mark.parametrize("browser, printed", [("echo", "file://{}"), ("echo a %s b", "a file://{} b"), ("false:no-such-command:echo", "file://{}"), ("echo %s &", "file://{}")])
def test_the_option_open_starts_the_browser(run, decided, tmp_path, monkeypatch, browser, printed):
    monkeypatch.setenv("BROWSER", browser)
    out = tmp_path / "a page; ls.html"
    done = run("report", decided, "--html", out, "--open")
    assert (done.returncode, done.stdout, done.stderr) == (0, printed.format(str(out).replace(" ", "%20").replace(";", "%3B")) + "\n", "")
    assert out.read_text().startswith("<!doctype html>")


def test_the_option_open_without_a_name_makes_its_own_page(run, decided, tmp_path, monkeypatch):
    monkeypatch.setenv("BROWSER", "true")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = run("report", decided, "--open")
    page, = tmp_path.glob(f"dyntrace.*/{decided.stem}.html")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{page}\n", "") and page.read_text().startswith("<!doctype html>")
    assert page.stat().st_mode & 0o777 == 0o600


def test_the_option_open_without_a_browser_prints_one_clear_line(run, decided, tmp_path, monkeypatch):
    monkeypatch.setenv("BROWSER", "false:no-such-command")
    out = tmp_path / "page.html"
    done = run("report", decided, "--html", out, "--open")
    assert (done.returncode, done.stdout, done.stderr) == (
        2, "", f"dyntrace: report: no browser could be started; the page is {out}. BROWSER may name the command of one\n")
    assert out.exists()
    for wrong in (["--open", "--json"], ["--open", "--html", "-"]):
        done = run("report", decided, *wrong)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and done.stderr.startswith("dyntrace: report: ") and not done.stdout


def test_the_html_page_needs_no_network(run, decided):
    text = page_of(run, decided)
    assert set(re.findall(r"https?://[^\s\"'<]+", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    page = Page(text)
    assert not [a for a in page.attributes if a[1] in ("src", "srcset", "action") or (a[1] == "href" and a[2][:1] != "#" and a[2] != "data:,")]
    assert not re.search(r"@import|url\(", text)
    policy, = [value for tag, name, value in page.attributes if tag == "meta" and name == "content" and "default-src" in value]
    nonces = {value for tag, name, value in page.attributes if name == "nonce"}
    assert "default-src 'none'" in policy and "unsafe" not in policy and len(nonces) == 1
    assert f"script-src 'nonce-{nonces.pop()}'" in policy
    assert page_of(run, decided) != text  # the next page has another nonce


def test_hostile_names_are_harmless_on_the_page(run, plant, tmp_path):
    p = plant(qualname=EVIL, filename=EVIL)
    size_changes(p)
    p.db.executescript("INSERT INTO frame_rows VALUES (1, 1, NULL, 1, 0, 0, 0, 20000000, NULL, 0)")
    p.insert("graph_break", graph_break_id=1, compile_id=2, code_id=1, line=12, reason=EVIL, user_stack=EVIL)
    for table, column in (("recompile_cause", "text"), ("recompile_cause", "source"), ("recompile_cause", "actual"), ("compile", "label"),
                          ("compile", "reason"), ("guard", "source"), ("guard", "kind"), ("thread", "name"), ("process", "argv")):
        p.db.execute(f"UPDATE {table} SET {column} = ?", (EVIL,))
    p.db.execute("INSERT INTO loss VALUES (1, 1, 5, 7, ?)", (EVIL,))
    p.db.executemany("INSERT INTO meta VALUES (?, ?)", [(k, EVIL) for k in ("state", "host", "command", "dyntrace_version")])
    path = p.done()
    text = page_of(run, path)
    clean = Page(page_of(run, make_trace(tmp_path / "clean.db")))
    page = Page(text)
    assert page.tags.count("script") == 2 and "img" not in page.tags and set(page.tags) <= set(clean.tags) | {"p", "details", "summary", "pre", "article", "h3", "span", "code"}
    assert not [a for a in page.attributes if a[1].startswith("on")]
    assert not set(text) & set("\x1b\x07\u202e")
    assert sum("owned" in t for tag, t in page.texts if tag != "script") > 20
    for more in ([], ["--json"]):
        assert not set(run("report", path, *more).stdout) & set("\x1b\x07\u202e")


@pytest.mark.parametrize("rows", ["", ROWS, "INSERT INTO thread VALUES (1, 1, 1, 'x');"], ids=["empty", "frames alone", "thread alone"])
def test_an_almost_empty_trace_makes_an_html_page(run, tmp_path, rows):
    path = make_trace(tmp_path / "t.db", rows=rows)
    text = page_of(run, path)
    assert {"Overview", "The recording"} <= {t for tag, t in Page(text).texts if tag == "h2"}
    assert ("Functions, most own time first" in text) == (rows == ROWS)
    for section in re.findall(r"<section id=.*?</section>", text, re.S):  # none is empty, but what the script draws
        assert "hidden" in section or re.search(r"<tbody>\s*<tr>|<dd>|<div class=.card ", section), section


def test_frames_that_do_not_nest_are_drawn(run, tmp_path):
    """Frames with missing parents, backward times or a ring of parents are drawn in some way, without a crash."""
    path = make_trace(tmp_path / "t.db", "DELETE FROM frame", *(
        f"INSERT INTO frame_rows VALUES ({i}, {i % 3}, {(i * 7) % 50}, {i % 5}, 0, 0, {(i * 7919) % 1000}, {(i * 104729) % 1000}, NULL, 0)" for i in range(1, 200)))
    Page(page_of(run, path))


def test_the_page_replaces_no_file(run, decided):
    out = decided.parent / "page.html"
    out.write_text("mine")
    done = run("report", decided, "--html", out)
    assert done.returncode == 2 and "--force" in done.stderr and out.read_text() == "mine"
    done = run("report", decided, "--html", decided, "--force")
    assert done.returncode == 2 and "is the trace itself" in done.stderr
    assert run("report", decided, "--html", decided.parent / "none/x.html").returncode == 2
    assert run("report", decided, "--html").returncode == 2 and run("report", decided, "--html", out, "--force", "--json").returncode == 2
    assert run("report", decided, "--html", "-").stdout.startswith("<!doctype html>")


def test_a_page_on_a_full_disk_is_an_error(run, decided):
    def limit():
        import resource
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    out = decided.parent / "full.html"
    done = subprocess.run([os.environ.get("DYNTRACE") or "build/dyntrace", "report", str(decided), "--html", str(out)], preexec_fn=limit,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and done.stderr.startswith("dyntrace: ") and not out.exists()


def test_the_option_limit_cuts_the_lists(run, decided):
    found = json.loads(run("report", decided, "--json", "--limit", "1").stdout)
    assert len(found["recompiles"]) == 1
    assert "; --limit 0 shows all." in page_of(run, decided, "--limit", "1")
    assert "shows all" not in page_of(run, decided, "--limit", "0")


# ---- in a real browser -----------------------------------------------------

# What a person would do, by events; the results are left in the document's attributes.
TRY = """
(() => {
  const root = document.documentElement, done = {};
  const boxes = id => [...document.querySelectorAll(`#${id} g.f`)];
  const width = g => Number(g.querySelector("rect").getAttribute("width"));
  done.titles = boxes("timeline-svg").concat(boxes("flame-svg")).map(g => g.querySelector("title").textContent);
  done.owned = document.title === "owned" || typeof owned !== "undefined";
  const ground = () => getComputedStyle(document.body).backgroundColor;
  const before = ground();
  document.getElementById("theme").click();
  done.theme = before !== ground();
  const flame = document.getElementById("flame-svg"), f = boxes("flame-svg").find(g => g.textContent.startsWith(NAME));
  done.narrow = width(f);
  f.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  done.wide = width(f);
  flame.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
  done.again = width(f);
  const timeline = document.getElementById("timeline-svg");
  timeline.dispatchEvent(new WheelEvent("wheel", { deltaY: -1, clientX: 100, cancelable: true }));
  done.zoomed = timeline.dataset.view;
  timeline.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  done.all = timeline.dataset.view;
  const search = document.querySelector('.tools[data-for="flame-svg"] input');
  search.value = NAME;
  search.dispatchEvent(new Event("input"));
  done.found = boxes("flame-svg").filter(g => g.classList.contains("match")).length;
  const table = document.getElementById("t-functions"), column = () => [...table.tBodies[0].rows].map(r => r.cells[0].textContent);
  const unsorted = column();
  table.tHead.rows[0].cells[0].click();
  done.sorted = String(column()) === String([...unsorted].sort().reverse());
  const filter = document.querySelector('input[data-for="t-functions"]');
  filter.value = "main";
  filter.dispatchEvent(new Event("input"));
  done.shown = [...table.tBodies[0].rows].filter(r => !r.hidden).length;
  root.dataset.done = JSON.stringify(done);
})();
"""


def browse(path, tmp_path, *more):
    done = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile", "--virtual-time-budget=5000",
                           "--enable-logging=stderr", *more, path.as_uri()], capture_output=True, text=True, timeout=120)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, console


@pytest.mark.no_sanitizer
@pytest.mark.skipif(not CHROMIUM, reason="no chromium here")
@pytest.mark.parametrize("hostile", [False, True])
def test_the_page_works_in_a_browser(run, decided, tmp_path, hostile):
    name = "f"
    if hostile:
        with sqlite3.connect(decided) as db:
            db.execute("UPDATE code SET qualname = ?, filename = ? WHERE code_id = 1", (EVIL, EVIL))
            db.execute("UPDATE guard SET source = ?", (EVIL,))
            db.execute("UPDATE graph_break SET reason = ?", (EVIL,))
        db.close()
        name = "</title>"
    text = page_of(run, decided)
    nonce, = set(re.findall(r'nonce="([0-9a-f]{32})"', text))
    tried = tmp_path / "tried.html"
    tried.write_text(text.replace("</body>", f'<script nonce="{nonce}">{TRY.replace("NAME", json.dumps(name).replace("</", "<" + chr(92) + "/"))}</script></body>'))
    document, console = browse(tried, tmp_path, "--dump-dom")
    assert not console, console  # neither an error nor something that the policy kept back
    assert 'data-ready="1"' in document
    done = json.loads(html.unescape(re.search(r'data-done="([^"]*)"', document)[1]))
    if not hostile:
        assert {"main  src/app.py:90\n20 ms at 0 ns, frame 1", "f  src/app.py:10\n2 ms at 1 ms, frame 2",
                "main  src/app.py:90\n20 ms in all, 17 ms own, 100 %", "f  src/app.py:10\n3 ms in all, 3 ms own, 15 %"} <= set(done["titles"])
        assert any(t.startswith("f  src/app.py:10\ncompile 0/1 took 500 us at ") and "graph broke" in t for t in done["titles"])
        assert sum("\nlimit at " in t for t in done["titles"]) == 7
    assert done["owned"] is False and done["theme"] is True and done["sorted"] is True
    assert 320 <= done["wide"] <= 1200 and done["narrow"] == done["again"] == pytest.approx(0.15 * done["wide"])
    assert done["zoomed"] != done["all"] == f"0.0000 {done['wide']:.4f}"
    assert done["found"] == (1 if hostile else 2) and done["shown"] == 1  # "f" is in "of", too
    image = tmp_path / "page.png"
    browse(tried, tmp_path, f"--screenshot={image}", "--window-size=1200,2000")
    assert image.stat().st_size > 10000


def test_tables_fit_the_terminal_unless_the_option_wide_is_given(dyntrace, record, tmp_path):
    """Numbers keep their digits, a place keeps its line, and a command to be typed is whole."""
    name = "a_function_with_a_long_name" * 4
    folder = tmp_path / ("deep" * 15)
    folder.mkdir()
    program = script(folder / "program.py", f"def {name}(): pass\nfor i in range(12345): {name}()")
    path = record([program]).path
    for command in (["report", path], ["sql", path, "SELECT * FROM hot_functions"], ["sql", path, "SELECT qualname, filename, calls FROM hot_functions"]):
        narrow = Screen([dyntrace, *command], size=(200, 80), NO_COLOR="1").finish()[0]
        wide = Screen([dyntrace, *command, "--wide"], size=(200, 500), NO_COLOR="1").finish()[0]
        assert name in wide and "12345" in narrow
        tables = [line for line in narrow.splitlines() if "dyntrace why" not in line]
        assert name not in str(tables)
        assert "filename, calls" not in str(command[2:]) or max(map(len, narrow.splitlines())) <= 80
    report = Screen([dyntrace, "report", path], size=(200, 80), NO_COLOR="1").finish()[0]
    assert "…" in report and re.search(r"…\S*program\.py:1\b", report)


# Elements that are wider than the window, and what the sections are without a script.
WIDE = """
(() => {
  const wide = [...document.querySelectorAll("table, pre, article, h1, h2, h3, td, dd")].filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflow !== "hidden"
    && e.tagName !== "TR" || e.getBoundingClientRect().right > innerWidth + 1);
  console.log("SEEN" + JSON.stringify([innerWidth, document.documentElement.scrollWidth, wide.map(e => e.tagName + " " + e.textContent.slice(0, 60)),
    [...document.querySelectorAll("td.code")].some(e => e.innerHTML.includes("a_<wbr>class_<wbr>with_<wbr>a_<wbr>long_<wbr>name.<wbr>a_"))]) + "END");
})();
"""


@pytest.mark.no_sanitizer
@pytest.mark.skipif(not CHROMIUM, reason="no chromium here")
@pytest.mark.parametrize("width", [1400, 390])
def test_tables_of_the_html_page_fit_the_browsers_window(run, plant, tmp_path, width):
    _, trace = make_advised(plant, tmp_path, "a_program_with_a_long_name.py")
    with sqlite3.connect(trace) as db:
        db.execute("UPDATE code SET qualname = 'a_class_with_a_long_name.a_method_with_a_long_name_too' WHERE code_id = 1")
        db.execute("INSERT OR REPLACE INTO code_total(code_id, calls, total_ns, self_ns, raised) VALUES (1, 123456, 600000000, 600000000, 1)")
    db.close()
    text = page_of(run, trace)
    nonce, = set(re.findall(r'nonce="([0-9a-f]{32})"', text))
    (tmp_path / "wide.html").write_text(text.replace("</body>", f'<script nonce="{nonce}">{WIDE}</script></body>'))
    frame = tmp_path / "frame.html"  # a headless window cannot be narrower than 500 pixels, a frame can
    frame.write_text(f'<iframe src="wide.html" width="{width}" height="2000" frameborder="0"></iframe>')
    _, console = browse(frame, tmp_path, "--dump-dom", "--hide-scrollbars", "--window-size=1500,2100")
    line, = console
    seen, scrolled, wide, parted = json.loads(re.search("SEEN(.*)END", line)[1])
    assert (seen, scrolled, wide) == (width, width, [])
    assert parted == (width == 390)  # names break after their parts, not within words
