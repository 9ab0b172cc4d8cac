"""`dyntrace replay` of torch programs that really ran: what was recorded follows, and decided again without a change it is the same."""
import json
import subprocess

import pytest

QUICK = ["batch_limit", "stances"]
SLOW = ["regions", "tokenizer", "dynamic", "shared_forward", "exceptions", "kv_generate", "reset_reload", "threads"]
PROGRAMS = QUICK + [pytest.param(name, marks=pytest.mark.slow) for name in SLOW]


@pytest.mark.parametrize("mode", ["shim", "observe"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_recordings_follow(runs, dyntrace, program, mode):
    path = runs(program, mode).path
    done = subprocess.run([dyntrace, "replay", path, "--verify", "--json"], capture_output=True, text=True, timeout=60)
    found = json.loads(done.stdout)
    assert (done.returncode, found["do_not_follow"], found["orphan_checks"]) == (0, 0, 0), found["findings"][:3]
    assert found["lookups"] > 0
    done = subprocess.run([dyntrace, "replay", path, "--what-if", "isolate=no", "--json"], capture_output=True, text=True, timeout=60)
    same = json.loads(done.stdout)
    keys = ["calls", "hits", "misses", "compiles", "eager", *(["checks"] if mode == "shim" else [])]
    assert (same["changed"], same["gone"]) == (0, 0)
    assert same["undecided"] == 0
    assert [same["recorded"][key] for key in keys] == [same["predicted"][key] for key in keys]
