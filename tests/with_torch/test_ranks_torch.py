"""Ranks of a gloo job that record themselves apart: on two hosts, which are network namespaces, and one of them is killed.

DYNTRACE_RANKS  in how many ranks faults are planted, "8 16": each takes the memory of a torch
"""
import json
import os
import shutil
import socket
import subprocess
import time

import pytest
from torch_here import PROGRAMS, torch_python

from shared import command_path, holds, query

torchrun = ["-m", "torch.distributed.run"]


def run(*words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)


@pytest.fixture
def hosts():
    """Two network namespaces with a wire between them."""
    if os.geteuid() or not shutil.which("ip"):
        pytest.skip("needs root and ip(8) to make network namespaces")
    names = [f"dt{os.getpid()}{letter}" for letter in "ab"]
    try:
        for name in names:
            if run("ip", "netns", "add", name).returncode:
                pytest.skip("no network namespaces here")
        run("ip", "link", "add", "v0", "netns", names[0], "type", "veth", "peer", "name", "v1", "netns", names[1], check=True)
        for i, name in enumerate(names):
            for words in (["addr", "add", f"10.77.0.{i + 1}/24", "dev", f"v{i}"], ["link", "set", f"v{i}", "up"], ["link", "set", "lo", "up"]):
                run("ip", "-n", name, *words, check=True)
        yield names
    finally:
        for name in names:
            run("ip", "netns", "del", name)


def job_run(words, said, silence=1800, **more):
    """Run a job to its end, however long that takes where processors are short; what it says goes to the file SAID. One that is silent for so many seconds, as long as gloo waits itself, hangs. Returns its status."""
    with open(said, "w") as out, subprocess.Popen([str(word) for word in words], stdout=out, stderr=subprocess.STDOUT, **more) as child:
        size, since = 0, time.monotonic()
        while child.poll() is None and time.monotonic() - since < silence:
            time.sleep(0.1)
            if size != (size := os.path.getsize(said)):
                since = time.monotonic()
        if child.poll() is None:
            child.terminate()  # which ends the ranks
            pytest.fail(f"nothing happened for {silence} s: {said.read_text()}")
        return child.returncode


FAULTS = {"none": None, "shape": ("L['x'].size()[0]", "12"), "dtype": ("L['x']", "float64"), "flag": ("G['FLAG']", "7"),
          "attribute": ("L['self'].scale", "5"), "order": ("L['x']", "16"), "late": None, "crash": None}


