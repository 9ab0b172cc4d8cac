"""Programs of programs/ under dyntrace. Many are recorded in one trace, each in a process of its own (children.py)."""
import contextlib
import functools
import json
import os
import sqlite3
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from practice import PRACTICE  # noqa: E402
from shared import run_whole  # noqa: E402

TRUTHS = HERE / "truths.json"
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


def settings_of(fix):
    """The settings of a fix: a setting has no blank in it."""
    return (fix["setting"] or "").split()


def batches(pairs):
    """Divide (NAME, FIX) pairs into lists that can be recorded in one run: none is under another one's settings."""
    whole = {}  # a list of pairs by the settings that are for all functions, and the functions that the others are for
    for name, fix in pairs:
        settings = settings_of(PRACTICE[name]["fixes"][fix])
        of_all = tuple(setting for setting in settings if "@" not in setting)
        functions = {setting.partition("@")[2].split(".")[0] for setting in settings if "@" in setting}
        functions |= {PRACTICE[name]["function"].split(".")[0], name}
        for used, batch in whole.setdefault(of_all, []):
            if not used & functions:
                used |= functions
                batch.append((name, fix))
                break
        else:
            whole[of_all].append((functions, [(name, fix)]))
    return [batch for some in whole.values() for _, batch in some]


def expected(counts):
    """Of what torch counted, the part that is compared."""
    return {**{name: counts[name] for name in OF_FUNCTION}, "all": {name: counts["all"][name] for name in OF_ALL}}


def gain(counts):
    """The smaller, the better: eager calls first, then compiles, recompiles and breaks, of the whole program."""
    whole = counts["all"]
    return whole["eager"], whole["compiles"], whole["recompiles"], whole["breaks"]


class Recorder:
    def __init__(self, dyntrace, python, folder):
        self.dyntrace, self.python, self.folder = dyntrace, python, folder
        self.plain = functools.cache(self.plain)
        self.measure = functools.cache(self.measure)
        asked = self.command([python, "-c", "import torch; print(torch.__version__)"]).stdout
        self.version = ".".join(asked.split(".")[:2])

    def command(self, words, check=True):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "PYTHON"))}
        environment.update(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
        done = run_whole([str(word) for word in words], 1200, cwd=self.folder, env=environment)
        assert not check or done.returncode == 0, done.stderr[-3000:]
        return done

    def measure(self, name):
        """What torch counts of each fix: kept in truths.json for some versions, else measured now."""
        kept = json.loads(TRUTHS.read_text()).get(self.version, {})
        if name in kept:
            return kept[name]
        return json.loads(self.command([self.python, HERE / "measure.py", name]).stdout)[name]

    def run(self, trace, words, settings=()):
        options = [word for setting in settings for word in ("--set", setting)]
        command = [self.dyntrace, "run", "--frames", "user", "-o", trace, *options, "--python", self.python]
        return self.command([*command, HERE / "children.py", *words], check=False)

    def record(self, file, pairs):
        """Record (NAME, FIX) pairs under the settings of the fixes, and return {NAME: what it did}."""
        trace = self.folder / file
        settings = [setting for name, fix in pairs if fix for setting in settings_of(PRACTICE[name]["fixes"][fix])]
        names = [name for name, _ in pairs]
        done = self.run(trace, names, list(dict.fromkeys(settings)))
        given = json.loads(done.stdout)
        with contextlib.closing(sqlite3.connect(f"file:{trace}?mode=ro", uri=True)) as db:
            processes = [process for process, in db.execute("SELECT process_id FROM process ORDER BY start_ns, process_id")][1:]
            for name, process in zip(names, processes, strict=True):
                found = given[name]
                found["trace"], found["process"], found["said"] = trace, process, done.stderr
                for key, function in (("counts", PRACTICE[name]["function"]), ("all", "*")):
                    asked = {"process": process, "function": function}
                    found[key] = dict(zip(OF_FUNCTION, db.execute(COUNTS, asked).fetchone()))
                found["counts"]["all"] = {one: found["all"][one] for one in OF_ALL}
        return given

    def plain(self):
        return self.record("plain.db", [(name, "") for name in PRACTICE])

    def set(self, pairs):
        """What each (NAME, FIX) does under its settings."""
        found = {}
        for i, batch in enumerate(batches(pairs)):
            given = self.record(f"set{i}.db", batch)
            found.update({(name, fix): given[name] for name, fix in batch})
        return found

    def why(self, trace, function):
        return json.loads(self.command([self.dyntrace, "why", function, trace, "--json"]).stdout)
