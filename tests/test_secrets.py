"""Values whose names look secret are in no trace: of arguments, guards, causes, signatures and command lines."""
import json
import os
from pathlib import Path

import pytest

from crash_help import rows
from shared import leaks, secrets

PROGRAM = Path(__file__).resolve().parent / "programs" / "secrets_work.py"
HIDDEN = "<redacted>"


def environment(dyntrace, words):
    library = Path(dyntrace).resolve().parent / "lib" / "python"
    return dict(os.environ, SECRETS=" ".join(words), PYTHONPATH=os.pathsep.join([str(library), str(PROGRAM.parent)]))


@pytest.fixture
def recorded(dyntrace, record, python):
    def run(*options, words=None):
        words = words or secrets()
        command = [PROGRAM, f"--password={words[0]}", "--token", words[1], "-n", "3"]
        return record(command, *options, python=python, env=environment(dyntrace, words)), words

    return run


@pytest.mark.newest_too
def test_no_secret_is_in_the_trace(recorded):
    trace, words = recorded()
    assert leaks([trace.path], words) == []
    guards = dict(trace.rows("SELECT source, expression FROM guard WHERE kind = 'EQUALS_MATCH'"))
    assert guards["L['password']"] == f"L['password'] == '{HIDDEN}'"
    assert guards["L['api_key']"] == f"L['api_key'] == {HIDDEN}"
    assert guards["L['tokens']"] in ("L['tokens'] == 'plain tokens'", "L['tokens'] == 'other tokens'")
    assert guards["L['settings']"] == f"L['settings'] == {{'user': 'nobody', 'db_password': '{HIDDEN}', 'Authorization': '{HIDDEN}'}}"
    assert guards["L['config']"] == f"L['config'] == Config(user='nobody', password='{HIDDEN}')"
    causes = trace.rows("SELECT source, expected, actual FROM recompile_cause")
    assert ("L['password']", f"'{HIDDEN}'", f"'{HIDDEN}'") in causes
    assert ("L['tokens']", "'plain tokens'", "'other tokens'") in causes
    signatures = [text for text, in trace.rows("SELECT text FROM signature")]
    assert any(f"password: str {HIDDEN}, token: str {HIDDEN}, tokens: str 'plain tokens', api_key: int {HIDDEN}" in text for text in signatures)
    assert any("token: int 5" in text for text in signatures), "a number called token is a token of text"


@pytest.mark.one_python
def test_answers_say_that_secrets_were_not_kept(recorded, run):
    """Two calls that differ in a secret look alike, so what-if says that it guesses."""
    trace, _ = recorded()
    assert "values whose names look secret were not recorded" in run("report", trace.path).stdout
    assert "Values were not recorded" in " ".join(run("replay", "--what-if", "recompile_limit=2", trace.path).stdout.split())


@pytest.mark.one_python
def test_command_lines_have_no_secrets(recorded):
    trace, words = recorded()
    command = json.loads(trace.rows("SELECT value FROM meta WHERE key = 'command'")[0][0])
    assert command[1:] == [f"--password={HIDDEN}", "--token", HIDDEN, "-n", "3"]
    lines = [json.loads(argv) for argv, in trace.rows("SELECT argv FROM process ORDER BY process_id")]
    assert lines[0][-5:] == command[1:]
    assert lines[1][-4:] == [f"API_KEY={HIDDEN}", "--db-password", HIDDEN, f"https://me:{HIDDEN}@host/?token={HIDDEN}"]
    assert trace.rows("SELECT key, value FROM meta WHERE key IN ('redact', 'command_redacted') ORDER BY key") == [
        ("command_redacted", 1), ("redact", "[]")]


@pytest.mark.one_python
def test_no_redact_keeps_secrets(recorded):
    trace, words = recorded("--no-redact")
    assert {form for _, form in leaks([trace.path], words)} >= {word.encode() for word in words}
    assert trace.rows("SELECT key, value FROM meta WHERE key IN ('redact', 'command_redacted')") == [("redact", "off")]


