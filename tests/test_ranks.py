"""`dyntrace ranks`: faults are planted in jobs of 2 to 64 ranks. Each time the right rank and guard are named, and no
others."""
import json
import os
import shutil
import sqlite3
import subprocess

import pytest

from frame_rows import frame_rows
from shared import PROGRAMS, PYTHONS, one_line

pytestmark = pytest.mark.one_python
FAULTS = {"shape": ("L['values']", "size[0] = 12"), "dtype": ("L['values']", "dtype 'f'"), "flag": ("G['FLAG']", "7"),
          "attribute": ("L['self'].scale", "5"), "order": ("L['values']", "(16,)"), "crash": None, "none": None}


@pytest.fixture(scope="module")
def recorded(dyntrace, tmp_path_factory):
    """A trace of a rank with each fault."""
    folder = tmp_path_factory.mktemp("recorded")
    for fault in FAULTS:
        done = subprocess.run([dyntrace, "run", "-o", folder / f"{fault}.db", "--python", PYTHONS[0], PROGRAMS / "rank.py", fault],
                              capture_output=True, text=True, env={**os.environ, "RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "j"})
        assert done.returncode == (137 if fault == "crash" else 0) and not done.stderr, done.stderr
    return folder


def job(folder, recorded, world, **faults):
    """A directory with a trace for each rank. FAULTS maps a fault's name to its rank. Rank r began r ms later, on host r
    % 4."""
    folder.mkdir()
    which = {rank: fault for fault, rank in faults.items()}
    for rank in range(world):
        path = shutil.copy(recorded / f"{which.get(rank, 'none')}.db", folder / f"{rank:03}.db")
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA synchronous = OFF")
            db.execute("UPDATE process SET rank = ?", (rank,))
            db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", [("rank", rank), ("world_size", world), ("host", f"host{rank % 4}"),
                                                                         ("started_unix_ns", 1700000000000000000 + rank * 1000000)])
        db.close()
    return folder


def asked(run, folder, *words):
    done = run("ranks", folder, "--json", *words)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return json.loads(done.stdout)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("world", [2, 3, 8, 64])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_difference_of_one_rank_is_found_and_named(run, recorded, tmp_path, world, fault):
    odd = world - 1 if fault == "order" else world // 2
    found = asked(run, job(tmp_path / "job", recorded, world, **({fault: odd} if fault != "none" else {})))
    named = [row for row in found["table"] if row["note"]]
    assert found["ranks"].startswith(f"{world} of {world}, ") and found["missing"] is None and len(found["table"]) == world
    if fault == "none":
        assert not named and not found["differs"] and not found["storms"]
        return
    assert [row["rank"] for row in named] == [odd] and found["table"][0]["rank"] == odd
    if fault == "crash":
        assert named[0]["ended"] == "died of signal 9" and not found["differs"]
        return
    [row] = found["differs"]
    guard, here = FAULTS[fault]
    assert row["function"] == "Model.forward" and row["ranks"] == str(odd) and row["guard"] == guard and here in row["here"]
    assert row["others"] and here not in row["others"] and row["lookup"] == (1 if fault == "order" else 3)


def test_unknown_facts_of_a_rank_are_not_printed(run, recorded, tmp_path):
    folder = job(tmp_path / "job", recorded, 2)
    for path in folder.iterdir():
        with sqlite3.connect(path) as db:
            db.execute("UPDATE process SET exit_code = NULL")
            db.execute("DELETE FROM meta WHERE key = 'host'")
        db.close()
    found = asked(run, folder)
    assert [row["ended"] for row in found["table"]] == ["ended"] * 2 and found["ranks"] == "2 of 2"


