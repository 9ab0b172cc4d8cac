"""Traces that are made by Python's sqlite3 from schemas/*.sql, so that tests need no recorder and can have what no recorder would
write; and logs as torch writes them, for `dyntrace import`.

Also a program: tests/planted.py FOLDER writes such a log there; `make fuzz` uses that."""
import hashlib
import json
import re
import sqlite3
import sys
import time
from pathlib import Path

from frame_rows import VIEW
from shared import SCHEMA


# main() calls work() twice; the second call raises and was left open in a child that was killed.
ROWS = VIEW + """
INSERT INTO meta VALUES ('dyntrace_version', '0.1.0'), ('state', 'complete'), ('started_unix_ns', 1700000000000000000),
    ('host', 'box'), ('command', '["python", "app.py", "--fast"]'), ('clock', 'tsc'), ('span_ns', 5000000000),
    ('frame_count', 6), ('open_frame_count', 1);
INSERT INTO process(process_id, pid, parent_process_id, argv, executable, python_version, mode, start_ns, end_ns,
    exit_code, exit_signal) VALUES
    (1, 100, NULL, '["python", "app.py", "--fast"]', '/usr/bin/python', '3.12.1', 'all', 0, 5000000000, 3, NULL),
    (2, 101, 1, '["python", "-c", "pass"]', '/usr/bin/python', '3.12.1', 'all', 1000, 4000000000, NULL, 9);
INSERT INTO thread VALUES (1, 1, 100, 'MainThread'), (2, 2, 101, 'MainThread');
INSERT INTO code(code_id, process_id, filename, qualname, first_line, kind) VALUES
    (1, 1, '/src/app/app.py', '<module>', 1, 'module'), (2, 1, '/src/app/app.py', 'work', 10, 'function'),
    (3, 2, '/src/app/app.py', 'work', 10, 'function');
INSERT INTO frame_rows VALUES
    (1, 1, NULL, 1, 0, 0, 100, 5000, NULL, 0),
    (2, 1, 1, 2, 0, 0, 200, 300, NULL, 0),
    (3, 1, 1, 2, 0, 0, 400, 900, NULL, 2),
    (4, 1, 3, 2, 1, 0, 500, 600, NULL, 1),
    (129, 2, NULL, 3, 0, 0, 2000, 2500, NULL, 0),
    (130, 2, NULL, 3, 0, 0, 2600, NULL, NULL, NULL);
INSERT INTO code_total(code_id, calls, total_ns, self_ns, raised) VALUES (1, 1, 4900, 4300, 0), (2, 2, 600, 600, 1), (3, 2, 3999997900, 3999997900, 0);
"""


def make_trace(path, *statements, rows=ROWS):
    db = sqlite3.connect(path)
    db.executescript(SCHEMA + VIEW + rows)
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()
    return path


OUTCOMES = "plain hit compiled run_only skip limit declined disabled guard_error callback_error".split()


MS = 1000000


EVIL = "\x1b[31m\n\t\"evil'\\ \u202e\x9b\u2603" + "x" * 100000


KINDS = [("type", "TYPE_MATCH"), ("identity", "ID_MATCH|FUNCTION_MATCH"), ("length", ".*LENGTH.*|.*_LEN"), ("keys", "DICT_KEYS|DICT_CONTAINS"),
         ("attribute", ".*HASATTR"), ("alive", "WEAKREF_ALIVE"), ("state", "GLOBAL_STATE|DEFAULT_DEVICE|TORCH_FUNCTION_MODE_STACK"),
         ("relation", ".*ALIASING"), ("value", ".*EQUALS_MATCH|NONE_MATCH|TRUE_MATCH")]


def aspect_of(kind, source, actual):
    """What a recorder would say of a cause: aspect and dimension."""
    if (source or "").startswith("type("):
        return "type", None
    found = re.search(r"\.(size|stride|shape|ndim|dtype|device|requires_grad)(?:\(\))?(?:\[(\d+)\])?$", source or "") or \
        kind == "TENSOR_MATCH" and re.match(r"(size|stride|ndim|dtype|device|requires_grad)(?:\[(\d+)\])? ", actual or "")
    if found:
        return found[1], found[2] and int(found[2])
    return next((aspect for aspect, kinds in KINDS if re.fullmatch(kinds, kind or "")), None), None


WORDS = {"TYPE_MATCH": "type(%s) is %s", "EQUALS_MATCH": "%s == %s", "LIST_LENGTH": "len(%s) == %s", "DICT_KEYS": "%s.keys() == set(%s)"}


