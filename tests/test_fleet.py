"""Every command that takes a trace takes several traces, and answers as for the output of `dyntrace merge`."""
import importlib
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from crash_help import collector_of
from planted import make_trace
from shared import ROOT, holds, one_line, query
from tui_trace import make_trace as make_decided

pytestmark = pytest.mark.one_python


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Four traces with decisions, each with its own machine and times. The third began first."""
    folder = tmp_path_factory.mktemp("made")
    first = make_decided(folder / "r0.db")
    for rank, began in enumerate((5, 7, 2, 9)):
        path = folder / f"r{rank}.db"
        if rank:
            path.write_bytes(first.read_bytes())
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA synchronous = OFF")
            db.execute("INSERT OR REPLACE INTO meta VALUES ('host', ?), ('started_unix_ns', ?)", (f"box{rank}", 1700000000000000000 + began * 1000))
            db.execute("UPDATE process SET rank = ?", (rank,))
            db.execute("DELETE FROM loss WHERE events > 0")
        db.close()
    return folder


@pytest.fixture(scope="module")
def merged(dyntrace, made):
    """The output of `dyntrace merge` on these traces. Read only."""
    path = made.with_name("merged.db")
    subprocess.run([dyntrace, "merge", made, "-o", path], check=True)
    return path


@pytest.fixture
def ranks(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "ranks"))


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """The directory for temporary files. No file may be left there."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    assert os.listdir(folder) == []


TABLES = ("frame", "lookup", "guard_check", "compile", "listing", "graph_node", "loss", "process",
          "recompile_cause", "signature")


def counts_of(path):
    return {table: query(path, f"SELECT COUNT(*) FROM {table}") for table in TABLES}


COMMANDS = [
    ["report", "FILE"], ["report", "FILE", "--json", "--limit", "0"],
    ["check", "FILE", "--max-recompiles", "0", "--max-graph-breaks", "0", "--max-eager-share", "1%", "--max-guard-us", "0.001", "--json"],
    ["check", "FILE", "--max-compiles", "1000"],
    ["why", "FILE"], ["why", "Net.forward", "FILE", "--json"], ["why", "FILE", "Net.forward"], ["show", "Net.forward", "FILE"], ["diff", "FILE", "FILE", "--lookups"],
    ["replay", "FILE", "--verify"], ["replay", "FILE", "--what-if", "recompile_limit=1"],
    ["export", "FILE", "--format", "csv", "--table", "lookup", "-o", "-"], ["export", "FILE", "--format", "folded", "-o", "-"],
    ["export", "FILE", "--format", "perfetto", "-o", "-"], ["export", "FILE", "--format", "jsonl", "--table", "frame", "-o", "-"],
    ["tui", "FILE", "--dump", "--keys", "Enter"],
]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words))
@pytest.mark.parametrize("several", ["directory", "pattern", "files"])
def test_commands_on_many_traces_answer_as_on_the_merged_one(run, made, merged, scratch, words, several):
    files = {"directory": [made], "pattern": [made / "r*.db"], "files": sorted(made.glob("*.db"))}[several]
    if several == "files" and words[0] == "diff":
        pytest.skip("takes two")
    replaced = [word for part in words for word in (files if part == "FILE" else [part])]
    one, all = run(*[merged if part == "FILE" else part for part in words]), run(*replaced)

    def said(done):
        text = done.stdout
        for name in (str(merged), f"{files[0]} and 3 others", str(files[0]), str(made)):
            text = text.replace(name, "FILE")
        text = text.replace("'FILE'", "FILE")  # a pattern is quoted for the shell
        text = text.replace("dyntrace try TRACE", "dyntrace try FILE")  # several have no file that a command could name
        return [line.rstrip() for line in text.split("\n") if not (words[0] == "tui" and " > overview" in line)]

    assert said(all) == said(one) and all.returncode == one.returncode and len(one.stdout) > 5
    assert all.stderr.count("\n") == one.stderr.count("\n")


def test_a_pattern_and_files_give_the_same_merged_trace(run, made, merged, tmp_path):
    """The merged traces differ only in the recorded command line."""
    for number, files in enumerate(([made / "r*.db"], sorted(made.glob("*.db")))):
        path = tmp_path / f"{number}.db"
        assert run("merge", *files, "-o", path).returncode == 0
        assert counts_of(path) == counts_of(merged)
        assert run("diff", merged, path, "--fail-on", "any").stdout == "no difference\n"


def test_many_traces_make_one_html_page(run, ranks, tmp_path, scratch):
    assert run("report", ranks, "--html", tmp_path / "page.html").returncode == 0 and (tmp_path / "page.html").stat().st_size > 10000
    done = run("report", ranks, "--html", ranks / "r1.db", "--force")
    assert done.returncode == 2 and "is the trace itself" in done.stderr