def test_several_differences_are_named_at_once(run, recorded, tmp_path):
    folder = job(tmp_path / "job", recorded, 16, shape=3, flag=7, crash=9)
    (folder / "012.db").unlink()
    found = asked(run, folder)
    assert found["missing"] == "12" and [row["rank"] for row in found["table"][:3]] == [9, 3, 7] and not found["table"][3]["note"]
    assert sorted((row["ranks"], row["guard"]) for row in found["differs"]) == [("3", "L['values']"), ("7", "G['FLAG']")]
    text = run("ranks", folder).stdout
    assert "missing    12" in text and "\tFLAG\t" in text
    assert run("why", "forward", folder, "--ranks").stdout.count("\tFLAG\t") == 1
    assert "All ranks compiled alike" in run("ranks", folder, "--function", "nosuch").stdout
    assert run("why", folder, "--ranks").returncode == 2


def test_ranks_that_cannot_be_compared_are_named(run, recorded, tmp_path):
    folder = job(tmp_path / "job", recorded, 4)
    with sqlite3.connect(folder / "003.db") as db:
        db.execute("UPDATE meta SET value = 'k' WHERE key = 'job'")
    db.close()
    with sqlite3.connect(folder / "002.db") as db:
        db.execute("UPDATE process SET rank = 1")
    db.close()
    done = run("ranks", folder, "--json")
    lines = done.stderr.splitlines()
    assert done.returncode == 3 and len(lines) == 2 and "003.db: left out: is of job k, most are of j" in lines[0], lines
    assert "001.db: left out: rank 1 is in" in lines[1] and json.loads(done.stdout)["ranks"] == "2 of 4, on 2 hosts"
    with sqlite3.connect(folder / "002.db") as db:
        db.execute("UPDATE process SET rank = NULL")
        db.execute("DELETE FROM meta WHERE key = 'rank'")
    db.close()
    done = run("ranks", folder / "002.db")
    assert done.returncode == 2 and "has no rank" in one_line(done.stderr)
    assert run("ranks").returncode == 2


def test_a_merged_trace_gives_the_same_answer(run, recorded, tmp_path):
    """The answer is the same for the merged trace, in the TUI and on the page."""
    folder, merged, page = job(tmp_path / "job", recorded, 8, shape=3, flag=6, crash=5), tmp_path / "all.db", tmp_path / "page.html"
    for path in folder.iterdir():
        with sqlite3.connect(path) as db:
            ahead = 60000000000 if path.stem == "003" else 0
            db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", [("clock_offset_ns", -ahead), ("clock_doubt_ns", 12000000)])
            db.execute("UPDATE meta SET value = value + ? WHERE key = 'started_unix_ns'", (ahead,))
            db.execute("UPDATE process SET rank = NULL")  # the launcher's word for all of the trace is in meta
        db.close()
    assert run("merge", folder, "-o", merged).returncode == 0
    assert asked(run, merged) == asked(run, folder)
    assert run("report", folder, "--html", page).returncode == 0
    text = page.read_text()
    assert text.count('<section id="ranks">') == 1 and "G[&#39;FLAG&#39;]" in text and "the first to die" in text
    assert " FLAG " in run("tui", folder, "--dump", "--screen", "160x60", "--keys", ":ranks Enter").stdout


def test_the_clock_of_a_machine_that_is_ahead_is_corrected(run, recorded, tmp_path):
    """Ranks of a machine whose clock is a minute ahead are put beside the others."""
    folder = job(tmp_path / "job", recorded, 8, shape=3)
    assert "may be any amount apart" in asked(run, folder)["clocks"]
    for path in folder.iterdir():
        with sqlite3.connect(path) as db:
            host = db.execute("SELECT value FROM meta WHERE key = 'host'").fetchone()[0]
            if host == "host3":
                db.execute("UPDATE meta SET value = value + 60000000000 WHERE key = 'started_unix_ns'")
            db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", [("clock_offset_ns", -60000000000 if host == "host3" else 0), ("clock_doubt_ns", 12000000)])
        db.close()
    found = asked(run, folder)
    assert found["clocks"] == "aligned by the clock of the traces' directory, to 26 ms" and found["differs"][0]["at_ns"] < 5e9


