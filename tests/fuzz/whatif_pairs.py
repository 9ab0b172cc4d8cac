#!/usr/bin/env python3
"""Random programs for `replay --what-if`: what it predicts of one, beside what happens when the setting is really changed.

    make whatif-pairs PAIRS=2000
    tests/fuzz/whatif_pairs.py [--dyntrace PROGRAM] [--python PY] [--pairs N] [SEED...]

Each seed is a program (functions that call one another; sizes, dtypes, flags, numbers, texts, types, lists, dicts, objects
that die, globals, resets, threads) with a compiler of its own that obeys settings, and one pair of settings. The program is
recorded under the first, the second is predicted and recorded, too; then they are held together call by call:

    equal      every outcome, and all numbers of functions without an undecided call, came as predicted
    announced  some did not, and what-if had said of so many calls that they are undecided
    wrong      some did not, and it had not; or a function compiled, hit or ran as Python less often than the range
               that was given for it, or more often

Prints a line for each pair that is wrong, the number of each kind by setting, and how wide the ranges were. The exit status is
1 if any was wrong.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile

PAIR_SECONDS = 60
# What a range is of, and the outcomes that it counts.
RANGES = {"compiles": {"compiled"}, "hits": {"hit"}, "eager": {"limit", "run_only", "declined", "skip"}}

# ---- the program ----------------------------------------------------------------------------------------------------

# What a value may be, as data: (how it is drawn, the guards of which one is taken). `make` makes the object.
LONG = "long " * 30
KINDS = {
    "buffer": (None, ("tensor", "tensor", "tensor", "shape-equal", "shape-bound", "divisible", "relation")),
    "number": ((0, 1, 2, 3, 4, 7, -1, 2**70), ("equals", "equals", "type")),
    "flag": ((True, False, None), ("constant", "constant", "equals", "type", "not-none")),
    "text": (("a", "b", "it's", "a, b: int 2", LONG, LONG + "more"), ("equals", "equals", "type", "sequence")),
    "list": ((0, 1, 2, 3), ("length", "sequence", "item")),
    "tuple": ((0, 1, 2), ("length", "sequence", "equals")),
    "dict": (("", "p", "q", "pq", "qp", "pqr"), ("keys", "length", "contains")),
    "thing": ((0, 1, 2), ("identity", "attribute", "class", "has", "alive", "other-attribute")),
    "function": (range(5), ("function", "closure", "builtin", "identity")),
    "module": ((0, 1), ("module",)),
    "mixed": ((1, 2.5, "x", None, True, 1.0, -0.0, 0.0), ("type", "constant", "not-none", "equals", "test")),
    "global": ((1, 2), ("equals",)),
    "mode": ((1, 2), ("state",)),
    "ignored": (range(9), (None,)),
}


def draw(r, kind, rank):
    """A value of KIND."""
    if kind == "buffer":
        sizes = [r.choice((2, 3, 3, 4, 5, 6) if rank > 1 else (0, 1, 2, 3, 3, 4, 5, 6)) for _ in range(rank)]
        return [r.choice("ddddfi"), *sizes]
    return r.choice(KINDS[kind][0])


def plan_of(seed):
    """The program of SEED: its functions and what it does, step by step. All of it is data."""
    r = random.Random(f"program {seed}")
    functions = []
    for _ in range(r.choice((1, 1, 2, 3))):
        parameters = []
        for name in "xyz"[:r.choice((1, 2, 2, 3))]:
            kind = r.choice(list(KINDS))
            parameters.append({"name": name, "kind": kind, "guard": r.choice(KINDS[kind][1]), "rank": r.choice((1, 1, 2))})
        declines = draw(r, parameters[0]["kind"], parameters[0]["rank"]) if r.random() < 0.05 and parameters[0]["kind"] not in ("global", "mode") else None
        functions.append({"parameters": parameters, "calls": None, "declines": declines})
    threads, forks, two = r.random() < 0.15, r.random() < 0.1, r.random() < 0.1
    for i, function in enumerate(functions[:-1]):
        if r.random() < 0.4 and not two:
            function["calls"] = i + 1
    steps = []
    for _ in range(r.choice((6, 10, 16, 24))):
        what = r.random()
        if what < 0.03:
            steps.append(["reset", r.randrange(len(functions))])
        elif what < 0.06:
            steps.append(["death", r.randrange(3)])
        elif what < 0.09 and threads:
            steps.append(["thread"])
        elif what < 0.12 and forks:
            steps.append(["fork", r.choice((2, 4))])
        else:
            function = r.randrange(len(functions))
            steps.append(["call", function, arguments(r, functions, function), [arguments(r, functions, functions[function]["calls"])
                          for _ in range(r.choice((0, 1, 2)))] if functions[function]["calls"] is not None else [], two and r.randrange(2)])
    return functions, steps


def arguments(r, functions, function):
    return [draw(r, one["kind"], one["rank"]) for one in functions[function]["parameters"]]


def play(seed, settings):
    """Run the program of SEED under SETTINGS, in the process that is recorded."""
    import threading
    import types

    import dyntrace.config
    from dyntrace import guards as g
    from dyntrace.eval_frame import reset_code, set_eval_frame
    from dyntrace.types import GuardedCode

    functions, steps = plan_of(seed)
    dyntrace.config.recompile_limit = settings.get("recompile_limit", 8)
    dyntrace.config.accumulated_recompile_limit = settings.get("accumulated_limit", 256)
    dynamic, drop, shared = settings.get("dynamic", []), settings.get("drop_guard", []), settings.get("backend_shared", True)

    class Thing:
        def __init__(self, mode):
            self.mode = mode
            if mode == "b":
                self.extra = 1

    class Other(Thing):
        pass
    things = [Thing("a"), Thing("b"), Other("a")]
    space, inner, mode = {"state": 1}, [], [1]
    callables = [lambda: 1, *(lambda i=i: i for i in (1, 2)), len, abs]
    modules = [json, random]
    g.register_global_state("mode", lambda: mode[0])
    for i, function in enumerate(functions):
        names = [one["name"] for one in function["parameters"]]
        body = f" for values in inner.pop() if inner else []: f{function['calls']}(*map(make, {functions[function['calls']]['parameters']!r}, values))\n" if function["calls"] is not None else ""
        exec(compile(f"def f{i}({', '.join(names)}):\n{body} return {i}", f"<program {seed}>", "exec"), space)
    space.update(inner=inner)

    def make(one, value):
        kind = one["kind"]
        if kind == "buffer":
            letter, *sizes = value
            count = 1
            for size in sizes:
                count *= size
            flat = memoryview(bytearray(8 * count if letter == "d" else 4 * count)).cast(letter)
            return flat if len(sizes) == 1 else flat.cast("B").cast(letter, sizes)
        if kind == "list":
            return [value] * value
        if kind == "tuple":
            return tuple(range(value))
        if kind == "dict":
            return dict.fromkeys(value, 0)
        if kind in ("thing", "function", "module"):
            return {"thing": things, "function": callables, "module": modules}[kind][value]
        if kind == "mode":
            mode[0] = value
        if kind == "global":
            space["state"] = value
        return value
    space.update(make=make)

    def guards_of(one, value, values):
        source, guard = g.L[one["name"]], one["guard"]
        shape = source.shape[0]
        if guard == "tensor":
            fixed = [d for name, d in dynamic if name in (one["name"], None)]
            yield g.TENSOR_MATCH(source, dynamic_sizes=True if None in fixed else [d for d in fixed if d < value.ndim])
        elif guard in ("shape-equal", "shape-bound", "divisible", "relation"):
            yield g.TENSOR_MATCH(source, dynamic_sizes=True)
            size = value.shape[0]
            others = [g.L[name] for name, other in values.items() if isinstance(other, memoryview) and name != one["name"]]
            if guard == "shape-equal":
                yield g.SHAPE_EQUAL(shape, size)
            elif guard == "divisible":
                yield g.SHAPE_DIVISIBLE(shape, 2 if size % 2 == 0 else 1)
            elif guard == "relation":
                if others and values[str(others[0])[3]].shape[0] == size:
                    yield g.SHAPE_EQUAL(shape, others[0].shape[0])
                if others:
                    yield g.NO_ALIASING([source, others[0]])
            elif size < 4:
                yield g.SHAPE_BOUND(shape, None, 3)
            else:
                yield g.SHAPE_BOUND(shape, 4, None)
        elif guard == "equals" and one["kind"] == "global":
            yield g.EQUALS_MATCH(g.G["state"])
        elif guard == "equals" and one["kind"] == "number" and [one["name"], None] in dynamic:
            yield g.TYPE_MATCH(source)
        elif guard == "equals":
            yield g.EQUALS_MATCH(source)
        elif guard == "constant":
            yield g.CONSTANT_MATCH(source, value)
        elif guard == "not-none":
            yield g.NONE_MATCH(source) if value is None else g.NOT_NONE(source)
        elif guard in ("type", "class"):
            yield g.TYPE_MATCH(source)
        elif guard == "length":
            yield {"list": g.LIST_LENGTH, "tuple": g.TUPLE_LENGTH, "dict": g.DICT_LENGTH}[one["kind"]](source)
        elif guard == "sequence":
            yield g.SEQUENCE_LENGTH(source)
        elif guard == "item":
            yield g.EQUALS_MATCH(source[0]) if value else g.SEQUENCE_LENGTH(source)
        elif guard == "keys":
            yield g.DICT_KEYS(source)
        elif guard == "contains":
            yield (g.DICT_CONTAINS if "p" in value else g.DICT_NOT_CONTAINS)(source, "p")
        elif guard == "identity":
            yield g.ID_MATCH(source)
            if one["kind"] == "thing":
                yield g.WEAKREF_ALIVE(source)
        elif guard == "alive":
            yield g.WEAKREF_ALIVE(source)
        elif guard == "attribute":
            yield g.EQUALS_MATCH(source.mode)
        elif guard == "other-attribute":  # which not all of them have
            yield g.TYPE_MATCH(source)
            if hasattr(value, "extra"):
                yield g.EQUALS_MATCH(source.extra)
        elif guard == "has":
            yield (g.HASATTR if hasattr(value, "extra") else g.NO_HASATTR)(source, "extra")
        elif guard == "function":
            yield g.FUNCTION_MATCH(source)
        elif guard == "closure":
            yield g.FUNCTION_MATCH(source) if value in (len, abs) else g.CLOSURE_MATCH(source)
        elif guard == "builtin":
            yield g.BUILTIN_MATCH(source) if value in (len, abs) else g.TYPE_MATCH(source)
        elif guard == "module":
            yield g.MODULE_MATCH(source)
        elif guard == "state":
            yield g.GLOBAL_STATE("mode")
        elif guard == "test":
            truth = bool(value)
            yield g.LAMBDA(lambda x: bool(x) == truth, f"bool({one['name']}) is {truth}" if value != 1 else "as before", source)

    codes = {space[f"f{i}"].__code__: function for i, function in enumerate(functions)}

    def compiler(frame, entry, state):
        function = codes.get(frame.f_code)
        if function is None:
            return None
        values = frame.f_locals
        if function["declines"] is not None and values[function["parameters"][0]["name"]] == make(function["parameters"][0], function["declines"]):
            return None
        found = [guard for one in function["parameters"] for guard in guards_of(one, values[one["name"]], values) if guard.kind not in drop]
        return GuardedCode(frame.f_code.replace(), g.GuardTree(found, example=values, globals=frame.f_globals))

    def second(frame, entry, state):
        return compiler(frame, entry, state)
    spaces = [space, space]
    if not shared:  # each backend has functions of its own, which is what that means
        spaces[1] = {name: types.FunctionType(space[name].__code__.replace(), space, name) for name in (f"f{i}" for i in range(len(functions)))}
        codes.update((spaces[1][f"f{i}"].__code__, function) for i, function in enumerate(functions))

    def run(steps):
        for n, (what, *rest) in enumerate(steps):
            if what == "thread":
                one = threading.Thread(target=run, args=(steps[n + 1:],))
                one.start()
                one.join()
                return
            if what == "fork":
                child = os.fork()
                if not child:
                    run([step for step in steps[n + 1:n + 1 + rest[0]] if step[0] != "fork"])
                    os._exit(0)
                os.waitpid(child, 0)
            elif what == "reset":
                for one in {id(space): space for space in spaces}.values():
                    reset_code(one[f"f{rest[0]}"].__code__)
            elif what == "death":
                things[rest[0]] = type(things[rest[0]])("ab"[rest[0] % 2])
            else:
                function, values, inner[:], which = rest[0], rest[1], [rest[2]], int(rest[3])
                values = list(map(make, functions[function]["parameters"], values))
                set_eval_frame((compiler, second)[which])
                spaces[which][f"f{function}"](*values)
                set_eval_frame(None)
    run(steps)


# ---- the pair -------------------------------------------------------------------------------------------------------

def before_of(seed):
    """The settings under which the program is recorded."""
    r = random.Random(f"before {seed}")
    return {"recompile_limit": r.choice((1, 2, 3, 4))} if r.random() < 0.5 else {}


def change_of(seed, kinds):
    """What is changed, and the knob's name. KINDS: of the guards that were recorded."""
    r = random.Random(f"pair {seed}")
    functions, steps = plan_of(seed)
    used = {one["kind"] for function in functions for one in function["parameters"]}
    knob = r.choice(("recompile_limit", "recompile_limit", "dynamic", "dynamic", "dynamic", "drop_guard", "drop_guard", "drop_guard", "accumulated_limit"))
    if any(step[0] == "call" and step[4] for step in steps):
        knob = "backend_shared"
    if knob == "dynamic" and "buffer" not in used:
        knob = "drop_guard"
    if knob == "drop_guard" and not kinds:
        knob = "recompile_limit"
    changed = {}
    if knob in ("recompile_limit", "accumulated_limit"):
        changed[knob] = r.choice((1, 2, 3, 5, 8, 16) if knob == "recompile_limit" else (1, 2, 4, 8))
    elif knob == "backend_shared":
        changed[knob] = False
    elif knob == "dynamic":
        names = [one["name"] for function in functions for one in function["parameters"] if one["kind"] == "buffer"]
        changed["dynamic"] = [[r.choice(names), r.choice((0, 0, 1, None))]]
    else:
        changed["drop_guard"] = [r.choice(kinds)]
    if r.random() < 0.25 and knob != "recompile_limit":
        changed["recompile_limit"] = r.choice((1, 2, 4, 8))
    return changed, knob


