"""The ready queries of schemas/queries/ on a trace that was recorded; on torch programs: tests/with_torch."""
import json
import os
import subprocess

import pytest

from shared import ROOT

pytestmark = pytest.mark.one_python

QUERIES = sorted(path.stem for path in (ROOT / "schemas/queries").glob("*.sql"))
# What is true of examples/shapes.py: three sizes, one after the other, then two that are known.
FOUND = {
    "call-outcomes": lambda r: (r["lookups"], r["hit"], r["compiled"], r["at_limit"]) == (5, 2, 3, 0),
    "cache-entries": lambda r: r["guard_count"] == 1 and r["tried"] >= 2 and r["died_s"] is None,
    "compiles": lambda r: r["outcome"] == "compiled" and r["graph_breaks"] == 0,
    "failing-guards": lambda r: (r["kind"], r["source"], r["result"]) == ("TENSOR_MATCH", "L['values']", "fail"),
    "guard-bill": lambda r: r["guard_count"] == 1 and r["guards_per_check"] == 1.0 and r["ns_per_check"] > 0,
    "guards-by-source": lambda r: (r["source"], r["entries"], r["failures"], r["recompiles"]) == ("L['values']", 3, 5, 2),
    "recompile-causes": lambda r: (r["source"], r["recompiles"], r["first_seen"], r["last_seen"]) == ("L['values']", 2, "size[0] = 18", "size[0] = 20"),
    "hot-functions": lambda r: r["calls"] == 5,
}
NONE = ["compile-phases", "dead-entries", "eager-calls", "graph-breaks", "limit-reached", "losses", "open-frames", "resume-functions", "skips", "spans", "trials"]

BY_MACHINE = ["waiting"]  # a busy machine makes any program wait; tests/test_waiting.py looks at its rows


@pytest.fixture(scope="module")
def shapes(dyntrace, python, tmp_path_factory):
    path = tmp_path_factory.mktemp("queries") / "shapes.db"
    subprocess.run([dyntrace, "run", "-o", path, "--python", python, "--", ROOT / "examples/shapes.py"], check=True, env=dict(os.environ, TORCH_LOGS=""))
    return path


@pytest.mark.parametrize("query", QUERIES)
def test_each_named_query_gives_its_answer(dyntrace, shapes, query):
    done = subprocess.run([dyntrace, "sql", shapes, query, "--json"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)
    assert query in BY_MACHINE or bool(rows) is (query not in NONE), rows[:3]
    if query in FOUND:
        about = [row for row in rows if row.get("qualname") == "total"]
        assert about and all(FOUND[query](row) for row in about), about
