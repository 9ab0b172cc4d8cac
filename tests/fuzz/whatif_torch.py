#!/usr/bin/env python3
"""whatif_pairs.py for torch: random torch programs, what `replay --what-if` predicts of each beside what then happens.

    tests/fuzz/whatif_torch.py --python TORCH_PYTHON [--dyntrace PROGRAM] [--programs N] [SEED...]

A seed is N programs (sizes, dtypes, numbers, flags, modes, lists, masks, conditions on values and sizes, graph breaks, helpers
with breaks of their own) in one process, so that torch is imported once for each setting. A pair is a program under one of
SETTINGS and another. Prints a line for each function of a pair that is wrong; the exit status is 1 if any was.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from shared import outcomes, run_whole
from whatif_pairs import Widths, verdicts_print

RUN_SECONDS = 300
ALSO = {"EQUALS_MATCH": "CONSTANT_MATCH"}  # what makes guards of that kind

# (recorded under, what if, what the program is given for that)
SETTINGS = [({}, "recompile_limit=2", {"recompile_limit": 2}), ({"recompile_limit": 2}, "recompile_limit=8", {}), ({}, "dynamic=all", {"dynamic": True}),
            ({}, "dynamic=x[0]", {"mark": 0}), ({}, "accumulated_limit=2", {"accumulated_limit": 2}),
            ({}, "drop_guard=EQUALS_MATCH", {"drop": "EQUALS_MATCH"}), ({}, "drop_guard=TENSOR_MATCH", {"drop": "TENSOR_MATCH"}),
            ({"recompile_limit": 2}, "dynamic=all", {"recompile_limit": 2, "dynamic": True}), ({}, "isolate=region", {"isolate": True})]

# Bodies of programs, and how their arguments are drawn.
BODIES = [
    ("x", "x * 2 + 1", "t"), ("x", "x.sin() if x.shape[0] > 5 else x.cos()", "t"), ("x, y", "x + y", "tt"), ("x, n", "x * n", "tn"),
    ("x, n", "x + sum(range(n))", "tn"), ("x, s", "x * s", "tf"), ("x, flag", "x + 1 if flag else x - 1", "tb"),
    ("x, mode", "x.relu() if mode == 'a' else x.tanh() if mode == 'b' else x.cos()", "tm"), ("x, items", "x + sum(items)", "tl"),
    ("x, mask", "x if mask is None else x * mask", "tk"), ("x", "x * 2 if x.sum().item() > 20 else x * 3", "t"),
    ("x, n", "rest(x, n)", "tn"), ("x, d", "x * sum(d.values())", "td"), ("x", "x.view(-1).sum() * x.shape[0]", "t"),
    ("x, n", "(helper(x, n) + 1)", "tn"), ("x", "x @ x.transpose(0, 1)", "t"), ("x, n", "x[:n] * 2", "tn"), ("x", "x / 2 if x.shape[0] % 2 == 0 else x", "t"),
]


def plan_of(seed, count):
    r = random.Random(f"torch {seed}")
    return [(r.choice(BODIES) if i >= len(BODIES) else BODIES[i], r.choice((None, False, False)), [[draw(r, kind) for kind in range(3)] for _ in range(r.choice((6, 9, 12)))], r.random())
            for i in range(count)]


def draw(r, _):
    return {"t": (r.choice((0, 1, 2, 3, 4, 4, 5, 6, 8)), r.choice(("float32",) * 5 + ("float64", "int64"))), "n": r.choice((0, 1, 2, 3, 4, 5)),
            "f": r.choice((0.5, 0.25, 1.0, 2.0)), "b": r.random() < 0.5, "m": r.choice("abc"), "l": r.choice((0, 1, 2, 3)), "k": r.random() < 0.5,
            "d": r.sample("pqr", r.choice((1, 2)))}


def drops(kind, guard):
    """Does GUARD, of torch's, become one of KIND? Those of True, False and None have kinds of their own."""
    return guard.guard_type == kind or guard.guard_type == ALSO.get(kind) and not (guard.has_value and (guard.value is None or isinstance(guard.value, bool)))


def play(seed, count, settings):
    import torch

    torch._dynamo.config.recompile_limit = settings.get("recompile_limit", 8)
    torch._dynamo.config.accumulated_recompile_limit = settings.get("accumulated_limit", 256)
    more = {"isolate_recompiles": True} if settings.get("isolate") else {}
    if settings.get("drop"):
        more["options"] = {"guard_filter_fn": lambda guards: [not drops(settings["drop"], one) for one in guards]}
    for i, ((names, body, kinds), dynamic, calls, _) in enumerate(plan_of(seed, count)):
        space = {"torch": torch}
        exec(compile(f"def helper{i}(x, n):\n y = x * n\n torch._dynamo.graph_break()\n return y + n\n"
                     f"def rest{i}(x, n):\n y = x * n\n torch._dynamo.graph_break()\n return y + n\n"
                     f"def p{i}({names}):\n y = {body.replace('helper(', f'helper{i}(').replace('rest(', f'rest{i}(')}\n return y\n", f"<programs {seed}>", "exec"), space)
        if "rest(" in body:  # the break is in the function itself
            space[f"p{i}"] = space[f"rest{i}"]
        function = torch.compile(space[f"p{i}"], backend="eager", dynamic=True if settings.get("dynamic") else dynamic,
                                 **{key: dict(value) if key == "options" else value for key, value in more.items()})
        for call in calls:
            values = []
            for at, kind in enumerate(kinds):
                drawn = call[at][kind]
                if kind == "t":
                    drawn = torch.ones(drawn[0], 3, dtype=getattr(torch, drawn[1]))
                    if settings.get("mark") == 0 and at == 0 and drawn.shape[0] > 1:
                        torch._dynamo.maybe_mark_dynamic(drawn, 0)
                elif kind == "l":
                    drawn = [torch.ones(1)] * drawn
                elif kind == "k":
                    drawn = torch.ones(1) if drawn else None
                elif kind == "d":
                    drawn = dict.fromkeys(drawn, torch.ones(1))
                values.append(drawn)
            try:
                function(*values)
            except Exception as error:
                print(f"p{i}: {type(error).__name__}", file=sys.stderr)