def as_words(changed):
    words = []
    for key, value in changed.items():
        if key == "dynamic":
            words += [f"dynamic={name}" + ("" if d is None else f"[{d}]") for name, d in value]
        elif key == "drop_guard":
            words += [f"drop_guard={kind}" for kind in value]
        else:
            words.append(f"{key}={'no' if value is False else value}")
    return ",".join(words)


def record(options, path, seed, settings):
    done = subprocess.run([options.dyntrace, "run", "-o", path, "--python", options.python, "--", os.path.abspath(__file__), "--play", str(seed), json.dumps(settings)],
                          capture_output=True, text=True, timeout=PAIR_SECONDS)
    if done.returncode:
        raise RuntimeError(f"seed {seed}: the program failed: {done.stderr[-2000:]}")


def recorded(path):
    """What happened: {(function, process): [outcome]}, and of each function the number of checks."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        calls, checks = collections.defaultdict(list), collections.Counter()
        for name, process, outcome, tried in db.execute(
                "SELECT qualname, process_id, outcome, entries_checked FROM call_ledger WHERE lookup_id IS NOT NULL ORDER BY start_ns, lookup_id"):
            calls[name, process].append(outcome)
            checks[name] += tried or 0
    return calls, checks


class Widths:
    """The ranges of predictions, and whether what happened lies within."""

    def __init__(self):
        self.exact, self.open, self.widths, self.outside = 0, 0, [], 0

    def add(self, function, real):
        """FUNCTION is what was predicted, as JSON, REAL its outcomes. Those of RANGES that REAL is outside of, in words."""
        outside = []
        for key, outcomes in RANGES.items():
            low, high, is_ = function[f"{key}_low"], function[f"{key}_high"], sum(outcome in outcomes for outcome in real)
            if is_ < low or (high is not None and is_ > high):
                outside.append(f"{function['qualname']}: {low} to {high} {key}, really {is_}")
        self.exact += function["exact"]
        self.open += function["compiles_high"] is None
        if not function["exact"] and function["compiles_high"] is not None:
            self.widths.append(function["compiles_high"] - function["compiles_low"])
        self.outside += bool(outside)
        return outside

    def join(self, other):
        self.exact, self.open, self.outside = self.exact + other.exact, self.open + other.open, self.outside + other.outside
        self.widths += other.widths

    def print(self):
        widths = collections.Counter(self.widths)
        wide = ", ".join(f"{count} of width {width}" for width, count in sorted(widths.items()))
        print(f"functions: {self.exact} exact, {len(self.widths)} with a range (compiles: {wide or 'none'}), {self.open} without an upper bound; "
              f"{self.outside} outside")


def judge(options, seed):
    """(verdict, knob, calls, undecided calls, why, Widths) of SEED's pair."""
    before = before_of(seed)
    with tempfile.TemporaryDirectory() as folder:
        a, b = f"{folder}/a.db", f"{folder}/b.db"
        record(options, a, seed, before)
        with sqlite3.connect(f"file:{a}?mode=ro", uri=True) as db:
            changed, knob = change_of(seed, [kind for kind, in db.execute("SELECT DISTINCT kind FROM guard ORDER BY kind")])
        record(options, b, seed, {**before, **changed})
        words = as_words(changed)
        done = subprocess.run([options.dyntrace, "replay", a, "--what-if", words, "--json", "--calls"], capture_output=True, text=True, timeout=PAIR_SECONDS)
        whole = subprocess.run([options.dyntrace, "replay", a, "--what-if", words, "--json"], capture_output=True, text=True, timeout=PAIR_SECONDS)
        if done.returncode or whole.returncode:
            return "refused", knob, 0, 0, done.stderr.strip() or whole.stderr.strip(), Widths()
        rows, whole = json.loads(done.stdout), json.loads(whole.stdout)
        truth, checks = recorded(b)
        with sqlite3.connect(f"file:{a}?mode=ro", uri=True) as db:
            process_of = dict(db.execute("SELECT lookup_id, process_id FROM call_ledger"))
    told = collections.defaultdict(list)
    for row in rows:
        told[row["function"], process_of[row["lookup_id"]]].append((row["predicted"], row["undecided"]))
    wrong, announced, calls, undecided = [], [], 0, 0
    predicted, doubts, either = collections.Counter(), collections.Counter(), collections.Counter()
    for one in whole["functions"]:
        predicted[one["qualname"]] += one["predicted"]["checks"]
        either[one["qualname"]] += one["either"]
        doubts[one["qualname"]] += one["trusting"] + one["unrecorded"]
    for key in sorted(set(told) | set(truth)):
        mine, real = told.get(key, []), truth.get(key, [])
        guesses = sum(guess for _, guess in mine)
        calls, undecided = calls + len(mine), undecided + guesses
        differ = [i for i, ((outcome, _), r) in enumerate(zip(mine, real)) if outcome != r]
        if len(mine) != len(real):
            differ.append(len(mine))
        if doubts[key[0]] and differ and ("declined" in real or len(real) > len(mine)):  # the recording has nothing of that
            announced.append(key)
        elif [i for i in differ if i >= len(mine) or not mine[i][1]]:
            wrong.append(f"{key[0]}: {[o + '?' * g for o, g in mine]}, really {real}")
        elif differ:
            announced.append(key)
    guessed = {name for (name, _), calls in told.items() if any(guess for _, guess in calls)} | {key[0] for key in announced}
    for name in predicted if not wrong else ():
        if name not in guessed and not either[name] and predicted[name] != checks[name]:
            wrong.append(f"{name}: {predicted[name]} checks, really {checks[name]}")
    widths = Widths()
    for name, several in by_name(whole["functions"]).items():
        wrong += widths.add(several, [outcome for (real, _), outcomes in truth.items() if real == name for outcome in outcomes])
    verdict = "wrong" if wrong else "announced" if announced else "equal"
    return verdict, knob, calls, undecided, f"{json.dumps(before)} -> {words}: {'; '.join(wrong)}", widths


