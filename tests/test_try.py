"""`dyntrace try`: the recorded command runs again under settings, and the measurements are stored in the trace."""
import json
import os
import signal
import sqlite3
import subprocess
import textwrap
import time
from pathlib import Path

import pytest

from planted import make_trace
from shared import Screen, holds, one_line, query, script, table

pytestmark = pytest.mark.one_python

# A baseline and three trials of function 1: one that gains, one that changes the output, one that was refused.
TRIALS = """
INSERT INTO trial(trial_id, batch, setting, exit_code, output_same, error, compiles, recompiles, breaks, eager, hits, compile_ns) VALUES
    (1, 1, '', 0, NULL, NULL, 5, 3, 1, 2, 10, 900), (2, 1, 'limit=9', 0, 1, NULL, 6, 4, 1, 0, 12, 900),
    (3, 1, 'dynamic=True', 0, 0, NULL, 1, 0, 0, 0, 16, 100), (4, 1, 'config.nope=1', 2, NULL, 'there is no nope', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO trial_function VALUES (1, 1, 5, 3, 1, 2, 10, 900, NULL), (2, 1, 6, 4, 1, 0, 12, 900, 50);
"""


def planted(path, rows=TRIALS):
    make_trace(path)
    with sqlite3.connect(path) as db:
        db.executescript(rows)
    return path


# ---- the tables ------------------------------------------------------------

def test_views_tell_which_trial_works_and_gains(tmp_path):
    path = holds(planted(tmp_path / "t.db"))
    assert query(path, "SELECT trial_id, baseline, works, gain, baseline_eager FROM trials") == [
        (1, 1, 1, 0, 2), (2, 0, 1, 1, 2), (3, 0, 0, 0, 2), (4, 0, 0, 0, 2)]
    assert query(path, "SELECT trial_id, works, gain, compiles, eager, step_ns FROM trial_functions") == [
        (1, 1, 0, 5, 2, None), (2, 1, 1, 6, 0, 50), (3, 0, 0, 0, 0, None), (4, 0, 0, None, None, None)]


@pytest.mark.parametrize("better, worse", [("eager = 1, compiles = 9", "eager = 3"), ("compiles = 4, recompiles = 9", "compiles = 6"),
                                           ("recompiles = 2, breaks = 9", "recompiles = 4"), ("breaks = 0", "breaks = 1, compile_ns = 0")])
def test_a_gain_is_fewer_eager_calls_then_compiles_then_recompiles_then_breaks(tmp_path, better, worse):
    rows = TRIALS + "UPDATE trial SET compiles = 5, recompiles = 3, breaks = 1, eager = 2, output_same = 1, error = NULL;" \
        f"UPDATE trial SET {better} WHERE trial_id = 2; UPDATE trial SET {worse} WHERE trial_id = 3"
    path = planted(tmp_path / "t.db", rows)
    assert query(path, "SELECT gain FROM trials") == [(0,), (1,), (0,), (0,)]


@pytest.mark.parametrize("change", ["output_same = 0", "output_same = NULL", "values_same = 'different'", "error = 'x'", "exit_code = 1",
                                    "exit_code = NULL, exit_signal = 11"])
def test_a_trial_that_does_not_work_is_no_gain(tmp_path, change):
    path = planted(tmp_path / "t.db", TRIALS + f"UPDATE trial SET {change} WHERE trial_id = 2")
    assert query(path, "SELECT works, gain FROM trials WHERE trial_id = 2") == [(0, 0)]
    assert query(path, "SELECT works, gain FROM trial_functions WHERE trial_id = 2") == [(0, 0)]


