"""--frames user keeps every decision that --frames all has, on torch's own functions too where the program compiles them."""
import re

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
def test_a_compiled_method_of_torch(dyntrace, python, tmp_path, mode):
    (tmp_path / "p.py").write_text(PROGRAM)
    (_, every), (_, users) = (record(dyntrace, python, tmp_path, mode, frames, tmp_path / "p.py") for frames in ("all", "user"))
    for table in TABLES:
        of_all, of_users = (re.sub(r"\d{9,}", "ADDRESS", repr(db.execute(table).fetchall())) for db in (every, users))
        assert of_all == of_users, table
    compiled, = users.execute("SELECT COUNT(*) FROM compile JOIN code USING (code_id) WHERE qualname = 'SGD.step' AND outcome = 'compiled'").fetchone()
    assert compiled == 2
    (frames, count, decisions), = users.execute("SELECT (SELECT COUNT(*) FROM frame), left_out_frames, left_out_decisions FROM process")
    assert decisions == 0 and frames < count