def barriers(folder, ahead, grouped=False):
    """Add twenty barriers of all ranks, 50 ms apart. The ranks reach each barrier within 7 ms, on hosts whose clocks are
    AHEAD."""
    for rank, path in enumerate(sorted(folder.iterdir())):
        with frame_rows(sqlite3.connect(path)) as db:
            zero = 1700000000000000000 + rank * 1000000  # as `job` has it
            code = db.execute("SELECT MAX(code_id) + 1 FROM code").fetchone()[0]
            frame = db.execute("SELECT MAX(frame_id) + 1 FROM frame").fetchone()[0]
            for i, name in enumerate(["barrier"] + ["new_group"] * grouped):
                db.execute("INSERT INTO code VALUES (?, 1, '/lib/torch/distributed/distributed_c10d.py', ?, 10, 'function', NULL, 1)", (code + i, name))
                db.execute("INSERT INTO code_total(code_id, calls, total_ns, self_ns, raised) VALUES (?, 20, 1, 1, 0)", (code + i,))
            for n in range(20):
                came = 1700000000100000000 + n * 50000000
                db.execute("INSERT INTO frame_rows VALUES (?, 1, NULL, ?, 0, 0, ?, ?, NULL, 0)",
                           (frame + n, code, came + (rank + n) % 8 * 1000000 - zero, came + 7000000 + (rank + n * 3) % 8 * 50000 - zero))
            db.execute("UPDATE meta SET value = ? WHERE key = 'started_unix_ns'", (zero + ahead[rank % 4],))
        db.close()
    return folder


def test_clocks_are_aligned_by_barriers(run, recorded, tmp_path):
    """Ranks leave a barrier at the same time, which aligns the clocks of their hosts, however far apart. The precision is
    printed."""
    right = asked(run, barriers(job(tmp_path / "right", recorded, 8, shape=3, crash=6), [0] * 4))
    wrong = barriers(job(tmp_path / "wrong", recorded, 8, shape=3, crash=6), [0, -3000000000, 7000000, 60000000000])
    found = asked(run, wrong)
    assert found["clocks"] == right["clocks"] == "aligned by the ranks' barriers, to 3 ms"
    assert [row["ranks"] for row in found["differs"]] == ["3"] and abs(found["differs"][0]["at_ns"] - right["differs"][0]["at_ns"]) < 1000000
    assert run("merge", wrong, "-o", tmp_path / "one.db").returncode == 0 and asked(run, tmp_path / "one.db")["clocks"] == found["clocks"]
    for path in wrong.iterdir():  # what the clock of the directory contradicts is not believed
        with sqlite3.connect(path) as db:
            db.executemany("INSERT INTO meta VALUES (?, ?)", [("clock_offset_ns", 0), ("clock_doubt_ns", 12000000)])
        db.close()
    assert asked(run, wrong)["clocks"] == "aligned by the clock of the traces' directory, to 26 ms"
    of_groups = barriers(job(tmp_path / "groups", recorded, 8), [0, 5, 5, 5], grouped=True)
    assert "may be any amount apart" in asked(run, of_groups)["clocks"]
    apart = barriers(job(tmp_path / "apart", recorded, 8), [0] * 4)
    with frame_rows(sqlite3.connect(apart / "005.db")) as db:  # one that did not wait
        db.execute("UPDATE frame_rows SET end_ns = start_ns + 1 WHERE code_id = (SELECT MAX(code_id) FROM code)")
    db.close()
    assert "may be any amount apart" in asked(run, apart)["clocks"]


