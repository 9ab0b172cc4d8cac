"""Programs of programs/ under dyntrace. Many are recorded in one trace, each in a process of its own (children.py)."""
import contextlib
import functools
import hashlib
import json
import os
import sqlite3
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from practice import PRACTICE  # noqa: E402
from shared import run_whole  # noqa: E402

PROGRAMS = HERE / "programs"
TRUTHS = HERE / "truths.json"
PIECE = 20  # programs in one recording
TABLE_VERSION = "2.13"  # of torch: practice.py says what is best there; on others every second program runs
OF_FUNCTION = ("compiles", "recompiles", "breaks", "eager", "hits")
OF_ALL = OF_FUNCTION[:3]
COUNTS = """
WITH wanted AS MATERIALIZED (SELECT code_id FROM functions WHERE process_id = :process AND qualname GLOB :function)
SELECT (SELECT COUNT(*) FROM compiles JOIN wanted USING(code_id) WHERE cache_entry_id IS NOT NULL),
       (SELECT COUNT(*) FROM recompiles JOIN wanted USING(code_id)),
       (SELECT COUNT(*) FROM graph_breaks JOIN wanted USING(code_id)),
       (SELECT COUNT(*) FROM calls JOIN wanted USING(code_id) WHERE counted AND ran_as_python),
       (SELECT COUNT(*) FROM calls JOIN wanted USING(code_id) WHERE is_hit)
"""
WHERE = """
SELECT filename, first_line FROM functions
WHERE process_id = :process AND qualname = :function AND code_id IN (SELECT code_id FROM lookup)
"""
TRIED = """
SELECT t.compiles, t.recompiles, t.breaks, t.eager, t.hits
FROM trial_functions t JOIN functions f ON f.code_id = t.function_id
WHERE t.setting = :setting AND f.qualname = :function AND (f.filename GLOB :file OR f.filename NOT GLOB '*/programs/*')
"""


def settings_of(text):
    """The single settings in a fix's or remedy's text; a setting has no blank in it."""
    return (text or "").split()


def pairs_with_settings():
    return [(name, fix) for name, one in PRACTICE.items() for fix, more in one["fixes"].items() if more["setting"]]


def batches(wanted):
    """Divide (NAME, SETTINGS) into lists that can be recorded in one run: none is under another one's settings."""
    whole = {}  # by the settings for all functions: names of functions and programs, and what they are for
    for name, text in wanted:
        settings = settings_of(text)
        of_all = tuple(setting for setting in settings if "@" not in setting)
        functions = {setting.partition("@")[2].split(".")[0] for setting in settings if "@" in setting}
        functions |= {PRACTICE[name]["function"].split(".")[0], name}
        for used, batch in whole.setdefault(of_all, []):
            if not used & functions:
                used |= functions
                batch.append((name, text))
                break
        else:
            whole[of_all].append((functions, [(name, text)]))
    return [batch for some in whole.values() for _, batch in some]


def of_function(counts):
    return {name: counts[name] for name in OF_FUNCTION}


def expected(counts):
    """Of what torch counted, the part that is compared."""
    return {**of_function(counts), "all": {name: counts["all"][name] for name in OF_ALL}}


def gain(counts):
    """The smaller, the better: eager calls first, then compiles, recompiles and breaks of the whole program."""
    whole = counts["all"]
    return counts["eager"], whole["compiles"], whole["recompiles"], whole["breaks"]


def pieces_of(wanted):
    """Lists of at most PIECE: an interrupted run loses one of them."""
    return [wanted[i:i + PIECE] for i in range(0, len(wanted), PIECE)]


class Kept:
    """Results in FOLDER/kept.jsonl, a line for each, so that a table that was interrupted goes on where it stopped.

    They hold while a program's text is the same; who changes how dyntrace records begins a new folder."""

    def __init__(self, folder):
        self.file = folder / "kept.jsonl"
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.found = {tuple(key): result for key, result in map(json.loads, lines)}

    def key(self, kind, name, text):
        return kind, name, text, hashlib.sha256((PROGRAMS / f"{name}.py").read_bytes()).hexdigest()[:16]

    def missing(self, kind, wanted):
        return [(name, text) for name, text in wanted if self.key(kind, name, text) not in self.found]

    def get(self, kind, wanted):
        return {(name, text): self.found[self.key(kind, name, text)] for name, text in wanted}

    def add(self, kind, results):
        with self.file.open("a") as file:
            for (name, text), result in results.items():
                key = self.key(kind, name, text)
                self.found[key] = result
                file.write(json.dumps([key, result]) + "\n")