def test_fsck_checks_each_trace(run, ranks):
    whole = run("fsck", ranks)
    assert whole.stdout.count("r2.db") >= 1 and whole.stdout.count("r3.db") >= 1
    (ranks / "r1.db").write_bytes((ranks / "r1.db").read_bytes()[:5000])
    assert run("fsck", ranks).returncode == 2


def test_sql_runs_one_query_on_all_given_traces(run, ranks):
    done = run("sql", ranks, "SELECT rank AS r, rank, 'x' AS trace FROM process ORDER BY 1 LIMIT 1")
    assert done.stdout.split("\n")[:2] == ["trace\tr\trank\ttrace:3", f"{ranks}/r0.db\t0\t0\tx"] and done.stdout.count("\n") == 5
    done = run("sql", ranks, "SELECT COUNT(*) AS n FROM lookup", "--then", "SELECT COUNT(*), COUNT(DISTINCT trace), SUM(n) FROM result", "--no-header")
    each = [int(run("sql", path, "SELECT COUNT(*) FROM lookup", "--no-header").stdout) for path in sorted(ranks.glob("*.db"))]
    assert done.stdout == f"4\t4\t{sum(each)}\n"
    assert run("sql", ranks, "compiles").stdout.startswith("trace\t")
    assert run("sql", ranks / "*1.db", "SELECT 1").stdout == "1\n1\n"  # one trace is asked as it is
    for words in (["SELECT nix"], ["SELECT 1; SELECT 2"], ["DELETE FROM frame"], ["SELECT 1", "--then", "SELECT nix FROM result"]):
        done = run("sql", ranks, *words)
        assert done.returncode == 2 and done.stdout == ""
        one_line(done.stderr)
    assert run("sql", ranks / "r0.db", "SELECT 1", "--then", "SELECT 1").returncode == 2
    for words in ([ranks, "SELECT", "1"], [ranks / "r0.db", "SELECT", "*", "FROM", "frame"], ["SELECT 1", ranks]):
        done = run("sql", *words)
        assert done.returncode == 2 and "SELECT" in one_line(done.stderr) and "in quotes" in done.stderr


def test_traces_whose_tables_are_in_another_order_are_read_alike(run, ranks, tmp_path):
    """One connection reads all traces with equal schemas, whatever their schema version number is. A trace whose tables
    are at other places in the file gets its own connection."""
    def altered(name, *statements):
        path = Path(shutil.copy(ranks / "r1.db", ranks / f"r{name}.db"))
        db = sqlite3.connect(path, isolation_level=None)
        number = db.execute("PRAGMA schema_version").fetchone()[0]
        for statement in statements:
            db.execute(statement)
        db.execute("UPDATE process SET rank = ?", (name,))
        db.execute("UPDATE meta SET value = ? WHERE key = 'host'", (name,))
        db.execute("PRAGMA writable_schema = ON")
        db.execute(f"PRAGMA schema_version = {number}")
        db.close()

    def exchanged(one, other):
        roots = f"(SELECT rootpage FROM (SELECT name AS n, rootpage FROM sqlite_schema) WHERE n = iif(name = '{one}', '{other}', '{one}'))"
        return ["PRAGMA writable_schema = ON", f"CREATE TEMP TABLE roots AS SELECT name AS n, {roots} AS root FROM sqlite_schema WHERE name IN ('{one}', '{other}')",
                "UPDATE sqlite_schema SET rootpage = (SELECT root FROM roots WHERE n = name) WHERE name IN (SELECT n FROM roots)"]

    with sqlite3.connect(ranks / "r1.db") as db:
        db.execute("DELETE FROM lookup WHERE lookup_id % 3 = 0")
    db.close()
    altered("2", "PRAGMA page_size = 8192", "VACUUM")
    altered("3", "PRAGMA journal_mode = WAL")
    altered("4", "CREATE TABLE more(x)", "DROP TABLE more")
    altered("5", "VACUUM")
    altered("6", *exchanged("compile", "cache_entry"))  # hostile: each has the other's rows
    altered("7")
    altered("8", "CREATE INDEX own ON lookup(outcome)")
    tables = ("frame", "lookup", "guard", "graph_node", "compile", "cache_entry", "process", "recompile_cause")
    counts = "SELECT " + ", ".join(f"(SELECT COUNT(*) FROM {table} NOT INDEXED)" for table in tables) + ", (SELECT MAX(kind) FROM guard)"
    each = [f"{path}\t" + run("sql", path, counts, "--no-header").stdout for path in sorted(ranks.glob("*.db"))]
    assert len(set(line.partition("\t")[2] for line in each)) == 3
    assert run("sql", ranks, counts, "--no-header").stdout == "".join(each)
    for order in ("876543210", "628451703"):
        assert run("sql", *[ranks / f"r{n}.db" for n in order], counts, "--no-header").stdout == "".join(each[int(n)] for n in order)
    done = run("merge", ranks, "-o", tmp_path / "m.db")
    assert done.returncode == 3 and "r6.db" in one_line(done.stderr)
    sums = run("sql", tmp_path / "m.db", counts, "--no-header").stdout.split()[:6]
    assert sums == [str(sum(int(row.split("\t")[n + 1]) for row in each if "r6.db" not in row)) for n in range(6)]