def waits(folder, seconds, came=10):
    """Each rank was in collectives so many seconds: the first to come since CAME s after it began, all to the same moment."""
    for path, waited in zip(sorted(folder.iterdir()), seconds, strict=True):
        with frame_rows(sqlite3.connect(path)) as db:
            code, frame = db.execute("SELECT (SELECT MAX(code_id) + 1 FROM code), (SELECT MAX(frame_id) + 1 FROM frame)").fetchone()
            db.execute("INSERT INTO code VALUES (?, 1, '/lib/torch/distributed/distributed_c10d.py', 'all_reduce', 10, 'function', NULL, 1)", (code,))
            db.execute("INSERT INTO code_total(code_id, calls, total_ns, self_ns, raised) VALUES (?, 1, ?, ?, 0)", (code, waited * 1e9, waited * 1e9))
            db.execute("INSERT INTO frame_rows VALUES (?, 1, NULL, ?, 0, 0, ?, ?, NULL, 0)", (frame, code, (came + max(seconds) - waited) * 1e9, (came + max(seconds)) * 1e9))
        db.close()
    return folder


@pytest.mark.parametrize("seconds, came, late", [
    ([18.4, 5.2, 8.9, 2.7, 12.8, 10.6, 24.1, 0.7], 30, []), ([3.4, 14.3, 13.1, 9.2, 9.9, 9.2, 1.8, 12.3], 25, []),  # of jobs without a fault, under load
    ([9.8, 4.6, 16.6, 15.2], 40, []), ([7.2, 0.1], 20, []), ([6.0, 6.1, 0.1], 8, []),
    ([31, 28, 0.2, 30, 29, 30, 33, 27], 12, [2]), ([0.2, 24], 10, [0]), ([20, 21, 0.1], 8, [2]), ([20, 0.1, 21, 26], 8, [1]), ([30] * 60 + [1] * 4, 8, [60, 61, 62, 63]),
])
def test_a_late_rank_is_named_where_others_wait_for_it(run, recorded, tmp_path, seconds, came, late):
    """A rank for which others wait is named, if the load of the machine cannot be the reason."""
    found = asked(run, waits(job(tmp_path / "job", recorded, len(seconds)), seconds, came))
    assert {row["rank"]: row["note"] for row in found["table"] if row["note"]} == {rank: "late: others waited for it" for rank in late}


@pytest.mark.parametrize("began, came, late", [
    ([0] * 8, [30, 30.5, 31, 30, 45, 30, 31, 30.2], {4: "late: 14.0 s longer than most to its first collective"}),  # others wait less than they took to come
    ([0, 0, 1, 0, 0, 61], [8] * 6, {5: "late: began 60.0 s after most"}),
    ([0] * 6, [0.5] * 5 + [9.5], {5: "late: 9.0 s longer than most to its first collective"}),
    ([0] * 8, [36, 25, 26, 30, 29, 30, 38, 27], {}), ([0, 3, 9, 2, 5, 8, 20, 1], [30] * 8, {}), ([0, 0, 0, 9], [30, 30, 30, 45], {}),  # as load spreads them; too few ranks
    ([0] * 8, [30, 30.5, 31, 30, None, 30, 31, 30.2], {}),
])
def test_a_rank_that_started_late_is_named(run, recorded, tmp_path, began, came, late):
    """A rank is late by its own start: its process began later than most, or took longer to its first collective. None of these waits longer
    than others took to come."""
    folder = job(tmp_path / "job", recorded, len(came))
    for path, start, first in zip(sorted(folder.iterdir()), began, came, strict=True):
        changed(path, ("UPDATE meta SET value = value + ? WHERE key = 'started_unix_ns'", (start * 10**9,)), "UPDATE meta SET value = 'one' WHERE key = 'host'")
        if first is not None:
            changed(path, "INSERT INTO code SELECT MAX(code_id) + 1, 1, '/lib/torch/distributed/distributed_c10d.py', 'init_process_group', 10, 'function', NULL, 1 FROM code",
                    ("INSERT INTO frame_rows SELECT MAX(frame_id) + 1, 1, NULL, (SELECT MAX(code_id) FROM code), 0, 0, ?1, ?1 + 1000, NULL, 0 FROM frame", (int(first * 1e9),)),
                    "INSERT INTO code_total(code_id, calls, total_ns, self_ns, raised) SELECT MAX(code_id), 1, 1000, 1000, 0 FROM code")
    found = asked(run, folder)
    assert {row["rank"]: row["note"] for row in found["table"] if row["note"]} == late
    for number, path in enumerate(folder.iterdir()):  # with clocks that are not aligned nobody can tell who began later
        changed(path, ("UPDATE meta SET value = ? WHERE key = 'host'", (f"h{number}",)), "DELETE FROM meta WHERE key LIKE 'clock%'")
    assert {row["rank"]: row["note"] for row in asked(run, folder)["table"] if row["note"]} == {rank: note for rank, note in late.items() if "began" not in note}


