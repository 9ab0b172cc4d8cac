"""--frames user and --frames decided keep every decision that --frames all has, on torch's own functions too where the program
compiles them."""
import re
import sqlite3
import subprocess

import pytest
from test_frames_decided import TABLES, record

PROGRAM = """
import torch
line = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(line.parameters(), lr=0.1)
loss = torch.compile(lambda x: line(x).sum(), backend="eager")
step = torch.compile(opt.step, backend="eager")
for i in range(3):
    opt.zero_grad()
    loss(torch.ones(2 + i, 4)).backward()
    step()
    if i == 1:
        opt.param_groups[0]["lr"] = 0.5
"""


@pytest.mark.parametrize("mode", ["shim", pytest.param("observe", marks=pytest.mark.slow)])
def test_decisions_on_a_compiled_method_of_torch_are_those_of_all_frames(dyntrace, python, tmp_path, mode):
    (tmp_path / "p.py").write_text(PROGRAM)
    traces = [record(dyntrace, python, tmp_path, mode, frames, tmp_path / "p.py")[1] for frames in ("all", "user", "decided")]
    for table in TABLES:
        of_all, of_users, of_decided = (re.sub(r"\d{9,}", "ADDRESS", repr(db.execute(table).fetchall())) for db in traces)
        assert of_all == of_users, table
        assert of_all == of_decided, table
    _, users, decided = traces
    (frames,), (lookups,) = decided.execute("SELECT count(*) FROM frame UNION ALL SELECT count(*) FROM lookup")
    assert 0 < lookups == frames
    compiled, = users.execute("SELECT COUNT(*) FROM compile JOIN code USING (code_id) WHERE qualname = 'SGD.step' AND outcome = 'compiled'").fetchone()
    assert compiled == 2
    (frames, count, decisions), = users.execute("SELECT (SELECT COUNT(*) FROM frame), left_out_frames, left_out_decisions FROM process")
    assert decisions == 0 and frames < count


DECISIONS = """
import torch
torch._dynamo.config.recompile_limit = torch._dynamo.config.cache_size_limit = 2
def failing(module, inputs):
    raise ValueError
@torch.compile(backend="eager", dynamic=False)
def opt(x):
    return x + 1
@torch.compile(backend=failing)
def fails(x):
    return x * 2
def deeper(n, function, x):
    return deeper(n - 1, function, x) if n else function(x)
for n in 3, 3, 4, 5, 3, 5:
    deeper(3, opt, torch.ones(n)) # two entries, hits, and the limit
try:
    deeper(3, fails, torch.ones(3))
except Exception:
    pass
torch._dynamo.set_stance("force_eager")
deeper(3, opt, torch.ones(3))
"""


@pytest.mark.parametrize("mode", ["shim", pytest.param("observe", marks=pytest.mark.slow)])
def test_lookups_and_frames_that_options_leave_out_are_counted(dyntrace, python, tmp_path, mode):
    """Each lookup of a whole trace is kept, or counted as left out. So is each frame of the program."""
    (tmp_path / "p.py").write_text(DECISIONS)
    _, whole = record(dyntrace, python, tmp_path, mode, "user", tmp_path / "p.py")
    every, = whole.execute("SELECT COUNT(*) FROM lookup").fetchone()
    mine = "SELECT COUNT(*) FROM frame JOIN code USING (code_id) WHERE qualname IN ('opt', 'fails')"
    calls, = whole.execute(mine).fetchone()
    for options in (["--exclude", "opt", "--exclude", "fails"], ["--max-depth", "3"]):
        subprocess.run([dyntrace, "run", "--force", "--torch", mode, "--frames", "user", *options, "-o", tmp_path / "part.db", "--python", python,
                        tmp_path / "p.py"], capture_output=True, timeout=280, check=True)
        part = sqlite3.connect(tmp_path / "part.db")
        kept, = part.execute("SELECT COUNT(*) FROM lookup").fetchone()
        (frames, decisions), = part.execute("SELECT left_out_frames, left_out_decisions FROM process")
        assert kept + decisions == every and decisions > 5, (options, every, kept, decisions)
        assert frames >= calls and part.execute(mine).fetchone() == (0,)
