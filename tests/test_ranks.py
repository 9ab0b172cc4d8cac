"""`dyntrace ranks`: faults are planted in jobs of 2 to 64 ranks, and the right rank and guard are named each time, and nothing else."""
import json
import os
import shutil
import sqlite3
import subprocess

import pytest

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
    """A directory with a trace for each rank; FAULTS: by name, the rank that has it. Rank r began r ms later, on host r % 4."""
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


@pytest.mark.parametrize("world", [2, 3, 8, 64])
@pytest.mark.parametrize("fault", FAULTS)
def test_planted(run, recorded, tmp_path, world, fault):
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


def test_several_at_once(run, recorded, tmp_path):
    folder = job(tmp_path / "job", recorded, 16, shape=3, flag=7, crash=9)
    (folder / "012.db").unlink()
    found = asked(run, folder)
    assert found["missing"] == "12" and [row["rank"] for row in found["table"][:3]] == [9, 3, 7] and not found["table"][3]["note"]
    assert sorted((row["ranks"], row["guard"]) for row in found["differs"]) == [("3", "L['values']"), ("7", "G['FLAG']")]
    text = run("ranks", folder).stdout
    assert "missing    12" in text and "G['FLAG']" in text
    assert run("why", "forward", folder, "--ranks").stdout.count("G['FLAG']") == 1
    assert "All ranks compiled alike" in run("ranks", folder, "--function", "nosuch").stdout
    assert run("why", folder, "--ranks").returncode == 2


def test_left_out(run, recorded, tmp_path):
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


def test_merged(run, recorded, tmp_path):
    """Of the traces as one the answer is the same, and so it is in the TUI and on the page."""
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
    assert "G['FLAG']" in run("tui", folder, "--dump", "--screen", "160x60", "--keys", ":ranks Enter").stdout


def test_clocks(run, recorded, tmp_path):
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
    """Twenty barriers of all ranks, 50 ms apart, to which they come one after the other within 7 ms, on hosts whose clocks are AHEAD."""
    for rank, path in enumerate(sorted(folder.iterdir())):
        with sqlite3.connect(path) as db:
            zero = 1700000000000000000 + rank * 1000000  # as `job` has it
            code = db.execute("SELECT MAX(code_id) + 1 FROM code").fetchone()[0]
            frame = db.execute("SELECT MAX(frame_id) + 1 FROM frame").fetchone()[0]
            for i, name in enumerate(["barrier"] + ["new_group"] * grouped):
                db.execute("INSERT INTO code VALUES (?, 1, '/lib/torch/distributed/distributed_c10d.py', ?, 10, 'function', NULL, 1)", (code + i, name))
                db.execute("INSERT INTO code_total VALUES (?, 20, 1, 1, 0)", (code + i,))
            for n in range(20):
                came = 1700000000100000000 + n * 50000000
                db.execute("INSERT INTO frame VALUES (?, 1, NULL, ?, 0, 0, ?, ?, NULL, 0)",
                           (frame + n, code, came + (rank + n) % 8 * 1000000 - zero, came + 7000000 + (rank + n * 3) % 8 * 50000 - zero))
            db.execute("UPDATE meta SET value = ? WHERE key = 'started_unix_ns'", (zero + ahead[rank % 4],))
        db.close()
    return folder


def test_clocks_by_barriers(run, recorded, tmp_path):
    """Ranks leave a barrier together: the clocks of their hosts are put right by that, however far apart, and it is said how well."""
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
    with sqlite3.connect(apart / "005.db") as db:  # one that did not wait
        db.execute("UPDATE frame SET end_ns = start_ns + 1 WHERE code_id = (SELECT MAX(code_id) FROM code)")
    db.close()
    assert "may be any amount apart" in asked(run, apart)["clocks"]


def waits(folder, seconds, came=10):
    """Each rank was in collectives so many seconds: the first to come since CAME s after it began, all to the same moment."""
    for path, waited in zip(sorted(folder.iterdir()), seconds, strict=True):
        with sqlite3.connect(path) as db:
            code, frame = db.execute("SELECT (SELECT MAX(code_id) + 1 FROM code), (SELECT MAX(frame_id) + 1 FROM frame)").fetchone()
            db.execute("INSERT INTO code VALUES (?, 1, '/lib/torch/distributed/distributed_c10d.py', 'all_reduce', 10, 'function', NULL, 1)", (code,))
            db.execute("INSERT INTO code_total VALUES (?, 1, ?, ?, 0)", (code, waited * 1e9, waited * 1e9))
            db.execute("INSERT INTO frame VALUES (?, 1, NULL, ?, 0, 0, ?, ?, NULL, 0)", (frame, code, (came + max(seconds) - waited) * 1e9, (came + max(seconds)) * 1e9))
        db.close()
    return folder


@pytest.mark.parametrize("seconds, came, late", [
    ([18.4, 5.2, 8.9, 2.7, 12.8, 10.6, 24.1, 0.7], 30, []), ([3.4, 14.3, 13.1, 9.2, 9.9, 9.2, 1.8, 12.3], 25, []),  # of jobs without a fault, under load
    ([9.8, 4.6, 16.6, 15.2], 40, []), ([7.2, 0.1], 20, []), ([6.0, 6.1, 0.1], 8, []),
    ([31, 28, 0.2, 30, 29, 30, 33, 27], 12, [2]), ([0.2, 24], 10, [0]), ([20, 21, 0.1], 8, [2]), ([20, 0.1, 21, 26], 8, [1]), ([30] * 60 + [1] * 4, 8, [60, 61, 62, 63]),
])
def test_late(run, recorded, tmp_path, seconds, came, late):
    """That others wait for a rank is said where it cannot be the load of the machine."""
    found = asked(run, waits(job(tmp_path / "job", recorded, len(seconds)), seconds, came))
    assert {row["rank"]: row["note"] for row in found["table"] if row["note"]} == {rank: "late: others waited for it" for rank in late}


@pytest.mark.parametrize("seconds, came, slow", [
    ([61, 84, 70, 112, 95, 66, 90, 73], 90, []), ([12, 31], 25, []), ([20, 33, 41, 90], 60, []),  # as the load of a machine spreads them
    ([12, 31], 3, [1]), ([20, 33, 41, 140], 60, [3]), ([2] * 7 + [40], 8, [7]), ([2] * 7 + [11], 8, []), ([3] * 63 + [30], None, [63]),
])
def test_compiled_longer(run, recorded, tmp_path, seconds, came, slow):
    """So is that a rank's compiles took longer than those of most."""
    folder = job(tmp_path / "job", recorded, len(seconds))
    if came:
        waits(folder, [1] * len(seconds), came)
    for path, took in zip(sorted(folder.iterdir()), seconds, strict=True):
        with sqlite3.connect(path) as db:
            db.execute("UPDATE compile SET end_ns = start_ns + ? WHERE compile_id = 1", (took * 10**9,))
        db.close()
    found = asked(run, folder)
    assert {row["rank"]: row["note"] for row in found["table"] if row["note"]} == {rank: "compiled longer than most" for rank in slow}