def tensor_words(source, size):
    """A guard on a tensor as python/dyntrace/guards.py writes it."""
    return f"{source} is torch.Tensor torch.float32 on device(type='cpu') requires_grad=False size ({size}, 4) stride (4, 1)"


class Plant:
    """A trace of one function f() in which a cause is planted; times pass by themselves."""

    def __init__(self, path, qualname="f", filename="/src/app.py", line=10):
        self.path, self.now, self.calls, self.ids = path, 0, 0, dict.fromkeys(("lookup", "check", "guard", "entry", "compile"), 0)
        self.db = sqlite3.connect(path)
        self.db.executescript(SCHEMA + VIEW)
        self.insert("process", process_id=1, pid=100)
        self.insert("thread", thread_id=1, process_id=1, os_tid=100)
        self.insert("code", code_id=1, process_id=1, filename=filename, qualname=qualname, first_line=line, kind="function")
        self.insert("code", code_id=2, process_id=1, filename=filename, qualname="main", first_line=90, kind="function")
        self.insert("code_total", code_id=2, calls=1, total_ns=1, self_ns=1, raised=0)
        self.entries = []  # (entry id, label, {guard index: id})

    def insert(self, table, **values):
        if table == "frame":
            table = "frame_rows"
        self.db.execute(f"INSERT INTO {table}({', '.join(values)}) VALUES ({', '.join('?' * len(values))})", list(values.values()))

    def next(self, kind):
        self.ids[kind] += 1
        return self.ids[kind]

    def entry(self, guards=(("TYPE_MATCH", "L['x']", "type(L['x']) is int"),), backend="eager", label=None):
        """Without a compile or lookup of its own."""
        entry_id = self.next("entry")
        label = label or f"0/{len(self.entries)}"
        self.insert("cache_entry", cache_entry_id=entry_id, code_id=1, label=label, backend=backend, guard_count=len(guards),
                    born_ns=self.now)
        ids = []
        for ordinal, (kind, source, expression) in enumerate(guards):
            ids.append(self.next("guard"))
            self.insert("guard", guard_id=ids[-1], cache_entry_id=entry_id, ordinal=ordinal, kind=kind, source=source,
                        expression=expression)
        self.entries.append((entry_id, label, ids))
        return entry_id

    def call(self, outcome, entry=None, failed=(), signature=None):
        """FAILED: (entry id, guard id, result) of each entry that was tried and did not fit."""
        self.now += MS
        self.calls += 1
        lookup = self.next("lookup")
        signature_id = None
        if signature:
            found = self.db.execute("SELECT signature_id FROM signature WHERE text = ?", (signature,)).fetchone()
            signature_id = found[0] if found else self.db.execute("INSERT INTO signature(text) VALUES (?)", (signature,)).lastrowid
        checks = [(*check, "fail")[:3] for check in failed] + ([(entry, None, "pass")] if outcome == "hit" else [])
        for position, (tried, guard, result) in enumerate(checks):
            self.insert("guard_check", guard_check_id=self.next("check"), lookup_id=lookup, position=position,
                        cache_entry_id=tried, result=result, failed_guard_id=guard, guards_run=1, duration_ns=100)
        self.insert("lookup", lookup_id=lookup, frame_id=lookup, thread_id=1, code_id=1, start_ns=self.now, duration_ns=500,
                    outcome=OUTCOMES.index(outcome), cache_entry_id=entry, entries_checked=len(checks), signature_id=signature_id)

    def compile(self, causes=(), guards=(("TYPE_MATCH", "L['x']", "type(L['x']) is int"),), signature=None, backend="eager",
                reason=None, outcome="compiled"):
        """A miss that was compiled. CAUSES: dicts for recompile_cause, the entry by its index."""
        start = self.now + MS
        compile_id = self.next("compile")
        failed, ordinals = [], {}
        for cause in causes:
            entry_id, _, ids = self.entries[cause.get("entry", 0)]
            guard = ids[cause.get("guard", 0)] if ids and cause.get("guard", 0) is not None else None
            how = cause.get("how", "observed")
            if how == "observed":
                failed.append((entry_id, guard, "backend_mismatch" if cause.get("kind") == "BACKEND_MATCH" else "fail"))
            ordinal = ordinals[entry_id] = ordinals.get(entry_id, -1) + 1
            kind, source, text = self.db.execute("SELECT kind, source, expression FROM guard WHERE guard_id = ?", (guard,)).fetchone() or (None,) * 3
            kind, source, text = cause.get("kind") or kind, cause.get("source") or source, cause.get("text") or text # as the recorder has it
            aspect, dimension = aspect_of(kind, source, cause.get("actual"))
            self.insert("recompile_cause", compile_id=compile_id, cache_entry_id=entry_id, ordinal=ordinal, guard_id=guard,
                        kind=kind, source=source, aspect=aspect, dimension=dimension, expected=cause.get("expected"),
                        actual=cause.get("actual"), text=text, how=how)
        made = None
        if outcome == "compiled":
            made = self.entry(guards, backend)
            self.db.execute("UPDATE cache_entry SET compile_id = ? WHERE cache_entry_id = ?", (compile_id, made))
        self.call({"compiled": "compiled", "declined": "declined", "error": "callback_error"}[outcome], made, failed, signature)
        self.insert("compile", compile_id=compile_id, frame_id=self.ids["lookup"], code_id=1, thread_id=1,
                    label=self.entries[-1][1] if made else "0/9", start_ns=start, end_ns=start + MS // 2, outcome=outcome,
                    cache_entry_id=made, reason=reason)
        return made

    def sequence(self, kind, source, values, template="%s", signatures=None):
        """A compile for each of VALUES, because the older entries wanted the others."""
        for i, value in enumerate(values):
            words = tensor_words(source, value) if kind == "TENSOR_MATCH" and signatures else WORDS.get(kind, "%s is %s") % (source, value)
            self.compile([dict(entry=j, kind=kind, source=source, expected=template % older, actual=template % value)
                          for j, older in enumerate(values[:i])],
                         guards=((kind, source, words),), signature=signatures and signatures % value)

    def die(self, entry, cause):
        self.now += MS
        self.db.execute("UPDATE cache_entry SET died_ns = ?, death_cause = ? WHERE cache_entry_id = ?", (self.now, cause, entry))

    def done(self, more=0, **rest):
        """MORE calls had no lookup."""
        self.insert("code_total", code_id=1, calls=self.calls + more, total_ns=self.now or 1, self_ns=1, raised=0)
        self.db.execute("INSERT INTO meta VALUES ('frame_count', (SELECT COUNT(*) FROM frame))")
        self.db.commit()
        self.db.close()
        return self.path


