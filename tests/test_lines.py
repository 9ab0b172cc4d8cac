"""Every page prints beside each cause the line of the program that needs the guard, and never a wrong line."""
import json
import os
import socket
import sqlite3
import subprocess
import time

import pytest
from tui_trace import make_trace

PROGRAM = "import torch\n\ndef step(model, x):\n    if x.shape[0] == 16:\n        return model(x)\n"
LINE = "if x.shape[0] == 16"
PAGES = {"why": ["why", "step", "t.db"], "report": ["report", "t.db"], "check": ["check", "t.db", "--max-recompiles", "0"],
         "show": ["show", "step", "t.db"], "replay": ["replay", "t.db", "--to", "compile 2"],
         "overview": ["tui", "t.db", "--dump", "--screen", "200x60"],
         "recompile": ["tui", "t.db", "--dump", "--screen", "200x60", "--keys", "3 Enter Enter"],
         "recompiles": ["tui", "t.db", "--dump", "--screen", "250x40", "--keys", "3"]}


def trace_of(place, file, line=4, function="step", **meta):
    """A trace in which guard 13, the one that failed, is there for LINE of FILE."""
    make_trace(place / "t.db", hostile=False)
    with sqlite3.connect(place / "t.db") as db:
        meta = {"host": socket.gethostname(), "started_unix_ns": time.time_ns(), **meta}
        for key, value in meta.items():
            db.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))
        db.execute("DELETE FROM loss")
        db.execute("UPDATE guard SET user_stack = ? WHERE kind = 'TENSOR_MATCH'", (f'File "{file}", line {line}, in {function}',))
    db.close()


def asked(dyntrace, place, command):
    done = subprocess.run([dyntrace, *command], cwd=place, capture_output=True, timeout=120)
    assert done.returncode in (0, 1) and not done.stderr, (command, done)
    return done.stdout.decode()


def program_of(place):
    file = place / "deep" / "prog.py"
    file.parent.mkdir()
    file.write_text(PROGRAM)
    return file


@pytest.mark.parametrize("page", PAGES)
def test_why_prints_the_source_line_that_needs_the_guard(dyntrace, tmp_path, page):
    trace_of(tmp_path, program_of(tmp_path))
    out = asked(dyntrace, tmp_path, PAGES[page])
    assert f"{LINE}, deep/prog.py:4" in out, out


def test_the_html_page_prints_the_line_of_the_guard(dyntrace, tmp_path):
    trace_of(tmp_path, program_of(tmp_path))
    subprocess.run([dyntrace, "report", "t.db", "--html", "r.html"], cwd=tmp_path, check=True, timeout=60)
    assert (tmp_path / "r.html").read_text().count(f"needed by {LINE}, deep/prog.py:4") == 3 # two recompiles, one of them in two entries


def test_all_pages_print_a_cause_with_the_same_text(dyntrace, tmp_path):
    trace_of(tmp_path, program_of(tmp_path))
    with sqlite3.connect(tmp_path / "t.db") as db:
        db.execute("UPDATE recompile_cause SET source = 'L[''self'']._modules[''kv'']._buffers[''k''].size()[0]', expected = '16', actual = '18'")
    db.close()
    for page, form in {"why": "self.kv.k.size(0): expected 16 (0/0), actual 18", "check": "self.kv.k.size(0): expected 16, actual 18",
                       "show": "self.kv.k.size(0): expected 16, actual 18", "replay": "self.kv.k.size(0): expected 16, actual 18",
                       "recompile": "self.kv.k.size(0): expected 16 (entry 0/0), actual 18", "overview": "self.kv.k.size(0): expected 16, actual 18",
                       "report": "self.kv.k.size(0)\t18"}.items():
        out = asked(dyntrace, tmp_path, PAGES[page])
        assert form in out, (page, out)
    json_of = json.loads(asked(dyntrace, tmp_path, ["why", "step", "t.db", "--json"]))
    assert json_of["causes"][0]["source"] == "L['self']._modules['kv']._buffers['k'].size()[0]" # programs get the compiler's text