def test_older_traces_have_no_trials(run, tmp_path):
    path = make_trace(tmp_path / "old.db", *(f"DROP {kind}" for kind in (
        "VIEW trials", "VIEW trial_functions", "TABLE trial", "TABLE trial_function")))
    holds(path)
    assert table(run("sql", path, "SELECT (SELECT COUNT(*) FROM trials) AS a, (SELECT COUNT(*) FROM trial_function) AS b").stdout) == [
        {"a": "0", "b": "0"}]
    newer = planted(tmp_path / "new.db", TRIALS + "UPDATE process SET pid = pid + 100")
    assert run("merge", path, newer, "-o", tmp_path / "m.db").returncode == 0
    assert query(holds(tmp_path / "m.db"), "SELECT trial_id, batch, function_id IS NOT NULL FROM trial_functions WHERE baseline") == [(1, 1, 1)]


def test_merged_trials_keep_their_baselines_and_functions(run, tmp_path):
    paths = [planted(tmp_path / f"{n}.db", TRIALS + f"UPDATE process SET pid = pid + {n}00; UPDATE code SET qualname = qualname || {n}") for n in (1, 2)]
    assert run("merge", *paths, "-o", tmp_path / "m.db").returncode == 0
    found = query(holds(tmp_path / "m.db"), "SELECT trial_id, batch, qualname FROM trial_functions WHERE setting IN ('', 'limit=9') ORDER BY 1")
    names = [query(path, "SELECT qualname FROM code WHERE code_id = 1")[0][0] for path in paths]
    assert found == [(1, 1, names[0]), (2, 1, names[0]), (5, 5, names[1]), (6, 5, names[1])]


# ---- what a recording keeps ------------------------------------------------

def meta(path):
    return dict(query(path, "SELECT key, value FROM meta"))


def test_a_trace_keeps_how_to_run_it_again(record, python, tmp_path):
    (tmp_path / "here").mkdir()
    trace = record(["-c", "pass", "x"], "--torch", "observe", "--exclude", "a*", "--values", "types", python=python, cwd=tmp_path / "here")
    found = meta(trace.path)
    assert found["directory"] == str(tmp_path / "here") and found["executable"] == str(python)
    assert json.loads(found["options"]) == ["--torch", "observe", "--values", "types", "--exclude", "a*", "--python", str(python)] and "launcher" not in found


def test_the_trace_of_a_rank_keeps_its_launchers_command(dyntrace, python, tmp_path):
    words = [python, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:], check=True)"]
    subprocess.run([*words, dyntrace, "run", "-o", f"{tmp_path}/job/", "--python", python, "-c", "pass"], check=True, env={**os.environ, "RANK": "1"})
    [path] = (tmp_path / "job").iterdir()
    assert json.loads(meta(path)["launcher"]) == [str(word) for word in words]


def test_no_argv_keeps_no_command(record, python):
    assert not {"directory", "executable", "options", "launcher"} & set(meta(record(["-c", "pass"], "--no-argv", python=python).path))


# ---- the command -----------------------------------------------------------

LIMITED = """
import sys
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode

def callback(frame, *rest):
    n = frame.f_locals.get("n")
    return GuardedCode(frame.f_code, lambda L: L["n"] == n) if frame.f_code.co_name == "f" else None

def f(n):
    return [n + 1, {"half": n / 2}]

def main():
    set_eval_frame(callback)
    for round in range(3):
        for n in range(12):
            f(n)
    set_eval_frame(None)

if __name__ == "__main__":
    main()
"""
TOTAL = 36


@pytest.fixture
def limited(record, python, tmp_path):
    """limited(body, *words, ...) -> a recording of LIMITED and then BODY."""
    def limited(body="", *words, options=(), status=0, **more):
        path = script(tmp_path / "limited.py", LIMITED + textwrap.dedent(body))
        return record(words or [path], *options, python=python, status=status, **more).path

    return limited


def tried(run, path, *words, status=0, **more):
    done = run("try", path, *words, "--json", **more)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)["trials"]


COUNTS = "compiles", "recompiles", "eager", "hits"


def counts(trial):
    return tuple(trial[name] for name in COUNTS)