BAD = {
    "newer": ("newer dyntrace", lambda path: make_trace(path, "UPDATE meta SET value = 3 WHERE key = 'schema_version'")),
    "damaged": ("damaged", lambda path: path.write_bytes(make_trace(path).read_bytes()[:9000] + b"x" * 90000)),
    "recording": ("still being recorded", lambda path: make_trace(path, "UPDATE meta SET value = 'recording' WHERE key = 'state'")),
    "no trace": ("not an SQLite database", lambda path: path.write_text("hello " * 1000)),
    "twice": ("would count twice", lambda path: path.write_bytes((path.parent / "r0.db").read_bytes())),
    "late": ("cannot be", lambda path: make_trace(path, "UPDATE meta SET value = 'other' WHERE key = 'host'",
                                                  "INSERT INTO loss VALUES ('x', 1, 1, 1, 'x')")),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_trace_among_many_is_left_out_in_one_line(run, ranks, merged, tmp_path, scratch, kind):
    """The bad trace is named in one line, the others are answered, and the exit status tells that one was left out."""
    good = merged
    words, make = BAD[kind]
    make(ranks / "r1x.db")
    for command in (["report", ranks, "--json"], ["check", ranks, "--max-recompiles", "1000"], ["merge", ranks, "-o", tmp_path / "m.db"]):
        done = run(*command)
        assert done.returncode == 3 and words in one_line(done.stderr) and "r1x.db" in done.stderr
    assert run("check", ranks, "--max-recompiles", "1000", "--allow-left-out").returncode == 0
    assert run("check", ranks, "--max-recompiles", "0").returncode == 1
    assert run("diff", good, tmp_path / "m.db", "--fail-on", "any").stdout == "no difference\n"
    assert counts_of(good) == counts_of(tmp_path / "m.db")
    done = run("sql", ranks, "SELECT COUNT(*) AS n FROM loss", "--no-header")
    assert done.returncode == (0 if kind == "late" else 3) and done.stdout.count("\n") == (5 if kind == "late" else 4)  # read without being moved
    assert kind == "late" or words in one_line(done.stderr)


# Every command that takes traces; `fsck`, which is there for what is bad, and Parquet (test_engines.py) have tests of their own.
EVERY = [["report", "DIR"], ["check", "DIR", "--max-recompiles", "1000"], ["why", "DIR"], ["why", "Net.forward", "DIR", "--ranks"],
         ["show", "Net.forward", "DIR"], ["merge", "DIR", "-o", "m.db"], ["diff", "DIR", "DIR"], ["sql", "DIR", "SELECT 1"], ["ranks", "DIR"],
         ["export", "DIR", "--format", "csv", "--table", "meta", "-o", "-"], ["replay", "DIR", "--what-if", "recompile_limit=1"],
         ["tui", "DIR", "--dump", "--keys", "Enter"]]


@pytest.mark.sweep(2)
@pytest.mark.parametrize("words", EVERY + [["report", "DIR", "--html", "page.html"], ["report", "DIR", "--json"], ["merge", "DIR", "-o", "m.db", "--decisions-only"],
                                           ["sql", "DIR", "SELECT 1", "--then", "SELECT COUNT(*) FROM result"]], ids=lambda words: " ".join(words))
def test_several_bad_traces_are_each_named_in_one_line(run, ranks, tmp_path, monkeypatch, words):
    """Each bad trace is named in one line; the answer is that of the others; the status is 3."""
    monkeypatch.chdir(tmp_path)
    words = [ranks if word == "DIR" else word for word in words]
    for path in sorted(ranks.iterdir()):
        with sqlite3.connect(path) as db:
            db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", [("job", "j"), ("rank", path.stem[1:])])
        db.close()
    whole = run(*words)
    assert (whole.returncode, whole.stderr) == (0, "")
    (tmp_path / "m.db").unlink(missing_ok=True)
    (tmp_path / "page.html").unlink(missing_ok=True)
    bad = {}
    for kind, (said, make) in BAD.items():
        if kind != "late":  # that it cannot be moved is found by who moves it
            make(ranks / f"x-{kind}.db")
            bad[f"x-{kind}.db"] = said
    for name, said, changes in (("x-other.db", "is of job k, most are of j", {"job": "k", "rank": 9}), ("x-before.db", "which began later", {"started_unix_ns": 17 * 10**17})):
        shutil.copy(ranks / "r3.db", ranks / name)
        with sqlite3.connect(ranks / name) as db:
            db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", changes.items())
            db.execute("UPDATE process SET rank = ?, pid = pid + 1000", (changes.get("rank", 3),))
        db.close()
        bad[name] = said
    (ranks / "train.log").write_text("x")
    bad["train.log"] = "1 other file left out"
    done = run(*words)
    lines = done.stderr.splitlines()
    assert done.returncode == 3 and done.stdout == whole.stdout and len(lines) == len(bad) * words.count(ranks), (lines, done.stdout)
    for name, said in bad.items():
        assert sum(name in line and said in line for line in lines) == words.count(ranks), (name, lines)


@pytest.mark.parametrize("words", EVERY, ids=lambda words: words[0])
def test_traces_of_another_job_are_left_out(run, ranks, tmp_path, monkeypatch, words):
    """Every command leaves out a trace of another job than most, and the earlier traces of a rank that was restarted."""
    monkeypatch.chdir(tmp_path)
    for path in ranks.iterdir():
        with sqlite3.connect(path) as db:
            db.execute("INSERT OR REPLACE INTO meta VALUES ('job', ?)", ("j" if path.stem < "r3" else "k",))
            db.execute("UPDATE process SET rank = iif(? = 'r2', NULL, rank)", (path.stem,))
            db.execute("INSERT OR REPLACE INTO meta VALUES ('rank', ?)", ({"r2": 1}.get(path.stem, int(path.stem[1:])),))
        db.close()
    done = run(*[ranks if word == "DIR" else word for word in words])
    lines = sorted(done.stderr.splitlines())
    said = [f"dyntrace: {ranks}/r2.db: left out: rank 1 is in {ranks}/r1.db as well, which began later",
            f"dyntrace: {ranks}/r3.db: left out: is of job k, most are of j"]
    assert done.returncode == 3 and lines == sorted(said * (2 if words[0] == "diff" else 1)), lines
    for name in ("r2", "r3"):
        (ranks / f"{name}.db").unlink()
    (tmp_path / "m.db").unlink(missing_ok=True)
    alone = run(*[ranks if word == "DIR" else word for word in words])
    assert alone.returncode == 0 and alone.stderr == "" and alone.stdout.replace("and 1 other", "") == done.stdout.replace("and 1 other", "")


def test_a_note_says_that_one_of_several_traces_lacks_values(run, ranks):
    """A trace without a note about its values has all values."""
    words = "of some processes values were not recorded"
    for kept, said in ((None, False), ("types", True)):
        for path in ranks.iterdir():
            with sqlite3.connect(path) as db:
                db.execute("DELETE FROM meta WHERE key = 'values'")
                if kept and path.stem == "r1":
                    db.execute("INSERT INTO meta VALUES ('values', ?)", (kept,))
            db.close()
        done = run("why", "Net.forward", ranks)
        assert done.returncode == 0 and (words in done.stdout + done.stderr) == said, (kept, done.stdout, done.stderr)


def test_other_files_in_the_directory_are_skipped(run, ranks, scratch):
    for name in ("train.log", "notes.txt"):
        (ranks / name).write_text("x")
    (ranks / "r0.db-wal.old").mkdir()
    done = run("report", ranks)
    assert done.returncode == 3 and "2 other files left out: notes.txt, train.log" in one_line(done.stderr)
    empty = ranks / "empty"
    empty.mkdir()
    assert run("report", empty).returncode == 2 and run("sql", empty, "SELECT 1").returncode == 2
    assert run("report", ranks, ranks / "nix.db").returncode == 2


def test_merge_decisions_only_keeps_the_answers_of_check(run, ranks, tmp_path):
    whole, some = tmp_path / "whole.db", tmp_path / "some.db"
    assert run("merge", ranks, "-o", whole).returncode == 0 and run("merge", ranks, "-o", some, "--decisions-only").returncode == 0
    frames = "SELECT COUNT(*) FROM frame WHERE outcome NOT IN (4, 7)"
    assert int(run("sql", whole, frames, "--no-header").stdout) > 0 and run("sql", some, frames, "--no-header").stdout == "0\n"
    assert [run("check", path, "--max-eager-share", "0", "--json").stdout.replace(str(path), "") for path in (whole, some)].count(
        run("check", whole, "--max-eager-share", "0", "--json").stdout.replace(str(whole), "")) == 2
    assert json.loads(run("fsck", some, "--json").stdout)["rules"] and \
        {rule["rule"] for rule in json.loads(run("fsck", some, "--json").stdout)["rules"] if rule["broken"]} <= \
        {rule["rule"] for rule in json.loads(run("fsck", whole, "--json").stdout)["rules"] if rule["broken"]}


@pytest.fixture(scope="module")
def sixty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sixty")
    first = make_trace(folder / "0000.db", "INSERT INTO meta VALUES ('rank', 0)")
    for number in range(1, 60):
        path = folder / f"{number:04}.db"
        path.write_bytes(first.read_bytes())
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA synchronous = OFF")
            db.execute("UPDATE meta SET value = ? WHERE key = 'host'", (f"host{number}",))
            db.execute("INSERT OR REPLACE INTO meta VALUES ('rank', ?)", (number,))
        db.close()
    return folder


@pytest.mark.no_sanitizer
def test_many_traces_are_read_in_bounded_memory(dyntrace, sixty, tmp_path):
    """Fewer files are open than there are traces, and memory does not grow with their number."""
    def limits():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
        resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20))

    named = {"Net.forward": "work"}
    for words in EVERY + [["report", "DIR", "--html", "page.html"], ["fsck", "DIR"], ["export", "DIR", "--format", "perfetto", "-o", "-"]]:
        if words[0] == "replay":  # these are of plain programs: a what-if has nothing to decide
            words = ["replay", "DIR", "--verify"]
        words = [str({"DIR": sixty, **named}.get(word, word)) for word in words]
        done = subprocess.run([dyntrace, *words], capture_output=True, text=True, preexec_fn=limits, cwd=tmp_path)
        nothing = words[0] == "check" and "nothing can be checked: no compiler" in done.stderr  # these are of plain programs
        assert done.returncode == (2 if nothing else 0) and "memory" not in done.stderr, (words, done.stderr)
        assert nothing or words[0] != "check"
    with sqlite3.connect(tmp_path / "m.db") as db:
        assert db.execute("SELECT COUNT(*) FROM process").fetchone() == (120,)
    db.close()