def test_values_have_four_digits_or_enough_to_differ(dyntrace, tmp_path):
    trace_of(tmp_path, program_of(tmp_path))
    with sqlite3.connect(tmp_path / "t.db") as db:
        db.execute("UPDATE recompile_cause SET source = 'L[''lr'']', aspect = 'value', dimension = NULL, expected = '0.3705904774487397', actual = '0.25000000000000011'")
        db.execute("UPDATE recompile_cause SET expected = '0.12345678', actual = '0.12345699' WHERE compile_id = 3")
    db.close()
    out = asked(dyntrace, tmp_path, PAGES["check"])
    assert "lr: expected 0.3706, actual 0.25;" in out and "lr: expected 0.1234568, actual 0.123457;" in out, out


def test_equal_values_and_causes_are_printed_once(dyntrace, tmp_path):
    """Two guards of two entries that expect the same value of one source are one cause with one value."""
    trace_of(tmp_path, program_of(tmp_path))
    with sqlite3.connect(tmp_path / "t.db") as db:
        db.execute("DELETE FROM recompile_cause WHERE compile_id = 3")
        put = "INSERT INTO recompile_cause(compile_id, cache_entry_id, ordinal, guard_id, kind, source, aspect, expected, actual, text, how) VALUES (3, ?, ?, ?, ?, 'L[''n'']', 'value', ?, '7', '', 'observed')"
        db.executemany(put, [(1, 0, 13, "EQUALS_MATCH", "5"), (2, 0, 23, "LAMBDA_GUARD", "5"), (2, 0, 23, "LAMBDA_GUARD", "5")])
    db.close()
    out = asked(dyntrace, tmp_path, PAGES["why"])
    compile = out[out.index("  0/2 "):].split("\n\n")[0]
    assert compile.count("n: expected 5 (0/0, 0/1), actual 7  [EQUALS_MATCH, LAMBDA_GUARD, observed]") == 1, compile
    assert compile.count("actual") == 1 and compile.count("needed by") == 1, compile


# ---- never a wrong line, and nothing read that is no program

def no_text(dyntrace, place, name="deep/prog.py:4"):
    for page in ("why", "report", "check", "recompile"):
        out = asked(dyntrace, place, PAGES[page])
        assert LINE not in out and name in out, (page, out)


def test_a_file_that_changed_since_is_not_printed(dyntrace, tmp_path):
    file = program_of(tmp_path)
    trace_of(tmp_path, file)
    time.sleep(0.02)
    file.write_text("# another\n" + PROGRAM)
    no_text(dyntrace, tmp_path)


def test_a_file_with_a_forged_date_is_not_printed(dyntrace, tmp_path):
    file = program_of(tmp_path)
    trace_of(tmp_path, file)
    time.sleep(0.02)
    file.write_text("# another\n\n\n" + LINE + ":\n")
    os.utime(file, (1, 1))
    no_text(dyntrace, tmp_path)


def test_a_file_of_another_machine_is_not_printed(dyntrace, tmp_path):
    trace_of(tmp_path, program_of(tmp_path), host="elsewhere")
    no_text(dyntrace, tmp_path)


def test_without_the_source_file_only_file_and_line_number_are_printed(dyntrace, tmp_path):
    file = program_of(tmp_path)
    trace_of(tmp_path, file)
    file.unlink()
    no_text(dyntrace, tmp_path)
    (tmp_path / "t.db").unlink()
    file.write_text(PROGRAM)
    trace_of(tmp_path, file, line=999999999999)
    no_text(dyntrace, tmp_path, "deep/prog.py:999999999999")