@pytest.mark.one_python
def test_the_option_redact_adds_names_of_secrets(recorded):
    trace, words = recorded("--redact", "TOKENS", "--redact", "use*")
    guards = dict(trace.rows("SELECT source, expression FROM guard WHERE kind = 'EQUALS_MATCH'"))
    assert guards["L['tokens']"] == f"L['tokens'] == '{HIDDEN}'"
    assert "'nobody'" not in guards["L['settings']"] + guards["L['config']"]
    assert leaks([trace.path], words) == []
    assert trace.rows("SELECT value FROM meta WHERE key = 'redact'") == [('["TOKENS", "use*"]',)]


@pytest.mark.one_python
def test_try_says_that_a_command_with_redacted_secrets_cannot_run_again(recorded, run):
    trace, words = recorded()
    done = run("try", "--yes", trace.path, "limit=2")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f"has {HIDDEN} in its command where a secret was" in done.stderr and "--no-redact" in done.stderr


@pytest.mark.one_python
def test_a_trace_keeps_the_patterns_of_redact_for_try(record, run, tmp_path):
    """A command without secrets runs again, under the same --redact."""
    program = tmp_path / "p.py"
    program.write_text("print(1)\n")
    trace = record([program], "--redact", "iban")
    assert json.loads(trace.rows("SELECT value FROM meta WHERE key = 'options'")[0][0])[:2] == ["--redact", "iban"]


@pytest.mark.one_python
def test_redact_with_no_redact_or_without_a_pattern_is_an_error(run):
    done = run("run", "--redact", "x", "--no-redact", "x.py")
    assert (done.returncode, done.stderr) == (2, "dyntrace: run: --redact leaves out what --no-redact keeps: give one of the two\n")
    done = run("run", "--redact", "", "x.py")
    assert done.returncode == 2 and "--redact" in done.stderr


@pytest.mark.one_python
def test_dyntrace_record_accepts_the_option_redact(dyntrace, python, tmp_path, run):
    """redact= may be True, False or patterns."""
    import subprocess

    words = secrets()
    for argument, kept in (("True", False), ("False", True), ("['tokens']", False)):
        path = tmp_path / f"{len(argument)}.db"
        code = (f"import dyntrace, runpy\nwith dyntrace.record({str(path)!r}, redact={argument}):\n"
                f"    runpy.run_path({str(PROGRAM)!r})\n")
        subprocess.run([python, "-c", code], env=environment(dyntrace, words), check=True, timeout=120)
        assert bool(leaks([path], words)) == kept
        if argument == "['tokens']":
            assert rows(path, "SELECT COUNT(*) FROM guard WHERE expression LIKE '%plain tokens%'") == [(0,)]


@pytest.mark.newest_too
def test_a_secret_is_removed_before_a_long_text_or_name_is_cut(dyntrace, record, python):
    """Values are cut at 200 bytes and names at 100. What makes a secret of one may lie beyond the cut."""
    words = secrets()[:2]
    program = """
import dyntrace, os
word, other = os.environ["SECRETS"].split()
for before in range(130, 200, 3):
    url = "x" * before + " postgres://me:" + word + "@host/" + "y" * 10000
    with dyntrace.span(url, url=url, **{"a" * before + "_password": other, "_".join("a" * (before // 3)) + "_password": other}): pass
def f(**settings): return settings
f(**{"a" * 120 + "_password": word, "nested": [{"é" * 120 + "_password": other}]})
scope = {"word": word}
exec("def " + "a" * 220 + "_password(): return word", scope)
scope.popitem()[1]()
"""
    trace = record(["-c", program], "--args", "f", "--args", "a*", python=python, env=environment(dyntrace, words))
    assert leaks([trace.path], [word[:n] for word in words for n in (len(word), 6)]) == []
    names = [name for name, in trace.rows("SELECT name FROM span")]
    assert len(names) == 24 and max(len(name) for name in names) == 200 and any(HIDDEN in name for name in names)
    assert len(trace.rows("SELECT 1 FROM call_args WHERE result LIKE ?", f"%{HIDDEN}%")) == 2


@pytest.mark.one_python
def test_merged_traces_say_what_was_redacted(recorded, run, tmp_path):
    first, again, second = recorded()[0], recorded()[0], recorded("--no-redact")[0]
    for paths, said in (([first.path, again.path], "[]"), ([first.path, second.path], "several")):
        done = run("merge", "--force", "-o", tmp_path / "m.db", *paths)
        assert done.returncode == 0, done.stderr
        assert rows(tmp_path / "m.db", "SELECT value FROM meta WHERE key = 'redact'") == [(said,)]