def test_try_measures_settings_and_stores_the_results(run, limited):
    path = limited()
    trials = tried(run, path, "f", "limit=12", "limit=2", "limit=12 accumulated_limit=3")
    assert [counts(trial) for trial in trials] == [(8, 7, 12, 16), (12, 11, 0, 24), (2, 1, 30, 4), (3, 2, 27, 6)]
    assert [(trial["setting"], trial["works"], trial["gain"], trial["note"]) for trial in trials] == [
        ("", True, False, None), ("limit=12", True, True, "gain"), ("limit=2", True, False, "no gain"),
        ("limit=12 accumulated_limit=3", True, False, "no gain")]
    assert all(trial["exit_code"] == 0 and trial["step_ns"] > 0 for trial in trials)
    assert [trial["same_output"] for trial in trials] == [None, True, True, True]
    holds(path)
    [function] = query(path, "SELECT MIN(code_id) FROM code WHERE qualname = 'f'")[0]
    assert query(path, "SELECT trial_id, batch, setting, function_id FROM trial")[2] == (3, 1, "limit=2", function)
    assert query(path, "SELECT setting, compiles, baseline_compiles, gain FROM trial_functions WHERE qualname = 'f' AND works LIMIT 2") == [
        ("", 8, 8, 0), ("limit=12", 12, 8, 1)]
    assert json.loads(query(path, "SELECT DISTINCT command FROM trial")[0][0]) == json.loads(meta(path)["command"])


def test_try_counts_the_same_as_a_run_by_hand(run, limited, record, python, tmp_path):
    path = limited()
    trials = tried(run, path, "f", "limit=5")
    by_hand = record([tmp_path / "limited.py"], "--set", "limit=5", python=python)
    assert by_hand.rows("SELECT SUM(cache_entry_id IS NOT NULL), SUM(is_recompile) FROM compiles WHERE qualname = 'f'") == [counts(trials[1])[:2]]
    assert by_hand.rows("SELECT SUM(ran_as_python), SUM(is_hit) FROM calls WHERE qualname = 'f' AND counted") == [counts(trials[1])[2:]]


def test_try_tests_the_remedies_of_why_by_default(run, limited):
    path = limited()
    done = run("try", path, "f")
    assert done.returncode == 0 and "limit=12" in done.stderr and "2 times" in done.stderr
    rows = table(done.stdout)
    assert [(row["setting"], row["compiles"], row["eager"], row["output"], row["note"]) for row in rows] == [
        ("(unchanged)", "8", "12", "", ""), ("limit=12", "12", "0", "same", "gain")]
    without = tried(run, path)  # the worst function
    assert [trial["setting"] for trial in without] == ["", "limit=12"] and counts(without[1])[2] == 0


def test_the_option_runs_limits_the_number_of_settings(run, limited):
    assert [trial["setting"] for trial in tried(run, limited(), "f", "--runs", "2")] == ["", "limit=12"]


@pytest.mark.parametrize("words", [["-m", "limited"], ["-c", "import limited; limited.main()"]])
def test_try_runs_a_module_or_code_again(run, limited, words):
    trials = tried(run, limited("", *words), "f", "limit=12")
    assert [counts(trial) for trial in trials] == [(8, 7, 12, 16), (12, 11, 0, 24)]


def test_try_runs_the_program_that_the_recording_found_on_path(run, dyntrace, python, tmp_path):
    """PATH changes after the recording. `try` uses the recorded directory and file."""
    script(tmp_path / "limited.py", LIMITED)
    (tmp_path / "there").mkdir()
    subprocess.run([dyntrace, "run", "-o", "t.db", Path(python).name, "limited.py"], cwd=tmp_path, check=True,
                   env={**os.environ, "PATH": f"{Path(python).parent}:{os.environ['PATH']}"})
    script(tmp_path / "there" / Path(python).name, "#!/bin/sh\necho no; exit 3\n", 0o755)
    trials = tried(run, tmp_path / "t.db", "f", "limit=12", cwd=tmp_path / "there",
                   env={**os.environ, "PATH": f"{tmp_path}/there:{os.environ['PATH']}"})
    assert [counts(trial) for trial in trials] == [(8, 7, 12, 16), (12, 11, 0, 24)]


