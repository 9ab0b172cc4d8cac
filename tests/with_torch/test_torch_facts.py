"""_torch_facts: what is noted about torch's compiles, against what torch itself counts and returns.

A stub stands where the extension would be and collects the notes, and begin() and end() are called round
CatchErrorsWrapper.__call__, which is the callback that torch gives to set_eval_frame. The stub takes from the extension
only what puts our functions round torch's. The extension calls them only while it records, so a recording goes on. What
the recorded process's own bridge to torch notes goes to the trace, which nobody reads.
"""
import builtins
import collections
import contextlib
import dis
import gc
import importlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import traceback
import types
import weakref
from pathlib import Path

import pytest

from shared import command_path

torch = pytest.importorskip("torch")
import torch._dynamo # noqa: E402
from torch._dynamo import config, convert_frame, exc, output_graph, utils # noqa: E402

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "dyntrace"
VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
NEW = VERSION >= (2, 8) # ConvertFrameReturn, types of graph breaks
LOOPS = hasattr(torch._dynamo.symbolic_convert.InstructionTranslatorBase, "raise_loop_graph_break") # they are Unsupported
REASONS = hasattr(getattr(torch._dynamo.types, "ConvertFrameReturn", None), "skip_reason") # why it skipped a frame

Compile = collections.namedtuple("Compile", "id label outcome reason sticky")
Break = collections.namedtuple("Break", "id code line offset reason user_stack resume")
Phase = collections.namedtuple("Phase", "id name start end label")


KINDS = {"torch": "torch", "compile": "compile", "graph": "graph", "graph_break": "break", "listing": "listing", "phase": "phase",
         "origin": "origin", "rank": "rank", "loss": "loss"}


def package(part=""):
    """The package dyntrace that was built for the Python of this very process, or a module of it."""
    sys.path.insert(0, str(Path(command_path()).parent / "lib" / "python"))
    try:
        return importlib.import_module("dyntrace" + part)
    finally:
        del sys.path[0]


class Notes:
    """Stands for _notes and for the extension: keeps every note."""

    def __init__(self):
        self.rows, self.begun, self.broken = [], {}, set()

    def __getattr__(self, name):
        if name not in KINDS:
            raise AttributeError(name)
        kind = KINDS[name]

        def note(*values):
            if kind in self.broken:
                raise RuntimeError("broken note")
            self.rows.append((kind,) + values)
        return note

    @staticmethod
    def _values():
        return "all"

    @staticmethod
    def _phase(number):
        """Would tell the extension which part of torch's work goes on in this thread."""

    @property
    def _around(self):
        return package("._native").native._around

    @property
    def REASON(self):
        return package("._notes").REASON

    def of(self, kind):
        return [row[1:] for row in self.rows if row[0] == kind]

    @property
    def compiles(self):
        return [Compile(*row) for row in self.of("compile")]

    @property
    def breaks(self):
        return [Break(*row) for row in self.of("break")]

    @property
    def phases(self):
        return [Phase(*row) for row in self.of("phase")]

    def compile_of(self, code, nth=0):
        return [one for one in self.compiles if self.begun[one.id] is code and one.label][nth]

    def listed(self, id, kind):
        return [text for row_id, row_kind, text in self.of("listing") if (row_id, row_kind) == (id, kind)]


def load(native):
    """The module under test with NATIVE as its extension, under a name of its own."""
    package = types.ModuleType("dyntrace_under_test")
    package.__path__ = [str(PACKAGE)]
    stub = types.ModuleType("dyntrace_under_test._native")
    stub.native = native
    sys.modules.update({"dyntrace_under_test": package, "dyntrace_under_test._native": stub,
                        "dyntrace_under_test._notes": native})
    try:
        return importlib.import_module("dyntrace_under_test._torch_facts")
    finally:
        for name in [name for name in sys.modules if name.startswith("dyntrace_under_test")]:
            del sys.modules[name]


def stand_around(begin, end):
    """Call BEGIN and END round every compile of a frame, as the evaluator does (but from Python)."""
    ids, callback = itertools.count(1), convert_frame.CatchErrorsWrapper.__call__

    def call(self, frame, *rest):
        token = begin(next(ids), frame.f_code)
        try:
            result = callback(self, frame, *rest)
        except BaseException as error:
            end(token, None, error)
            raise
        end(token, result, None)
        return result

    convert_frame.CatchErrorsWrapper.__call__ = call


@contextlib.contextmanager
def install(trace):
    """Load the module under test, set its hooks, and note everything while this process is recorded into TRACE."""
    notes = Notes()
    facts = notes.facts = load(notes)
    facts.prepare()

    def begin(id, code):
        notes.begun[id] = code
        return facts.begin(id, code)

    stand_around(begin, lambda *values: facts.end(*values))
    with package().record(trace):
        yield notes


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    places = [(utils, "record_chromium_event_internal"), (exc.Unsupported, "add_to_stats"),
              (output_graph.GraphCompileReason, "__post_init__"), (convert_frame.CatchErrorsWrapper, "__call__")]
    before = [getattr(owner, name) for owner, name in places]
    with install(tmp_path_factory.mktemp("facts") / "facts.db") as notes:
        yield notes
    for (owner, name), value in zip(places, before):
        setattr(owner, name, value)