def size_changes(p):
    p.sequence("TENSOR_MATCH", "L['x']", [16, 18, 20, 22], "size[0] = %d", "x: Tensor float32[%d, 4] cpu")
    for i in range(5):
        p.call("hit", p.entries[3][0])
    for i in range(7):
        p.call("limit", failed=[(e, g[0]) for e, _, g in p.entries], signature="x: Tensor float32[64, 4] cpu")


FILE = "/home/me/src/app/net.py"


BREAK = """Graph break in user code at /home/me/src/app/net.py:5
Graph Break Reason: Data-dependent branching
  Explanation: Detected data-dependent branching
  Hint: Use `torch.cond`

User code traceback:
  File "/home/me/src/app/net.py", line 12, in <module>
    f(torch.ones(n), 2)
  File "/home/me/src/app/net.py", line 5, in f
    if y.sum() > 0:

NoneType: None
"""


GUARDS = """
TREE_GUARD_MANAGER:
+- RootGuardManager
| +- GLOBAL_STATE: ___check_global_state() against {"grad_mode":true}
| +- DEFAULT_DEVICE: utils_device.CURRENT_DEVICE == None                           # _dynamo/output_graph.py:1122 in init_ambient_guards
| +- GuardManager: source=L['k'], accessed_by=FrameLocalsGuardAccessor(key='k', framelocals_idx=1), type=<class 'int'>, tag_safe=(False, False)
| | +- EQUALS_MATCH: L['k'] == 2                                                   # y = x * k  # src/app/net.py:4 in f
| +- GuardManager: source=L['x'], accessed_by=FrameLocalsGuardAccessor(key='x', framelocals_idx=0), type=<class 'torch.Tensor'>, tag_safe=(False, False)
| | +- TENSOR_MATCH: check_tensor(L['x'], Tensor, torch.float32, size=[%d], stride=[1])  # y = x * k  # src/app/net.py:4 in f (HINT: x)
| | +- DIMENSION_DYNAMIC_MARKING_GUARD: hasattr(L['x'], '_dynamo_dynamic_indices') == False    # y = x * k  # src/app/net.py:4 in f
| | +- DIMENSION_DYNAMIC_MARKING_GUARD: hasattr(L['x'], '_dynamo_static_indices') == False     # y = x * k  # src/app/net.py:4 in f

Guard latency = 75.00 us
"""


