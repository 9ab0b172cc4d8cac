"""`dyntrace import`: the logs that torch writes with TORCH_TRACE=DIR. The logs here are made in the format of torch 2.13,
so no torch is needed. tests/with_torch compares a real log with a recording of the same run."""
import hashlib
import json
import os
import sqlite3
import subprocess

import pytest

from planted import FILE, Log, one
from shared import holds, one_line


@pytest.fixture
def rows(run, logs, tmp_path):
    """Import the logs; then rows(SQL)."""
    out = tmp_path / "out.db"

    def rows(sql=None, err=""):
        if not out.exists() or sql is None:
            done = run("import", logs, "-o", out, "--force")
            assert done.returncode == 0 and done.stdout == "" and (done.stderr == "" if not err else err in done.stderr), done.stderr
            assert run("fsck", out).returncode == 0
        with sqlite3.connect(out) as db:
            return db.execute(sql).fetchall() if sql else out
    return rows


def test_every_record_of_a_log_becomes_rows(logs, rows):
    one(logs).write()
    holds(rows())
    assert rows("SELECT pid, rank, python_version, torch_version, mode, torch_mode, start_ns, end_ns FROM process") == [
        (100, None, "3.11.7", "2.13.0+cpu", "none", "import", 0, None)]
    assert rows("SELECT filename, qualname, first_line, kind, origin_code_id FROM code") == [
        (FILE, "f", 3, "function", None), (FILE, "torch_dynamo_resume_in_f_at_5", 5, "resume", 1), (FILE, "bad", 20, "function", None),
        (FILE, "eager", 30, "function", None)]
    assert rows("SELECT label, code_id, outcome, cache_entry_id, reason FROM compile") == [
        ("0/0", 1, "compiled", 1, None), ("1/0", 2, "compiled", 2, None), ("0/1", 1, "compiled", 3, None), ("0/2", 1, "compiled", 4, None),
        ("2/0", 3, "error", None, "BackendCompilerFailed: backend='broken' raised:\nValueError: no"), ("3/0", 4, "declined", None, "Unsupported: loop"),
        ("0/3", 1, "limit", None, "Unsupported: Dynamo recompile limit exceeded\n Developer debug context: Limit type: recompile_limit")]
    assert rows("SELECT ordinal, kind, source, expression, user_stack FROM guard WHERE cache_entry_id = 1") == [
        (0, "GLOBAL_STATE", "global state", '___check_global_state() against {"grad_mode":true}', None),
        (1, "DEFAULT_DEVICE", "torch.utils._device.CURRENT_DEVICE", "utils_device.CURRENT_DEVICE == None", None),
        (2, "EQUALS_MATCH", "L['k']", "L['k'] == 2", f'File "{FILE}", line 4, in f'),
        (3, "TENSOR_MATCH", "L['x']", "check_tensor(L['x'], Tensor, torch.float32, size=[2], stride=[1])", f'File "{FILE}", line 4, in f'),
        (4, "DIMENSION_DYNAMIC_MARKING_GUARD", "L['x']", "hasattr(L['x'], '_dynamo_dynamic_indices') == False and"
         " hasattr(L['x'], '_dynamo_static_indices') == False", f'File "{FILE}", line 4, in f')]
    assert rows("SELECT compile_id, cache_entry_id, ordinal, kind, source, expected, actual, text, how FROM recompile_cause") == [
        (3, 1, 0, "TENSOR_MATCH", "L['x'].size()[0]", "2", "3", "tensor 'x' size mismatch at index 0. expected 2, actual 3", "re-checked"),
        (4, 3, 0, "TENSOR_MATCH", "L['x'].size()[0]", "3", "4", "tensor 'x' size mismatch at index 0. expected 3, actual 4", "re-checked"),
        (4, 1, 0, "EQUALS_MATCH", "L['k']", "2", None, "k == 2", "re-checked")]
    assert rows("SELECT r.compile_id, g.ordinal, g.cache_entry_id FROM recompile_cause r JOIN guard g USING (guard_id)") == [(3, 3, 1), (4, 3, 3), (4, 2, 1)]
    (broke,) = rows("SELECT compile_id, code_id, line, offset, reason, user_stack, resume_code_id FROM graph_break")
    assert broke[:5] == (1, 1, 5, None, "Data-dependent branching\n  Explanation: Detected data-dependent branching\n  Hint: Use `torch.cond`")
    assert broke[5].endswith("line 5, in f\n    if y.sum() > 0:") and broke[6] == 2
    assert rows("SELECT kind, COUNT(*) FROM listing GROUP BY kind") == [("graph", 4), ("guards", 4)]
    assert rows("SELECT COUNT(*), SUM(node_count) FROM graph") == [(4, None)]
    for table in ("frame", "lookup", "guard_check", "thread", "loss", "signature"):
        assert rows(f"SELECT COUNT(*) FROM {table}") == [(0,)]


