"""Graphs, break lines and recompiles of dyntrace.compile beside those of torch.compile(backend="eager"), on the functions of corpus/.

usage: beside_torch.py [--dyntrace PROGRAM] [--python PY] [--verbose] [FILE[:FUNCTION]]...       PY has torch

Both are recorded by `dyntrace run`; the traces are compared. Of each function: the operations of each graph, in order; the lines on
which graphs break; the compiles that made a graph or broke, resume functions and called functions included. The last line says how many
functions are equal in which. capture/README.md has why the others differ, and which are left out. torch compiles a callable object within
a function of its own (WRAPPER), where its graphs are. HOSTILE has the files that are no language
feature, but code that changes what was read; they are compared where they are named.
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
HOSTILE = ["believed", "hostile"]
WRAPPER = "torch/_dynamo/external_utils.py"


def run(side, words):
    """In the recorded program: a line of JSON: the functions, with the times of the trace at which each began and
    ended, and whether it did what it does uncompiled."""
    import warnings

    import _dyntrace

    import dyntrace

    warnings.simplefilter("ignore")
    library, found = corpus.Library("torch"), {}
    if side == "torch":
        import torch
        import torch._dynamo
        compiler, disable, reset = lambda function: torch.compile(function, backend="eager"), torch.compiler.disable, torch._dynamo.reset
    else:
        compiler, disable, reset = dyntrace.compile, dyntrace.disable, dyntrace.reset
    for path, name in corpus.chosen(words, library):
        reset()
        done = []
        for compiled in (lambda function: function, compiler):
            module = corpus.Module(path, library)
            module.log = disable(module.log)
            function = module.cases[name]
            wanted = module.calls_of(function) * 2
            began = _dyntrace._recording()[1]
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                function = compiled(function)
                done.append([corpus.outcome(module, library, function, call) for call in wanted])
        same = all(plain[what] == other[what] for plain, other in zip(*done) for what in plain if what != "lines")
        found["%s:%s" % (path.stem, name)] = began, _dyntrace._recording()[1], same
    print(json.dumps(found))


def read(trace, times):
    """{function: (operations of each graph, lines of breaks, compiles)}"""
    with contextlib.closing(sqlite3.connect(trace)) as db:
        ours = f"(filename LIKE '%/capture/corpus/%' OR filename LIKE '%/{WRAPPER}')"
        graphs = db.execute("SELECT m.start_ns, group_concat(n.name, ' ') FROM graph g JOIN compile m USING (compile_id) JOIN code USING (code_id) "
                            f"JOIN (SELECT * FROM graph_node WHERE opcode LIKE 'call%' ORDER BY ordinal) n USING (graph_id) WHERE {ours} GROUP BY graph_id").fetchall()
        compiles = db.execute("SELECT start_ns FROM compile JOIN code USING (code_id) WHERE (compile_id IN (SELECT compile_id FROM graph JOIN graph_node USING (graph_id) WHERE opcode LIKE 'call%') "
                              f"OR compile_id IN (SELECT compile_id FROM graph_break)) AND cache_entry_id IS NOT NULL AND {ours}").fetchall()
        breaks = db.execute(f"SELECT m.start_ns, b.user_stack, b.line FROM graph_break b JOIN compile m USING (compile_id) JOIN code c ON c.code_id = b.code_id WHERE {ours}").fetchall()
    found = {}
    for name, (began, ended, _) in times.items():
        inside = lambda rows: [row for row in rows if began <= row[0] <= ended]
        lines = []
        for _, stack, line in inside(breaks):
            places = re.findall(r'corpus/\w+\.py", line (\d+)', stack or "")
            lines.append(int(places[-1]) if places else line)
        found[name] = [row[1] for row in inside(graphs)], sorted(set(lines)), len(inside(compiles))
    return found


def compare(name, ours, torch, verbose):
    """In what both are equal; what differs is printed."""
    same = {"graphs": len(torch[0]) == len(ours[0]), "breaks": torch[1] == ours[1], "compiles": torch[2] == ours[2],
            "operations": sum(len(graph.split()) for graph in torch[0]) == sum(len(graph.split()) for graph in ours[0])}
    same["all"] = same["graphs"] and same["breaks"] and same["compiles"]
    if not same["all"] or verbose and not same["operations"]:
        print("%s: %s" % (name, "; ".join("%s %s, torch %s" % (what, mine, theirs) for what, mine, theirs in (
            ("graphs", len(ours[0]), len(torch[0])), ("breaks on", ours[1], torch[1]), ("compiles", ours[2], torch[2])) if mine != theirs)), flush=True)
        if verbose and not same["operations"]:
            print("    ours  %.2000s\n    torch %.2000s" % (" | ".join(ours[0]), " | ".join(torch[0])))
    return [what for what in same if same[what]]


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
    files, equal, count, without, wrong, given_up = {}, collections.Counter(), 0, 0, set(), []
    for word in options.what or sorted(path.stem for path in corpus.FOLDER.glob("*.py") if path.stem not in HOSTILE):
        files.setdefault(word.partition(":")[0], []).append(word)
    with tempfile.TemporaryDirectory(prefix="beside-") as folder:
        for words in files.values():
            sides = {}
            for side in ("torch", "dyntrace"):
                trace = "%s/%s.db" % (folder, side)
                for _ in range(5):  # torch 2.13 crashes now and then on generators.py, without a recorder, too
                    done = subprocess.run([options.dyntrace, "run", "--force", "--frames", "decided", "-o", trace, "--python", options.python, __file__, "--side", side, *words],
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                    if done.returncode != 139:
                        break
                if done.returncode:
                    print("%s, %s: left out: ended with %d %s" % (side, " ".join(words), done.returncode, done.stderr[-300:].splitlines()[-1:]), flush=True)
                    break
                times = json.loads(done.stdout.splitlines()[-1])
                sides[side] = read(trace, times)
                wrong.update(name for name in times if not times[name][2])
            else:
                for name in sorted(sides["torch"].keys() - wrong):
                    if not sides["torch"][name][0] and not sides["dyntrace"][name][0]:
                        without += 1
                        continue
                    if not any(sides["torch"][name]):
                        given_up.append(name)
                        continue
                    count += 1
                    equal.update(compare(name, sides["dyntrace"][name], sides["torch"][name], options.verbose))
    print("left out: %d in which neither makes a graph; %d in which torch.compile makes neither graph nor break: %s; those that torch.compile does not "
          "do as Python does: %s" % (without, len(given_up), ", ".join(given_up), ", ".join(sorted(wrong))))
    print("%d functions; equal: %s" % (count, ", ".join("%s %d (%.0f %%)" % (what, equal[what], 100 * equal[what] / count) for what in ("all", "graphs", "breaks", "compiles", "operations"))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