class Recorder:
    def __init__(self, dyntrace, python, folder):
        self.dyntrace, self.python, self.folder = dyntrace, python, folder
        self.kept = Kept(folder)
        self.plain = functools.cache(self.plain)
        self.measure = functools.cache(self.measure)
        asked = self.command([python, "-c", "import torch; print(torch.__version__)"]).stdout
        self.version = ".".join(asked.split(".")[:2])
        self.names = list(PRACTICE)[::1 if self.version == TABLE_VERSION else 2]

    def command(self, words, check=True):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "PYTHON"))}
        environment.update(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
        done = run_whole([str(word) for word in words], 1200, cwd=self.folder, env=environment)
        assert not check or done.returncode == 0, done.stderr[-3000:]
        return done

    def measure(self, name):
        """What torch counts of each fix: kept in truths.json for some versions, else measured now."""
        truths = json.loads(TRUTHS.read_text()).get(self.version, {})
        if name in truths:
            return truths[name]
        others = [(other, "") for other in self.names if other not in truths]
        for piece in pieces_of(self.kept.missing("measured", others)):
            done = self.command([self.python, HERE / "measure.py", *[other for other, _ in piece]])
            self.kept.add("measured", {(other, ""): counts for other, counts in json.loads(done.stdout).items()})
        return self.kept.get("measured", [(name, "")])[name, ""]

    def fixes_with_settings(self):
        """(NAME, SETTINGS) of each fix that this torch can do."""
        return [(name, PRACTICE[name]["fixes"][fix]["setting"]) for name, fix in pairs_with_settings()
                if name in self.names and self.measure(name)[fix]["status"] == self.measure(name)[""]["status"]]

    def run(self, trace, words, settings=()):
        options = [word for setting in settings for word in ("--set", setting)]
        command = [self.dyntrace, "run", "--force", "--frames", "user", "-o", trace, *options, "--python", self.python]
        return self.command([*command, HERE / "children.py", *words], check=False)

    def record(self, file, wanted):
        """Record each (NAME, SETTINGS), and return {NAME: what it did}."""
        trace = self.folder / file
        settings = [setting for _, text in wanted for setting in settings_of(text)]
        names = [name for name, _ in wanted]
        done = self.run(trace, names, list(dict.fromkeys(settings)))
        refused = [line for line in done.stderr.splitlines() if line.startswith("dyntrace: ")]
        assert done.stdout or refused, done.stderr[-3000:]  # else it was ended from outside, which is no result
        if not done.stdout:
            return {name: {"status": None, "out": None, "refused": refused} for name in names}
        given = json.loads(done.stdout)
        with contextlib.closing(sqlite3.connect(f"file:{trace}?mode=ro", uri=True)) as db:
            processes = [process for process, in db.execute("SELECT process_id FROM process ORDER BY start_ns, process_id")][1:]
            for (name, text), process in zip(wanted, processes, strict=True):
                found = given[name]
                found["refused"] = [line for line in refused if any(f"--set {one}: " in line for one in settings_of(text))]
                for key, function in (("counts", PRACTICE[name]["function"]), ("all", "*")):
                    asked = {"process": process, "function": function}
                    found[key] = dict(zip(OF_FUNCTION, db.execute(COUNTS, asked).fetchone()))
                found["counts"]["all"] = {one: found["all"][one] for one in OF_ALL}
                found["where"] = db.execute(WHERE, asked | {"function": PRACTICE[name]["function"]}).fetchone()
        return given

    def plain(self):
        """What each program did as it is, and what `why` says of its function."""
        wanted = [(name, "") for name in self.names]
        for piece in pieces_of(self.kept.missing("plain", wanted)):
            file = f"plain-{piece[0][0]}.db"
            given = self.record(file, piece)
            self.kept.add("plain", {(name, ""): found | {"trace": file} for name, found in given.items()})
        given = {name: dict(found) for (name, _), found in self.kept.get("plain", wanted).items()}
        for found in given.values():
            filename, line = found["where"]
            found["remedies"] = self.why(self.folder / found["trace"], f"{filename}:{line}")["remedies"]
        return given

    def under(self, wanted):
        """What each (NAME, SETTINGS) did."""
        for batch in batches(self.kept.missing("under", wanted)):
            for piece in pieces_of(batch):
                given = self.record("under.db", piece)
                self.kept.add("under", {(name, text): given[name] for name, text in piece})
        return self.kept.get("under", wanted)

    def tries(self, wanted):
        """What `dyntrace try` counts of each (NAME, SETTINGS): a trial of each piece of a batch, under all of its settings."""
        for batch in batches(self.kept.missing("try", wanted)):
            for piece in pieces_of(batch):
                self.kept.add("try", self.tries_of(piece))
        return self.kept.get("try", wanted)

    def tries_of(self, batch):
        trace = self.folder / "try.db"
        self.run(trace, [name for name, _ in batch])
        together = " ".join(dict.fromkeys(setting for _, text in batch for setting in settings_of(text)))
        self.command([self.dyntrace, "try", trace, "--yes", together])
        found = {}
        with contextlib.closing(sqlite3.connect(f"file:{trace}?mode=ro", uri=True)) as db:
            ended = db.execute("SELECT setting, exit_code FROM trial WHERE exit_code IS NOT 0").fetchall()
            assert not ended, ended
            for name, text in batch:
                asked = {"setting": together, "function": PRACTICE[name]["function"], "file": f"*/programs/{name}.py"}
                row = db.execute(TRIED, asked).fetchone()
                found[name, text] = dict(zip(OF_FUNCTION, row)) if row else None
        return found

    def why(self, trace, function):
        return json.loads(self.command([self.dyntrace, "why", function, trace, "--json"]).stdout)


PRINTED = 3  # remedies before "more"


def figure_of(remedy):
    """The eager calls and compiles that the remedy promises, measured or exact; None: it has no figure."""
    if remedy.get("measured_compiles") is not None:
        return remedy["measured_eager"], remedy["measured_compiles"]
    if remedy.get("predicted_compiles") is not None:
        return remedy["predicted_eager"], remedy["predicted_compiles"]
    return None


def promises_gain(remedy):
    return figure_of(remedy) is not None and figure_of(remedy) < (remedy["eager"], remedy["compiles"])


def settings_in(remedies):
    return list(dict.fromkeys(remedy["setting"] for remedy in remedies if remedy.get("setting")))


def named_fixes(name, remedy):
    """The fixes without a setting that do what the remedy says."""
    return [fix for fix, more in PRACTICE[name]["fixes"].items() if remedy["name"] in more["names"]]


def best_of(name, measured):
    """The best fixes, without those that this torch cannot do or has no need of."""
    return [fix for fix in PRACTICE[name]["best"]
            if measured[fix]["status"] == measured[""]["status"] and gain(measured[fix]) < gain(measured[""])]


def works(name, text, measured, advised):
    """Whether the program under these settings ends and prints as it does without."""
    run = advised[name, text]
    same = (run["status"], run["out"]) == (measured[""]["status"], measured[""]["out"])
    return same and not run["refused"] and text not in PRACTICE[name].get("never", [])


def is_best(name, remedy, measured, advised):
    """Whether the remedy does as much as the best fixes, by what torch counts of them."""
    best = max(gain(measured[fix]) for fix in best_of(name, measured))
    if remedy.get("setting"):
        text = remedy["setting"]
        return works(name, text, measured, advised) and gain(advised[name, text]["counts"]) <= best
    return bool(set(named_fixes(name, remedy)) & set(best_of(name, measured)))


def first_is_right(name, remedies, measured, advised):
    """Whether the first remedy is one of the best, or says `not measured` and `try` finds one of the best.

    Of a program with nothing to mend: whether no remedy promises a gain."""
    if not best_of(name, measured):
        return not any(promises_gain(remedy) for remedy in remedies)
    if not remedies:
        return False
    if is_best(name, remedies[0], measured, advised):
        return True
    return remedies[0].get("status") == "not measured" and try_finds(name, remedies, measured, advised)


def try_finds(name, remedies, measured, advised):
    """Whether a best fix is among the settings that `try` takes from the remedies, or a pair of them."""
    if any(is_best(name, remedy, measured, advised) for remedy in remedies if remedy.get("setting")):
        return True
    texts = settings_in(remedies)
    pairs = [set(settings_of(one)) | set(settings_of(other)) for one in texts for other in texts]
    return any(set(settings_of(PRACTICE[name]["fixes"][fix]["setting"])) in pairs for fix in best_of(name, measured))


def true_counts(name, remedy, measured, advised):
    """The counts of which a figure is right: of its setting, else of the edits that do what it says; [] : none is known."""
    if remedy.get("setting"):
        run = advised.get((name, remedy["setting"]))
        return [run["counts"]] if run and run["status"] == 0 and not run["refused"] else []
    return [measured[fix] for fix in named_fixes(name, remedy)]


def figure_is_right(remedy, truths):
    return any((one["eager"], one["compiles"]) == figure_of(remedy) for one in truths)
