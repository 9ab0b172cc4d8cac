"""Torch's own caches: what they did for each compile, why, and what inductor made, from a cold and a warm start.

Needs a C++ compiler, as inductor does.
"""
import contextlib
import functools
import os
import re
import shutil
import sqlite3
import subprocess
import textwrap

import pytest

from torch_here import MODES

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("g++"), reason="inductor needs a C++ compiler")]
modes = pytest.mark.parametrize("mode", MODES)

PROGRAM = textwrap.dedent("""
    import torch
    import torch._inductor.config as config
    from torch._dynamo.utils import counters
    @torch.compile(dynamic=False)
    def f(x): return (x * 3).relu()
    @torch.compile
    def odd(x): return x * 2 - 1
    print(f(torch.ones(4)).tolist(), f(torch.ones(6)).tolist())
    config.post_grad_custom_pre_pass = lambda graph: None  # which no cache can take for a part of its key
    print(odd(torch.ones(4)).tolist())
    print({name: count for kind in ("inductor", "aot_autograd") for name, count in counters[kind].items() if "cache" in name})
""")


@pytest.fixture(scope="module")
def start(dyntrace, python, tmp_path_factory):
    """start(mode or "plain", nth) -> (what it printed, rows of a query): the nth start on one cache folder."""
    folder = tmp_path_factory.mktemp("caches")
    (folder / "p.py").write_text(PROGRAM)

    @functools.cache
    def start(mode, nth):
        if nth:
            start(mode, nth - 1)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "PYTHON"))}
        environment.update(TORCHINDUCTOR_CACHE_DIR=str(folder / f"cache-{mode}"), OMP_NUM_THREADS="1")
        path = folder / f"{mode}-{nth}.db"
        command = [python, folder / "p.py"]
        if mode != "plain":
            command = [dyntrace, "run", "--torch", mode, "--frames", "decided", "-o", path, "--", *command]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=280)
        assert done.returncode == 0, done.stderr[-4000:]

        def rows(sql, *values):
            with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
                return db.execute(sql, values).fetchall()

        def why(name):
            return subprocess.run([dyntrace, "why", path, name], capture_output=True, text=True, check=True).stdout
        return done.stdout, rows, why
    return start


CACHES = "SELECT label, cache, state FROM compile_caches WHERE qualname = ? ORDER BY label, cache"


@modes
def test_a_cold_start_misses_torchs_caches(start, mode):
    out, rows, why = start(mode, 0)
    assert out == start("plain", 0)[0]
    assert not rows("SELECT cause FROM loss WHERE cause NOT LIKE 'stall%'")
    assert rows(CACHES, "f") == [(label, cache, "miss") for label in ("0/0", "0/1") for cache in ("aotautograd", "fx_graph")]
    again, = rows("SELECT differed, compared_with IS NOT NULL FROM compile_caches WHERE label = '0/1' AND cache = 'fx_graph'")
    assert "example_inputs[0]" in again[0].split(", ") and again[1]
    assert rows("SELECT count(*) FROM cache_events WHERE event = 'fx_graph_cache_miss' AND qualname = 'f'") == [(2,)]
    for kind, words in ("inductor_output_code", "async_compile"), ("inductor_post_grad_graph", "torch.ops.aten.relu"):
        texts = [text for text, in rows("SELECT text FROM listing JOIN compile USING (compile_id) WHERE kind = ? AND label LIKE '0/%'", kind)]
        assert len(texts) == 2 and all(words in text for text in texts)
    # Torch 2.10 and 2.11 say of both what differed.
    assert re.search(r"Torch's caches: AOTAutograd 2 miss(?: \(another key: [^)]+\))?, FX graph 2 miss \(another key: ", why("f"))


@modes
def test_a_warm_start_hits_torchs_caches(start, mode):
    out, rows, why = start(mode, 1)
    assert out == start("plain", 1)[0]
    assert rows(CACHES, "f") == [(label, cache, "hit") for label in ("0/0", "0/1") for cache in ("aotautograd", "fx_graph")]
    assert rows("SELECT count(*) FROM listing WHERE kind = 'inductor_output_code'") == [(3,)]
    assert min(rows("SELECT saved_ns FROM compile_caches WHERE cache = 'aotautograd' AND state = 'hit'"))[0] > 0
    assert "AOTAutograd 2 hit, FX graph 2 hit; the warm start still paid " in why("f")


@modes
@pytest.mark.parametrize("nth", [0, 1])
def test_a_bypassed_compiler_cache_is_recorded_with_its_reason(start, mode, nth):
    _, rows, why = start(mode, nth)
    found = dict(rows("SELECT cache, reason FROM compile_caches WHERE qualname = 'odd' AND state = 'bypass'"))
    # Torch 2.7 says nothing of AOTAutograd's.
    assert "custom" in found["fx_graph"] and all("custom" in reason or not reason for reason in found.values()), rows("SELECT * FROM compile_caches WHERE qualname = 'odd'")
    assert " 1 bypass (" in why("odd")