def by_name(functions):
    """The ranges of FUNCTIONS added up for each name: a fork's are functions of their own."""
    found = {}
    for one in functions:
        mine = found.setdefault(one["qualname"], {"qualname": one["qualname"], "exact": True, **{f"{key}_{end}": 0 for key in RANGES for end in ("low", "high")}})
        mine["exact"] = mine["exact"] and one["exact"]
        for key in RANGES:
            mine[f"{key}_low"] += one[f"{key}_low"]
            both = mine[f"{key}_high"], one[f"{key}_high"]
            mine[f"{key}_high"] = None if None in both else sum(both)
    return found


def verdicts_print(table, calls, undecided):
    """TABLE is {setting: {verdict: pairs}}, UNDECIDED so many of CALLS. The exit status."""
    kinds = "equal", "announced", "refused", "wrong"
    print(f"{'setting':28}" + "".join(f"{kind:>11}" for kind in kinds))
    for setting, counts in sorted(table.items()):
        print(f"{setting:28}" + "".join(f"{counts[kind]:11}" for kind in kinds))
    total = sum(table.values(), collections.Counter())
    print(f"{total.total()} pairs, {total['wrong']} wrong; {calls} calls, {100 * (1 - undecided / max(calls, 1)):.1f} % of them decided")
    return 1 if total["wrong"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dyntrace", default=os.environ.get("DYNTRACE", "build/dyntrace"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--play", nargs=2, metavar=("SEED", "SETTINGS"), help=argparse.SUPPRESS)
    parser.add_argument("seeds", nargs="*", type=int)
    options = parser.parse_args()
    if options.play:
        play(int(options.play[0]), json.loads(options.play[1]))
        return 0
    seeds = options.seeds or range(options.pairs)
    table, calls, undecided, widths = collections.defaultdict(collections.Counter), 0, 0, Widths()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for seed, (verdict, knob, some, open_, why, mine) in zip(seeds, pool.map(lambda seed: judge(options, seed), seeds)):
            table[knob][verdict] += 1
            calls, undecided = calls + some, undecided + open_
            widths.join(mine)
            if verdict in ("wrong", "refused"):
                print(f"{verdict} {seed}: {why}", flush=True)
    widths.print()
    return verdicts_print(table, calls, undecided)


if __name__ == "__main__":
    sys.exit(main())