def test_recorded_options_and_settings_hold_for_all_runs(run, limited):
    trials = tried(run, limited(options=["--set", "limit=3"]), "f", "limit=4@main", "limit=12")
    assert counts(trials[0]) == (3, 2, 27, 6) and counts(trials[2]) == (12, 11, 0, 24)
    assert not trials[1]["works"] and "matched nothing" in trials[1]["error"]


READS = """
import sys
for line in sys.stdin:
    f(int(line))
    print("read", line.strip())
"""


def test_each_run_of_try_reads_the_same_standard_input(run, limited):
    path = limited("import sys\nprint(sys.stdin.read())", input="anything\n")
    seen = tried(run, path, "f", "limit=12", input="1\n2\n")
    assert [trial["same_output"] for trial in seen] == [None, True]
    path = limited("set_eval_frame(callback)" + READS)
    trials = tried(run, path, "f", "limit=20", input="21\n22\n21\n")
    assert [counts(trial) for trial in trials] == [(8, 7, 15, 16), (14, 13, 0, 25)]


# ---- who is no gain --------------------------------------------------------

def limit_seen(then):
    return f"""
    from dyntrace.eval_frame import _debug_get_cache_entry_list
    if len(_debug_get_cache_entry_list(f.__code__)) > 8:
        {then}
    """


@pytest.mark.sweep(2)
@pytest.mark.parametrize("then, note, error", [
    ("raise ValueError('too many')", "ValueError: too many", "ValueError: too many"),
    ("sys.exit(3)", "exit status 3", "exit status 3"), ("import os; os.kill(os.getpid(), 6)", "killed by signal 6", "killed by signal 6"),
    ("print('other')", "changes its output: stdout: 'other', unchanged nothing", None),
    ("print('other', file=sys.stderr)", "changes its output: stderr: 'other', unchanged nothing", None)])
def test_a_trial_that_raises_or_changes_the_output_is_no_gain(run, limited, then, note, error):
    trials = tried(run, limited(limit_seen(then)), "f", "limit=12")
    assert counts(trials[1]) == (12, 11, 0, 24)
    assert (trials[1]["works"], trials[1]["gain"], trials[1]["note"], trials[1]["error"]) == (False, False, note, error)


def test_errors_quote_no_values_if_none_were_recorded(run, limited):
    trials = tried(run, limited(limit_seen("raise ValueError('secret')"), options=["--values", "types"]), "f", "limit=12")
    assert trials[1]["error"] == "ValueError"
    trials = tried(run, limited(limit_seen("print('secret')"), options=["--values", "types"]), "f", "limit=12")
    assert trials[1]["note"] == "changes its output"


def test_parts_of_the_output_that_always_differ_are_not_compared(run, limited):
    body = """
    import time
    print(hex(id(f)), object())
    print("took", time.perf_counter(), "s")
    print("bar\\rbar 1 %\\rbar 100 %", file=sys.stderr)
    """
    trials = tried(run, limited(body), "f", "limit=12")
    assert trials[1]["same_output"] is True and trials[1]["gain"]
    trials = tried(run, limited(body + "print('took', 1 / len(open(__file__).read()), sys.argv)\n" + textwrap.dedent(limit_seen("print('other')"))),
                   "f", "limit=12")
    assert trials[1]["same_output"] is False and not trials[1]["works"]


def test_log_messages_of_torch_are_not_the_programs_output(run, limited):
    log = "W1128 17:52:03.315000 1548 %s/_dynamo/convert_frame.py:1994] [0/8] limit reached"
    said = "print(%r, file=sys.stderr)"
    trials = tried(run, limited(limit_seen(said % (log % "torch"))), "f", "limit=12")
    assert trials[1]["same_output"] is True and trials[1]["gain"]
    trials = tried(run, limited(limit_seen(said % (log % "app"))), "f", "limit=12")
    assert trials[1]["same_output"] is False