@pytest.fixture
def notes(installed):
    torch._dynamo.reset()
    utils.counters.clear()
    installed.rows.clear()
    installed.begun.clear()
    installed.broken.clear()
    yield installed
    assert not installed.facts._thread.compiles and not installed.facts._thread.events
    losses, expected = installed.of("loss"), bool(installed.broken)
    assert bool(losses) == expected, losses
    torch._dynamo.reset()


def compile(function, **options):
    return torch.compile(function, **{"backend": "eager", **options})


def counted_breaks():
    return {reason: count for reason, count in utils.counters["graph_break"].items() if count}


def check_breaks(notes, extra=()):
    """As many rows for each of the counter's keys as it says; all other rows begin with one of EXTRA."""
    counter = counted_breaks()
    rows = collections.Counter(row.reason for row in notes.breaks)
    assert {reason: count for reason, count in rows.items() if reason in counter} == counter
    others = sorted(reason.split()[0] for reason in rows.elements() if reason not in counter)
    assert others == sorted(extra)


# ---- programs to be compiled

def plain(x, y):
    a = x.sin() + 1
    return torch.cat([a, y]).sum() * a


def helper(x):
    y = x * 2
    torch._dynamo.graph_break()
    return y + 1


def inlined(x):
    x = x + 1
    x = helper(x)
    return x.cos()


def twice(x):
    x = x + 1
    torch._dynamo.graph_break()
    x = x * 2
    torch._dynamo.graph_break()
    return x - 3


def branch(x):
    y = x + 1
    if y.sum() > 0:
        return y.sin()
    return y.cos()


def in_loop(x):
    for _ in range(2):
        x = x + 1
        torch._dynamo.graph_break()
    return x


def in_try(x):
    x = x + 1
    y = x * 2
    try:
        y = y + 1
        torch._dynamo.graph_break()
    except ValueError:
        pass
    return y


def in_with(x):
    x = x + 1
    with torch.no_grad():
        x = x * 2
        torch._dynamo.graph_break()
        x = x + 1
    return x * x


def with_cell(x):
    k = 3

    def inner():
        return x * k
    y = inner()
    torch._dynamo.graph_break()
    return inner() + y


class Box:
    @property
    def field(self):
        return 0

    @field.setter
    def field(self, value):
        torch._dynamo.graph_break()


def sets_attribute(x):
    box = Box()
    x = x + 1
    box.field = 3
    return x * 2


def test_a_compile_is_noted_with_its_graph_and_code(notes):
    seen = []

    def backend(module, inputs):
        seen.append(([node.name for node in module.graph.nodes], [node.op for node in module.graph.nodes]))
        return module.forward

    started = time.time_ns()
    compile(plain, backend=backend)(torch.ones(3), torch.ones(3))
    ended = time.time_ns()
    compiled = notes.compile_of(plain.__code__)
    assert compiled.outcome == "compiled" and compiled.reason == "" and compiled.sticky is None
    entry = torch._C._dynamo.eval_frame._debug_get_cache_entry_list(plain.__code__)[0]
    if hasattr(entry, "compile_id"):
        assert compiled.label == str(entry.compile_id)

    (id, name, rows), = notes.of("graph")
    assert id == compiled.id and name in entry.code.co_names and name.startswith("__compiled_fn")
    assert len(notes.of("graph")) == utils.counters["stats"]["unique_graphs"]
    assert ([row[1] for row in rows], [row[0] for row in rows]) == seen[0]
    assert all(type(value) is str for row in rows for value in row) and all(len(row) == 5 for row in rows)
    cat, = [row for row in rows if "cat" in row[2]]
    assert cat[0] == "call_function" and cat[2] == "torch.cat" and cat[3].startswith("([") and cat[4] == "{}"

    text, = notes.listed(id, "graph")
    assert "float32[3]" in text and "torch.cat([" in text and "test_torch_facts.py:" in text and "return (" in text
    original, = notes.listed(id, "original_bytecode")
    modified, = notes.listed(id, "modified_bytecode")
    for listing, code in (original, plain.__code__), (modified, entry.code):
        rows = [line[9:].split() for line in listing.partition("\nexceptions:")[0].splitlines()]
        assert [(int(row[0]), row[1]) for row in rows] == [(i.offset, i.opname) for i in dis.get_instructions(code)]
    guards, = notes.listed(id, "guards")
    assert "TENSOR_MATCH" in guards and "L['x']" in guards
    assert (entry.code, plain.__code__, "compiled") in notes.of("origin")

    phases = {phase.name: phase for phase in notes.phases if phase.label == compiled.label}
    assert {"entire_frame_compile", "backend_compile"} <= set(phases)
    if NEW:
        assert {"bytecode_tracing", "build_guards"} <= set(phases)
    for phase in phases.values():
        assert phase.id == id and started <= phase.start <= phase.end <= ended
    assert phases["entire_frame_compile"].start <= phases["backend_compile"].start
    assert phases["backend_compile"].end <= phases["entire_frame_compile"].end


