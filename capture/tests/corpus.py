"""The functions of corpus/, by language feature, do under dyntrace.compile what they do as they are.

usage: corpus.py [--library numpy|torch] [--compile NAME] [--list] [FILE[:FUNCTION]]...

    corpus.py                       every function, compiled with backend="eager"
    corpus.py loops closures:deep   some of them
    corpus.py --compile identity    not compiled: shows that the functions do the same each time

Each function is called with inputs that change, all calls twice over: in a fresh module as it is, and in another one compiled.
Results (types, dtypes, sizes, strides, bits, which object is which), exceptions with the lines of their tracebacks, what is printed, the
order of effects, and the arguments after the call must be equal. The last line counts the functions, the graphs and the breaks.

A function of corpus/FILE.py is called as `@calls("A(3), 2", ...)` says, without it, if it has one argument x, as DEFAULT.
There xp is the library, A(2, 3), I(...) and B(...) make arrays of floats, integers and bools, `shared` is an array that is the same
within one call, and log() notes an effect.

WRONG are compilers that are wrong, each in one way: tests/test_capture.py has them found.
"""
import argparse
import contextlib
import functools
import importlib
import inspect
import io
import random
import re
import sys
import types
import warnings
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "corpus"
IN_GRAPH = ["in a graph"]  # the lines of an exception that a graph's operation raised: not the program's (capture/README.md)
DEFAULT = ("A(3)", "-A(3)", "A(4)", "A(3)")


class Library:
    """Arrays as numpy or torch has them."""

    def __init__(self, name):
        self.module = importlib.import_module(name)
        self.torch = name == "torch"
        self.type = self.module.Tensor if self.torch else self.module.ndarray

    def made(self, values, shape, dtype):
        make = self.module.tensor if self.torch else self.module.array
        return make(values, dtype=getattr(self.module, dtype)).reshape(shape)

    def names(self):
        size = lambda shape: functools.reduce(int.__mul__, shape, 1)
        return {"A": lambda *shape: self.made([i * 7 % 5 - 0.75 for i in range(size(shape))], shape, "float32" if self.torch else "float64"),
                "I": lambda *shape: self.made([i * 3 % 7 - 2 for i in range(size(shape))], shape, "int64"),
                "B": lambda *shape: self.made([i * 7 % 3 == 0 for i in range(size(shape))], shape, "bool"),
                "xp": self.module}

    def described(self, array):
        array = array.detach() if self.torch else array
        strides = array.stride() if self.torch else array.strides
        if str(array.dtype) == "object":  # its bits are addresses
            return type(array).__name__, "object", tuple(array.shape), repr(array.tolist())
        bits = (array.contiguous().numpy() if self.torch else array).tobytes()
        return type(array).__name__, str(array.dtype), tuple(array.shape), strides, bits.hex()


class Module(types.ModuleType):
    """A file of the corpus, run anew. `.cases`: its functions by name; `.log`: what log() noted."""

    def __init__(self, path, library):
        super().__init__("corpus_" + path.stem)
        self.noted = []
        self.__dict__.update(library.names(), log=self.note, calls=self.calls, entry=self.entry, __file__=str(path))
        self.entries, self.wanted = {}, {}
        sys.modules[self.__name__] = self  # dataclasses look there
        exec(compile(path.read_text(), str(path), "exec"), self.__dict__)
        for name, value in list(self.__dict__.items()):
            if getattr(value, "__module__", None) == self.__name__ and isinstance(value, types.FunctionType) and value not in self.entries.values():
                if value in self.wanted or list(inspect.signature(value).parameters) == ["x"]:
                    self.entries[name] = value
        self.cases = self.entries

    def note(self, what):
        self.noted.append(what)

    def calls(self, *wanted):
        def mark(function):
            self.wanted[function] = wanted
            return function
        return mark

    def entry(self, function, name):
        self.entries[name] = function
        return function

    def calls_of(self, function):
        try:
            return self.wanted.get(function, DEFAULT)
        except TypeError:
            return DEFAULT


class Describe:
    """Values in words that are equal when they are: objects by the order in which they were first seen."""

    def __init__(self, library):
        self.library, self.seen = library, {}

    def __call__(self, value, depth=0):
        if value is None or type(value) in (bool, int, float, complex, str, bytes):
            return "%s %s" % (type(value).__name__, re.sub("0x[0-9a-f]+", "0x", repr(value)))
        if isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType, range, slice)):
            return "%s %s" % (type(value).__name__, getattr(value, "__name__", value))
        if id(value) in self.seen:
            return "#%d" % self.seen[id(value)][0]
        self.seen[id(value)] = len(self.seen), value
        if depth > 8:
            return "deep"
        below = lambda v: self(v, depth + 1)
        try:
            if isinstance(value, self.library.type):
                return self.library.described(value)
            if isinstance(value, (list, tuple)):
                return [type(value).__name__, *map(below, list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value))]
            if isinstance(value, dict):
                return [type(value).__name__, *((below(k), below(v)) for k, v in dict.items(value))]
            if isinstance(value, (set, frozenset)):
                return [type(value).__name__, *sorted(map(str, map(below, value)))]
            if isinstance(value, types.GeneratorType):
                return ["generator", *map(below, value)]
            if isinstance(value, BaseException):
                return [type(value).__name__, *map(below, value.args)]
            if isinstance(value, types.FunctionType):
                return ["function", value.__name__]
            if hasattr(type(value), "__dict__") and type(value).__module__.startswith("corpus_"):
                return [type(value).__name__, *((k, below(v)) for k, v in sorted(object.__getattribute__(value, "__dict__").items()))]
        except Exception as error:
            return "cannot be described: %r" % error
        return type(value).__name__ + (" %r" % value if type(value).__module__ in ("numpy", "torch") else "")