@pytest.mark.parametrize("seconds, came, slow", [
    ([61, 84, 70, 112, 95, 66, 90, 73], 90, []), ([12, 31], 25, []), ([20, 33, 41, 90], 60, []),  # as the load of a machine spreads them
    ([12, 31], 3, [1]), ([20, 33, 41, 140], 60, [3]), ([2] * 7 + [40], 8, [7]), ([2] * 7 + [11], 8, []), ([3] * 63 + [30], None, [63]),
])
def test_a_rank_that_compiled_longer_is_named(run, recorded, tmp_path, seconds, came, slow):
    """A rank whose compiles took longer than those of most ranks is named."""
    folder = job(tmp_path / "job", recorded, len(seconds))
    if came:
        waits(folder, [1] * len(seconds), came)
    for path, took in zip(sorted(folder.iterdir()), seconds, strict=True):
        with sqlite3.connect(path) as db:
            db.execute("UPDATE compile SET end_ns = start_ns + ? WHERE compile_id = 1", (took * 10**9,))
        db.close()
    found = asked(run, folder)
    assert {row["rank"]: row["note"] for row in found["table"] if row["note"]} == {rank: "compiled longer than most" for rank in slow}


def changed(path, *statements):
    with frame_rows(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(*statement if isinstance(statement, tuple) else (statement,))
    db.close()


def guard(path, source, expression, kind="TENSOR_MATCH"):
    """The first guard of the first entry is this one."""
    changed(path, ("UPDATE guard SET kind = ?, source = ?, expression = ? WHERE cache_entry_id = 1 AND ordinal = 0", (kind, source, expression)))


TENSOR = "check_tensor(%s, Tensor, DispatchKeySet(CUDA, BackendSelect), torch.float32, device=%s, requires_grad=False, size=[%d, 4], stride=[4, 1])"
# (source, expression) in one process, and in another that does the same
PROCESSES = {
    "device": (("L['x']", TENSOR % ("L['x']", 0, 8)), ("L['x']", TENSOR % ("L['x']", 5, 8))),
    "device name": (("L['d']", "L['d'] == 'cuda:0'"), ("L['d']", "L['d'] == 'cuda:11'")),
    "other device name": (("L['d']", "L['d'] == 'npu:0'"), ("L['d']", "L['d'] == 'npu:1'")),
    "device object": (("G['d']", "G['d'] == device(type='xpu', index=0)"), ("G['d']", "G['d'] == device(type='xpu', index=1)")),
    "stream": (("___get_current_stream(torch.device('cuda', 0))", "x"), ("___get_current_stream(torch.device('cuda', 1))", "x")),
    "builtins": (("G['__builtins_dict___0']['len']", "___check_obj_id(G['__builtins_dict___0']['len'], 140222591751072), type=<class 'f'>"),
                 ("G['__builtins_dict___24']['len']", "___check_obj_id(G['__builtins_dict___24']['len'], 94022259), type=<class 'f'>")),
    "scope": (("G['___unnamed_scope_140222591751072_c0']['k']", "x"), ("G['___unnamed_scope_139904561779616_c11']['k']", "x")),
    "module": (("G['___module_nn_140222591751072_c0']", "x"), ("G['___module_nn_139904561779616_c3']", "x")),
    "compiled": (("G['__compiled_fn_3_0a1b2c3d_1111_2222_3333_444444444444']", "x"),
                 ("G['__compiled_fn_5_ffffffff_1111_2222_3333_555555555555']", "x")),
    "resume": (("G['__resume_at_30_3']", "x"), ("G['__resume_at_30_4']", "x")),
    "new name": (("G['__of_a_later_torch_1']", "x"), ("G['__of_a_later_torch_2']", "x")),
    "address": (("L['f']", "L['f'] is <function f at 0x7f8f538a5800>"), ("L['f']", "L['f'] is <function f at 0x55d0c0ffee>")),
    "type": (("L['x']", "___check_type_id(L['x'], 9463552), type=<class 'int'>"), ("L['x']", "___check_type_id(L['x'], 94859303463552), type=<class 'int'>")),
    "dict version": (("L['d']", "___dict_version(L['d']) == 71"), ("L['d']", "___dict_version(L['d']) == 1234")),
    "hooks": (("saved tensors hooks", "a.top_saved_tensors_hooks ids == (14022259, 14022260)"), ("saved tensors hooks", "a.top_saved_tensors_hooks ids == (94022259, 94022260)")),
    "set": (("L['s']", "L['s'] == {'b', 'a'}"), ("L['s']", "L['s'] == {'a', 'b'}")),
}


@pytest.mark.parametrize("case", PROCESSES)
def test_values_that_differ_in_every_process_are_no_difference_of_ranks(run, recorded, tmp_path, case):
    """Device numbers, addresses and counters of a process in sources and expressions are no difference."""
    folder = job(tmp_path / "job", recorded, 3)
    for rank in range(3):
        guard(folder / f"{rank:03}.db", *PROCESSES[case][rank == 2])
    found = asked(run, folder)
    assert found["differs"] == [] and not [row for row in found["table"] if row["note"]]


@pytest.mark.parametrize("one, other, here, others", [
    (("L['n']", "L['n'] == 1000000007"), ("L['n']", "L['n'] == 1000000009"), "L['n'] == 1000000009", "L['n'] == 1000000007"),
    (("L['d']", "L['d'] == 'cuda:0'"), ("L['d']", "L['d'] == 'cpu'"), "L['d'] == 'cpu'", "L['d'] == 'cuda:*'"),
    (("L['x']", TENSOR % ("L['x']", 0, 8)), ("L['x']", TENSOR % ("L['x']", 1, 12)), "size=[12, 4]", "size=[8, 4]"),
    (("G['layer_1'].k", "x"), ("G['layer_2'].k", "x"), "x", "no such guard"),
    (("G['__import_my_dot_block_1'].k", "x"), ("G['__import_my_dot_block_2'].k", "x"), "x", "no such guard"),
    (("L['f']", "L['f'] is <function f at 0x7f8f538a5800>"), ("L['f']", "L['f'] is <function g at 0x7f8f538a5800>"),
     "L['f'] is <function g at *>", "L['f'] is <function f at *>"),
    (("L['x']", "___check_obj_id(L['x'], 140222591751072), type=<class 'a'>"), ("L['x']", "___check_obj_id(L['x'], 140222591751072), type=<class 'b'>"),
     "type=<class 'b'>", "type=<class 'a'>"),
])
def test_only_the_differing_part_of_a_guard_is_printed(run, recorded, tmp_path, one, other, here, others):
    folder = job(tmp_path / "job", recorded, 3)
    for rank in range(3):
        guard(folder / f"{rank:03}.db", *(other if rank == 2 else one))
    [row] = asked(run, folder)["differs"]
    assert (row["ranks"], row["guard"], row["compile"]) == ("2", other[0], 1)
    assert row["here"].endswith(here) and row["others"].endswith(others)


def test_a_guard_that_one_rank_lacks_is_named(run, recorded, tmp_path):
    folder = job(tmp_path / "job", recorded, 3)
    changed(folder / "001.db", "DELETE FROM guard WHERE source = \"G['FLAG']\" AND cache_entry_id = 1")
    [row] = asked(run, folder)["differs"]
    assert (row["ranks"], row["guard"], row["here"], row["others"]) == ("1", "G['FLAG']", "no such guard", "G['FLAG'] == 1")


def test_ranks_that_run_different_code_with_equal_guards_differ(run, recorded, tmp_path):
    """The fingerprints of the function's own code are compared. The compiled code has another fingerprint in each
    process."""
    folder = job(tmp_path / "job", recorded, 4)
    changed(folder / "002.db", "UPDATE code SET fingerprint = fingerprint + 1 WHERE qualname = 'Model.forward'")
    changed(folder / "001.db", "UPDATE code SET fingerprint = fingerprint + 1 WHERE kind = 'compiled'")
    found = asked(run, folder)
    [row] = found["differs"]
    assert (row["function"], row["ranks"], row["guard"], row["compile"]) == ("Model.forward", "2", "code differs", 1)
    assert row["here"].startswith("code ") and row["others"].startswith("code ") and row["here"] != row["others"]
    changed(folder / "003.db", "UPDATE code SET fingerprint = NULL")  # as an import has it: nothing is known
    assert asked(run, folder)["differs"] == []
    for rank in (0, 1, 3):
        changed(folder / f"00{rank}.db", "UPDATE code SET first_line = 17 WHERE qualname = 'Model.forward'")
    moved = [row for row in asked(run, folder)["differs"] if row["where"].endswith("rank.py:17")]
    assert [(row["guard"], row["here"], row["others"]) for row in moved] == [("code differs", "at line 18", "at line 17")]


def resume_function(path, compile_id=1, line=20):
    """The compile broke at LINE, and what comes after it was compiled as well."""
    name = f"Model.torch_dynamo_resume_in_forward_at_{line}"
    changed(path, ("INSERT INTO code SELECT 900, process_id, filename, ?, ?, 'resume', code_id, 7 FROM code WHERE qualname = 'Model.forward'", (name, line)),
            ("INSERT INTO graph_break(compile_id, code_id, line, reason, resume_code_id) SELECT ?, code_id, ?, ?, 900 FROM compile WHERE compile_id = ?",
             (compile_id, line, "Failed to trace\nBuiltin print\n  Explanation: no <object at 0x7f0012>", compile_id)),
            "INSERT INTO compile(compile_id, thread_id, code_id, label, start_ns, end_ns, outcome) SELECT 900, thread_id, 900, '9/0', end_ns, end_ns + 5, 'compiled' "
            "FROM compile WHERE compile_id = 1")


def test_differing_breaks_limits_and_outcomes_of_ranks_are_described(run, recorded, tmp_path):
    folder = job(tmp_path / "job", recorded, 8)
    resume_function(folder / "003.db")
    changed(folder / "005.db", "UPDATE compile SET outcome = 'limit', cache_entry_id = NULL WHERE compile_id = 1")
    changed(folder / "006.db", "UPDATE compile SET outcome = 'declined', cache_entry_id = NULL WHERE compile_id = 1")
    found = asked(run, folder)
    words = {(row["function"], row["ranks"]): (row["guard"], row["here"], row["others"]) for row in found["differs"]}
    broke = "broke at line 20%s: Failed to trace Builtin print"
    assert words == {
        ("Model.forward", "3"): ("graph break", broke % "", "no such break"),
        ("Model.torch_dynamo_resume_in_forward_at_20", "3"): ("graph break", broke % " of Model.forward", "no such break"),
        ("Model.forward", "5"): ("outcome", "limit reached", "compiled"),
        ("Model.forward", "6"): ("outcome", "declined: the compiler gave no code", "compiled")}
    for row in found["differs"]:
        assert all(value not in (None, "") for value in row.values()), row


def test_a_graph_break_that_one_rank_lacks_is_named(run, recorded, tmp_path):
    folder = job(tmp_path / "job", recorded, 3)
    for rank in (0, 1, 2):
        resume_function(folder / f"00{rank}.db", line=20 if rank < 2 else 22)
    words = {row["function"]: (row["guard"], row["here"], row["others"]) for row in asked(run, folder)["differs"]}
    broke = "broke at line %d%s: Failed to trace Builtin print"
    rest = "Model.torch_dynamo_resume_in_forward_at_"
    assert words == {"Model.forward": ("graph break", broke % (22, ""), broke % (20, "")),
                     rest + "20": ("graph break", "no such break", broke % (20, " of Model.forward")),
                     rest + "22": ("graph break", broke % (22, " of Model.forward"), "no such break")}


def test_a_compile_that_only_one_rank_has_is_named(run, recorded, tmp_path):
    folder = job(tmp_path / "job", recorded, 3)
    changed(folder / "001.db", "INSERT INTO code SELECT 901, process_id, filename, 'extra', 90, 'function', NULL, 7 FROM code WHERE qualname = 'Model.forward'",
            "INSERT INTO compile(compile_id, thread_id, code_id, label, start_ns, end_ns, outcome) SELECT 901, thread_id, 901, '9/0', end_ns, end_ns + 5, 'compiled' "
            "FROM compile WHERE compile_id = 1")
    [row] = asked(run, folder)["differs"]
    assert (row["function"], row["ranks"], row["guard"], row["here"], row["others"]) == ("extra", "1", "compile", "compiled", "no such compile")


def test_names_that_differ_only_in_a_counter_are_one_function(run, recorded, tmp_path):
    """The name of dyntrace's resume functions has a counter of the process, and so has the file name of code made by
    torch.fx."""
    folder = job(tmp_path / "job", recorded, 3)
    for rank in range(3):
        path = folder / f"00{rank}.db"
        changed(path, f"INSERT INTO code SELECT 902, process_id, '<eval_with_key>.{rank + 3}', 'f.__resume_at_30_{rank}', 5, 'resume', NULL, {rank} "
                      "FROM code WHERE qualname = 'Model.forward'",
                "INSERT INTO compile(compile_id, thread_id, code_id, label, start_ns, end_ns, outcome) SELECT 902, thread_id, 902, '9/0', end_ns, end_ns + 5, "
                "'compiled' FROM compile WHERE compile_id = 1")
    assert asked(run, folder)["differs"] == []


def test_consecutive_ranks_are_printed_as_ranges(run, recorded, tmp_path):
    folder = job(tmp_path / "job", recorded, 12)
    for rank in (3, 4, 5, 8, 10):
        changed(folder / f"{rank:03}.db", "UPDATE compile SET outcome = 'declined', cache_entry_id = NULL WHERE compile_id = 1")
    for rank in (1, 2, 11):
        (folder / f"{rank:03}.db").unlink()
    for path in folder.iterdir():
        changed(path, "UPDATE meta SET value = 1000 WHERE key = 'world_size'")
    found = asked(run, folder)
    assert found["missing"] == "1-2, 11-999" and found["ranks"].startswith("9 of 1000")
    (folder / "010.db").unlink()
    [row] = [row for row in asked(run, folder)["differs"] if row["here"].startswith("declined")]
    assert row["ranks"] == "3-5,8"


def test_why_prints_consecutive_ranks_as_ranges(run, recorded, tmp_path):
    folder = job(tmp_path / "job", recorded, 20)
    assert "\nranks 0-19\n" in run("why", "Model.forward", folder).stdout
    (folder / "004.db").unlink()
    for rank in (7, 8, 11):
        changed(folder / f"{rank:03}.db", "UPDATE compile SET outcome = 'declined', cache_entry_id = NULL WHERE compile_id = 2")
    assert ("\nranks 0-3: 2 compiles, 5-6: 2 compiles, 7-8: 1 compile, 9-10: 2 compiles, 11: 1 compile, 12-19: 2 compiles; they differ\n"
            in run("why", "Model.forward", folder).stdout)