def test_times_are_those_that_torch_logged(logs, rows):
    log = one(logs)
    log.write()
    assert rows("SELECT value FROM meta WHERE key = 'started_unix_ns'") == [(log.START * 10**9,)]
    assert rows("SELECT start_ns, end_ns FROM compile WHERE label = '0/0'") == [(0, 10000000)]
    assert rows("SELECT name, start_ns, end_ns, label FROM compile_phase WHERE compile_id = 1") == [
        ("entire_frame_compile", 1000000, 8000000, "0/0"), ("dynamo", 0, 10000000, "0/0")]
    assert rows("SELECT SUM(born_ns <> end_ns) FROM cache_entry e JOIN compile m USING (compile_id)") == [(0,)]


def test_phases_logged_after_a_compile_do_not_belong_to_it(logs, rows):
    log = Log(logs)
    log.compile("0/0")
    log.event("entire_backward_compile", "B", "0/0")
    log.event("entire_backward_compile", "E", "0/0")
    log.event("never_ended", "B", "0/0")
    log.write()
    assert rows("SELECT compile_id, label FROM compile_phase WHERE name = 'entire_backward_compile'") == [(None, "0/0")]
    assert rows("SELECT COUNT(*) FROM compile_phase WHERE name = 'never_ended'") == [(0,)]


def test_labels_reused_after_a_reset_are_separate_compiles(logs, rows):
    log = Log(logs)
    log.compile("0/0")
    log.compile("0/1", reasons="0/0: k == 2")
    log.compile("0/0", "g", 9)
    log.compile("0/1", "g", 9, reasons="0/0: k == 2")
    log.write()
    assert rows("SELECT compile_id, label, qualname FROM compile JOIN code USING (code_id)") == [(1, "0/0", "f"), (2, "0/1", "f"), (3, "0/0", "g"), (4, "0/1", "g")]
    assert rows("SELECT compile_id, cache_entry_id FROM recompile_cause") == [(2, 1), (4, 3)]


def test_logs_of_all_ranks_are_one_trace(logs, rows):
    for rank in (0, 1, 3):
        log = Log(logs, pid=200 + rank, rank=rank)
        log.compile("0/0")
        log.compile(f"{rank}/1", f"only_{rank}", 9)
        log.write()
    assert rows("SELECT rank, pid FROM process ORDER BY rank") == [(0, 200), (1, 201), (3, 203)]
    assert rows("SELECT rank, qualname FROM compile JOIN code USING (code_id) JOIN process USING (process_id) ORDER BY rank, compile_id") == [
        (0, "f"), (0, "only_0"), (1, "f"), (1, "only_1"), (3, "f"), (3, "only_3")]


def test_a_log_without_events_takes_times_from_its_records(logs, rows):
    """The log has only metrics. Times come from its records, in this machine's time zone."""
    log = one(logs)
    blocks, keep = [], []
    for line in log.lines:
        if not line.startswith("\t"):
            blocks.append([])
        blocks[-1].append(line)
    for block in blocks:
        if "chromium_event" not in block[0]:
            keep += block
    log.lines, log.hours = keep, 0
    log.write()
    assert rows("SELECT label, outcome FROM compile") == [("0/0", "compiled"), ("1/0", "compiled"), ("0/1", "compiled"), ("0/2", "compiled"), ("2/0", "error"),
                                                         ("3/0", "declined"), ("0/3", "limit")]
    assert rows("SELECT COUNT(*) FROM compile WHERE end_ns <= start_ns") == [(0,)]