def test_bytecode_of_a_function_that_is_compiled_again_is_the_same(notes):
    run = compile(plain, dynamic=False)
    for size in 3, 4, 5:
        run(torch.ones(size), torch.ones(size))
    ids = [one.id for one in notes.compiles if one.label]
    assert len(ids) == 3
    assert len({notes.listed(id, "original_bytecode")[0] for id in ids}) == 1
    assert [one.label.split("/")[1] for one in notes.compiles if one.label] == ["0", "1", "2"]


@pytest.mark.parametrize("name", ["argparse", "typing", "ast", "asyncio.tasks", "dataclasses", "pickle", "contextlib"])
def test_a_bytecode_listing_has_the_instructions_that_dis_has(notes, name):
    module = importlib.import_module(name)
    pending = [builtins.compile(Path(module.__file__).read_text(), name, "exec")]
    told = 0
    while pending:
        code = pending.pop()
        pending += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        expected = [i for i in dis.get_instructions(code)]
        if any("\n" in i.argrepr for i in expected):
            continue
        text, _, exceptions = notes.facts._bytecode(code).partition("\nexceptions:")
        lines, handlers = text.split("\n"), set(re.findall(r"-> (\d+)", exceptions))
        assert len(lines) == len(expected)
        assert len(exceptions.split("\n")) - 1 == len(list(dis.Bytecode(code).exception_entries))
        line = None
        for i, row in zip(expected, lines):
            found = re.fullmatch(r" *(\d*) (>>|  ) +(\d+) (\w+) *(\d*)(?: \((.*)\))?", row)
            at, mark, offset, opname, argument, what = found.groups()
            assert (int(offset), opname, argument) == (i.offset, i.opname, "" if i.arg is None else str(i.arg))
            assert (mark == ">>") == (i.is_jump_target or offset in handlers)
            assert not at or int(at) == i.positions.lineno != line
            line = int(at) if at else line
            wanted = f"to {i.argval}" if i.opcode in dis.hasjrel else i.argrepr
            if what and wanted and not wanted.startswith("<code"):
                assert what == wanted[:2000]
                told += 1
    assert told > 500


def test_guards_of_a_dict_that_is_iterated_are_listed(notes):
    def function(d, x):
        for key, value in d.items():
            x = x + value
        return x

    compile(function)({"a": 1, "b": 2}, torch.ones(2))
    id = notes.compile_of(function.__code__).id
    text, = notes.listed(id, "guards")
    assert text.startswith("+- root\n| +- ") and "| +- L['d']" in text and "TENSOR_MATCH" in text
    assert len(text.splitlines()) > 8


def test_a_graph_listing_names_no_place_that_torch_does_not_know(notes):
    """export() makes its input nodes before the first instruction. Their line is -1."""
    torch._dynamo.export(plain)(torch.ones(3), torch.ones(3))
    compiled = notes.compile_of(plain.__code__)
    lines = notes.listed(compiled.id, "graph")[0].splitlines()
    places = [line.split("#")[1].strip() for line in lines if line.startswith("    #")]
    first = plain.__code__.co_firstlineno
    assert places == [f"{__file__}:{first + 1}", f"{__file__}:{first + 2}"]
    assert lines[1].startswith("    l_x_") and lines[1].endswith(" = L_x_")


@pytest.mark.parametrize("stack, where", [
    ('  File "/a/b.py", line 12, in f\n    return x * k\n', "    # /a/b.py:12"),
    ('  File "/a.py", line 3, in f\n    g(x)\n  File "/b.py", line 4, in g\n', "    # /b.py:4"),
    ('  File "/a.py", line 3, in f\n    raise E(\'  File "/b.py", line 4\')\n', "    # /a.py:3"),
    ('  File "/a.py", line -1, in f\n', ""),
    ('  File "/a.py", line None, in f\n', ""),
    ('  File "/a.py", line', ""), ("no stack", ""), ("", ""), (None, ""), (7, "")])
def test_a_graph_nodes_place_is_the_innermost_frame_of_its_stack(notes, stack, where):
    assert notes.facts._where(stack) == where


def test_arguments_of_graph_nodes_are_texts(notes):
    def function(x, k):
        y = x[1:, None, ...]
        z = torch.full((2, 3), 1.5, dtype=torch.float64, device="cpu")
        return y.sum(dim=(0, 1), keepdim=True), z.reshape(3, -1), torch.nn.functional.linear(x, k)

    compile(function)(torch.ones(4, 2), torch.ones(3, 2))
    rows = notes.of("graph")[0][2]
    text = "\n".join(" ".join(row) for row in rows)
    assert "slice(1, None, None)" in text and "Ellipsis" in text
    assert "'dtype': torch.float64" in text and "(2, 3)" in text and "'keepdim': True" in text
    assert "torch._C._nn.linear" in text


