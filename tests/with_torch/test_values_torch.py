"""--values with torch: tests/programs/values_torch.py, in both ways of watching it. See tests/test_values.py."""
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from shared import leaks, secrets


sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).resolve().parents[1] / "programs" / "values_torch.py"


@pytest.fixture(scope="module")
def recorded(dyntrace, python, tmp_path_factory):
    """(trace, secrets) by mode and what was kept."""
    made, folder = {}, tmp_path_factory.mktemp("values")

    def record(mode, kept):
        if (mode, kept) not in made:
            words, trace = secrets(), folder / f"{mode}-{kept}.db"
            done = subprocess.run([dyntrace, "run", "-o", trace, "--python", python, "--frames", "decided", "--torch", mode,
                                   "--values", kept, PROGRAM], env=dict(os.environ, SECRETS=" ".join(words)),
                                  capture_output=True, text=True, timeout=500)
            assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stderr
            made[mode, kept] = trace, words
        return made[mode, kept]
    return record


def rows(path, sql):
    with sqlite3.connect(path) as db:
        return db.execute(sql).fetchall()


@pytest.mark.parametrize("mode", ["shim", "observe"])
def test_the_option_values_all_keeps_every_value(recorded, mode):
    trace, words = recorded(mode, "all")
    assert {form for _, form in leaks([trace], words)} >= {word.encode() for word in words}


@pytest.mark.parametrize("kept", ["types", "off"])
@pytest.mark.parametrize("mode", ["shim", "observe"])
def test_without_values_no_secret_is_in_the_trace(recorded, mode, kept):
    trace, words = recorded(mode, kept)
    assert leaks([trace], words) == []
    assert rows(trace, "SELECT cause FROM loss") == []


@pytest.mark.parametrize("mode", ["shim", "observe"])
def test_without_values_kinds_and_counts_are_recorded(recorded, mode):
    """Kinds, places and counts are those of a whole recording; types and shapes are there with `types`."""
    for kept in ("types", "off"):
        for sql in ("SELECT kind, COUNT(*) FROM guard GROUP BY 1 ORDER BY 1", "SELECT kind, COUNT(*) FROM recompile_cause GROUP BY 1 ORDER BY 1",
                    "SELECT outcome, COUNT(*) FROM compile GROUP BY 1 ORDER BY 1", "SELECT line, COUNT(*) FROM graph_break GROUP BY 1 ORDER BY 1",
                    "SELECT opcode, COUNT(*) FROM graph_node GROUP BY 1 ORDER BY 1"):
            assert rows(recorded(mode, kept)[0], sql) == rows(recorded(mode, "all")[0], sql)
    types, off = recorded(mode, "types")[0], recorded(mode, "off")[0]
    causes = rows(types, "SELECT source, expected, actual FROM recompile_cause")
    assert ("L['x'].dtype", "torch.float32", "torch.float64") in causes
    assert ("L['s']",) + ("value not recorded (--values types)",) * 2 in causes
    assert rows(types, "SELECT COUNT(*) > 0 FROM guard WHERE kind = 'TENSOR_MATCH' AND expression LIKE '%size=[4], stride=[1])'") == [(1,)]
    assert rows(off, "SELECT COUNT(*) FROM guard WHERE expression LIKE '%size=%' OR expression LIKE '%torch.float%'") == [(0,)]
    assert rows(off, "SELECT COUNT(*) FROM signature") == [(0,)]