def test_a_break_in_a_loop_is_imported(logs, rows):
    """torch before 2.11 logs that the frame was compiled. The frame has no guards, which shows that it was not."""
    log = Log(logs)
    log.compile("0/0", broke=True, graph=False, guard_count=None)
    log.compile("1/0", name="g", line=9, guard_count=4)
    log.write()
    assert rows("SELECT label, outcome, cache_entry_id FROM compile") == [("0/0", "declined", None), ("1/0", "compiled", 1)]
    assert rows("SELECT COUNT(*) FROM graph_break") == [(0,)]


def test_the_log_of_a_killed_program_is_imported(logs, rows):
    """Compiles that had begun have no end. The truncated record is a loss."""
    log = Log(logs)
    log.compile("0/0")
    log.event("dynamo", "B", "1/0")
    log.put("str", [FILE, 7])
    log.put("dynamo_start", {"stack": [{"line": 9, "name": "g", "filename": 7}]}, "1/0")
    log.put("dynamo_output_graph", {}, "1/0", "line one\nline two")
    path = log.write()
    path.write_text(path.read_text()[:-5])
    assert rows("SELECT label, outcome, end_ns, qualname FROM compile JOIN code USING (code_id)", "1 damaged")[1] == ("1/0", None, None, "g")
    [(process, events, cause)] = rows("SELECT process_id, events, cause FROM loss")
    assert (process, events) == (1, 1) and f"import: {path.name}:" in cause and "the text of dynamo_output_graph of 1/0 was cut or altered" in cause


@pytest.mark.parametrize("damage, lines", [
    (lambda t: t[:t.rindex("\n\t") + 2], 1),  # cut within a text
    (lambda t: t[:-1], 0),  # the end of the last line alone is missing
    (lambda t: t.replace("\n", "\r\n"), 0),  # as Windows writes it
    (lambda t: t.replace("V", "X!", 1), None),
    (lambda t: "garbage\n\x00\x01\n" + t, 2),
    (lambda t: t + "V0101 00:00:00.000000 1 x] {not json}\n", 1),
    (lambda t: t + "V1399 00:00:00.000000 1 x:1] {}\n", 1),
    (lambda t: "\tleft over\n\tmore\n" + t, None),
    (lambda t: t.replace("\n\tTREE_GUARD", "\nTREE_GUARD", 1), None),
    (lambda t: t + "\n\n", 0),
], ids=range(10))
def test_damaged_lines_are_recorded_as_losses(logs, rows, damage, lines):
    path = one(logs).write()
    path.write_text(damage(path.read_text()))
    rows(err="" if lines == 0 else "left out")
    (lost,) = rows("SELECT COALESCE(SUM(events), 0) FROM loss")
    assert lost[0] == lines if lines is not None else lost[0] > 0
    assert rows("SELECT COUNT(*) FROM compile")[0][0] == 7
    holds(rows("SELECT 1") and logs.parent / "out.db")


def texts(path):
    """The lines of texts in a log: (index of the line, its record's name)."""
    lines, name = path.read_text().split("\n"), None
    for at, line in enumerate(lines):
        if line.startswith("V"):
            name = line.partition("] {\"")[2].partition("\"")[0]
        elif line.startswith("\t"):
            yield at, name