def test_a_graph_listing_runs_no_repr_of_the_programs_objects(notes):
    class Odd:
        def __repr__(self):
            raise AssertionError("asked")
        __str__ = __getattr__ = __repr__

    text = notes.facts._text([Odd(), (Odd(), 1), {"a": Odd()}, "b", list(range(5000))])
    assert text.startswith("[<Odd>, (<Odd>, 1), {'a': <Odd>}, 'b', [0, 1") and len(text) < 4000
    assert notes.facts._target(Odd()) == "<Odd>"
    odd_error = type("OddError", (Exception,), {"__str__": Odd.__repr__})("first\nsecond")
    assert notes.facts._exception_text(odd_error) == "OddError: first"


# ---- outcomes

def test_a_recompile_limit_is_noted(notes):
    def function(x):
        return x + 1

    run = compile(function, dynamic=False)
    name = "recompile_limit" if VERSION >= (2, 7) else "cache_size_limit"
    with config.patch({name: 2}):
        for size in range(1, 6):
            run(torch.ones(size))
    outcomes = [one.outcome for one in notes.compiles if notes.begun[one.id] is function.__code__]
    assert outcomes == ["compiled", "compiled", "limit"]
    limited = notes.compile_of(function.__code__, 2)
    assert limited.reason == f"{name} (2) reached" and limited.sticky is True and limited.label.endswith("/2")
    assert not notes.listed(limited.id, "original_bytecode") # it was listed when it was compiled


def test_an_accumulated_limit_is_noted(notes):
    name = "accumulated_recompile_limit" if VERSION >= (2, 7) else "accumulated_cache_size_limit"

    class Module(torch.nn.Module):
        def forward(self, x, k):
            return x + k

    run = compile(Module(), dynamic=False)
    with config.patch({name: 2}):
        for k in "abcd":
            for size in 1, 2:
                run(torch.ones(size), len(k) + ord(k))
    limited = [one for one in notes.compiles if one.outcome == "limit"]
    assert limited and limited[0].reason == f"{name} (2) reached"


def test_skipped_frames_have_their_reason(notes):
    namespace = {}
    exec("def alone(n):\n    return n + 1", namespace)
    alone = namespace["alone"]

    def no_tensors(n):
        return n + 1

    def caller(x): # is given up, so what it calls comes to torch frame by frame
        for _ in range(1):
            x = x + 1
            torch._dynamo.graph_break()
            alone(1)
        return x

    compile(caller)(torch.ones(1))
    unread, = [one for one in notes.compiles if notes.begun[one.id] is alone.__code__]
    assert unread.outcome == "skipped" and unread.sticky is True
    assert not REASONS or unread.reason == "no tensor-related objects found in frame"
    assert unread.label == "" and not notes.listed(unread.id, "original_bytecode")
    compile(no_tensors)(1) # torch looks into what it was asked to compile
    read = notes.compile_of(no_tensors.__code__)
    assert read.outcome == "skipped" and read.sticky is True and notes.listed(read.id, "original_bytecode")
    assert not REASONS or "No ops traced" in read.reason or "no ops" in read.reason.lower()
    assert [notes.begun[one.id] for one in notes.compiles if one.outcome == "declined"] == [caller.__code__] # torch's rules allow it


def test_a_declined_frame_has_the_error_that_torch_suppressed_as_reason(notes):
    compile(in_loop)(torch.ones(2))
    one = notes.compile_of(in_loop.__code__)
    assert one.outcome == "declined" and one.sticky is True
    assert ("Unsupported: " if LOOPS else "SkipFrame: ") in one.reason and "loop" in one.reason
    check_breaks(notes) # no break: the frame was given up


def test_compile_errors_are_noted(notes):
    def broken(module, inputs):
        raise RuntimeError("the backend is broken\nsecond line")

    def function(x):
        return x + 1

    with pytest.raises(Exception):
        compile(function, backend=broken)(torch.ones(2))
    one = notes.compile_of(function.__code__)
    assert one.outcome == "error" and one.sticky is None
    assert one.reason.startswith("BackendCompilerFailed: backend='broken' raised:\nRuntimeError: the backend is broken")
    assert len(notes.of("graph")) == 1 # it was given one
    with pytest.raises(exc.Unsupported):
        compile(twice, fullgraph=True)(torch.ones(2))
    one = notes.compile_of(twice.__code__)
    assert one.outcome == "error" and one.reason.startswith("Unsupported: ")
    assert ("Hint: " if NEW else "from user code:") in one.reason # the whole of it; old ones have no hints
    check_breaks(notes)