class Log:
    """A process's log. Times are milliseconds since START, 12:00 UTC; the machine's clock says 14:00."""
    START = 1789000000 // 86400 * 86400 + 43200

    def __init__(self, directory, pid=100, rank=None, hours=2):
        directory.mkdir(exist_ok=True)
        self.path = directory / f"dedicated_log_torch_trace_{'' if rank is None else f'rank_{rank}_'}x{pid}.log"
        self.pid, self.rank, self.hours, self.lines, self.ms = pid, rank, hours, [], 0

    def put(self, name, value, label=None, text=None, attempt=0):
        head = {name: value}
        if self.rank is not None:
            head["rank"] = self.rank
        if label:
            frame, compile_id = label.split("/")
            head.update(frame_id=int(frame), frame_compile_id=int(compile_id), attempt=attempt)
        if text is not None:
            head["has_payload"] = hashlib.md5(text.encode()).hexdigest()
        at = time.gmtime(self.START + self.hours * 3600 + self.ms // 1000)
        self.lines.append(f"V{time.strftime('%m%d %H:%M:%S', at)}.{self.ms % 1000:03d}000 {self.pid} torch/_dynamo/x.py:1] {json.dumps(head)}")
        if text is not None:
            self.lines += ["\t" + line for line in text.split("\n")]
        self.ms += 1

    def event(self, name, phase, label=None, **rest):
        self.put("chromium_event", {}, label, json.dumps({"name": name, "ts": self.START * 1e6 + self.ms * 1e3, "args": {"compile_id": label, **rest},
                                                          "ph": phase, "cat": "dynamo_timed", "tid": 0, "pid": 0}, indent=0))

    def compile(self, label, name="f", line=3, size=2, reasons=None, broke=False, failed=None, graph=True, **metrics):
        self.event("dynamo", "B", label)
        self.event("entire_frame_compile", "B", label)
        if reasons:
            self.put("artifact", {"name": "recompile_reasons", "encoding": "json"}, label, reasons)
        self.put("str", [FILE, 7])
        self.put("dynamo_start", {"stack": [{"line": 12, "name": "<module>", "filename": 7}, {"line": line, "name": name, "filename": 7}]}, label)
        if broke:
            for attempt in (0, 1):  # torch starts again, and meets it again
                self.put("artifact", {"name": "dynamo_graph_break_reason", "encoding": "string"}, label, BREAK, attempt)
        if failed:
            if failed[0] != "Unsupported":
                self.put("artifact", {"name": "dynamo_error", "encoding": "string"}, label, "Traceback")
            found = {"has_guarded_code": False, "fail_type": failed[0], "fail_reason": failed[1]}
        else:
            if graph:
                self.put("dynamo_output_graph", {"sizes": {}}, label, "class GraphModule: ...")
            self.put("dynamo_cpp_guards_str", {}, label, GUARDS % size)
            found = {"has_guarded_code": True, "fail_type": None, "fail_reason": None}
        found.update(compile_id=label, co_name=name, co_filename=FILE, co_firstlineno=line, python_version="3.11.7 (main)", pytorch_version="2.13.0+cpu", **metrics)
        self.event("entire_frame_compile", "E", label)
        self.put("compilation_metrics", found, label)
        self.event("dynamo", "E", label)

    def write(self):
        self.path.write_text("\n".join(self.lines) + "\n")
        return self.path


def one(logs):
    """f compiled with a break, its rest, f again for another size, a compile that raises, one that gives nothing, the limit."""
    log = Log(logs)
    log.compile("0/0", broke=True)
    log.compile("1/0", "torch_dynamo_resume_in_f_at_5", 5)
    log.compile("0/1", size=3, reasons="0/0: tensor 'x' size mismatch at index 0. expected 2, actual 3")
    log.compile("0/2", reasons=json.dumps(["0/1: tensor 'x' size mismatch at index 0. expected 3, actual 4",
                                           "0/0: k == 2   # y = x * k  # src/app/net.py:4 in f\nUser stack trace:\n  File"]), size=4)
    log.compile("2/0", "bad", 20, failed=("BackendCompilerFailed", "backend='broken' raised:\nValueError: no"))
    log.compile("3/0", "eager", 30, failed=("Unsupported", "loop"))
    log.compile("0/3", failed=("Unsupported", "Dynamo recompile limit exceeded\n Developer debug context: Limit type: recompile_limit"))
    return log


if __name__ == "__main__":
    one(Path(sys.argv[1])).write()
