"""The Python package: its public names, their types and texts, and how it is found."""

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from shared import ROOT, script

pytestmark = pytest.mark.newest_too


def package_of(dyntrace):
    return Path(dyntrace).parent / "lib" / "python"


@pytest.fixture
def alone(dyntrace, python, tmp_path):
    """alone(code) -> what a program prints that imports the package without `dyntrace run`."""

    def alone(code):
        env = dict(os.environ, PYTHONPATH=str(package_of(dyntrace)))
        words = [python, "-c", textwrap.dedent(code)]
        done = subprocess.run(
            words, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return alone


# ---- the same with and without `dyntrace run` ----

LOOK = """
import json, sys
before = [name for name in sys.modules if name.partition(".")[0] == "dyntrace"]
import dyntrace, importlib.util, pydoc
names = [name for name in dir(dyntrace) if not name.startswith("_")]
scope = {}
exec("from dyntrace import *", scope)
print(json.dumps({
    "before": before,
    "doc": dyntrace.__doc__,
    "all": dyntrace.__all__,
    "dir": dir(dyntrace),
    "version": dyntrace.__version__,
    "star": sorted(scope),
    "file": dyntrace.__file__,
    "path": list(dyntrace.__path__),
    "spec": [dyntrace.__spec__.name, dyntrace.__spec__.origin, type(dyntrace.__spec__.loader).__name__],
    "found": importlib.util.find_spec("dyntrace").origin,
    "submodule": importlib.util.find_spec("dyntrace.guards").origin,
    "none": importlib.util.find_spec("dyntrace_of_nobody"),
    "kinds": [[name, type(getattr(dyntrace, name)).__name__] for name in names],
    "help": pydoc.plain(pydoc.render_doc(dyntrace)),
}))
"""


def test_the_package_has_the_same_attributes_under_run(alone, record, python):
    """The docstring, dir(), `import *`, help() and path of the package are equal, and it is loaded only when imported."""
    expected = json.loads(alone(LOOK))
    found = json.loads(record(["-c", LOOK], python=python).out)
    assert found == expected
    assert found["before"] == [] and found["none"] is None
    assert set(found["all"]) < set(found["dir"]) and set(found["all"]) < set(found["star"])
    assert "graph" in found["doc"] and "compile" in found["help"]


def test_the_package_can_be_reloaded_and_imported_again_under_run(record, python):
    code = """
    import sys, importlib
    import dyntrace
    first = dyntrace.__file__
    assert importlib.reload(dyntrace) is dyntrace
    for name in [name for name in sys.modules if name.startswith("dyntrace")]:
        del sys.modules[name]
    import dyntrace
    print(first == dyntrace.__file__, callable(dyntrace.record), sys.meta_path[-1].__name__)
    """
    assert record(["-c", textwrap.dedent(code)], python=python).out == "True True _dyntrace\n"


def test_imports_of_other_modules_record_no_frame_of_ours(record, python, tmp_path):
    """Python calls our finder at each import. This makes no frame, and no profile function sees it."""
    script(tmp_path / "other.py", "x = 1\n")
    code = """
    import sys
    called = []
    sys.setprofile(lambda frame, event, what: called.append(getattr(what, "__name__", "")))
    import other
    sys.setprofile(None)
    print(*(type(f.find_spec).__name__ for f in sys.meta_path), "find_spec" in called)
    """
    run = record(["-c", textwrap.dedent(code)], python=python)
    assert run.out.split().count("find_spec") == 1 and run.out.endswith(" False\n")
    assert run.rows("SELECT count(*) FROM frames WHERE filename LIKE '%/python/dyntrace/%'") == [
        (0,)
    ]


def test_our_import_finder_takes_arguments_by_name(record, python):
    code = """
    import sys
    finder = sys.modules["_dyntrace"]
    assert finder in sys.meta_path
    print(finder.find_spec(fullname="json", path=None, target=None), finder.find_spec("dyntrace").name)
    try:
        finder.find_spec()
    except TypeError as error:
        print("find_spec" in str(error))
    """
    out = record(["-c", textwrap.dedent(code)], python=python).out
    assert out == "None dyntrace\nTrue\n"


def test_the_package_has_the_version_of_the_program(alone, dyntrace):
    program = subprocess.run([dyntrace, "--version"], capture_output=True, text=True, check=True)
    assert program.stdout == "dyntrace " + alone("import dyntrace; print(dyntrace.__version__)")


def test_misspelled_names_are_refused(alone):
    code = "import dyntrace\ntry: dyntrace.compyle\nexcept AttributeError as error: print(error)"
    assert alone(code) == "module 'dyntrace' has no attribute 'compyle'\n"


# ---- the public names ----

LISTS = """
import dyntrace, importlib, json
modules = ["dyntrace", *("dyntrace." + name for name in ("config", *dyntrace._MODULES))]
print(json.dumps({name: importlib.import_module(name).__all__ for name in modules}))
"""


@pytest.fixture
def public(alone):
    """{module: its public names}: `__all__` of each, which is the one list."""
    return json.loads(alone(LISTS))


def test_every_module_is_public_or_begins_with_an_underscore(public):
    files = [*(ROOT / "python/dyntrace").glob("*.py"), *(ROOT / "capture/python").glob("*.py")]
    names = {path.stem for path in files if not path.stem.startswith("_")}
    # record is a function, its module has nothing else; the plugin is for pytest to load
    expected = {module.partition(".")[2] for module in public} - {""} | {"record", "pytest_plugin"}
    assert names == expected


def test_lists_of_public_names_are_sorted_and_complete(alone, public):
    """Each name is there, and no other name without an underscore is defined in its module."""
    code = """
    import importlib, json, types
    for module in %r:
        module = importlib.import_module(module)
        own = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_")
            and getattr(value, "__module__", None) == module.__name__
            and not isinstance(value, types.ModuleType)
        ]
        for name in module.__all__:
            getattr(module, name)
        print(*sorted(set(own) - set(module.__all__)))
    """
    assert set(alone(code % (list(public),)).split()) <= INTERNAL
    for module, names in public.items():
        assert len(set(names)) == len(names)
        assert (
            module == "dyntrace.guards"
            or names == sorted(names, key=str.swapcase)
            or (names == sorted(names))
        ), module


# Names without an underscore that other modules of the package use, and nobody else.
INTERNAL = {"Compiled", "finish", "name_nodes", "reset_names", "make_row", "format_table"}


def test_docs_python_md_names_each_public_name(public):
    """docs/python.md has all names of the lists, and no others."""
    page = (ROOT / "docs/python.md").read_text()
    named = {}
    for section in page.split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        cells = re.findall(r"^\| (`.*?) \|", text, re.M)
        named[title] = sorted(name for cell in cells for name in re.findall(r"`(\w+)`", cell))
    assert named == {module: sorted(names) for module, names in public.items()}


SHOWN = """
import importlib, inspect, json
def signature(value):
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        text = None
    return text
for module, names in %r.items():
    module = importlib.import_module(module)
    for name in names:
        value = getattr(module, name)
        if inspect.isclass(value):
            members = [getattr(value, n) for n in vars(value) if n[0] != "_" or n == "__init__"]
            members = [getattr(m, "fget", None) or getattr(m, "func", m) for m in members]
            functions = [f for f in members if inspect.isroutine(f)]
        else:
            functions = [value] if inspect.isroutine(value) else []
        for function in functions:
            text = signature(function)
            native = inspect.isbuiltin(function) or inspect.ismethoddescriptor(function)
            words = inspect.getdoc(function)
            missing = []
            if not native and str(getattr(function, "__module__", "")).startswith("dyntrace"):
                hints = function.__annotations__
                names_ = [p for p in inspect.signature(function).parameters if p not in ("self", "cls")]
                missing = [p for p in [*names_, "return"] if p not in hints]
            print(json.dumps([module.__name__, name, function.__name__, text, missing, bool(words)]))
"""


def test_every_public_function_has_a_signature_types_and_a_text(alone, public):
    rows = [json.loads(line) for line in alone(SHOWN % (public,)).splitlines()]
    assert len(rows) > 80
    assert [row for row in rows if row[3] is None] == []
    assert [row for row in rows if row[4]] == []
    assert [row[:3] for row in rows if not row[5] and "init" not in row[2]] == []


C_FUNCTIONS = """
import inspect
from dyntrace._native import native
kinds = [native.GuardTree, native.CacheEntry]
found = [getattr(native, name) for name in dir(native)]
found += [getattr(kind, name) for kind in kinds for name in vars(kind) if name[:2] != "__"]
count = 0
for function in found:
    if inspect.isbuiltin(function) or inspect.ismethoddescriptor(function):
        try:
            inspect.signature(function)
            count += 1
        except ValueError:
            print(function.__name__)
        if "\\n--\\n" in (function.__doc__ or "\\n--\\n"):
            print(function.__name__, "has no text, or one with its signature in it")
print(count)
"""


def test_every_c_function_has_a_text_signature(alone):
    lines = alone(C_FUNCTIONS).splitlines()
    assert len(lines) == 1 and int(lines[0]) > 40, lines


def test_the_type_stub_of_the_extension_matches_its_functions(alone):
    """python/dyntrace/_dyntrace.pyi names each parameter as the text signature does."""
    tree = ast.parse((ROOT / "python/dyntrace/_dyntrace.pyi").read_text())
    typed = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                inner.owner = node.name
        if isinstance(node, ast.FunctionDef) and node.name != "__getattr__":
            if any(getattr(decorator, "id", "") == "overload" for decorator in node.decorator_list):
                continue
            is_property = bool(node.decorator_list)
            arguments = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
            arguments += [node.args.vararg.arg] if node.args.vararg else []
            typed[f"{getattr(node, 'owner', '')}.{node.name}"] = None if is_property else arguments
    code = """
    import inspect, json
    from dyntrace._native import native
    for name in %r:
        owner, _, name = name.partition(".")
        value = getattr(getattr(native, owner) if owner else native, name)
        print(json.dumps(list(inspect.signature(value).parameters) if callable(value) else None))
    """
    lines = alone(code % (list(typed),)).splitlines()
    assert dict(zip(typed, map(json.loads, lines))) == typed


def test_help_of_a_c_function_shows_its_signature_and_text(alone):
    text = alone("""
    import pydoc
    from dyntrace import eval_frame
    print(pydoc.plain(pydoc.render_doc(eval_frame.set_eval_frame)))
    """)
    assert "set_eval_frame(callback, /)\n    Set this thread's callback" in text
    assert "Parameters\n    ----------\n    callback\n" in text


def test_importing_dyntrace_does_not_load_typing(alone):
    """Annotations are text: no name of `typing` is loaded for them."""
    code = """
    import sys
    before = set(sys.modules)
    import dyntrace
    print(sorted(set(sys.modules) - before - {"contextlib", "collections", "functools"}))
    new = set(sys.modules) - before
    print(dyntrace.reset.__annotations__, "subprocess" in new, "typing" in new)
    """
    modules, rest = alone(code).splitlines()
    names = ast.literal_eval(modules)
    assert rest == "{'return': 'None'} False False"
    assert [name for name in names if name.startswith("dyntrace")] == [
        "dyntrace",
        "dyntrace._native",
        "dyntrace.config",
        "dyntrace.record",
    ]


# ---- types ----


def find_mypy():
    """A command that runs mypy: CONTRIBUTING says how to have one."""
    for command in ([sys.executable, "-m", "mypy"], [ROOT / "build/venv/bin/python", "-m", "mypy"]):
        if command[0] == sys.executable or command[0].exists():
            if not subprocess.run([*command, "--version"], capture_output=True).returncode:
                return command
    path = os.environ.get("DYNTRACE_MYPY") or shutil.which("mypy")
    return [path] if path else None


MYPY = find_mypy()
needs_mypy = pytest.mark.skipif(
    not MYPY, reason="there is no mypy: pip install mypy, or DYNTRACE_MYPY=path"
)

# How a program uses each public name that is a function, a class or a setting.
USES = """
def callback(
    frame: types.DynamoFrameType, entry: types.CacheEntry | None, state: types.FrameState
) -> types.GuardedCode | types.ConvertFrameReturn | None:
    if bytecode.is_generator(frame.f_code):
        strategy = types.FrameExecStrategy(types.FrameAction.SKIP)
        return types.ConvertFrameReturn(strategy, skip_reason="a generator")
    if entry is not None and entry.next is not None and entry.valid:
        entry.invalidate("too old")
    note.graph("graph_0", [("output", "output", "output", (), {})])
    note.graph_break("a reason", line=1, offset=2, hint="a hint", resume=None)
    note.listing("kind", "text")
    note.input("x", "float32[3]")
    with note.phase("lowering"):
        tree = guards.GuardTree(GUARDS, globals=frame.f_globals, example=frame.f_locals)
    assert tree.check(frame.f_locals) and tree.check_verbose(frame.f_locals)[1] == tree.order()[0]
    assert tree.guards()[0][0] != tree.explain(frame.f_locals)[0][1]
    return types.GuardedCode(frame.f_code, tree, trace_annotation="mine")


L, G, B = guards.L, guards.G, guards.B
source: guards.Source = guards.attribute(L["x"], "__class__")
guards.register_global_state("mode", lambda: True)
GUARDS: list[guards.Guard] = [
    guards.TYPE_MATCH(L["x"], int),
    guards.ID_MATCH(G["y"]),
    guards.EQUALS_MATCH(guards.global_state("mode"), True),
    guards.CONSTANT_MATCH(B["len"], len),
    guards.NONE_MATCH(L["x"]),
    guards.NOT_NONE(L["x"]),
    guards.TRUE_MATCH(L["x"]),
    guards.FALSE_MATCH(L["x"]),
    guards.HASATTR(L["x"], "shape"),
    guards.NO_HASATTR(L["x"], "shape"),
    guards.DICT_LENGTH(L["x"], 3),
    guards.LIST_LENGTH(L["x"], 3),
    guards.TUPLE_LENGTH(L["x"], 3),
    guards.SEQUENCE_LENGTH(L["x"], 3),
    guards.DICT_KEYS(L["x"], ["a"]),
    guards.DICT_CONTAINS(L["x"], "a"),
    guards.DICT_NOT_CONTAINS(L["x"], "a"),
    guards.FUNCTION_MATCH(L["x"], print),
    guards.CLOSURE_MATCH(L["x"]),
    guards.BUILTIN_MATCH(L["x"]),
    guards.MODULE_MATCH(L["x"]),
    guards.WEAKREF_ALIVE(L["x"]),
    guards.GLOBAL_STATE("mode"),
    guards.TENSOR_MATCH(L["x"], [0], True, value=None),
    guards.SHAPE_EQUAL(L["x"].shape[0], L["y"].size()[0]),
    guards.SHAPE_BOUND(L["x"].shape[0], 2, high=4),
    guards.SHAPE_DIVISIBLE(L["x"].shape[0], 8),
    guards.NO_ALIASING([L["x"], L["y"]]),
    guards.LAMBDA(lambda x: bool(x), "x", L["x"]),
]
check: types.GuardFn = lambda f_locals: True
answer: types.DynamoCallbackFn = callback
before = eval_frame.set_eval_frame(callback)
eval_frame.set_eval_frame(before)
assert eval_frame.get_eval_frame_callback() is None
eval_frame.reset_code(callback.__code__)
eval_frame.skip_code(callback.__code__)
eval_frame.set_code_exec_strategy(callback.__code__, eval_frame._FrameExecStrategy())
number: int = eval_frame.unsupported("a", 3)
eval_frame.set_guard_error_hook(None)
eval_frame.set_guard_fail_hook(lambda guard, code, f_locals, index, last: None)
entries: list[eval_frame._CacheEntry] = eval_frame._debug_get_cache_entry_list(callback.__code__)
frames: list[eval_frame._PyInterpreterFrame] = []
action: eval_frame._FrameAction = types.FrameAction.DEFAULT

point: int = resume.points(callback.__code__)[0]
why: str | None = resume.why_not(callback.__code__, point)
halves: resume.Split = resume.split(callback.__code__, point)
assert halves.resume.co_name and halves.stack and halves.locals and halves.origin
assert resume.call_resume(halves)[0][0]
unbound: type = resume.UNBOUND

config.recompile_limit = 16
dyntrace.config.accumulated_recompile_limit = config.accumulated_recompile_limit + 1


def backend(module: graph.GraphModule, inputs: Sequence[object]) -> Callable[..., object]:
    whole: graph.Graph = module.graph
    nodes: list[graph.Node] = whole.nodes
    module.print_tabular()
    print(nodes[0].op, whole.table(), module.code)
    return module.forward


@dyntrace.register_array
class Array: ...


@dyntrace.compile
def plain(x: int) -> int:
    dyntrace.graph_break()
    return x


@dyntrace.compile(backend=backend, dynamic=True, fullgraph=True)
def shaped(x: int) -> str:
    return str(x)


@dyntrace.disable
def apart(x: int) -> int:
    return x


total: int = plain(1) + len(shaped(2)) + apart(3)
explanation: capture.Explanation = dyntrace.explain(plain)(1)
print(explanation.graph_count, explanation.graphs[0].code, capture.backends["eager"], str(explanation))
try:
    capture.compile(plain)(1)
    capture.disable(plain)(1)
    capture.explain(plain)(1)
    capture.graph_break()
    capture.register_array(Array)
except capture.GraphBreak:
    dyntrace.reset()
with dyntrace.record("t.db", force=True, values="types", argv=False, strict=True) as path:
    print(path, dyntrace.__version__)
recorded: trace.Trace = path
dyntrace.snapshot("s.db", force=True)
with dyntrace.open(path) as opened:
    functions: trace.Rows[trace.Function] = opened.functions()
    recompiles: trace.Rows[trace.Recompile] = opened.recompiles()
    calls: list[trace.Call] = opened.calls("f", limit=3)
    nanoseconds: int = functions[0].self_ns + calls[0].start_ns
    reasons: list[str] = [recompile.why or "" for recompile in recompiles]
    page: str = recorded.why() + opened.why("f")
    count: int = opened.sql("SELECT COUNT(*) AS n FROM code WHERE first_line > ?", 3)[0].n
    print(functions.df, functions.arrow, functions.columns[0].upper())
    try:
        opened.sql("deepest-stacks")
    except trace.TraceError as error:
        print(error)
dyntrace.load_ipython_extension(None)


@dyntrace.span
def loaded(path: str) -> int:
    with dyntrace.span("load", path=path, size=3) as inner:
        inner.__exit__()
    return len(path)


@dyntrace.span("train", epochs=3)
def trained(epochs: int) -> int:
    return loaded("a") + epochs


sum_of_spans: int = loaded("a") + trained(epochs=3)
"""


@pytest.fixture(scope="module")
def checked(dyntrace, tmp_path_factory):
    """checked(program) -> what `mypy --strict` says of it, the package being installed."""
    place = tmp_path_factory.mktemp("typed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
    site = next((place / "venv/lib").glob("python*/site-packages"))
    (site / "dyntrace").symlink_to(package_of(dyntrace) / "dyntrace")
    interpreter = place / "venv/bin/python"

    def checked(program):
        (place / "program.py").write_text(program)
        words = [*MYPY, "--strict", "--python-executable", interpreter, "program.py"]
        done = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=300)
        assert done.stderr == ""
        return done.stdout

    return checked


def heading(public):
    """Imports each public name in every way in which a program can."""
    lines = ["from __future__ import annotations", "from collections.abc import Callable, Sequence"]
    lines += ["import dyntrace"]
    for module, names in public.items():
        lines += [f"import {module}"]
        lines += [f"from {module} import {name} as {name}_{n}" for n, name in enumerate(names)]
        lines += [f"{module}.{name}" for name in names]
        if "." in module:
            lines += ["from dyntrace import " + module.partition(".")[2]]
    return "\n".join(lines) + "\n"


@needs_mypy
def test_every_public_name_is_typed(checked, public):
    for module, names in public.items():
        short = module.rpartition(".")[2]
        for name in names:
            assert re.search(rf"\b{short}\.{name}\b", USES), f"USES has no {short}.{name}"
    assert checked(heading(public) + USES).startswith("Success"), checked(heading(public) + USES)


@needs_mypy
def test_no_public_name_has_the_type_any(checked, public):
    """A function without types would be accepted by the test above if nothing of it were used."""
    lines = ["import dyntrace", *(f"import {module}" for module in public)]
    lines += [f"reveal_type({module}.{name})" for module in public for name in public[module]]
    said = checked("\n".join(lines) + "\n")
    kinds = re.findall(r'Revealed type is "(.*)"', said)
    assert len(kinds) == sum(map(len, public.values())), said
    assert [kind for kind in kinds if kind == "Any" or kind.startswith("def (*Any")] == []


@needs_mypy
@pytest.mark.parametrize(
    "line, word",
    [
        ('with dyntrace.record("t.db", forse=True): ...', "forse"),
        ('@dyntrace.compile(bakend="eager")\ndef f(x: int) -> int: return x', "bakend"),
        ("dyntrace.compile(len, dinamic=True)", "dinamic"),
        ("dyntrace.explain(len, dinamic=True)", "dinamic"),
        ("dyntrace.compyle(len)", "compyle"),
        ("@dyntrace.span\ndef f(x: int) -> int: return x\nf('a')", "int"),
        ("with dyntrace.span(3): ...", "span"),
        ("dyntrace.config.recompile_limmit = 3", "recompile_limmit"),
        ('dyntrace.config.recompile_limit = "3"', "int"),
        ("dyntrace.note.graph_break('a', hnit='b')", "hnit"),
        ("dyntrace.eval_frame.set_eval_frame(3)", "DynamoFrameType"),
        ("dyntrace.guards.SHAPE_BOUND(dyntrace.guards.L, hihg=3)", "hihg"),
        ("dyntrace.guards.GuardTree([], exampel={})", "exampel"),
        ("dyntrace.types.GuardedCode((lambda: 0).__code__, chek_fn=None)", "chek_fn"),
        ("dyntrace.resume.split((lambda: 0).__code__, ofset=3)", "ofset"),
        ("dyntrace.explain(len)([]).graph_cout", "graph_cout"),
        ('dyntrace.open("t.db").functions()[0].self_nss', "self_nss"),
        ('dyntrace.open("t.db").calls(limt=3)', "limt"),
        ('dyntrace.open("t.db").recompile()', "recompile"),
    ],
)
def test_misspelled_keywords_are_rejected(checked, line, word):
    modules = ("config", "eval_frame", "guards", "note", "resume", "types")
    program = "".join(f"import dyntrace.{module}\n" for module in modules)
    said = checked(program + line + "\n")
    errors = [row for row in said.splitlines() if ": error: " in row]
    assert errors and word in errors[0], said


# ---- what pip knows ----


def test_the_packages_metadata_is_complete(python, tmp_path):
    """It has author, addresses, `Typed`, and exactly the Pythons of src/versions.h."""
    backend = ROOT / "packaging/backend.py"
    subprocess.run([python, backend, "metadata", tmp_path], check=True)
    text = next(tmp_path.glob("*.dist-info/METADATA")).read_text()
    fields = [line.partition(": ")[::2] for line in text.partition("\n\n")[0].splitlines()]
    classifiers = [value for name, value in fields if name == "Classifier"]
    header = (ROOT / "src/versions.h").read_text()
    oldest, newest = (
        int(re.search(rf"#define CPYTHON_{which} (\d+)", header)[1])
        for which in ("OLDEST", "NEWEST")
    )
    minors = [re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", c) for c in classifiers]
    assert [int(found[1]) for found in minors if found] == [*range(oldest, newest + 1)]
    assert dict(fields)["Requires-Python"] == f">=3.{oldest}"
    assert "Typing :: Typed" in classifiers
    assert dict(fields)["Author-email"].startswith("The dyntrace authors <")
    labels = {value.partition(",")[0] for name, value in fields if name == "Project-URL"}
    assert labels == {"Homepage", "Documentation", "Source", "Issues"}
    assert next(tmp_path.glob("*.dist-info/entry_points.txt")).read_text().startswith("[pytest11]")


@pytest.mark.parametrize("place", ["installed", "beside the program"])
def test_a_program_gets_its_own_package_called_dyntrace(record, python, tmp_path, place):
    """PyPI has another package of this name. The program gets that when it imports it. Settings work all the same."""
    other = tmp_path / ("site" if place == "installed" else ".") / "dyntrace.py"
    other.parent.mkdir(exist_ok=True)
    other.write_text("print('the other one')")
    script(tmp_path / "program.py", "def f(): pass\nf()\nimport dyntrace\nprint(dyntrace.__file__)\n")
    env = {**os.environ, **({"PYTHONPATH": str(other.parent)} if place == "installed" else {})}
    trace = record([tmp_path / "program.py"], "--set", "limit=3", python=python, env=env, status=2)
    assert trace.out == f"the other one\n{other}\n" and trace.err == "dyntrace: run: --set limit=3: matched nothing\n"
    assert trace.rows("SELECT cause FROM loss") == []
    assert trace.rows("SELECT qualname FROM code WHERE filename GLOB '*/sitecustomize.py'") == [], "nothing of ours is recorded"


def test_another_package_installed_over_ours_is_named(python, tmp_path):
    """pip installs both packages into one folder, and the other one's __init__.py replaces ours."""
    shutil.copytree(ROOT / "python/dyntrace", tmp_path / "dyntrace")
    (tmp_path / "dyntrace/__init__.py").write_text("")
    done = subprocess.run([python, "-c", "from dyntrace import eval_frame"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].startswith(f"ImportError: dyntrace: another package called dyntrace was installed over this one ({tmp_path}/dyntrace): pip uninstall")