def test_a_compile_after_an_interrupted_one_is_noted_as_usual(notes):
    def backend(module, inputs):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compile(plain, backend=backend)(torch.ones(2), torch.ones(2))
    assert notes.compile_of(plain.__code__).reason == "KeyboardInterrupt"
    torch._dynamo.reset()
    compile(plain)(torch.ones(2), torch.ones(2))
    assert notes.compile_of(plain.__code__, 1).outcome == "compiled"


# ---- graph breaks

@pytest.mark.parametrize("function, extra", [
    (twice, []), (inlined, []), (in_with, []), (with_cell, []), (in_loop, []), (sets_attribute, []),
    (branch, ["generic_jump"]), (in_try, ["step_unsupported"])], ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize("dynamic", [None, False], ids=["auto", "static"])
def test_as_many_breaks_are_noted_as_torch_counts(notes, function, extra, dynamic):
    run = compile(function, dynamic=dynamic)
    seen = []
    for size in 2, 3, 4:
        before = len(notes.breaks)
        run(torch.ones(size))
        seen.append(len(notes.breaks) - before)
    compiles = [one for one in notes.compiles if notes.begun[one.id] is function.__code__ and one.outcome == "compiled"]
    if function is sets_attribute or (function is in_try and not NEW):
        extra = [] if not [row for row in notes.breaks if row.reason not in counted_breaks()] else extra
    check_breaks(notes, extra * (len(notes.breaks) if counted_breaks() == {} else 0))
    if function is not in_loop and function is not sets_attribute:
        assert seen[0] and compiles
    for row in notes.breaks:
        assert row.line > 0 and row.offset >= 0 and row.user_stack
        instruction = {i.offset: i for i in dis.get_instructions(row.code)}[row.offset]
        assert instruction.positions.lineno == row.line
        assert function in (branch, in_try) or instruction.opname.startswith(("CALL", "STORE_ATTR"))
        assert notes.begun[row.id] is row.code # the frame that was being compiled


def test_a_break_is_noted_with_its_place_and_resume_function(notes):
    compile(twice)(torch.ones(2))
    first, second = notes.breaks
    start = twice.__code__.co_firstlineno
    assert (first.line - start, second.line - start) == (2, 4)
    assert first.code is twice.__code__ and second.code is first.resume
    # the resume functions are those that are compiled next
    codes = [notes.begun[one.id] for one in notes.compiles if one.label]
    assert codes == [twice.__code__, first.resume, second.resume]
    for row in first, second:
        assert "resume" in row.resume.co_name
        assert (row.resume, twice.__code__, "resume") in notes.of("origin")
        assert {i.offset: i for i in dis.get_instructions(row.code)}[row.offset].opname.startswith("CALL")
        assert row.user_stack.splitlines()[-1].startswith('File "%s", line %d, in ' % (__file__, row.line))


def test_offsets_are_those_of_the_code_however_torch_has_changed_it(notes):
    """torch removes EXTENDED_ARG, splits fused instructions, `is None` jumps and slices, and renumbers the instructions."""
    lines = ["def f(x, a, b):"] + [f" k{number} = {number}.5" for number in range(300)] # names and constants beyond 255
    lines += [" x = x + k299", " if a is not None: x = x[1:] + 1", " y = a if b is None else b",
              " torch._dynamo.graph_break(); print(x.shape, end=''); torch._dynamo.graph_break()", " return x[0:2] * y"]
    namespace = {"torch": torch}
    exec("\n".join(lines), namespace)
    compile(namespace["f"])(torch.ones(5), 3, None)
    check_breaks(notes)
    # torch 2.6 also compiles what stands for print
    rows = [row for row in notes.breaks if row.code.co_filename == "<string>"]
    assert len(rows) == 3
    for row in rows:
        instruction = {i.offset: i for i in dis.get_instructions(row.code)}[row.offset]
        assert instruction.opname.startswith("CALL") and instruction.positions.lineno == row.line == len(lines) - 1
        assert row.resume in notes.begun.values()
    calls = [i.offset for i in dis.get_instructions(namespace["f"].__code__) if i.opname.startswith("CALL")]
    assert rows[0].offset == calls[0]


def test_a_break_in_an_inlined_call_is_where_the_frame_stops(notes):
    compile(inlined)(torch.ones(2))
    row, rest = notes.breaks
    assert row.code is inlined.__code__ and row.line == inlined.__code__.co_firstlineno + 2
    assert row.user_stack.splitlines() == [
        'File "%s", line %d, in inlined' % (__file__, row.line),
        'File "%s", line %d, in helper' % (__file__, helper.__code__.co_firstlineno + 2)]
    assert row.resume.co_name.startswith("torch_dynamo_resume_in_inlined")
    assert rest.code is helper.__code__ # helper, called by the compiled code, is compiled in its turn
    check_breaks(notes)


def test_a_resume_function_with_cells_is_noted(notes):
    compile(with_cell)(torch.ones(2))
    row, = notes.breaks
    assert row.resume is not None and row.resume.co_freevars
    assert row.resume in notes.begun.values()
    assert (row.resume, with_cell.__code__, "resume") in notes.of("origin")


def test_a_data_dependent_branch_is_noted_with_both_resume_functions(notes):
    compile(branch)(torch.ones(2))
    row, = notes.breaks
    assert row.reason.startswith("generic_jump") and not counted_breaks()
    assert not REASONS or "\n" in row.reason # torch's reason follows
    # there are two ways on: the row names the one that goes straight on, the origins both
    origins = [code for code, origin, kind in notes.of("origin") if kind == "resume"]
    assert len(origins) == 2 and row.resume in origins


@pytest.mark.skipif(not NEW, reason="torch gives up the frame")
def test_a_break_that_torch_makes_before_a_try_block_is_noted(notes):
    compile(in_try)(torch.ones(2))
    row = notes.breaks[0]
    assert row.reason.startswith("step_unsupported\n") and "graph_break" in row.reason
    assert row.resume is None and row.line < in_try.__code__.co_firstlineno + 5


@pytest.mark.skipif(not hasattr(config, "nested_graph_breaks"), reason="this torch has no nested graph breaks")
def test_a_nested_break_is_noted_in_the_inlined_function(notes):
    with config.patch(nested_graph_breaks=True):
        compile(inlined)(torch.ones(2))
    check_breaks(notes, () if counted_breaks() else ("Call",))  # torch 2.9 does not count them
    row = notes.breaks[0]
    assert row.code is helper.__code__ and row.line == helper.__code__.co_firstlineno + 2
    assert row.resume.co_name.startswith("torch_dynamo_resume_in_helper")
    kinds = {code.co_name: origin.co_name for code, origin, kind in notes.of("origin") if kind == "resume"}
    assert sorted(kinds.values()) == ["helper", "inlined"]


def test_breaks_are_counted_right_if_the_analysis_starts_over(notes):
    """A float that turns out to be needed as a constant, or a size that turns out to vary, starts the analysis anew."""
    def function(x, scale, n):
        x = x * scale
        torch._dynamo.graph_break()
        x = x.reshape(n, -1)
        torch._dynamo.graph_break()
        return x * scale + n

    run = compile(function)
    for scale, n in (1.5, 2), (2.5, 3), (3.5, 4), (2.0, 6):
        run(torch.ones(12), scale, n)
    assert sum(counted_breaks().values()) >= 4
    check_breaks(notes)


def test_breaks_after_a_reset_are_noted_again(notes):
    compile(twice)(torch.ones(2))
    torch._dynamo.reset()
    assert not utils.graph_break_reasons
    compile(twice)(torch.ones(2))
    check_breaks(notes)
    assert len(notes.breaks) == 4


def test_breaks_before_a_user_error_are_noted(notes):
    def function(x):
        x = x + 1
        if x.sum():
            return x
        n = x.max().item()
        return torch.ones(int(n)) + x

    compile(function)(torch.ones(2))
    compile(lambda x: torch.zeros(x.nonzero().shape[0]) if x.nonzero().shape[0] > 1 else x)(torch.ones(2))
    check_breaks(notes, [row.reason.split()[0] for row in notes.breaks if row.reason not in counted_breaks()])


# ---- several at a time

@pytest.mark.skipif(VERSION == (2, 7), reason="this torch cannot compile within a backend")
def test_breaks_and_phases_of_nested_compiles_are_noted_apart(notes):
    def inner(x):
        x = x - 1
        torch._dynamo.graph_break()
        return x * 4

    def outer(x):
        x = x + 5
        torch._dynamo.graph_break()
        return x * 6

    run_inner = compile(inner)

    def backend(module, inputs):
        run_inner(torch.ones(7))
        return module.forward

    compile(outer, backend=backend)(torch.ones(2))
    check_breaks(notes)
    codes = [row.code for row in notes.breaks if row.code in (inner.__code__, outer.__code__)]
    assert codes == [inner.__code__, outer.__code__]
    for row in notes.breaks:
        assert notes.begun[row.id] is row.code
    ids = {one.id: one.label for one in notes.compiles if one.label}
    for phase in notes.phases:
        if phase.id >= 0:
            assert ids[phase.id] == phase.label
    ended = [one.id for one in notes.compiles]
    assert ended.index(notes.compile_of(inner.__code__).id) < ended.index(notes.compile_of(outer.__code__).id)


def test_compiles_on_several_threads_are_told_apart(notes):
    functions = []
    for number in range(4):
        namespace = {"torch": torch}
        source = "def f%d(x):\n x = x + %d\n torch._dynamo.graph_break()\n return x * 2" % (number, number)
        exec(builtins.compile(source, "threads.py", "exec"), namespace)
        functions.append(namespace["f%d" % number])
    errors = []

    def work(function):
        try:
            run = compile(function)
            for size in 2, 3:
                run(torch.ones(size))
            assert not notes.facts._thread.compiles
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    check_breaks(notes)
    for row in notes.breaks:
        assert notes.begun[row.id] is row.code
    ids = {one.id: one.label for one in notes.compiles if one.label}
    assert all(ids[phase.id] == phase.label for phase in notes.phases if phase.id >= 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_notes_its_own_breaks(notes):
    compile(twice)(torch.ones(2))
    before = len(notes.breaks)
    pid = os.fork()
    if pid == 0:
        try:
            torch._dynamo.reset()
            compile(twice)(torch.ones(2))
            os._exit(0 if len(notes.breaks) == 2 * before and not notes.of("loss") else 1)
        except BaseException:
            traceback.print_exc()
            os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0


# ---- what is compiled later

def test_a_backward_compiled_later_on_another_thread_is_noted(notes):
    def function(x):
        return (x.sin() * x).sum()

    x = torch.ones(3, requires_grad=True)
    config_class = importlib.import_module("torch._functorch.config")
    lazy = "force_non_lazy_backward_lowering"
    with config_class.patch({lazy: False} if hasattr(config_class, lazy) else {}):
        loss = compile(function, backend="aot_eager")(x)
        label = notes.compile_of(function.__code__).label
        early = {phase.name for phase in notes.phases if phase.label == label}
        assert "create_aot_dispatcher_function" in early
        count = len(notes.phases)
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()
    late = notes.phases[count:]
    assert late and {phase.id for phase in late} == {-1} and {phase.label for phase in late} == {label}
    assert any("backward" in phase.name for phase in late)


def test_a_compiled_backward_is_noted(notes):
    from torch._dynamo import compiled_autograd
    enable = getattr(compiled_autograd, "_enable", None) or compiled_autograd.enable
    x = torch.ones(3, requires_grad=True)
    loss = (x.sin() * x).sum()
    try:
        with enable(torch.compile(backend="eager")):
            loss.backward()
    except Exception as error:
        pytest.skip(f"this torch cannot: {type(error).__name__}: {str(error)[:80]}")
    if NEW: # torch 2.6 does not time the capture
        captures = [phase for phase in notes.phases if phase.name == "compiled_autograd"]
        assert captures and all(phase.id == -1 and phase.label[0] == "!" for phase in captures)
    compiled = [one for one in notes.compiles if one.outcome == "compiled"]
    assert compiled and notes.of("graph")
    assert not NEW or all(one.label.startswith("!") for one in compiled)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++"), reason="inductor needs a compiler")
def test_phases_of_inductor_are_noted(notes, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))

    def function(x):
        return (x.sin() + 1).relu()

    try:
        compile(function, backend="inductor")(torch.ones(8))
    except Exception as error:
        pytest.skip(f"this torch cannot: {type(error).__name__}")
    one = notes.compile_of(function.__code__)
    names = {phase.name for phase in notes.phases if phase.id == one.id}
    assert {"create_aot_dispatcher_function", "inductor_compile"} <= names, names
    assert any("codegen" in name for name in names)


# ---- what must not be

def test_notes_keep_no_object_of_the_program_alive(notes):
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, x):
            x = self.linear(x)
            torch._dynamo.graph_break()
            return x + 1

    module, x = Module(), torch.ones(1, 2)
    graphs = []

    def backend(graph, inputs):
        graphs.append(weakref.ref(graph))
        return graph.forward

    compile(module, backend=backend)(x)
    things = [weakref.ref(module), weakref.ref(x)] + graphs
    notes.rows.clear() # these hold code objects
    notes.begun.clear()
    del module, x
    torch._dynamo.reset()
    gc.collect()
    assert [thing for thing in things[:2] if thing() is not None] == []