@pytest.mark.parametrize("words", [["merge", "-o", "m.db"], ["report"]])
def test_an_interrupt_ends_a_command_on_many_traces(dyntrace, sixty, tmp_path, scratch, words):
    for after in (0.02, 0.1, 0.3):
        with subprocess.Popen([dyntrace, words[0], str(sixty), *words[1:]], cwd=tmp_path, stdout=subprocess.DEVNULL) as child:
            time.sleep(after)
            child.send_signal(signal.SIGINT)
            assert child.wait() in (0, -signal.SIGINT)
        if child.returncode:
            assert sorted(os.listdir(tmp_path)) == ["scratch"] and os.listdir(scratch) == []
        else:
            (tmp_path / "m.db").unlink(missing_ok=True)


def many(folder, first, ranks):
    """A trace of each of these ranks, with another host, and a difference of rank 7."""
    for rank in ranks:
        path = folder / f"{rank:03}.db"
        path.write_bytes(first.read_bytes())
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA synchronous = OFF")
            db.execute("INSERT OR REPLACE INTO meta VALUES ('host', ?), ('started_unix_ns', ?)", (f"box{rank}", 1700000000000000000 + rank))
            db.execute("UPDATE process SET rank = ?", (rank,))
            if rank == 7:
                db.execute("UPDATE guard SET expression = expression || '7'")
        db.close()


