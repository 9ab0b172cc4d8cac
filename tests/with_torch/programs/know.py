"""What the programs beside this file share: a place to write down what they know of themselves.

A program says at each call how torch must decide it, counts with a backend of its own what reaches that backend, and
prints the whole as one JSON object on its last line. Nothing here knows of dyntrace: `python program.py` runs alone and
already fails when its author was wrong about a compilation.

    know = Know(__file__)

    @torch.compile(backend=know.backend())
    def f(x):
        y = x + 1
        print("hello")                                      # @hello
        return y * 2

    know.breaks("f", "hello")
    know.call("f: compiled, f@hello: compiled", f, torch.ones(3))
    know.call("f: hit, f@hello: hit", f, torch.ones(3))
    know.done(f)

A function is named by its qualname, the rest of it after a graph break by qualname@mark, where the mark is a comment
`# @mark` on the line of the break.
"""
import collections
import json
import os
import re
import shutil
import sys
import threading

import torch


def number_of(version):
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


TORCH = number_of(torch.__version__)


def recompile_limit(limit):
    """Torch's setting, which had another name once."""
    import torch._dynamo
    name = "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit"
    setattr(torch._dynamo.config, name, limit)


class Know:
    def __init__(self, path, needs=None, compiler=False):
        """NEEDS: the oldest torch that has what the program is about. COMPILER: it wants one for C++, and headers."""
        self.path = path
        missing = f"needs torch {needs[0]}.{needs[1]}" if needs and TORCH < needs else ""
        headers = os.path.join(os.path.dirname(torch.__file__), "include", "torch", "csrc", "inductor")
        if compiler and not (shutil.which("g++") and os.path.isdir(headers)):
            missing = "needs a C++ compiler and torch's headers"
        if missing:
            print(json.dumps({"file": os.path.basename(path), "skip": missing}))
            sys.exit()
        with open(path, encoding="utf-8") as file:
            self.lines = file.read().splitlines()
        self.calls = collections.defaultdict(list)      # name -> outcomes in order
        self.frames = {}                                # name -> how often Python entered it
        self.causes = []
        self.broken = []
        self.graphs = []                                # what the backends were given, in order
        self.deaths = []
        self.unseen_graphs = 0                          # that torch made, but not for a frame
        self.lock = threading.Lock()
        torch.manual_seed(0)
        torch.set_num_threads(1)

    # ---- names ----

    def line(self, mark):
        found = [number for number, line in enumerate(self.lines, 1) if re.search(rf"# @{mark}\b", line)]
        assert len(found) == 1, (mark, found)
        return found[0]

    def name(self, text):
        """f@mark with the mark's line in its place."""
        name, at, mark = text.partition("@")
        return f"{name}@{self.line(mark)}" if at else name

    # ---- the backend ----

    def backend(self, inner="eager", name=None):
        """A backend that notes the graphs that it is given. INNER: the registered backend that does the work."""
        if inner == "eager":
            work = lambda module, inputs: module.forward
        else:
            from torch._dynamo.backends.registry import lookup_backend
            work = lookup_backend(inner)

        def counting(module, inputs, **rest):
            with self.lock:
                self.graphs.append([[node.op, node.name] for node in module.graph.nodes])
            return work(module, inputs, **rest)

        counting.__name__ = counting.__qualname__ = name or "counting_" + inner
        return counting

    # ---- expectations ----

    def expect(self, decisions):
        """DECISIONS: 'f: hit, f@mark: compiled', in the order in which the calls of one name happen. -> how many compiled"""
        compiled = 0
        with self.lock:
            for one in decisions.split(","):
                name, outcome = (part.strip() for part in one.rsplit(":", 1))
                self.calls[self.name(name)].append(outcome)
                compiled += outcome == "compiled"
        return compiled

    def call(self, decisions, function, *args, graphs=None, raises=None, **kwargs):
        """function(*args), which must be decided as DECISIONS say and hand GRAPHS graphs to the backend, else as many
        as functions are compiled. RAISES: the exception that comes of it, which is then the result."""
        compiled = self.expect(decisions) if decisions else 0
        before = len(self.graphs)
        try:
            result = function(*args, **kwargs)
            assert not raises, f"{decisions}: did not raise {raises}"
        except Exception as error:
            if not raises or not isinstance(error, raises):
                raise
            result = error
        made, wanted = len(self.graphs) - before, compiled if graphs is None else graphs
        assert made == wanted, f"{decisions}: {made} graphs, not {wanted}"
        return result

    def cause(self, name, compilation, older, source, expected, actual, kind=None):
        """The COMPILATIONth compilation of NAME (from 0) was needed as the entry of its OLDERth did not fit: the guard on
        SOURCE that decided wanted EXPECTED and saw ACTUAL. None: not known to the program's author."""
        self.causes.append([self.name(name), compilation, older, source, expected, actual, kind])

    def breaks(self, name, mark, times=1, resumes=True):
        """A compilation of NAME breaks at the line of MARK, TIMES times; then the rest is, or is not, a function of its own."""
        self.broken.append([self.name(name), self.line(mark), times, resumes])

    def died(self, name, compilation, words):
        """The entry of the COMPILATIONth compilation of NAME dies, and the cause of death contains WORDS."""
        self.deaths.append([self.name(name), compilation, words])

    # ---- the end ----

    def done(self, *functions, **results):
        """Print what is known. FUNCTIONS: those whose live entries torch is asked for. RESULTS: what was computed."""
        print(json.dumps(self.known(functions, results), sort_keys=True, default=plain))

    def known(self, functions, results):
        import torch._dynamo.utils as utils
        from torch._dynamo.eval_frame import _debug_get_cache_entry_list
        live = {}
        for function in functions:
            function = getattr(function, "_torchdynamo_orig_callable", function)
            code = function if hasattr(function, "co_code") else function.__code__
            name = getattr(code, "co_qualname", code.co_name)
            live[name] = [str(entry.compile_id) for entry in _debug_get_cache_entry_list(code)
                          if type(entry.guard_manager).__name__ != "DeletedGuardManagerWrapper"]
        metrics = [[str(one.compile_id), one.co_name, os.path.basename(one.co_filename or ""), one.fail_type,
                    sentence(getattr(one, "recompile_reason", None))]
                   for one in utils.get_compilation_metrics()
                   if one.compile_id is not None and getattr(one, "is_forward", True) is not False]
        counters = {kind: {nameless(key): count for key, count in counter.items()}
                    for kind, counter in utils.counters.items() if counter}
        return {"file": os.path.basename(self.path), "torch": TORCH, "calls": self.calls, "frames": self.frames,
                "causes": self.causes, "breaks": self.broken, "deaths": self.deaths, "graphs": self.graphs, "live": live,
                "metrics": metrics, "counters": counters, "results": results,
                "unseen_graphs": self.unseen_graphs}


def nameless(text):
    """A text without addresses, which differ from run to run."""
    return re.sub(r"0x[0-9a-f]+|\d{9,}", "N", text)


def sentence(reason):
    """The first sentence of a recompile reason, without the source line that is quoted and without addresses."""
    return reason and nameless(reason.split("\n")[0].split("  #")[0].strip())


def plain(value):
    """What JSON does not know: tensors by shape and a sum that is the same in the same program, errors by type."""
    if isinstance(value, torch.Tensor):
        return {"shape": list(value.shape), "sum": value.detach().double().sum().item()}
    if isinstance(value, BaseException):
        return {"error": type(value).__name__, "text": str(value).split("\n")[0]}
    return repr(value)