def test_our_hooks_are_never_compiled(notes):
    """Our hooks may run while torch's evaluator is on, as when torch compiles a backward lazily."""
    def function(x): # is given up, so what it calls comes to torch frame by frame
        for _ in range(1):
            x = x + 1
            torch._dynamo.graph_break()
            utils.record_chromium_event_internal({"name": "odd", "ts": 1e15, "ph": "B", "args": {"compile_id": "9/9"}})
            utils.record_chromium_event_internal({"name": "odd", "ts": 1e15, "ph": "E", "args": {"compile_id": "9/9"}})
            helper(x)
        return x * 2

    compile(function)(torch.ones(2))
    assert helper.__code__ in notes.begun.values()
    assert any(phase.name == "odd" for phase in notes.phases)
    ours = notes.facts.__file__
    assert not [code for code in notes.begun.values() if code.co_filename == ours]


def test_faults_of_ours_are_recorded_as_losses_and_change_nothing(notes):
    notes.broken.update(["graph", "break", "listing", "phase", "origin", "compile"])
    notes.facts._losses = 0
    assert compile(twice)(torch.ones(2)).tolist() == [1, 1]
    assert compile(plain)(torch.ones(2), torch.ones(2)).shape == (2,)
    causes = [cause for cause, in notes.of("loss")]
    assert causes and len(causes) <= 20 and all("broken note" in cause for cause in causes)
    notes.facts._losses = 0