def outcome(module, library, function, call):
    """What one CALL of FUNCTION did, as a dict of words."""
    describe, said, raised, lines, result = Describe(library), io.StringIO(), None, [], None
    module.__dict__["shared"] = module.A(3)
    args, kwargs = eval("(lambda *args, **kwargs: (args, kwargs))(%s)" % call, module.__dict__)
    before = describe(args), describe(kwargs)
    del module.noted[:]
    try:
        with contextlib.redirect_stdout(said):
            result = function(*args, **kwargs)
    except BaseException as error:
        raised, trace = error, error.__traceback__
        while trace:
            if trace.tb_frame.f_code.co_filename == module.__file__:
                lines.append(trace.tb_lineno)
            elif trace.tb_frame.f_code.co_filename.startswith("<eval_with_key>"):
                lines = IN_GRAPH
                break
            trace = trace.tb_next
    if isinstance(raised, UnboundLocalError) and sys.version_info < (3, 13):  # warm, CPython names the line of the instruction before
        lines = lines[:-1]
    chain, bare = [], lambda text: re.sub("0x[0-9a-f]+", "0x", text)  # without addresses
    while raised and len(chain) < 5:
        chain.append((type(raised).__name__, bare(str(raised))[:200] if type(raised).__module__ != "numpy" else ""))
        raised = raised.__cause__ or raised.__context__
    found = {"raised": chain, "lines": lines if lines is IN_GRAPH else lines[:20], "result": describe(result), "arguments": [Describe(library)(v) for v in (args, kwargs)],
             "printed": bare(said.getvalue()), "effects": Describe(library)(list(module.noted)), "given": before}
    return found


def compare(path, name, library, compiler, rounds=2):
    """How a function of the corpus differs from itself compiled, each of its calls made ROUNDS times: (call, what, plain, compiled) of
    the first difference, or None."""
    sides = []
    for side in (None, compiler):
        random.seed(0)
        module = Module(path, library)
        function = module.cases[name]
        wanted = module.calls_of(function)
        function = side(function) if side else function
        sides.append([outcome(module, library, function, call) for call in wanted * rounds])
    counts["calls"] += len(wanted) * rounds
    for number, (call, plain, compiled) in enumerate(zip(wanted * rounds, *sides), 1):
        for what in plain:
            if plain[what] != compiled[what] and compiled[what] is not IN_GRAPH:
                return "call %d (%s)" % (number, call), what, plain[what], compiled[what]
    return None


# ---- compilers ---------------------------------------------------------------

counts = {"graphs": 0, "nodes": 0, "calls": 0}


def counting(module, inputs):
    counts["graphs"] += 1
    counts["nodes"] += len(module.graph.nodes)
    return module


def eager(function):
    import dyntrace
    return dyntrace.compile(function, backend=counting)


def every(function):
    """As eager; functions without operations on arrays are captured as well."""
    from dyntrace import capture
    from dyntrace._capture_native import native as captures
    from dyntrace._native import native
    return capture.Compiled(native._call_under, function, captures.Capture((functools.partial(capture.finish, counting, None, False), counting, None, False, None)))


def identity(function):
    return function


def repeats(function):
    """A guard too few."""
    kept = []

    def f(*args, **kwargs):
        if not kept:
            kept.append(function(*args, **kwargs))
        return kept[0]
    return f


def twice(function):
    """Side effects happen again."""
    def f(*args, **kwargs):
        function(*args, **kwargs)
        return function(*args, **kwargs)
    return f


def swallows(function):
    def f(*args, **kwargs):
        with contextlib.suppress(Exception):
            return function(*args, **kwargs)
    return f


def copies(function):
    """What was one object is two."""
    def f(*args, **kwargs):
        result = function(*args, **kwargs)
        return result + 0 if hasattr(result, "ndim") else tuple(v + 0 if hasattr(v, "ndim") else v for v in result) if type(result) is tuple else result
    return f


def silent(function):
    def f(*args, **kwargs):
        with contextlib.redirect_stdout(io.StringIO()):
            return function(*args, **kwargs)
    return f


def late(function):
    """The traceback has other lines."""
    def f(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            raise error.with_traceback(None)
    return f


WRONG = {f.__name__: f for f in (repeats, twice, swallows, copies, silent, late)}
COMPILERS = {"eager": eager, "every": every, "identity": identity, **WRONG}


def chosen(words, library):
    """(path, name) of every function that WORDS name."""
    for path in sorted(FOLDER.glob("*.py")):
        asked = [word.partition(":")[2] for word in words if word.partition(":")[0] == path.stem]
        if words and not asked:
            continue
        for name in Module(path, library).cases:
            if not words or "" in asked or name in asked:
                yield path, name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", default="numpy", choices=["numpy", "torch"])
    parser.add_argument("--compile", default="eager", choices=COMPILERS)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="names each function before it runs")
    parser.add_argument("what", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    library, bad, count = Library(options.library), 0, 0
    for path, name in chosen(options.what, library):
        count += 1
        if options.list or options.verbose:
            print("%s:%s" % (path.stem, name), flush=True)
        if options.list:
            continue
        if options.compile in ("eager", "every"):
            import dyntrace
            dyntrace.reset()
        found = compare(path, name, library, COMPILERS[options.compile])
        if found:
            bad += 1
            print("%s:%s: %s: %s differs\n    plain    %s\n    compiled %s" % (path.stem, name, found[0], found[1], found[2], found[3]), flush=True)
    print("%d functions, %d differ; %d graphs with %d nodes" % (count, bad, counts["graphs"], counts["nodes"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
