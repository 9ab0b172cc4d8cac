"""measure.py [--renew] [NAME | NAME:FIX]...: count what torch does in programs/NAME.py. Nothing here uses dyntrace.

Prints a JSON object {NAME: {FIX: counts}}. FIX is the program's argument, "" the program as it is; without it all fixes of practice.py.
--renew writes the counts to truths.json under this torch's version.

    compiles, recompiles, breaks, eager, hits    of the function that practice.py names
    all                                          the first four, of all functions together
    status, out                                  exit status and standard output

A compile is a call of torch's bytecode hook, so it gave code. A recompile is one whose code object had been compiled before.
Breaks are counted in torch._dynamo.utils.graph_break_reasons. An eager call is one of a function's own code object: what torch
compiled of it is another one. The interpreter's profiler (CPython 3.11) or sys.monitoring tells those calls.
"""
import collections
import json
import sys

from children import PROGRAMS, in_child, run_program, warm_up
from practice import PRACTICE

TRUTHS = PROGRAMS.parent / "truths.json"
COUNTS = ("compiles", "recompiles", "breaks", "eager", "hits")


class Counter:
    """Counts the compiles and calls of this process from the beginning of `with` on."""

    def __init__(self, name):
        self.name = name
        self.calls = collections.Counter()  # by id: equal code objects are not the same
        self.codes = {}
        self.compiled = []  # a code object, what torch made of it, graph breaks
        self.breaks_before = 0

    def hook(self, code, made):
        import torch._dynamo.utils
        reasons = len(torch._dynamo.utils.graph_break_reasons)
        self.compiled.append((code, made, reasons - self.breaks_before))
        self.breaks_before = reasons

    def profile(self, frame, event, argument):
        if event == "call":
            self.codes[id(frame.f_code)] = frame.f_code
            self.calls[id(frame.f_code)] += 1

    def entered(self, code, offset):
        self.codes[id(code)] = code
        self.calls[id(code)] += 1

    def count_calls(self, *ignored):
        if hasattr(sys, "monitoring"):
            sys.monitoring.set_events(3, sys.monitoring.events.PY_START)
        else:
            sys.setprofile(self.profile)

    def ignore_calls(self, *ignored):
        if hasattr(sys, "monitoring"):
            sys.monitoring.set_events(3, 0)
        else:
            sys.setprofile(None)

    def __enter__(self):
        import torch._dynamo.convert_frame
        from torch._dynamo.callback import callback_handler
        from torch._dynamo.eval_frame import skip_code
        torch._dynamo.convert_frame.register_bytecode_hook(self.hook)
        # Nothing that the compiler itself calls is of interest.
        callback_handler.register_start_callback(self.ignore_calls)
        callback_handler.register_end_callback(self.count_calls)
        for method in (Counter.entered, Counter.profile, Counter.count_calls, Counter.ignore_calls):
            skip_code(method.__code__)
        if hasattr(sys, "monitoring"):
            sys.monitoring.use_tool_id(3, "measure")
            sys.monitoring.register_callback(3, sys.monitoring.events.PY_START, self.entered)
        self.count_calls()
        return self

    def __exit__(self, *ignored):
        self.ignore_calls()

    def is_function(self, code):
        return code.co_qualname == self.name and "<frozen" not in code.co_filename

    def counts(self, wanted):
        compiled = [entry for entry in self.compiled if wanted(entry[0])]
        made = {id(code) for _, code, _ in compiled}
        original = {id(code) for code, _, _ in compiled}
        original |= {one for one, code in self.codes.items() if self.is_function(code)}
        eager = sum(self.calls[one] for one in original - {id(code) for _, code, _ in self.compiled})
        return {
            "compiles": len(compiled),
            "recompiles": len(compiled) - len({id(code) for code, _, _ in compiled}),
            "breaks": sum(breaks for _, _, breaks in compiled),
            "eager": eager,
            "hits": sum(self.calls[one] for one in made) - len(compiled),
        }


def measured_here(name, fix, function):
    """Run the program in this process, and return its counts."""
    with Counter(function) as counter:
        status = run_program(name, fix)
    whole = counter.counts(lambda code: True)
    return {**counter.counts(counter.is_function), "all": {one: whole[one] for one in COUNTS[:4]}, "status": status}


def truths_text(truths):
    """JSON with a line for each fix of each program: {version: {program: {fix: counts}}}."""
    versions = []
    for version, programs in sorted(truths.items()):
        lines = []
        for name, fixes in sorted(programs.items()):
            counts = [
                f"{json.dumps(fix)}: {json.dumps(fixes[fix], sort_keys=True)}" for fix in sorted(fixes)
            ]
            lines.append(f"  {json.dumps(name)}: {{" + ",\n   ".join(counts) + "}")
        versions.append(f" {json.dumps(version)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(versions) + "\n}\n"


def main():
    words = sys.argv[1:]
    renew = "--renew" in words
    names = [word for word in words if word != "--renew"] or list(PRACTICE)
    import torch
    warm_up()
    measured = {}
    for word in names:
        name, _, fix = word.partition(":")
        fixes = [fix] if fix else ["", *PRACTICE[name]["fixes"]]
        function = PRACTICE[name]["function"]
        measured[name] = {fix: in_child(measured_here, name, fix, function) for fix in fixes}
    print(json.dumps(measured, indent=1))
    if renew:
        version = ".".join(torch.__version__.split(".")[:2])
        truths = json.loads(TRUTHS.read_text()) if TRUTHS.exists() else {}
        truths.setdefault(version, {}).update(measured)
        TRUTHS.write_text(truths_text(truths))


if __name__ == "__main__":
    main()