def test_a_missing_name_of_torch_is_recorded_as_a_loss_and_not_raised(notes, monkeypatch):
    monkeypatch.delattr(utils, "record_chromium_event_internal")
    others = Notes()
    facts = load(others)
    kept = exc.Unsupported.add_to_stats, output_graph.GraphCompileReason.__post_init__
    try:
        facts.prepare()
    finally:
        exc.Unsupported.add_to_stats, output_graph.GraphCompileReason.__post_init__ = kept
    assert len(others.of("loss")) == 1 and "record_chromium_event_internal" in others.of("loss")[0][0]


def test_the_rank_of_torch_distributed_is_noted(notes, monkeypatch):
    monkeypatch.setattr(notes.facts, "_rank_known", False)
    monkeypatch.setattr(torch.distributed, "is_available", lambda: True)
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True, raising=False)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 3, raising=False)
    monkeypatch.setenv("LOCAL_RANK", "1")
    token = notes.facts.begin(99, plain.__code__)
    token.label = "0/0"
    notes.facts.end(token, None, ValueError("x"))
    assert notes.of("rank") == [(3, 1)]


SAME = """
import contextlib, json, logging, os, sys, threading, traceback
sys.path[:0] = {folders!r}
import test_torch_facts as tests
import torch, torch._dynamo
from torch._dynamo import utils
recording = contextlib.ExitStack()
if {facts}:
    notes = recording.enter_context(tests.install("facts.db"))
else:
    tests.stand_around(lambda *values: None, lambda *values: None)
class Handler(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []
    def emit(self, record):
        stack = (getattr(record, "metadata", None) or {{}}).get("stack")
        self.lines.append(sorted(getattr(record, "metadata", None) or {{}}) + [len(stack) if stack else 0])
handler = Handler()
told = {{}}
def attempt(name, call):
    try:
        told[name] = str(call())
    except BaseException as error:
        trace = [(frame.filename, frame.name) for frame in traceback.extract_tb(error.__traceback__)]
        trace = [place for place in trace if "test_torch_facts" not in place[0]]
        told[name] = [type(error).__name__, str(error), trace]
def boom(graph, inputs):
    raise RuntimeError("boom")
x = torch.ones(3)
attempt("plain", lambda: tests.compile(tests.plain)(x, x))
attempt("branch", lambda: tests.compile(tests.branch)(x))
attempt("in_loop", lambda: tests.compile(tests.in_loop)(x))
attempt("in_try", lambda: tests.compile(tests.in_try)(x))
again = tests.compile(tests.plain, dynamic=False)
attempt("again", lambda: [again(torch.ones(n), torch.ones(n)) for n in range(2, 14)][-1])
attempt("boom", lambda: tests.compile(tests.inlined, backend=boom)(x))
torch._dynamo.config.verbose = True
attempt("verbose boom", lambda: tests.compile(tests.with_cell, backend=boom)(x))
attempt("fullgraph", lambda: tests.compile(tests.in_with, fullgraph=True)(x))
attempt("explain", lambda: torch._dynamo.explain(tests.sets_attribute)(x).graph_break_count)
from torch._logging import _internal
_internal.trace_log.addHandler(handler)
_internal.trace_log.setLevel(logging.DEBUG)
attempt("twice", lambda: tests.compile(tests.twice)(x))
torch._dynamo.reset()
attempt("boom with logs", lambda: tests.compile(tests.inlined, backend=boom)(x))
told["counters"] = {{name: {{str(key): value for key, value in one.items()}} for name, one in utils.counters.items()}}
told["reasons"] = [reason.reason for reason in utils.graph_break_reasons]
told["metrics"] = [[metric.co_name, metric.fail_type, metric.guard_count] for metric in utils.get_compilation_metrics()]
told["times"] = {{name: len(values) for name, values in utils.compilation_time_metrics.items()}}
told["records"] = handler.lines
told["handlers"] = [len(logging.getLogger(name).handlers) for name in (None, "torch", "torch.__trace", "torch._dynamo")]
told["hooks"] = len(torch._dynamo.convert_frame._bytecode_hooks)
recording.close()
if {facts}:
    told["noted"] = [len(notes.of(kind)) for kind in ("graph", "break", "phase")] + notes.of("loss")
print(json.dumps(told))
"""


def test_torch_programs_behave_the_same_with_and_without_us(tmp_path):
    """Compared are results, exceptions and tracebacks, counters, metrics, log records and the output."""
    ran = []
    for facts in False, True:
        script = tmp_path / "script.py"
        script.write_text(SAME.format(folders=[str(folder) for folder in Path(__file__).parents[:2]], facts=facts))
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path,
                              env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        errors = [line.partition("]")[2] for line in done.stderr.splitlines()]
        ran.append((told, errors))
    (without, printed), (beside, printed_beside) = ran
    graphs, breaks, phases, *losses = beside.pop("noted")
    assert graphs and breaks and phases and not losses
    assert without.keys() == beside.keys()
    for name in without:
        assert without[name] == beside[name], name
    assert printed == printed_beside