def test_output_that_always_differs_gives_no_verdict(run, limited):
    trials = tried(run, limited("import time\nfor line in range(time.time_ns() % 7919): print(line)"), "f", "limit=12")
    assert trials[1]["same_output"] in (None, False) and not trials[1]["gain"]


def test_a_setting_that_matches_nothing_is_reported_with_that_reason(run, limited):
    trials = tried(run, limited(), "f", "limit=4@g", "dynamic=True")
    assert not any(trial["works"] for trial in trials[1:])
    assert [trial["error"] for trial in trials[1:]] == ["matched nothing"] * 2
    assert counts(trials[0]) == (8, 7, 12, 16)


def test_an_unknown_setting_is_refused_before_anything_runs(run, limited):
    path = limited("open('ran', 'w')")
    (path.parent / "ran").unlink()
    done = run("try", path, "f", "limit=12", "nope=1", "limit=3 limit=-2")
    assert done.returncode == 2 and not done.stdout
    assert [line.partition(": is")[0] for line in done.stderr.splitlines()][1:] == ["dyntrace: try: limit=-2"]
    assert done.stderr.startswith("dyntrace: try: nope=1: there is no such setting: ") and not (path.parent / "ran").exists()


# ---- values ----------------------------------------------------------------

def test_try_compares_return_values_of_the_function(run, limited):
    body = """
    from dyntrace.eval_frame import _debug_get_cache_entry_list
    def g(n):
        many = len(_debug_get_cache_entry_list(f.__code__)) > 8
        return (n + (1e-7 if many and NEAR else 0.0), [None, "x", many and FAR])
    for n in range(1, 5):
        g(n)
    """
    for near, far, same in (False, False, "equal"), (True, False, "close"), (True, True, "different"):
        trials = tried(run, limited(body.replace("NEAR", str(near)).replace("FAR", str(far))), "g", "limit=12", "--compare")
        assert [trial["values"] for trial in trials] == [None, same], (near, far)
    path = limited(body.replace("NEAR", "True").replace("FAR", "False"))
    assert tried(run, path, "g", "limit=12", "--compare", "--rtol", "1e-9")[1]["note"] == "changes what it returns"
    assert query(path, "SELECT values_same FROM trial ORDER BY 1 DESC LIMIT 1") == [("different",)]
    done = run("try", path, "g", "limit=12", "--rtol", "1e-9", "--yes")
    assert (done.returncode, done.stdout) == (2, "") and "--rtol bounds what --compare calls close: give --compare as well" in done.stderr


def test_return_values_that_always_differ_are_not_compared(run, limited):
    trials = tried(run, limited("import random\ndef g(): return random.random()\ng()"), "g", "limit=12", "--compare")
    assert trials[1]["values"] is None


def test_try_treats_fewer_calls_as_different_values(run, limited):
    body = "def g(): return 1\ng()\n" + textwrap.dedent(limit_seen("g()"))
    assert tried(run, limited(body), "g", "limit=12", "--compare")[1]["values"] == "different"


def test_try_compares_exceptions_of_calls(run, limited):
    body = """
    def g(n):
        if n:
            raise KeyError(n)
        return {}
    for n in range(3):
        try:
            g(n)
        except KeyError as error:
            print(error)
    """
    assert tried(run, limited(body), "g", "limit=12", "--compare")[1]["values"] == "equal"


# ---- how a run is ended ----------------------------------------------------

def test_the_option_calls_ends_each_run(run, limited):
    path = limited("print('never')")
    trials = tried(run, path, "f", "limit=12", "--calls", "20")
    assert [sum(counts(trial)[2:]) + trial["compiles"] for trial in trials] == [20, 20]
    assert [trial["exit_code"] for trial in trials] == [0, 0] and trials[1]["works"]