def test_a_missing_line_is_taken_from_the_compilers_text(dyntrace, tmp_path):
    trace_of(tmp_path, "/nowhere/prog.py", function="forward")
    with sqlite3.connect(tmp_path / "t.db") as db:
        db.execute("UPDATE recompile_cause SET text = 'L[''x''].size()[0] == 16 # y = x.view(16, -1)  # head # e/prog.py:4 in forward (_dynamo/a.py:1 in b)'")
        db.execute("UPDATE guard SET user_stack = replace(user_stack, '/nowhere/', '/nowhere/e/')")
    db.close()
    assert "needed by y = x.view(16, -1)  # head, e/prog.py:4 in forward" in asked(dyntrace, tmp_path, PAGES["why"])


def test_only_python_files_are_read(dyntrace, tmp_path):
    """The report of a stranger's trace may be passed on, so it must not contain a line of a private key."""
    secret = tmp_path / "deep" / "id_rsa"
    secret.parent.mkdir()
    secret.write_text(PROGRAM)
    trace_of(tmp_path, secret)
    no_text(dyntrace, tmp_path, "deep/id_rsa:4")


@pytest.mark.parametrize("kind", ["device", "fifo", "sparse", "folder", "endless", "relative"])
def test_a_source_path_that_is_no_ordinary_file_is_not_read(dyntrace, tmp_path, kind):
    (tmp_path / "deep").mkdir()
    file = tmp_path / "deep" / "prog.py"
    if kind == "device":
        file.symlink_to("/dev/zero")
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind == "endless":
        file.symlink_to("prog.py")
    else:
        file.write_text(PROGRAM)
    if kind == "sparse":
        os.truncate(file, 10 << 30)
    trace_of(tmp_path, "deep/prog.py" if kind == "relative" else file)
    no_text(dyntrace, tmp_path)


def test_a_source_path_that_is_a_device_is_not_opened(dyntrace, tmp_path):
    """Opening some devices has an effect: a watchdog starts, a tape is rewound. The test uses a FIFO, which shows that it
    was opened."""
    (tmp_path / "deep").mkdir()
    os.mkfifo(tmp_path / "deep" / "prog.py")
    trace_of(tmp_path, tmp_path / "deep" / "prog.py")
    asked(dyntrace, tmp_path, PAGES["why"])
    asked(dyntrace, tmp_path, PAGES["recompile"] + [])
    with pytest.raises(OSError): # nobody has it open for reading
        os.open(tmp_path / "deep" / "prog.py", os.O_WRONLY | os.O_NONBLOCK)
    log = subprocess.run(["strace", "-f", "-e", "trace=open,openat", dyntrace, *PAGES["why"]], cwd=tmp_path, capture_output=True, text=True) \
        if subprocess.run(["which", "strace"], capture_output=True).returncode == 0 else None
    assert log is None or "prog.py" not in log.stderr, log.stderr


def test_escapes_do_not_reach_the_terminal(dyntrace, tmp_path):
    file = tmp_path / "deep\x1b[31m" / "pr\x07og.py"
    file.parent.mkdir()
    file.write_text(PROGRAM.replace("== 16", "== 16 # \x1b]0;title\x07\x9b31m"), encoding="latin-1")
    trace_of(tmp_path, file, function="st\x1b[2Jep")
    for page in PAGES:
        out = asked(dyntrace, tmp_path, PAGES[page])
        assert not {"\x1b", "\x07", "\x9b"} & set(out), (page, out)
        assert page in ("overview", "recompiles") or LINE in out, (page, out)


def test_the_printed_stack_of_5000_frames_is_shortened(dyntrace, tmp_path):
    trace_of(tmp_path, program_of(tmp_path))
    stack = "\n".join(f'File "/a/b{i}.py", line {i}, in f{i}' for i in range(5000))
    with sqlite3.connect(tmp_path / "t.db") as db:
        db.execute("UPDATE graph_break SET user_stack = ?", (stack,))
        db.execute("UPDATE guard SET user_stack = ? WHERE kind = 'TENSOR_MATCH'", (stack,))
    db.close()
    out = asked(dyntrace, tmp_path, PAGES["why"])
    assert max(map(len, out.splitlines())) < 1300 and "more) -> " in out