@pytest.mark.parametrize("words", [["ranks", "--json"], ["check", "--json", "--max-compiles", "0", "--limit", "0"], ["sql", "SELECT rank FROM process"]])
@pytest.mark.parametrize("after", [0.02, 0.05, 0.1, 0.2])
def test_traces_may_be_deleted_or_cut_while_a_command_reads_them(dyntrace, made, tmp_path, words, after):
    """Traces that are deleted or cut while a command reads have one line each, and the command answers for the others."""
    folder = tmp_path / "job"
    folder.mkdir()
    many(folder, made / "r0.db", range(60))
    others = tmp_path / "others"
    others.mkdir()
    many(others, made / "r0.db", range(60, 70))
    with subprocess.Popen([dyntrace, words[0], str(folder), *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        time.sleep(after)
        for path in others.iterdir():
            path.rename(folder / path.name)
        for rank in (0, 3, 7, *range(30, 60, 3)):
            (folder / f"{rank:03}.db").unlink()
        for rank in (31, 44):
            os.truncate(folder / f"{rank:03}.db", 9000)
        out, error = child.communicate()
    lines = re.findall(r"^dyntrace: \S*/(\d+)\.db: .*$", error, re.M)
    assert len(lines) == error.count("\n") == len(set(lines)) and child.returncode in ((1, 3) if lines else (0, 1)), error
    if words[0] == "ranks":
        found = {f"{row['rank']:03}" for row in json.loads(out)["table"]}
    elif words[0] == "sql":
        found = {f"{int(line.split()[1]):03}" for line in out.splitlines()[1:] if line.split()[1].isdigit()}
    else:
        return
    came = found & {f"{rank:03}" for rank in range(60, 70)}  # then the files were listed when some had gone
    assert came or found | set(lines) >= {f"{rank:03}" for rank in range(60)}
    assert found & set(lines) <= {"007", "000"}  # which `ranks` opens again for their guards


def test_killed_report_leaves_no_merged_file(dyntrace, sixty, scratch):
    """The merged file has no name, so a killed command leaves nothing."""
    with subprocess.Popen([dyntrace, "report", str(sixty)], stdout=subprocess.DEVNULL) as child:
        opened = ["ls", "-l", f"/proc/{child.pid}/fd"]
        while str(scratch) not in subprocess.run(opened, capture_output=True, text=True).stdout:
            assert child.poll() is None
        assert os.listdir(scratch) == []
        child.kill()
    assert child.returncode == -signal.SIGKILL


@pytest.mark.parametrize("fault", ["none", "shape", "flag", "crash"])
def test_traces_made_for_the_bench_are_valid(run, tmp_path, monkeypatch, fault):
    """The traces that the bench measures are like recorded ones: whole, and each lookup follows from the earlier ones."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    fleet, made = importlib.import_module("fleet"), importlib.import_module("made")
    for folder in ("schemas", "src"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.setattr(made, "ROOT", str(tmp_path))
    path = made.made_trace("rank", lambda db: fleet.rank_fill(db, fault))
    holds(path)
    done = run("replay", path, "--verify")
    assert done.returncode == 0, done.stdout


# ---- ranks that record themselves apart -----------------------------------------------------------------------------

LAUNCHERS = {
    "torchrun": {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "job1"},
    "mpirun": {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_SIZE": "8", "PMIX_NAMESPACE": "job1"},
    "srun": {"SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "job1", "SLURM_STEP_ID": "0"},
    "ray": {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "RAY_JOB_ID": "job1"},
    "sbatch": {"SLURM_PROCID": "0", "SLURM_JOB_ID": "job1"},
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_rank_recorded_under_a_launcher_keeps_job_and_rank(dyntrace, python, tmp_path, scratch, launcher):
    done = subprocess.run([dyntrace, "run", "-o", f"{tmp_path}/job/", "--python", python, "-c", "print(1)"], capture_output=True, text=True,
                          env={**os.environ, **LAUNCHERS[launcher]})
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    [path] = (tmp_path / "job").iterdir()
    holds(path)
    ranked = launcher != "sbatch"
    host, rank, _ = path.stem.rsplit("-", 2)
    assert (host, rank) == (os.uname().nodename, "3" if ranked else "none")
    meta = dict(query(path, "SELECT key, value FROM meta"))
    assert meta["job"] == "job1" and meta["destination"] == str(path) and meta["clock_doubt_ns"] > 0 and abs(meta["clock_offset_ns"]) < 10**10
    assert [meta.get(key) for key in ("rank", "local_rank", "world_size")] == (["3", "1", "8"] if ranked else [None] * 3)
    assert query(path, "SELECT rank, local_rank FROM process") == [(3, 1) if ranked else (None, None)]


STARTED = {"mpirun": ["--allow-run-as-root", "--oversubscribe"], "srun": ["--overcommit", "--kill-on-bad-exit=1", "--immediate=10"]}
FOUR = """
import os, pathlib, signal, sys, time
rank, up = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["SLURM_PROCID"], pathlib.Path(sys.argv[1])
(up / rank).touch()
while len(os.listdir(up)) < 4:
    time.sleep(0.05)
if rank == sys.argv[2]:
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(int(sys.argv[3]))
"""


@pytest.mark.no_sanitizer
@pytest.mark.parametrize("launcher", STARTED)
def test_ranks_are_recorded_under_real_launchers(dyntrace, run, python, tmp_path, monkeypatch, launcher):
    """All ranks are recorded, even if one dies and the launcher ends the others."""
    start = [launcher, *STARTED[launcher], "-n"]
    if not shutil.which(launcher) or subprocess.run([*start, "1", "true"], capture_output=True).returncode:
        pytest.skip(f"no {launcher} that starts a job")
    (tmp_path / "four.py").write_text(FOUR)
    local = tmp_path / "local"
    local.mkdir()
    monkeypatch.setenv("TMPDIR", str(local))
    for name, dies, seconds in (("whole", "none", "0"), ("dies", "2", "60")):
        up, job = tmp_path / "up", tmp_path / name
        up.mkdir()
        done = subprocess.run([*start, "4", dyntrace, "run", "-o", f"{job}/", "--python", python, tmp_path / "four.py", up, dies, seconds], capture_output=True, text=True)
        assert (done.returncode == 0) == (name == "whole"), done.stderr
        shutil.rmtree(up)
        deadline = time.time() + 120
        while (len(list(job.glob("*.db"))) < 4 or list(local.glob("dyntrace-*"))) and time.time() < deadline:
            time.sleep(0.05)  # they end after their launcher
        assert not list(local.glob("dyntrace-*"))  # what the launcher has there may stay
        for path in job.iterdir():
            holds(path)
        found = json.loads(run("ranks", job, "--json").stdout)
        assert found["ranks"] == "4 of 4, on 1 host" and found["job"] and sorted(row["rank"] for row in found["table"]) == [0, 1, 2, 3]
        assert {row["rank"]: row["note"] for row in found["table"] if row["note"]} == ({} if name == "whole" else {2: "the first to die"})
        assert found["table"][0]["ended"] == ("exit 0" if name == "whole" else "died of signal 9")


RAY = """
import os, sys, ray
ray.init(num_cpus=3, include_dashboard=False)
class Rank:
    def step(self):
        return int(os.environ["RANK"])
how = [{"py_executable": f"{sys.argv[1]} run -o {sys.argv[2]}/ {sys.executable}", "env_vars": {"RANK": str(rank), "WORLD_SIZE": "3"}} for rank in range(3)]
ranks = [ray.remote(Rank).options(runtime_env=each).remote() for each in how]
assert ray.get([rank.step.remote() for rank in ranks]) == [0, 1, 2]
ray.shutdown()
"""


@pytest.mark.no_sanitizer
def test_ray_workers_are_recorded(dyntrace, run, python, tmp_path):
    """dyntrace starts each of Ray's workers, as docs/fleet.md says."""
    if subprocess.run([python, "-c", "import ray"], capture_output=True).returncode:
        pytest.skip("no ray")
    done = subprocess.run([python, "-c", RAY, dyntrace, tmp_path / "job"], capture_output=True, text=True, env={**os.environ, "RAY_AUTH_MODE": "disabled"})
    assert done.returncode == 0, done.stderr
    deadline = time.time() + 120
    while len(list((tmp_path / "job").glob("*.db"))) < 3 and time.time() < deadline:
        time.sleep(0.05)  # they end after their launcher
    for path in (tmp_path / "job").iterdir():
        holds(path)
        assert query(path, "SELECT COUNT(*) FROM code WHERE qualname = 'Rank.step'") == [(1,)]
    found = json.loads(run("ranks", tmp_path / "job", "--json").stdout)
    assert found["ranks"] == "3 of 3, on 1 host" and found["job"] and sorted(row["rank"] for row in found["table"]) == [0, 1, 2]


def test_percent_codes_in_output_names_are_expanded(dyntrace, python, tmp_path, scratch):
    def start(output, *more):
        return subprocess.run([dyntrace, "run", "-o", output, *more, "--python", python, "-c", "import sys; sys.exit(3)"], capture_output=True,
                              text=True, cwd=tmp_path, env={**os.environ, "RANK": "../7"})

    assert start("x-%r-%%-%q.db").returncode == 3 and os.path.exists(tmp_path / "x-.._7-%-%q.db")
    again = start("x-%r-%%-%q.db")
    assert again.returncode == 2 and "exists already" in one_line(again.stderr)
    assert start("x-%r-%%-%q.db", "--force").returncode == 3
    assert start("nodir/deeper/%p.db").returncode == 2
    assert sorted(os.listdir(tmp_path)) == ["scratch", "x-.._7-%-%q.db"]


def test_a_collector_that_replaces_a_killed_one_moves_the_trace(dyntrace, python, tmp_path, scratch):
    """Another collector finishes the trace, and then moves it to its destination."""
    program = "print('runs', flush=True); input()"
    words = [dyntrace, "run", "-o", f"{tmp_path}/job/", "--python", python, "-c", program]
    with subprocess.Popen(words, start_new_session=True, text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == "runs\n" and list(scratch.glob("*/*.db"))
        os.kill(collector_of(child.pid), signal.SIGKILL)
        child.communicate("\n", timeout=60)
    [path] = (tmp_path / "job").iterdir()
    assert query(path, "SELECT value FROM meta WHERE key = 'state'") == [("recovered",)]
    holds(path)


def test_a_trace_that_cannot_be_moved_stays_and_is_named(dyntrace, python, tmp_path, scratch):
    """The trace stays where it was recorded, and its path is printed."""
    program = f"import shutil; shutil.rmtree({str(tmp_path / 'job')!r})"
    done = subprocess.run([dyntrace, "run", "-o", f"{tmp_path}/job/", "--python", python, "-c", program], capture_output=True, text=True)
    line = one_line(done.stderr)
    assert done.returncode == 0 and "cannot be moved to its place: No such file" in line
    [left] = scratch.glob("*/*.db")
    assert str(left) in line
    shutil.rmtree(left.parent)


NO_LOCKS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fcntl64(int fd, int what, ...)
{
    static int (*next)(int, int, ...);
    char link[64], path[4096] = "", *folder = getenv("NO_LOCKS");
    va_list more;
    void *argument;

    va_start(more, what);
    argument = va_arg(more, void *);
    va_end(more);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if ((what == F_SETLK || what == F_SETLKW || what == F_GETLK) && folder && readlink(link, path, sizeof path - 1) > 0 && !strncmp(path, folder, strlen(folder))) {
        errno = ENOLCK;
        return -1;
    }
    next = next ? next : (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl64");
    return next(fd, what, argument);
}

int fcntl(int fd, int what, ...) __attribute__((alias("fcntl64")));
"""


@pytest.mark.no_sanitizer
def test_ranks_are_recorded_on_a_filesystem_without_locks(dyntrace, python, tmp_path, scratch):
    """On a filesystem without locks, such as NFS without a lock server, the traces of ranks are moved there, read there
    and merged there."""
    (tmp_path / "locks.c").write_text(NO_LOCKS)
    if not shutil.which("cc") or subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "locks.so", tmp_path / "locks.c", "-ldl"]).returncode:
        pytest.skip("needs a C compiler")
    job = tmp_path / "job"
    env = {**os.environ, "LD_PRELOAD": str(tmp_path / "locks.so"), "NO_LOCKS": str(job)}
    tried = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'w'), fcntl.LOCK_EX)"
    job.mkdir()
    assert "No locks available" in subprocess.run([python, "-c", tried, job / "x"], capture_output=True, text=True, env=env).stderr
    (job / "x").unlink()
    for rank in "01":
        done = subprocess.run([dyntrace, "run", "-o", f"{job}/", "--python", python, "-c", "print(1)"], capture_output=True, text=True,
                              env={**env, "RANK": rank, "WORLD_SIZE": "2"})
        assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    alone = tmp_path / "job" / "alone"  # one file, by its name or by the program's
    alone.mkdir()
    (alone / "prog.py").write_text("print(2)")
    for words, path in ((["-o", alone / "one.db"], alone / "one.db"), ([], alone / "prog.db")):
        for force, status, said in ([], 0, "2\n"), ([], 2, ""), (["--force"], 0, "2\n"):
            done = subprocess.run([dyntrace, "run", *words, *force, "--python", python, alone / "prog.py"], capture_output=True, text=True, env=env, cwd=alone)
            assert (done.returncode, done.stdout) == (status, said), done.stderr
            assert done.stderr == "" if said else "exists already; --force replaces it" in one_line(done.stderr)
        holds(path)
    assert sorted(path.name for path in alone.iterdir()) == ["one.db", "prog.db", "prog.py"]
    shutil.rmtree(alone)
    traces = sorted(job.iterdir())
    for words in (["report", job], ["report", traces[0]], ["ranks", job], ["sql", job, "SELECT 1"], ["check", job, "--max-recompiles", "0"], ["fsck", job],
                  ["merge", *traces, "-o", job / "all.db"], ["report", job / "all.db"], ["tui", job / "all.db", "--dump"]):
        done = subprocess.run([dyntrace, *map(str, words)], capture_output=True, text=True, env=env)
        if words[0] == "check":  # of programs without a compiler
            assert done.returncode == 2 and "nothing can be checked" in done.stderr
            continue
        assert done.returncode == 0 and done.stdout + done.stderr == done.stdout and (done.stdout or words[0] == "merge"), (words, done.stderr)