def test_a_run_that_takes_too_long_is_stopped(run, limited):
    began = time.monotonic()
    trials = tried(run, limited(limit_seen("import time; time.sleep(300)")), "f", "limit=12", "--timeout", "8s")
    assert trials[1]["error"] == "stopped after 8 s (--timeout)" and not trials[1]["works"] and trials[0]["works"]
    assert time.monotonic() - began < 120


def test_ctrl_c_keeps_the_runs_that_are_finished(limited, dyntrace, tmp_path):
    path = limited(limit_seen("open('slow', 'w').close(); import time; time.sleep(300)"))
    with subprocess.Popen([dyntrace, "try", path, "f", "limit=3", "limit=12", "limit=2"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, start_new_session=True) as child:
        while not (tmp_path / "slow").exists():
            time.sleep(0.05)
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert [row["setting"] for row in table(out)] == ["(unchanged)", "limit=3"]
    assert query(holds(path), "SELECT setting FROM trial") == [("",), ("limit=3",)]


def test_try_leaves_no_files_behind(run, limited, tmp_path):
    (tmp_path / "t").mkdir()
    path = limited()
    before = sorted(entry.name for entry in tmp_path.iterdir())
    tried(run, path, "f", "limit=12", "--compare", env={**os.environ, "TMPDIR": str(tmp_path / "t")})
    assert sorted(entry.name for entry in tmp_path.iterdir()) == before and not list((tmp_path / "t").iterdir())


def test_try_asks_on_a_terminal_before_it_runs(limited, dyntrace, tmp_path):
    path = limited()
    screen = Screen([dyntrace, "try", path, "f", "limit=12"])
    asked = screen.wait("Go on? [y/N] ")
    assert "limited.py" in asked and "2 times: unchanged, then with" in asked and "limit=12" in asked
    screen.type("n\n")
    assert screen.finish()[1] == 2 and not query(path, "SELECT * FROM trial")
    screen = Screen([dyntrace, "try", path, "f", "limit=12"])
    screen.wait("Go on? [y/N] ")
    screen.type("y\n")
    text, status = screen.finish()
    assert status == 0 and "(unchanged)" in text and "gain" in text
    screen = Screen([dyntrace, "try", path, "f", "limit=12", "--yes"])
    text, status = screen.finish()
    assert status == 0 and "Go on" not in text


# ---- what cannot be tried --------------------------------------------------

def refused(run, *words, command="try", **more):
    done = run(command, *words, **more)
    assert done.returncode == 2 and not done.stdout, done.stdout
    return one_line(done.stderr)


def test_try_says_why_a_trace_cannot_run_again(run, limited, trace, tmp_path, record, python):
    assert "--no-argv" in refused(run, limited(options=["--no-argv"]), "f", "limit=3")
    assert "did not keep the directory" in refused(run, trace, "f", "limit=3")
    assert "no such function" in refused(run, limited(), "nobody", "limit=3")
    assert "no setting" in refused(run, limited(), "f", "limit=3", "other")
    assert "a file, but no trace by its name" in refused(run, "/etc/passwd", cwd=limited().parent)
    assert "needs the name of a function" in refused(run, record(["-c", "pass"], python=python).path, "limit=1", "--calls", "3").replace("need ", "needs ")
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "renamed").write_bytes(limited().read_bytes())
    for command in ("try", "why", "show"):
        assert refused(run, "/etc/passwd", cwd=empty, command=command) == "dyntrace: /etc/passwd: not an SQLite database, so not a trace\n"
        assert f"`dyntrace {command} FUNC renamed`" in refused(run, "renamed", cwd=empty, command=command)
    gone = tmp_path / "gone"
    gone.mkdir()
    path = limited(cwd=gone)
    gone.rmdir()
    assert f"ran in {gone}" in refused(run, path, "f", "limit=3")


@pytest.mark.parametrize("number", ["0", "1", "-3", "many"])
def test_a_number_of_runs_without_room_for_a_setting_is_refused(run, limited, number):
    assert f"--runs {number}: not a number from 2 on" in refused(run, limited("print('ran')"), "f", f"--runs={number}")