ALTERED = {
    "one character": lambda line: line[:-1] + ("x" if line[-1:] != "x" else "y"),
    "gone": lambda line: None,
    "a number": lambda line: line.replace("3", "7") if "3" in line else line + "7",
    "cut": lambda line: line[:len(line) // 2],
    "longer": lambda line: line + " ",
}
QUICK = ("one character", "gone")


@pytest.mark.parametrize(
    "what",
    [pytest.param(what, marks=() if what in QUICK else pytest.mark.slow) for what in ALTERED],
)
def test_an_imported_text_with_a_wrong_digest_is_recorded_as_a_loss(run, logs, tmp_path, what):
    """A text line differs from the text's md5. The text is left out and counted once, and its compile is marked."""
    change = ALTERED[what]
    path = one(logs).write()
    lines = path.read_text().split("\n")
    places = list(texts(path))
    out = tmp_path / "out.db"
    assert run("import", logs, "-o", out).returncode == 0
    whole = facts(out)
    for at, name in places[::7] + places[-1:]:
        other = change(lines[at][1:])
        if other == lines[at][1:]:
            continue
        changed = [line if i != at else None if other is None else "\t" + other for i, line in enumerate(lines)]
        path.write_text("\n".join(line for line in changed if line is not None))
        done = run("import", logs, "-o", out, "--force")
        assert done.returncode == 0 and "1 damaged line or text was left out" in one_line(done.stderr), (at, name, done.stderr)
        with sqlite3.connect(out) as db:
            [(events, cause)] = db.execute("SELECT events, cause FROM loss")
            marks = db.execute("SELECT text FROM listing WHERE kind = 'damaged'").fetchall()
        assert events == 1 and f"{path.name}:" in cause and ("cut or altered" in cause or "is missing" in cause)
        assert marks == ([(cause,)] if name != "chromium_event" or marks else []), (at, name)
        for table, rows in facts(out).items():
            assert rows <= whole[table], (at, name, table, rows - whole[table])


def facts(path):
    """Return the facts that depend on a text. Ids, and texts of other records, may differ without it."""
    with sqlite3.connect(path) as db:
        return {table: set(db.execute(sql)) for table, sql in {
            "guard": "SELECT label, g.kind, g.source, g.expression FROM guard g JOIN cache_entry USING(cache_entry_id)",
            "cause": "SELECT label, m.text, m.actual FROM recompile_cause m JOIN compile USING(compile_id)",
            "break": "SELECT label, line, b.reason, user_stack FROM graph_break b JOIN compile USING(compile_id)",
            "listing": "SELECT label, kind, text FROM listing JOIN compile USING(compile_id) WHERE kind <> 'damaged'"}.items()}


@pytest.mark.parametrize("text, md5, words", [
    ("[\n\"0/0: x\"\n]", "", "has no md5"), ("[\n\"0/0: x\"\n]", True, "has no md5"), ("a\x00b", None, "has a NUL in it"), (None, "0" * 32, "is missing")])
def test_texts_whose_digest_cannot_be_checked_are_recorded_as_losses(logs, rows, text, md5, words):
    log = Log(logs)
    log.compile("0/0")
    log.put("artifact", {"name": "recompile_reasons"}, "0/1", text)
    at = next(i for i, line in enumerate(log.lines) if "recompile_reasons" in line)
    head, brace, record = log.lines[at].partition("{")
    record = json.loads(brace + record)
    if md5 is not None:
        record["has_payload"] = md5
    log.lines[at] = head + json.dumps({name: value for name, value in record.items() if value != ""})
    log.compile("0/1")
    log.write()
    rows(err="1 damaged line or text was left out")
    [(events, cause)] = rows("SELECT events, cause FROM loss")
    assert events == 1 and words in cause and "recompile_reasons of 0/1" in cause and rows("SELECT * FROM recompile_cause") == []
    assert rows("SELECT label, outcome FROM compile") == [("0/0", "compiled"), ("0/1", "compiled")]


def test_a_compile_with_a_damaged_text_is_marked(run, logs, tmp_path):
    path = one(logs).write()
    path.write_text(path.read_text().replace("expected 2, actual 3", "expected 2, actual 9"))
    out = tmp_path / "out.db"
    assert run("import", logs, "-o", out).returncode == 0
    assert "actual 9" not in run("why", "f", out).stdout + run("report", out).stdout
    assert "damaged" in run("show", "f", out).stdout and "was cut or altered" in run("report", out).stdout


def test_a_log_with_more_damage_than_rows_is_imported(logs, rows):
    log = Log(logs)
    log.compile("0/0")
    for i in range(1500):
        log.put("artifact", {"name": "aot_joint_graph"}, "0/0", "text")
    path = log.write()
    path.write_text(path.read_text().replace("\ttext", "\tother"))
    rows(err="1500 damaged lines or texts were left out")
    assert rows("SELECT COUNT(*), SUM(events) FROM loss") == [(1001, 1500)]


@pytest.mark.parametrize("version, metrics, words, outcome", [
    (None, {}, "a torch that does not log its version, older than 2.6", None), ("2.4.0", {}, "torch 2.4.0, older than 2.6", None),
    ("2.5.1+cu124", {"has_guarded_code": True}, "torch 2.5.1+cu124, older than 2.6", "compiled"),
    (None, {"fail_type": "FailOnCacheLimitHit", "fail_reason": "cache_size_limit reached"}, "older than 2.6", "limit"),
    ("2.99.0", {"has_guarded_code": True}, "torch 2.99.0, newer than 2.15", "compiled"), ("2.6.0", {"has_guarded_code": True}, None, "compiled"),
    ("2.13.0+cpu", {"has_guarded_code": False, "fail_type": "Unsupported"}, None, "declined")])
def test_logs_of_unsupported_torches_are_reported(logs, rows, version, metrics, words, outcome):
    log = Log(logs)
    log.put("dynamo_start", {"stack": []}, "0/0")
    log.put("compilation_metrics", {"co_name": "f", "co_filename": FILE, "co_firstlineno": 1, "guard_count": 2, "fail_type": None, "pytorch_version": version, **metrics}, "0/0")
    log.write()
    rows(err=words or "")
    assert rows("SELECT outcome FROM compile") == [(outcome,)]
    lost, (note,) = rows("SELECT events, cause FROM loss"), rows("SELECT torch_note FROM process")[0]
    if words and "older" in words:
        [(events, cause)] = lost
        assert events is None and words in cause and words in note and ("how each compile ended" in cause) == ("has_guarded_code" not in metrics)
    else:
        assert lost == [] and "written by" not in note


@pytest.mark.parametrize("name, rank", [("dedicated_log_torch_trace_rank_3_ab12.log", 3), ("dedicated_log_torch_trace_rank_3.log", 3), ("rank_12.log", 12),
                                        ("dedicated_log_torch_trace_ab12.log", None), ("frank_3.log", None), ("x_rank_.log", None), ("rank_99999999999999999999.log", None)])
def test_the_rank_is_read_from_the_file_name(logs, rows, name, rank):
    log = Log(logs)
    log.compile("0/0")
    log.write().rename(logs / name)
    assert rows("SELECT rank FROM process") == [(rank,)]


def test_a_rank_claimed_by_two_processes_is_reported(run, logs, rows, tmp_path):
    """The rank in the records counts. A different rank in the file name, or two processes with the same rank, are
    reported, by `ranks` as well."""
    for rank, pid, name in ((0, 10, "rank_0_a"), (1, 11, "rank_1_b"), (1, 12, "rank_5_c")):
        log = Log(logs, pid=pid, rank=rank)
        log.compile("0/0")
        log.write().rename(logs / f"dedicated_log_torch_trace_{name}.log")
    out = rows(err="rank 1 is claimed by 2 processes: dedicated_log_torch_trace_rank_1_b.log (pid 11), dedicated_log_torch_trace_rank_5_c.log (pid 12)")
    assert rows("SELECT pid, rank FROM process ORDER BY pid") == [(10, 0), (11, 1), (12, 1)]
    causes = [cause for cause, in rows("SELECT cause FROM loss WHERE events = 0")]
    assert len(causes) == 2 and "its name says rank 5, its records say rank 1" in causes[0] and "rank 1 is claimed by 2 processes" in causes[1]
    notes = {row["rank"]: row["note"] for row in json.loads(run("ranks", out, "--json").stdout)["table"]}
    assert notes[0] is None or "claim" not in notes[0]
    assert "2 processes claim this rank" in notes[1]


def test_device_numbers_of_imported_ranks_are_no_difference(run, logs, rows):
    """Each rank has its own GPU; otherwise the ranks compiled alike."""
    for rank in range(3):
        log = Log(logs, pid=10 + rank, rank=rank)
        log.compile("0/0")
        path = log.write()
        text = path.read_text()
        assert "torch.float32, size" in text
        log.lines = []
        path.write_text(rehashed(text.replace("torch.float32, size", f"torch.float32, device={rank}, size")))
    found = run("ranks", rows())
    assert found.returncode == 0 and "All ranks compiled alike" in found.stdout


def rehashed(text):
    """The log TEXT, with the md5 that its texts have."""
    out, lines = [], text.rstrip("\n").split("\n")
    for at, line in enumerate(lines):
        if "has_payload" in line:
            end = next((i for i in range(at + 1, len(lines)) if not lines[i].startswith("\t")), len(lines))
            whole = "\n".join(part[1:] for part in lines[at + 1:end])
            head, brace, record = line.partition("{")
            line = head + json.dumps({**json.loads(brace + record), "has_payload": hashlib.md5(whole.encode()).hexdigest()})
        out.append(line)
    return "\n".join(out) + "\n"


def test_logs_are_recognised_by_content(run, logs, tmp_path):
    one(logs).write().rename(logs / "rank_0_log.txt")
    (logs / "notes.txt").write_text("nothing of torch's\n")
    os.mkfifo(logs / "fifo")
    done = run("import", logs, "-o", tmp_path / "out.db")
    assert (done.returncode, done.stderr) == (0, ""), done
    with sqlite3.connect(tmp_path / "out.db") as db:
        assert db.execute("SELECT COUNT(*) FROM compile").fetchone() == (7,)


def test_import_says_that_a_log_has_no_compiles(logs, rows):
    log = Log(logs)
    log.put("compilation_metrics", {"co_name": "f"})
    log.write()
    rows(err="nothing in its logs is a compile of a frame")
    [(events, cause)] = rows("SELECT events, cause FROM loss")
    assert events == 1 and cause.endswith("x100.log:1: compilation_metrics: it names no compile of a frame")


def test_a_log_of_two_processes_is_imported(logs, rows):
    log = Log(logs, pid=1)
    log.compile("0/0")
    log.pid = 2
    log.compile("0/0", "g", 9)
    log.write()
    assert rows("SELECT pid, qualname FROM compile JOIN code USING (code_id) JOIN process USING (process_id)") == [(1, "f"), (2, "g")]


@pytest.mark.parametrize("reason, kind, source, aspect, dimension, expected, actual", [
    ("0/0: tensor 'x' stride mismatch at index 1. expected 4, actual 8", "TENSOR_MATCH", "L['x'].stride()[1]", "stride", 1, "4", "8"),
    ("0/0: tensor 'L['x']' dtype mismatch. expected Float, actual Double", "TENSOR_MATCH", "L['x'].dtype", "dtype", None, "Float", "Double"),
    ("0/0: tensor 'x' rank mismatch. expected 1, actual 2", "TENSOR_MATCH", "L['x'].dim()", "ndim", None, "1", "2"),
    ("0/0: tensor 'x' requires_grad mismatch. expected requires_grad=0", "TENSOR_MATCH", "L['x'].requires_grad", "requires_grad", None, None, None),
    ("0/0: L['k'] == 2", "EQUALS_MATCH", "L['k']", "value", None, "2", None),
    ("0/0: tensor 'z' size mismatch at index 0. expected 1, actual 2", None, None, "size", 0, "1", "2"),
    ("0/0: Cache line invalidated because L['x'] got deallocated", None, None, "alive", None, None, None),
])
def test_each_recompile_reason_is_parsed(logs, rows, reason, kind, source, aspect, dimension, expected, actual):
    log = Log(logs)
    log.compile("0/0")
    log.compile("0/1", reasons=reason)
    log.write()
    assert rows("SELECT cache_entry_id, kind, source, aspect, dimension, expected, actual, text FROM recompile_cause") == [
        (1, kind, source, aspect, dimension, expected, actual, reason[5:])]


@pytest.mark.parametrize("reason", ["no label at all", "9/9: k == 2", "", "0/0", "[1, 2]", "{}"])
def test_an_unknown_recompile_reason_names_no_guard(logs, rows, reason):
    log = Log(logs)
    log.compile("0/0")
    log.compile("0/1", reasons=reason)
    log.write()
    rows(err="recompile_reasons: it has no sentences" if reason == "[1, 2]" else "")
    assert all(row == (None, None, None) for row in rows("SELECT cache_entry_id, guard_id, kind FROM recompile_cause"))
    assert rows("SELECT COUNT(*) FROM loss") == [(int(reason == "[1, 2]"),)]
    holds(rows(err="form that is not known" if reason == "[1, 2]" else ""))


def test_commands_say_that_a_log_has_no_calls(logs, rows, run):
    one(logs).write()
    out = rows()
    why = run("why", "f", out).stdout
    assert "calls: not known" in why and "its use is not known" in why and "never hit" not in why
    assert "x.size(0) was" in why and "call" in run("report", out).stdout
    assert "not measured: dyntrace run --set dynamic=True@f shows it" in why and "dyntrace try" not in why # it has no command
    for limit in (["--max-eager-share", "0.5"], ["--require-compiled", "f"], ["--max-guard-us", "5"]):
        done = run("check", out, *limit)
        assert done.returncode == 2 and "no calls" in done.stderr
    assert run("check", out, "--max-recompiles", "1").returncode == 1
    assert run("check", out, "--max-recompiles", "2", "--max-graph-breaks", "1").returncode == 0
    for arguments in (["show", "f"], ["report", "--json"], ["report", "--html", "-"], ["export", "--format", "jsonl"], ["export", "--format", "perfetto"]):
        assert run(arguments[0], *arguments[1:2] if arguments[0] == "show" else [], out, *arguments[1:] if arguments[0] != "show" else []).returncode == 0


def test_facts_that_a_log_lacks_are_not_printed_as_zero(logs, rows, run):
    one(logs).write()
    out = rows()
    shown = run("show", "f", out).stdout
    assert "graph" in shown and "?, " not in shown and " 0 node" not in shown and "its text alone is known; --full shows it" in shown
    assert "\n  graph\n" in run("show", "f", out, "--full").stdout
    assert "0 call" not in run("why", "f", out).stdout
    done = run("replay", out, "--what-if", "recompile_limit=3")
    assert (done.returncode, done.stdout) == (2, "") and "no lookups are recorded" in done.stderr and "compiles without calls" in done.stderr
    assert "1. f was compiled again" in run("why", out).stdout and "0 call" not in run("why", out).stdout


def test_a_method_is_found_by_its_name_in_the_log(logs, rows, run, plant):
    """torch logs `f` for Net.f. File and line show that both are the same function."""
    one(logs).write()
    out = rows()
    p = plant(qualname="Net.f", filename=FILE, line=3)
    p.insert("lookup", lookup_id=1, thread_id=1, code_id=1, start_ns=1, duration_ns=1, outcome=1)
    differences = json.loads(run("diff", out, p.done(), "--json").stdout)["differences"]
    assert not [d for d in differences if d["kind"] == "function" and d["function"] in ("f", "Net.f")], differences
    p = plant(qualname="Net.f", filename=FILE, line=4)
    p.insert("lookup", lookup_id=1, thread_id=1, code_id=1, start_ns=1, duration_ns=1, outcome=1)
    p.insert("compile", compile_id=1, thread_id=1, code_id=1, start_ns=1, end_ns=2, outcome="compiled")
    p.insert("graph_break", graph_break_id=1, compile_id=1, code_id=1, line=5, reason="call of print")
    differences = json.loads(run("diff", out, p.done(), "--json").stdout)["differences"]
    assert {d["function"] for d in differences if d["kind"] == "function"} >= {"f", "Net.f"}


def test_a_hostile_log_is_imported_harmlessly(logs, rows, run):
    evil = "\x1b]0;owned\x07\u202e'; DROP TABLE code; --"
    log = Log(logs)
    log.compile("0/0", name=evil, reasons=evil, broke=True)
    log.put("artifact", {"name": evil}, "0/0", evil)
    log.put("chromium_event", {}, "0/0", "[" * 5000)
    log.put("chromium_event", {}, "0/0", json.dumps({"name": {"a": 1}, "ts": "x", "ph": 3}))
    log.put("chromium_event", {}, "0/0", json.dumps({"name": "x", "ts": 1e300, "ph": "B"}))
    log.put("compilation_metrics", 3, "0/0")
    log.put("compilation_metrics", [], "0/1")
    log.put("dynamo_start", {"stack": 5}, "0/2")
    log.put("dynamo_start", {"stack": [{"line": "x", "name": [], "filename": {}}]}, "0/3")
    log.put("str", ["a"])
    log.put("dynamo_cpp_guards_str", {}, "0/0", "| " * 1000 + "+- A: b\n" + "+- GuardManager: source=\n| +- : \n+- X: " + "y" * 100000)
    log.put("rank", "x")
    log.put("artifact", {"name": "dynamo_graph_break_reason"}, "0/0", "Graph break in user code at :\nReason: ")
    log.write()
    out = rows(err="records of a form that is not known were left out: ")
    assert rows("SELECT SUM(events) FROM loss WHERE cause LIKE '%chromium_event: it is no event with a name and a time'") == [(3,)]
    assert rows("SELECT COUNT(*) FROM code WHERE qualname = ?".replace("?", "'" + evil.replace("'", "''") + "'")) == [(1,)]
    assert not set(run("report", out).stdout) & set("\x1b\x07\u202e")


def test_bad_usage_gives_a_one_line_error_and_status_2(run, logs, tmp_path):
    out = tmp_path / "out.db"
    path = one(logs).write()
    for arguments in ([], [logs], ["-o", out], [logs, logs, "-o", out], [logs, "-o", ""], [logs, "-o", "-"], [logs, "--nix", "-o", out],
                      [tmp_path / "none", "-o", out], [path, "-o", path, "--force"], [logs, "-o", tmp_path / "none/out.db"]):
        done = run("import", *arguments)
        assert done.returncode == 2 and done.stdout == "", arguments
        one_line(done.stderr)
    assert not out.exists()
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no *.log in it" in one_line(run("import", empty, "-o", out).stderr)
    (empty / "x.log").write_text("nothing of torch's\n")
    assert "is a record" in run("import", empty, "-o", out).stderr
    os.mkfifo(empty / "y.log")
    assert run("import", empty, "-o", out).returncode == 2 and not out.exists()
    assert run("import", path, "-o", out).returncode == 0  # one file will do
    assert "--force" in one_line(run("import", path, "-o", out).stderr)
    assert run("import", path, "-o", out, "--force").returncode == 0


@pytest.mark.no_sanitizer
def test_memory_does_not_grow_with_the_log(dyntrace, logs, tmp_path):
    log = Log(logs)
    log.compile("0/0")
    with log.path.open("w") as file:
        for i in range(3000):
            log.put(("artifact", "aot_joint_graph")[i % 2], {"name": "big"}, "0/0", "x" * 20000)
            file.write("\n".join(log.lines) + "\n")
            log.lines = []
    # 60 MB of log. A limit, because a child's ru_maxrss counts what its parent had.
    done = subprocess.run(["sh", "-c", 'ulimit -d 40000; exec "$@"', "sh", dyntrace, "import", logs, "-o", tmp_path / "out.db"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("options, kept", [((), ""), (("--redact", "colour"), "redacted too"), (("--no-redact",), "hunter2 1234567 my blue")])
def test_secret_values_of_a_log_are_left_out(run, logs, tmp_path, monkeypatch, options, kept):
    """Guards, reasons and listings have no secret, nor have the free pages of the file."""
    import planted

    guards = planted.GUARDS.replace("L['k']", "L['api_key']").replace("== 2 ", "== 'hunter2' ")
    monkeypatch.setattr(planted, "GUARDS", guards + "\nfiller" * 3000 + "\ncolour='my blue'\npin = 1234567, password = 1234567")
    log = Log(logs)
    log.compile("0/0")
    log.compile("0/1", reasons=json.dumps(["0/0: L['api_key'] == 'hunter2'"]))
    log.compile("1/0", name="bad", line=20, failed=("ValueError", "password='hunter2' is wrong"))
    log.write()
    out = tmp_path / "out.db"
    done = run("import", logs, "-o", out, *options)
    assert done.returncode == 0, done.stderr
    holds(out)
    with sqlite3.connect(out) as db:
        texts = "\n".join(db.iterdump())
        (redact,) = db.execute("SELECT value FROM meta WHERE key = 'redact'").fetchone()
    data = out.read_bytes()
    assert redact == {"": "[]", "redacted too": '["colour"]'}.get(kept, "off")
    if options == ("--no-redact",):
        assert b"hunter2" in data and "<redacted>" not in texts
        return
    assert b"hunter2" not in data and "L[''api_key''] == ''<redacted>''" in texts and "password=''<redacted>'' is wrong" in texts
    assert "pin = 1234567, password = <redacted>" in texts
    assert (b"my blue" not in data) == bool(options)