@pytest.mark.slow
@pytest.mark.parametrize("world", [int(word) for word in os.environ.get("DYNTRACE_RANKS", "2 4").split()])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_planted_in_one_rank_is_named(tmp_path, world, fault):
    """A fault in one rank: the right rank and guard are named, and nothing else."""
    python, why = torch_python()
    if not python:
        pytest.skip(why)
    odd = world - 1
    said = tmp_path / "said"
    status = job_run([python, *torchrun, "--nproc-per-node", world, "--master-port", free_port(), "--no-python", command_path(), "run", "-o", f"{tmp_path}/job/",
                      "--include", "*distributed_c10d.py", "--include", "*/rank.py", "--python", python, PROGRAMS / "rank.py", fault, odd],
                     said, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert (status != 0) == (fault == "crash"), said.read_text()
    asked = run(command_path(), "ranks", tmp_path / "job", "--json")
    found = json.loads(asked.stdout)
    assert asked.returncode == 0 and len(found["table"]) == world, (asked.stderr, said.read_text())
    noted = {row["rank"]: row["note"] for row in found["table"] if row["note"]}
    if fault in ("none", "late", "crash"):
        assert not found["differs"], found["differs"]
    if fault == "none":
        assert not noted
    elif fault == "crash":
        assert noted == {odd: "the first to die"} and found["table"][0]["ended"] == "died of signal 9"
    elif fault == "late":
        assert noted == {odd: "late: others waited for it"}
    else:
        guard, here = FAULTS[fault]
        assert list(noted) == [odd] and {row["ranks"] for row in found["differs"]} == {str(odd)}
        [row] = [row for row in found["differs"] if row["function"] == "Model.forward"]
        assert row["guard"].startswith(guard) and here in row["here"] and row["others"], row


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.slow
@pytest.mark.parametrize("loop, fault", [("ddp", "none"), ("ddp", "attribute"), ("ddp", "shape"), ("fsdp", "none"), ("fsdp", "attribute"),
                                         ("fsdp", "shape"), ("pipeline", "none"), ("pipeline", "attribute")])
def test_ranks_of_a_training_loop_are_compared(tmp_path, loop, fault):
    """DistributedDataParallel, FSDP and a pipeline of stages: the rank with another value is named, and no rank without one."""
    python, why = torch_python()
    if not python:
        pytest.skip(why)
    said = tmp_path / "said"
    status = job_run([python, *torchrun, "--nproc-per-node", 3, "--master-port", free_port(), "--no-python", command_path(), "run", "-o", f"{tmp_path}/job/",
                      "--include", "*distributed_c10d.py", "--include", "*/loops.py", "--python", python, PROGRAMS / "loops.py", loop, fault, 1],
                     said, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert status == 0, said.read_text()
    asked = run(command_path(), "ranks", tmp_path / "job", "--json")
    found = json.loads(asked.stdout)
    assert asked.returncode == 0 and asked.stderr == "" and [row["rank"] for row in sorted(found["table"], key=lambda row: row["rank"])] == [0, 1, 2]
    assert all(row["compiles"] >= 2 and row["wait_ns"] > 0 for row in found["table"]), found["table"]
    if fault == "none":
        assert not found["differs"] and not any(row["note"] for row in found["table"]), found
        return
    [row] = found["differs"]
    assert (row["function"], row["ranks"]) == ("Block.forward", "1"), row
    guard, here, others = {"attribute": (".scale", "5", "2"), "shape": ("L['x'].size()[0]", "12", "4")}[fault]
    assert guard in row["guard"] and (row["here"], row["others"]) == (here, others), row
    assert {row["rank"]: row["note"] for row in found["table"] if row["note"]} == {1: "differs in 1 function"}


@pytest.mark.slow
def test_eight_ranks_on_two_hosts_have_traces_though_one_is_killed(hosts, tmp_path):
    python, why = torch_python()
    if not python:
        pytest.skip(why)
    started = []
    for node, host in enumerate(hosts):
        torch = " ".join([str(python), *torchrun, "--nnodes 2 --nproc-per-node 4 --node-rank", str(node), "--master-addr 10.77.0.1 --master-port 29533",
                          "--no-python", command_path(), "run -o", f"{tmp_path}/job/", "--frames decided --python", str(python),
                          str(PROGRAMS / "rank.py"), "crash 5"])
        started.append(subprocess.Popen(["ip", "netns", "exec", host, "unshare", "-u", "sh", "-c", f"hostname host{node}; exec {torch}"],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        env={**os.environ, "GLOO_SOCKET_IFNAME": f"v{node}", "TP_SOCKET_IFNAME": f"v{node}", "OMP_NUM_THREADS": "1"}))
    said = [child.communicate(timeout=560)[0] for child in started]
    assert any(child.returncode for child in started), said
    traces = sorted((tmp_path / "job").iterdir())
    assert len(traces) == 8, (traces, said)
    for path in traces:
        holds(path)
        host, rank, _ = path.stem.split("-")
        meta = dict(query(path, "SELECT key, value FROM meta"))
        assert meta["rank"] == rank and meta["host"] == host == f"host{int(rank) // 4}" and meta["world_size"] == "8", meta
        assert meta["local_rank"] == str(int(rank) % 4) and meta["job"] and abs(meta["clock_offset_ns"]) <= meta["clock_doubt_ns"] + 10**8
        assert query(path, "SELECT COUNT(*) FROM lookup WHERE outcome = 2")[0][0] >= 2
        if rank == "5":
            assert query(path, "SELECT exit_signal FROM process WHERE rank = 5") == [(9,)]


ALIKE = """
import os, torch
torch._dynamo.config.recompile_limit = 3
rank, fault = int(os.environ["RANK"]), os.environ["FAULT"]
odd = lambda name: fault == name and rank == 2
comp = lambda f: torch.compile(f, backend="eager")
@comp
def extra(x): return x * len(x.shape) + 1
names = {"print": print}
body = "def f(x, n):\\n    y = x - 1\\n" + ("    print('', end='')\\n" if odd("break") else "") + (
    "    return y * %d + len(n)\\n" % (7 if odd("constant") else 5))
exec(compile(body, "/src/made.py", "exec"), names)
f = comp(names["f"])
@comp
def innocent(x, n): return x + len(n)
if odd("limit"): torch._dynamo.config.recompile_limit = 1
x = torch.ones(3)
if odd("extra"): extra(x)
f(x, "a"); f(x, "bb")
innocent(x, "a"); innocent(x, "bb")
"""


@pytest.mark.slow
@pytest.mark.parametrize("fault, rows", [
    ("extra", [("extra", 1, "compile", "compiled", "no such compile")]), ("constant", [("f", 1, "code differs", "code ", "code ")]),
    ("break", [("f", 1, "code differs; graph break", "broke at line 3: ", "no such break"),
               ("torch_dynamo_resume_in_f_at_3", 1, "graph break", "broke at line 3 of f: ", "no such break")]),
    ("limit", [("f", 2, "L['n']", "limit reached", "compiled"), ("innocent", 2, "L['n']", "limit reached", "compiled")]),
])
def test_a_difference_in_one_function_is_not_repeated_for_later_functions(tmp_path, fault, rows):
    """After one true difference torch's counters differ in that rank. Functions compiled later do not differ by that."""
    python, why = torch_python()
    if not python:
        pytest.skip(why)
    (tmp_path / "alike.py").write_text(ALIKE)
    for rank in range(3):
        done = run(command_path(), "run", "-o", f"{tmp_path}/job/", "--frames", "decided", "--python", python, tmp_path / "alike.py",
                   env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "3", "TORCHELASTIC_RUN_ID": "alike", "FAULT": fault})
        assert done.returncode == 0, done.stderr
    found = json.loads(run(command_path(), "ranks", tmp_path / "job", "--json").stdout)["differs"]
    assert [(row["function"], row["compile"]) for row in found] == [(function, compile_) for function, compile_, *_ in rows], found
    for row, (_, _, guard, here, others) in zip(found, rows, strict=True):
        assert row["ranks"] == "2" and row["guard"] == guard, row
        assert row["here"].startswith(here) and row["others"].startswith(others) and row["here"] != row["others"], row