def test_a_trace_that_may_not_be_written_is_refused_before_anything_runs(run, limited):
    path = limited("print('ran')")
    path.chmod(0o444)
    assert "cannot be written" in refused(run, path, "f", "limit=3")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_command_of_another_users_trace_does_not_run_unasked(run, limited):
    path = limited("open('ran', 'w')")
    (path.parent / "ran").unlink()
    os.chown(path, 12345, -1)
    assert "belongs to another user" in refused(run, path, "f", "limit=3")
    assert not (path.parent / "ran").exists()
    tried(run, path, "f", "limit=3", "--yes")
    assert (path.parent / "ran").exists()


def test_a_damaged_trace_is_refused_before_anything_runs(run, limited):
    path = limited()
    data = bytearray(path.read_bytes())
    data[100:4096] = os.urandom(3996)
    path.write_bytes(data)
    assert str(path) in refused(run, path, "f", "limit=3")


def test_results_of_an_older_trace_are_kept_in_it(run, limited):
    path = limited()
    with sqlite3.connect(path) as db:
        db.executescript("DROP VIEW trials; DROP VIEW trial_functions; DROP TABLE trial; DROP TABLE trial_function")
    tried(run, path, "f", "limit=3")
    assert query(holds(path), "SELECT setting, gain FROM trials") == [("", 0), ("limit=3", 0)]


def test_try_says_that_there_is_nothing_to_try(run, record, python):
    done = run("try", record(["-c", "def f(): pass\nf()"], python=python).path)
    assert done.returncode == 2 and "no remedy" in one_line(done.stderr)


# ---- the other pages -------------------------------------------------------

def test_trials_of_dyntrace_try_are_on_every_page(run, limited, tmp_path):
    path = limited()
    assert "Trials" not in run("report", path).stdout
    tried(run, path, "f", "limit=12", "limit=2", "limit=4@g")
    text = run("report", path).stdout
    assert "Trials: the recorded command under settings" in text and "\nlimit=12\t12\t11\t0\t0\t24\t" in text and "gain" in text
    rows = json.loads(run("report", path, "--json").stdout)["trials"]
    assert [(row["setting"], row["gain"], row["note"]) for row in rows][:3] == [("(unchanged)", 0, ""), ("limit=12", 1, "gain"), ("limit=2", 0, "no gain")]
    assert run("report", path, "--html", "out.html").returncode == 0
    page = (tmp_path / "out.html").read_text()
    assert "<section id=\"trials\">" in page and "limit=12" in page
    done = run("check", path, "--max-recompiles", "99")
    assert done.returncode == 0 and "holds 3 trials of `dyntrace try`, 1 a gain, such as limit=12" in done.stderr
    found = table(run("sql", path, "trials").stdout)
    assert [(row["function"], row["setting"], (row["note"] or "")[:5]) for row in found if row["function"] == "f"] == [
        ("f", "(unchanged)", ""), ("f", "limit=12", "gain"), ("f", "limit=2", "no ga"), ("f", "limit=4@g", "match")]


def test_the_tui_shows_the_trials_of_dyntrace_try(run, limited, dyntrace):
    path = limited()
    tried(run, path, "f", "limit=12")
    screen = Screen([dyntrace, "tui", path])
    screen.wait("Trials: 1 run of the recorded command by dyntrace try")
    screen.wait("limit=12")
    screen.wait("12 compiles, 0 eager calls")
    screen.type("q")
    screen.finish()


def test_why_puts_a_measured_remedy_first(run, limited):
    path = limited()
    done = run("why", "f", path, "--try")
    assert done.returncode == 0 and "limit=12" in done.stderr and "f  limited.py" not in done.stderr, done.stderr
    assert done.stdout.splitlines()[1].startswith("36 calls")
    assert query(path, "SELECT setting, gain FROM trial_functions WHERE qualname = 'f'") == [("", 0), ("limit=12", 1)]
