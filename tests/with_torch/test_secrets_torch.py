"""Secrets in guards, causes and signatures of torch, in both ways of watching it. See tests/test_secrets.py."""
import os
import sqlite3
import subprocess

import pytest

from shared import leaks, secrets

PROGRAM = """
import os, torch
words = os.environ.pop("SECRETS").split()

@torch.compile(backend="eager")
def login(x, password, settings, token, tokens):
    if password == settings["api_key"]:
        return x + len(token)
    return x * tokens

x = torch.ones(3)
for word in words[:2]:
    login(x, word, {"api_key": word, "user": "me"}, word, 5)
login(x, words[0], {"api_key": words[1], "user": "me"}, words[0], 6)
print("done")
"""


@pytest.mark.parametrize("mode", ["shim", "observe"])
def test_no_secret_of_guards_and_causes_is_in_the_trace(dyntrace, python, tmp_path, mode):
    program, trace, words = tmp_path / "login.py", tmp_path / "login.db", secrets()
    program.write_text(PROGRAM)
    env = dict(os.environ, SECRETS=" ".join(words), OMP_NUM_THREADS="1")
    done = subprocess.run([dyntrace, "run", "-o", trace, "--python", python, "--frames", "decided", "--torch", mode, program],
                          env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    assert leaks([trace], words[:2]) == []
    with sqlite3.connect(trace) as db:
        causes = db.execute("SELECT source, expected, actual FROM recompile_cause").fetchall()
        assert ("L['password']", "'<redacted>'", "'<redacted>'") in causes, causes
        texts = [text for text, in db.execute("SELECT expression FROM guard WHERE source IN (\"L['tokens']\", \"L['token']\")")]
        assert any("<redacted>" in text for text in texts) and "L['tokens'] == 6" in texts, texts
