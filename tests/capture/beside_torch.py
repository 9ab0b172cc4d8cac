"""Graphs, break lines and recompiles of dyntrace.compile beside those of torch.compile(backend="eager"), on the functions of corpus/.

usage: beside_torch.py [--dyntrace PROGRAM] [--python PY] [--verbose] [FILE[:FUNCTION]]...       PY has torch

Both are recorded by `dyntrace run`; the traces are compared. Of each function: the operations of each graph, in order; the lines on
which graphs break; the compiles, resume functions and called functions included. The last line says how many functions are equal in
which. docs/capture.md has why the others differ.
"""
import argparse
import collections
import contextlib
import io
import json
import re
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import corpus

ROOT = Path(__file__).resolve().parent.parent.parent


def run(side, words):
    """In the recorded program: a line of JSON, the functions with the times of the trace at which each began and ended."""
    import warnings

    import _dyntrace

    import dyntrace

    warnings.simplefilter("ignore")
    library, found = corpus.Library("torch"), {}
    if side == "torch":
        import torch
        import torch._dynamo
        compiler, reset = lambda function: torch.compile(function, backend="eager"), torch._dynamo.reset
    else:
        compiler, reset = dyntrace.compile, dyntrace.reset
    for path, name in corpus.chosen(words, library):
        reset()
        module = corpus.Module(path, library)
        function = module.cases[name]
        wanted = module.calls_of(function) * 2
        began = _dyntrace._recording()[1]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            compiled = compiler(function)
            for call in wanted:
                corpus.outcome(module, library, compiled, call)
        found["%s:%s" % (path.stem, name)] = began, _dyntrace._recording()[1]
    print(json.dumps(found))


def read(trace, times):
    """{function: (operations of each graph, lines of breaks, compiles)}"""
    with contextlib.closing(sqlite3.connect(trace)) as db:
        ours = "filename LIKE '%/capture/corpus/%'"
        graphs = db.execute("SELECT m.start_ns, group_concat(n.name, ' ') FROM graph g JOIN compile m USING (compile_id) JOIN code USING (code_id) "
                            f"JOIN (SELECT * FROM graph_node WHERE opcode LIKE 'call%' ORDER BY ordinal) n USING (graph_id) WHERE {ours} GROUP BY graph_id").fetchall()
        compiles = db.execute(f"SELECT start_ns FROM compile JOIN code USING (code_id) WHERE {ours} AND cache_entry_id IS NOT NULL").fetchall()
        breaks = db.execute(f"SELECT m.start_ns, b.user_stack, b.line FROM graph_break b JOIN compile m USING (compile_id) JOIN code c ON c.code_id = b.code_id WHERE {ours}").fetchall()
    found = {}
    for name, (began, ended) in times.items():
        inside = lambda rows: [row for row in rows if began <= row[0] <= ended]
        lines = []
        for _, stack, line in inside(breaks):
            places = re.findall(r'corpus/\w+\.py", line (\d+)', stack or "")
            lines.append(int(places[-1]) if places else line)
        found[name] = [row[1] for row in inside(graphs)], sorted(set(lines)), len(inside(compiles))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dyntrace", default=ROOT / "build/dyntrace")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--verbose", action="store_true", help="also the operations that differ")
    parser.add_argument("--side", choices=["torch", "dyntrace"], help=argparse.SUPPRESS)
    parser.add_argument("what", nargs="*")
    options = parser.parse_args()
    if options.side:
        return run(options.side, options.what)
    sides, files = {"torch": {}, "dyntrace": {}}, {}
    for word in options.what or sorted(path.stem for path in corpus.FOLDER.glob("*.py")):
        files.setdefault(word.partition(":")[0], []).append(word)
    with tempfile.TemporaryDirectory(prefix="beside-") as folder:
        for side in sides:
            for number, words in enumerate(files.values()):
                trace = "%s/%s%d.db" % (folder, side, number)
                done = subprocess.run([options.dyntrace, "run", "--frames", "decided", "-o", trace, "--python", options.python, __file__, "--side", side, *words],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                if done.returncode:
                    print("%s, %s: left out: ended with %d %s" % (side, " ".join(words), done.returncode, done.stderr[-300:].splitlines()[-1:]), flush=True)
                    continue
                sides[side].update(read(trace, json.loads(done.stdout.splitlines()[-1])))
    equal, count = collections.Counter(), len(sides["torch"].keys() & sides["dyntrace"].keys())
    for name, torch in sides["torch"].items():
        if name not in sides["dyntrace"]:
            continue
        ours = sides["dyntrace"][name]
        same = {"graphs": len(torch[0]) == len(ours[0]), "breaks": torch[1] == ours[1], "compiles": torch[2] == ours[2],
                "operations": sum(len(graph.split()) for graph in torch[0]) == sum(len(graph.split()) for graph in ours[0])}
        equal.update(what for what in same if same[what])
        equal["all"] += same["graphs"] and same["breaks"] and same["compiles"]
        if not all(same[what] for what in ("graphs", "breaks", "compiles")) or options.verbose and not same["operations"]:
            print("%s: %s" % (name, "; ".join("%s %s, torch %s" % (what, mine, theirs) for what, mine, theirs in (
                ("graphs", len(ours[0]), len(torch[0])), ("breaks on", ours[1], torch[1]), ("compiles", ours[2], torch[2])) if mine != theirs)))
            if options.verbose and not same["operations"]:
                print("    ours  %s\n    torch %s" % (" | ".join(ours[0]), " | ".join(torch[0])))
    print("%d functions; equal: %s" % (count, ", ".join("%s %d (%.0f %%)" % (what, equal[what], 100 * equal[what] / count) for what in ("all", "graphs", "breaks", "compiles", "operations"))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
