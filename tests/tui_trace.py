"""Makes the trace that the TUI's tests look at: two processes, a training step that is compiled again for every size,
a graph break, an entry that dies, a limit, a loss, and names that would like to break a terminal.

Also a program: tests/tui_trace.py OUT.db [LOOKUPS]; the fuzzer and the benchmark use that."""
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

from frame_rows import frame_rows

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = subprocess.run(["awk", "-f", ROOT / "schemas/names.awk", ROOT / "src/vocabulary.h", ROOT / "schemas/trace.sql", ROOT / "schemas/views.sql"],
                        stdout=subprocess.PIPE, check=True, text=True).stdout

SOURCE = '''import torch


@torch.compile
def step(model, x):
    y = model(x)
    print("loss", y.sum())
    return [value * 2 for value in y]


class Net:
    def forward(self, x):
        return self.fc(x)


def helper(x):
    # a comment at the margin of nothing
    return x
'''

HOSTILE = "evil\x1b[31m\x1b]0;t\x07\n\u202egnp.\u0301\u0301\u0301\u0301日本語\u200d" + "x" * 3000
SPAN = 2_000_000_000


def make_trace(path, lookups=400, hostile=True, state="complete"):
    db = sqlite3.connect(path)
    db.executescript(SCHEMA)
    frame_rows(db)
    put = db.executemany
    put("INSERT INTO meta VALUES (?, ?)", [
        ("dyntrace_version", "0.1.0"), ("state", state), ("started_unix_ns", 1700000000000000000), ("host", "box"),
        ("command", json.dumps(["train.py", "--epochs", "3"])), ("clock", "tsc"), ("span_ns", SPAN)])
    put("INSERT INTO process(process_id, pid, parent_process_id, rank, argv, executable, python_version, torch_version, mode, torch_mode,"
        " start_ns, end_ns, exit_code, exit_signal) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [
            (1, 4711, None, 0, json.dumps(["python", "train.py"]), "/usr/bin/python", "3.11.7", "2.13.0", "all", "shim", 0, SPAN, 0, None),
            (2, 4712, 1, 1, json.dumps(["python", "worker.py", "日本"]), "/usr/bin/python", "3.11.7", None, "all", None, 5_000_000, SPAN - 9, None, 9)])
    put("INSERT INTO thread VALUES (?, ?, ?, ?)", [(1, 1, 4711, "MainThread"), (2, 1, 4720, "loader"), (3, 2, 4712, "MainThread")])
    codes = [
        (1, 1, "model.py", "<module>", 1, "module", None, 11), (2, 1, "model.py", "step", 5, "function", None, 12),
        (3, 1, "model.py", "Net.forward", 12, "function", None, 13), (4, 1, "model.py", "torch_dynamo_resume_in_step_at_7", 7, "function", 2, 14),
        (5, 1, "model.py", "helper", 16, "function", None, 15), (6, 2, "worker.py", "work", 3, "function", None, 16),
        (7, 1, "model.py", "step.<locals>.<listcomp>", 8, "comprehension", None, 17), (8, 2, "model.py", "helper", 16, "function", None, 18)]
    if hostile:
        codes.append((9, 1, "dir\x1b[2J/\t" + "y" * 500, HOSTILE, 1, "function", None, 19))
    put("INSERT INTO code VALUES (?, ?, ?, ?, ?, ?, ?, ?)", codes)

    # Compiles: step for 16, 18, 20 and then no more; Net.forward once, invalidated; helper limited.
    sizes = (16, 18, 20)
    put("INSERT INTO signature VALUES (?, ?)", [(i + 1, f"model: Net, x: Tensor float32[{size}, 8] cpu") for i, size in enumerate(sizes)])
    put("INSERT INTO compile VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [
        (1, 3, 2, 1, "0/0", 100_000_000, 250_000_000, "compiled", 1, "first call", None),
        (2, 30, 2, 1, "0/1", 400_000_000, 500_000_000, "compiled", 2, "no entry fitted", None),
        (3, 60, 2, 1, "0/2", 700_000_000, 780_000_000, "compiled", 3, "no entry fitted", None),
        (4, 4, 3, 1, "1/0", 260_000_000, 300_000_000, "compiled", 4, "first call", None),
        (5, 90, 5, 2, "2/0", 900_000_000, 905_000_000, "limit", None, "limit of 3 entries", 1),
        (6, 91, 6, 3, None, 910_000_000, 911_000_000, "skipped", None, "frame is in the skip list\nsecond line", 1)])
    put("INSERT INTO cache_entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [
        (1, 2, 1, "0/0", "inductor", None, 4, 250_000_000, None, None), (2, 2, 2, "0/1", "inductor", None, 4, 500_000_000, None, None),
        (3, 2, 3, "0/2", "inductor", None, 4, 780_000_000, None, None), (4, 3, 4, "1/0", "inductor", None, 1, 300_000_000, 1_000_000_000, "L['self'] died")])
    guards = []
    for entry, size in zip((1, 2, 3), sizes):
        base = entry * 10
        guards += [(base, entry, 0, "GLOBAL_STATE", "global state", "___check_global_state()", None),
                   (base + 1, entry, 1, "TYPE_MATCH", "L['model']", "type(L['model']) is Net", 'File "model.py", line 6, in step'),
                   (base + 2, entry, 2, "ID_MATCH", "L['model'].fc", "id(L['model'].fc) == 7", None),
                   (base + 3, entry, 3, "TENSOR_MATCH", "L['x']", f"check_tensor(L['x'], Tensor, DispatchKeySet(CPU), torch.float32, device=None, requires_grad=False, size=[{size}, 8], stride=[8, 1])", 'File "model.py", line 6, in step')]
    guards.append((40, 4, 0, "ID_MATCH", "L['self']" if not hostile else HOSTILE[:200], "___check_obj_id(L['self'])", None))
    put("INSERT INTO guard VALUES (?, ?, ?, ?, ?, ?, ?)", guards)
    put("INSERT INTO guard_order VALUES (?, ?, ?, ?)", [(2, 1_200_000_000, "[0, 3, 1, 2]", 1)])
    put("INSERT INTO recompile_cause VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [
        (2, 1, 0, 13, "TENSOR_MATCH", "L['x']", "size", 0, "size[0] = 16", "size[0] = 18", "tensor 'x' size mismatch at index 0", "observed"),
        (3, 1, 0, 13, "TENSOR_MATCH", "L['x']", "size", 0, "size[0] = 16", "size[0] = 20", "tensor 'x' size mismatch at index 0", "observed"),
        (3, 2, 0, 23, "TENSOR_MATCH", "L['x']", "size", 0, "size[0] = 18", "size[0] = 20", "tensor 'x' size mismatch at index 0", "observed"),
        (3, 2, 1, 22, "ID_MATCH", "L['model'].fc", "identity", None, "7", "9", "another fc", "re-checked")])
    put("INSERT INTO graph_break VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [
        (1, 1, 2, 7, 40, "Failed to trace builtin operator\n  Explanation: Dynamo does not know how to trace builtin operator `print`\n"
         "  Hint: Avoid calling print in a compiled region", 'File "model.py", line 7, in step', 4),
        (2, 2, 2, 7, 40, "Failed to trace builtin operator\n  Explanation: again", 'File "model.py", line 7, in step', 4)])
    put("INSERT INTO graph VALUES (?, ?, ?, ?)", [(1, 1, "__compiled_fn_1", 3)])
    put("INSERT INTO graph_node VALUES (?, ?, ?, ?, ?, ?, ?)", [
        (1, 0, "placeholder", "l_x_", "L_x_", "()", "{}"), (1, 1, "call_function", "mul", "operator.mul", "(l_x_, 2)", "{}"),
        (1, 2, "output", "output", "output", "((mul,),)", "{}")])
    put("INSERT INTO listing VALUES (?, ?, ?)", [
        (1, "original_bytecode", "  5 RESUME 0\n  6 LOAD_FAST model\n  7 RETURN_VALUE"),
        (1, "modified_bytecode", "  5 RESUME 0\n    LOAD_GLOBAL __compiled_fn_1\n    CALL 1\n    RETURN_VALUE")])
    put("INSERT INTO compile_phase VALUES (?, ?, ?, ?, ?)", [
        (1, "entire_frame_compile", 100_000_000, 240_000_000, "0/0"), (1, "backend_compile", 150_000_000, 230_000_000, "0/0")])
    put("INSERT INTO code_mark VALUES (?, ?, ?, ?, ?, ?)", [(5, 905_000_000, "run_only", "default", None, "limit of 3 entries")])
    put("INSERT INTO loss VALUES (?, ?, ?, ?, ?)", [(2, 3, 1_500_000_000, 120, "ring was full"), (1, 1, 10, 0, "stall: waited 3 ms")])

    # Calls: a main frame on each thread, below it steps with the model's forward, each of them looked up.
    frames, rows, checks = [], [], []
    frames.append((1, 1, None, 1, 0, 0, 1_000_000, SPAN - 1000, None, 0))
    frames.append((2, 3, None, 6, 0, 0, 6_000_000, None, None, None))
    each = (SPAN - 120_000_000) // max(lookups, 1)
    frame, check = 3, 1
    total = {}
    for i in range(lookups):
        at = 110_000_000 + i * each
        if i % 8 == 7:  # the loader's helper, at its limit
            code, thread, parent, outcome, entry, took = 5, 2, None, 5, None, 900
        elif i % 4 == 3:
            code, thread, parent, outcome, entry, took = 3, 1, 1, 1, 4, 300
        else:
            which = min(i * 4 // max(lookups, 1), 2)
            code, thread, parent, outcome, entry, took = 2, 1, 1, 1, which + 1, 500 + 300 * which
        compiled = {int(lookups * 0.01): (1, 1), int(lookups * 0.3) // 4 * 4: (2, 2), int(lookups * 0.6) // 4 * 4: (3, 3)}.get(i)
        if compiled and code == 2:
            outcome, entry, took = 2, compiled[1], 100_000_000 // 4
        if hostile and i % 50 == 49:
            code = 9
        length = max(each // 2, 10)
        frames.append((frame, thread, parent, code, 0, outcome, at, at + length, entry if outcome == 1 else None, 0))
        tried = 0
        if outcome != 5 and code == 2 and entry:
            for position, other in enumerate(range(1, entry + (0 if outcome == 2 else 1))):
                passed = other == entry and outcome == 1
                checks.append((check, i + 1, position, other, "pass" if passed else "fail", None if passed else other * 10 + 3, 4, 250))
                check += 1
                tried += 1
        rows.append((i + 1, frame, thread, code, at, took, outcome, entry, tried, (entry if outcome == 2 else None)))
        total[code] = total.get(code, 0) + 1
        frame += 1
        if code == 2:
            frames.append((frame, 1, frame - 1, 7, 0, 0, at + length // 4, at + length // 2, None, 0))
            frame += 1
    put("INSERT INTO frame_rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", frames)
    put("INSERT INTO lookup VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    put("INSERT INTO guard_check VALUES (?, ?, ?, ?, ?, ?, ?, ?)", checks)
    put("INSERT INTO code_total(code_id, calls, total_ns, self_ns, raised) VALUES (?, ?, ?, ?, ?)",
        [(code, count, count * each // 2, count * each // 4, 0) for code, count in sorted(total.items())] + [(1, 1, SPAN - 1_001_000, 400_000_000, 0), (6, 1, 5, 5, 1)])
    put("INSERT INTO meta VALUES (?, ?)", [("frame_count", len(frames)), ("open_frame_count", 1)])
    db.commit()
    db.close()
    return path


if __name__ == "__main__":
    make_trace(sys.argv[1], *map(int, sys.argv[2:3]))