def record(options, path, seed, settings):
    done = run_whole([options.dyntrace, "run", "-o", path, "--frames", "user", "--torch", options.mode, "--python", options.python, "--", os.path.abspath(__file__), "--play", str(seed),
                      str(options.programs), json.dumps(settings)], RUN_SECONDS, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode:
        raise RuntimeError(f"seed {seed}, {settings}: {done.stderr[-2000:]}")


def asked(options, path, words, *more):
    done = subprocess.run([options.dyntrace, "replay", path, "--what-if", words, "--json", *more], capture_output=True, text=True, timeout=RUN_SECONDS)
    return json.loads(done.stdout) if not done.returncode else None


def judge(options, before, words, after, widths):
    """{program: (verdict, why)}, calls, undecided calls. The ranges are added to WIDTHS; of all functions together they are "all"."""
    rows, whole, truth = asked(options, before, words, "--calls"), asked(options, before, words), outcomes(after, "<programs%")
    if rows is None:
        return {}, 0, 0
    summary = {one["qualname"]: one for one in whole["functions"]}
    told, verdicts, calls, undecided = collections.defaultdict(list), {}, 0, 0
    for row in rows:
        told[row["function"]].append((row["predicted"], row["undecided"]))
    for name in sorted(set(truth) | {name for name in told if name in summary and summary[name]["filename"].startswith("<programs")}):
        program = "".join(c for c in name.rpartition("_in_")[2].partition("_at_")[0] if c.isdigit())
        mine, real, facts = [one for one in told[name] if one[0] != "gone" or one[1]], truth.get(name, []), summary.get(name, collections.Counter())
        calls, undecided = calls + len(told[name]), undecided + sum(guess for _, guess in told[name])
        verdict = "equal"
        if len(mine) != len(real) or any(outcome != is_ for (outcome, _), is_ in zip(mine, real)):
            doubtful = facts["unrecorded"] or facts["trusting"] and {"declined", "callback_error"} & set(real) or any(outcome == "gone" for outcome, _ in mine)
            doubtful = doubtful or [outcome for outcome, guess in mine if not guess] == real  # calls that may be gone
            verdict = "announced" if doubtful or len(mine) == len(real) and all(guess or outcome == is_ for (outcome, guess), is_ in zip(mine, real)) else "wrong"
        elif not any(guess for _, guess in mine) and not facts["either"] and facts:
            pass
        if verdict == "wrong":
            why = f"{name}: {[o + '?' * g for o, g in mine]}, really {real}"
        else:
            why = ""
        if name in summary:
            outside = widths.add(summary[name], real)
            verdict, why = ("wrong" if outside else verdict), "; ".join(filter(None, [why, *outside]))
        old = verdicts.get(program, ("equal", ""))
        order = ("equal", "announced", "wrong")
        verdicts[program] = max(old, (verdict, old[1] + why), key=lambda one: order.index(one[0]))
    every = [outcome for real in outcomes(after).values() for outcome in real]
    outside = Widths().add({"qualname": "all", **whole}, every)
    if outside:
        verdicts["all"] = "wrong", "; ".join(outside)
    return verdicts, calls, undecided


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dyntrace", default=os.environ.get("DYNTRACE", "build/dyntrace"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--mode", default="shim", choices=("shim", "observe"))
    parser.add_argument("--programs", type=int, default=len(BODIES))
    parser.add_argument("--keep", help="a folder for the traces")
    parser.add_argument("--play", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("seeds", nargs="*", type=int)
    options = parser.parse_args()
    if options.play:
        play(int(options.play[0]), int(options.play[1]), json.loads(options.play[2]))
        return 0
    table, calls, undecided, widths = collections.defaultdict(collections.Counter), 0, 0, Widths()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        folder = options.keep or folder
        for seed in options.seeds or [0]:
            made = {}
            for one in [one for under, _, after in SETTINGS for one in (under, after)]:
                path = f"{folder}/{seed}-{'-'.join(f'{key}={value}' for key, value in one.items())}.db"
                if path not in made and not (options.keep and os.path.exists(path)):
                    made[path] = pool.submit(record, options, path, seed, one)
            for one in made.values():
                one.result()
            for under, words, after in SETTINGS:
                paths = [f"{folder}/{seed}-{'-'.join(f'{key}={value}' for key, value in one.items())}.db" for one in (under, after)]
                verdicts, some, open_ = judge(options, paths[0], words, paths[1], widths)
                calls, undecided = calls + some, undecided + open_
                for program, (verdict, why) in verdicts.items():
                    table[words][verdict] += 1
                    if verdict == "wrong":
                        print(f"wrong {seed}: program {program}: {under or ''} -> {words}: {why}", flush=True)
    widths.print()
    return verdicts_print(table, calls, undecided)


if __name__ == "__main__":
    sys.exit(main())
