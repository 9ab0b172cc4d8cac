"""--values and --no-argv: which of a program's values are in its trace. tests/programs/values_work.py makes every kind of
guard on secrets and lets each fail. With `types` and `off` no byte of them may be in any file of the recording, during or
after it. With `all` they are there, so that this test can fail."""
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from crash_help import collector_of, gone, rows, until
from shared import leaks, secrets

PROGRAM = Path(__file__).resolve().parent / "programs" / "values_work.py"
KEPT = ["types", "off"]


def environment(words):
    lib = Path(os.environ.get("DYNTRACE", Path(__file__).resolve().parent.parent / "build" / "dyntrace")).resolve().parent / "lib"
    return dict(os.environ, SECRETS=" ".join(words), PYTHONPATH=str(lib / "python"))


@pytest.fixture(scope="module")
def recorded(dyntrace, python, tmp_path_factory):
    """(trace, secrets) for each setting of --values."""
    folder = tmp_path_factory.mktemp("values")
    return {kept: recording(dyntrace, python, folder / f"{kept}.db", kept) for kept in ["all", *KEPT]}


def recording(dyntrace, python, trace, kept):
    words = secrets()
    done = subprocess.run([dyntrace, "run", "-o", trace, "--python", python, "--values", kept, PROGRAM],
                          env=environment(words), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return trace, words


def test_the_option_values_all_keeps_every_value(recorded):
    """The search finds every secret, word and number."""
    trace, words = recorded["all"]
    assert {form for _, form in leaks([trace], words)} >= {word.encode() for word in words}


@pytest.mark.parametrize("kept", KEPT)
def test_no_secret_value_is_in_the_trace_file(recorded, kept):
    trace, words = recorded[kept]
    assert leaks([trace], words) == []


@pytest.mark.parametrize("kept", KEPT)
def test_without_values_all_other_rows_are_recorded(recorded, kept):
    """The same lookups, entries, guards, causes and compiles, with their kinds, as when all is kept."""
    whole, less = recorded["all"][0], recorded[kept][0]
    for sql in ("SELECT outcome, COUNT(*) FROM lookup GROUP BY 1", "SELECT kind, COUNT(*) FROM guard GROUP BY 1 ORDER BY 1",
                "SELECT kind, how, COUNT(*) FROM recompile_cause GROUP BY 1, 2 ORDER BY 1, 2",
                "SELECT outcome, COUNT(*) FROM compile GROUP BY 1", "SELECT COUNT(*) FROM loss"):
        assert rows(whole, sql) == rows(less, sql)
    assert rows(less, "SELECT value FROM meta WHERE key = 'values'") == [(kept,)]


def test_under_values_types_the_trace_has_types_and_shapes(recorded):
    trace = recorded["types"][0]
    texts = {text for text, in rows(trace, "SELECT text FROM signature")}
    assert {"x: str, y: NoneType", "x: int, y: NoneType", "x: dict[1], y: NoneType", "x: list[1], y: NoneType"} <= texts
    guards = rows(trace, "SELECT DISTINCT kind, expression FROM guard")
    assert ("TYPE_MATCH", "type(L['x']) is str") in guards and ("LIST_LENGTH", "len(L['x']) == 1") in guards
    assert ("EQUALS_MATCH", "L['x'] == str: value not recorded (--values types)") in guards
    assert ("EQUALS_MATCH", "L['x'][<str>] == str: value not recorded (--values types)") in guards
    assert ("SHAPE_BOUND", "L['x'].shape[0] is 2") in guards
    assert any(kind == "TENSOR_MATCH" and "size (2, 3)" in text for kind, text in guards)
    causes = rows(trace, "SELECT kind, expected, actual FROM recompile_cause")
    assert ("TYPE_MATCH", "str", "int") in causes and ("TENSOR_MATCH", "size[0] = 2", "size[0] = 4") in causes
    assert ("LIST_LENGTH", "1", "0") in causes


def test_values_off_records_no_types_and_no_values(recorded):
    """Of a cause only the source and its property are recorded."""
    trace = recorded["off"][0]
    assert rows(trace, "SELECT COUNT(*) FROM signature") == [(0,)]
    causes = rows(trace, "SELECT DISTINCT expected, actual FROM recompile_cause WHERE kind = 'TENSOR_MATCH'")
    assert ("size[0] = value not recorded (--values off)",) * 2 in causes
    assert rows(trace, "SELECT COUNT(*) FROM guard WHERE expression LIKE '% is str' OR expression LIKE '%== 1'") == [(0,)]
    assert rows(trace, "SELECT DISTINCT backend FROM cache_entry") == [("__main__.Callback",)]
    assert {name for name, in rows(trace, "SELECT name FROM thread")} <= {"MainThread", None, "", "Thread-1"}


@pytest.mark.parametrize("kept", KEPT)
def test_answers_say_that_values_were_not_kept(dyntrace, recorded, kept):
    """report, why and what-if say that values are missing, and mark undecidable answers as guesses."""
    trace = recorded[kept][0]

    def said(*command):
        done = subprocess.run([dyntrace, *command], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert f"(--values {kept})" in said("report", trace)
    assert f"value not recorded (--values {kept})" in said("why", "target", trace)
    assert f"(--values {kept})" in said("report", "--html", "-", trace) if kept == "types" else True
    assert "Values were not recorded" in " ".join(said("replay", "--what-if", "recompile_limit=2", trace).split())
    assert json.loads(said("report", "--json", trace))["meta"]["values"] == kept


def test_what_if_guesses_where_unrecorded_values_decide(dyntrace, python, tmp_path):
    """Would an entry for any number have fitted this call? If its value is unknown, the answer is a guess."""
    program = tmp_path / "two.py"
    program.write_text("from shim_help import *\nfrom dyntrace import guards\n"
                       "def f(n):\n    return n\n"
                       "def answer(frame, entry, state):\n"
                       "    return GuardedCode(copied(frame.f_code), guards.GuardTree([guards.EQUALS_MATCH(guards.L['n'])], example=frame.f_locals))\n"
                       "under(Recorder(f=answer), lambda: [f(n) for n in (1, 2, 3, 1, 2, 3)])\n")
    undecided = {}
    for kept in ("all", "types"):
        trace = tmp_path / f"{kept}.db"
        path = environment([])["PYTHONPATH"] + os.pathsep + str(PROGRAM.parent)
        subprocess.run([dyntrace, "run", "--values", kept, "-o", trace, "--python", python, program], check=True,
                       env=dict(os.environ, PYTHONPATH=path), timeout=60)
        done = subprocess.run([dyntrace, "replay", "--what-if", "dynamic=n", "--json", trace],
                              capture_output=True, text=True, check=True)
        told = json.loads(done.stdout)
        undecided[kept] = told["undecided"], any("Values were not recorded" in text for text in told["assumptions"])
    assert undecided["all"] == (0, False) and undecided["types"][0] > 0 and undecided["types"][1]


@pytest.mark.parametrize("kept", KEPT)
def test_no_secret_is_in_a_file_during_a_recording_or_after_a_crash(dyntrace, python, tmp_path, kept):
    """No file of the session or beside the trace has a secret at any moment, nor has the trace that fsck --recover makes."""
    words, trace, wait = secrets(), tmp_path / "killed.db", tmp_path / "wait"
    run = subprocess.Popen([dyntrace, "run", "-o", trace, "--python", python, "--values", kept, PROGRAM, wait],
                           env=environment(words), stdout=subprocess.PIPE, text=True)
    try:
        assert run.stdout.readline() == "done\n"
        until(lambda: rows(trace, "SELECT COUNT(*) FROM recompile_cause")[0][0] > 100, "causes are written")
        session = Path(rows(trace, "SELECT value FROM meta WHERE key = 'session'")[0][0])
        files = [path for folder in (session, tmp_path) for path in folder.rglob("*") if path.is_file()]
        assert any(path.name.endswith(".ring") for path in files) and leaks(files, words) == []
        program = rows(trace, "SELECT pid FROM process")[0][0]
        for pid in (collector_of(run.pid), run.pid, program):
            os.kill(pid, signal.SIGKILL)
        run.wait()
        until(lambda: gone(program), "the program dies")
        done = subprocess.run([dyntrace, "fsck", "--recover", trace], capture_output=True, text=True, timeout=60)
        told = "recovered an interrupted recording" in done.stdout + done.stderr
        until(lambda: told or not session.exists(), "else another run of this user's was faster")
        assert rows(trace, "SELECT value FROM meta WHERE key IN ('state', 'values') ORDER BY key") == [("recovered",), (kept,)]
        assert leaks([trace], words) == []
    finally:
        wait.touch()
        if run.poll() is None:
            run.kill()
        run.stdout.close()
        run.wait()


def test_no_argv_keeps_no_command_line(record, dyntrace, python):
    """Neither the typed command nor the command line of a child is in the trace. The interpreter is."""
    word = secrets()[0]
    trace = record(["-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1], sys.argv[1]])",
                    f"'{word}'"], "--no-argv", python=python)
    assert leaks([trace.path], [word]) == []
    assert rows(trace.path, "SELECT value FROM meta WHERE key = 'command'") == [("[]",)]
    assert rows(trace.path, "SELECT DISTINCT argv FROM process") == [(None,)]
    assert rows(trace.path, "SELECT COUNT(*) FROM process WHERE executable IS NULL") == [(0,)]
    done = subprocess.run([dyntrace, "report", trace.path], capture_output=True, text=True, check=True)
    assert "not recorded (--no-argv)" in done.stdout
    done = subprocess.run([dyntrace, "export", "--format", "chrome", trace.path], capture_output=True, text=True, check=True)
    named = [event["args"]["name"] for event in json.loads(done.stdout)["traceEvents"] if event["name"] == "process_name"]
    assert all(isinstance(name, str) for name in named) and any("python" in name for name in named)


@pytest.mark.one_python
def test_dyntrace_record_accepts_values_and_argv(dyntrace, python, tmp_path):
    """dyntrace.record(values=, argv=) is the same."""
    words, trace = secrets(), tmp_path / "inside.db"
    code = ("import dyntrace, sys, runpy\ndel sys.argv[1:]\n"
            f"with dyntrace.record({str(trace)!r}, values='types', argv=False):\n    runpy.run_path({str(PROGRAM)!r})\n")
    subprocess.run([python, "-c", code, words[0]], env=environment(words), check=True, timeout=120)
    assert rows(trace, "SELECT value FROM meta WHERE key = 'values'") == [("types",)]
    assert rows(trace, "SELECT COUNT(*) > 100 FROM recompile_cause") == [(1,)]
    assert leaks([trace], words) == []


@pytest.mark.one_python
def test_merged_traces_say_which_values_they_have(dyntrace, python, recorded, tmp_path):
    other = recording(dyntrace, python, tmp_path / "other.db", "off")[0]
    for first, said in (("off", "off"), ("all", "several")):
        merged, paths = tmp_path / f"{said}.db", [recorded[first][0], other]
        done = subprocess.run([dyntrace, "merge", "-o", merged, *paths], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert rows(merged, "SELECT value FROM meta WHERE key = 'values'") == [(said,)]


@pytest.mark.one_python
def test_a_wrong_word_for_values_is_refused(dyntrace):
    done = subprocess.run([dyntrace, "run", "--values", "none", "x.py"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "dyntrace: run: --values none: not one of all, types, off\n")
