"""Random functions of arrays do under dyntrace.compile what they do as they are: compared as in corpus.py.

usage: random_functions.py [--library numpy|torch] [--first SEED] [--count N] [--seconds N] [--compile NAME] [--print]

A seed that differs is printed with its function; `--first SEED --count 1 --print` shows it again.
"""
import argparse
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path

import corpus

HELPERS = '''
import functools, math
scale, offset, settings, seen = 2, A(3), {"n": 1, "w": A(3)}, []

class Box:
    def __init__(self, v, n=1):
        self.v, self.n = v, n
    def __add__(self, other):
        return Box(self.v + (other.v if isinstance(other, Box) else other), self.n + 1)
    def scaled(self, n):
        return self.v * n
    @property
    def half(self):
        return self.v / 2

box = Box(A(3))

def double(v):
    return v * 2

def shifted(v, n=1, *, k=2):
    return v + n * k

def picky(v, n):
    if n > 3:
        raise ValueError(n)
    return v + n

def chatty(v):
    print("chatty", v.shape)
    log("chatty")
    return v - 1

def branchy(v):
    if v.sum() > 1:
        return v - 1
    return v + 1

def pair(v):
    return v + 1, {"k": v}

def counted(v):
    seen.append(1)
    return v * len(seen)

def parts(v, n):
    for i in range(n):
        yield v + i
'''


class Function:
    """Writes one. Variables: arrays x, y, z, w of one dimension; numbers n, m; a list many, a dict table."""

    def __init__(self, seed):
        self.random, self.lines, self.depth = random.Random(seed), [], 0
        self.arrays, self.numbers = ["x", "y"], ["n"]

    def put(self, text):
        self.lines.append("    " * (self.depth + 1) + text)

    def pick(self, *choices):
        return self.random.choice(choices)

    def number(self, deep=0):
        if deep > 2 or self.random.random() < 0.5:
            return self.pick(*self.numbers, "1", "2", "0", "-1", "3", "0.5", "scale", 'settings["n"]', "x.ndim", "box.n")
        return self.pick(lambda: f"({self.number(deep + 1)} {self.pick('+', '-', '*')} {self.number(deep + 1)})",
                         lambda: f"len({self.pick('x', 'y', 'many', 'table')})", lambda: f"{self.pick('x', 'y')}.shape[0]",
                         lambda: f"int({self.array(deep + 1)}.sum())" if self.random.random() < 0.15 else "4", lambda: "math.sqrt(4)")()

    def array(self, deep=0):
        if deep > 3 or self.random.random() < 0.3:
            return self.pick(*self.arrays)
        inner = lambda: self.array(deep + 1)
        return self.pick(
            lambda: f"({inner()} {self.pick('+', '-', '*')} {self.pick(inner, lambda: self.number(deep + 1))()})",
            lambda: f"({inner()} {self.pick('+', '*')} {self.number(deep + 1)})",
            lambda: f"xp.{self.pick('sin', 'abs', 'cos', 'tanh')}({inner()})", lambda: f"xp.where({inner()} > 0, {inner()}, {inner()})",
            lambda: f"xp.maximum({inner()}, {inner()})", lambda: f"abs({inner()})", lambda: f"(-{inner()})",
            lambda: f"{inner()}.clip(-2, 2)", lambda: f"{inner()}.cumsum(0)", lambda: f"({inner()} + {inner()}.sum())",
            lambda: f"{inner()}[{self.pick('::-1', ':', '0:3', 'None', '...')}]" if not self.torch or self.random.random() < 0.2 else inner(),
            lambda: f"double({inner()})", lambda: f"shifted({inner()}, k={self.number(deep + 1)})", lambda: f"branchy({inner()})",
            lambda: f"{self.pick('counted', 'chatty')}({inner()})", lambda: f"picky({inner()}, {self.number(deep + 1)})",
            lambda: f"pair({inner()})[{self.pick('0', '1')}]" + self.pick("", ""), lambda: f"Box({inner()}).scaled({self.number(deep + 1)})",
            lambda: f"(Box({inner()}) + {inner()}).half", lambda: "offset", lambda: 'settings["w"]', lambda: "box.v",
            lambda: f"({inner()} if {self.condition()} else {inner()})", lambda: f"sum([{inner()}, {inner()}])",
            lambda: f"sum(parts({inner()}, 2))", lambda: f"(lambda v: v + {self.number(deep + 1)})({inner()})",
            lambda: f"functools.reduce(lambda a, b: a * 0.5 + b, [{inner()}, {inner()}])", lambda: f"[v * 0.5 for v in ({inner()}, {inner()})][{self.pick('0', '1', '-1')}]")()

    def condition(self):
        return self.pick(lambda: f"{self.number(2)} {self.pick('<', '>', '==')} {self.number(2)}", lambda: f"{self.array(3)}.sum() {self.pick('<', '>')} {self.number(2)}",
                         lambda: f"{self.number(2)} {self.pick('<', '>')} {self.number(2)}", lambda: "many", lambda: '"k" in table', lambda: "x is y", lambda: f"isinstance(n, {self.pick('int', 'float')})",
                         lambda: f"n > 0 and {self.array(3)}.max() > 1", lambda: "not many")()

    def block(self, budget):
        kept = self.arrays[:], self.numbers[:]
        self.depth += 1
        for _ in range(self.random.randrange(1, max(2, budget))):
            self.statement(budget - 1)
        self.depth -= 1
        self.arrays, self.numbers = kept

    def statement(self, budget):
        r = self.random
        kind = r.randrange(20 if budget > 0 else 12)
        if kind < 4:
            name = self.pick("x", "y", "z", "w")
            self.put(f"{name} = {self.array()}")
            self.arrays += [name] if name not in self.arrays else []
        elif kind == 4:
            name = self.pick("n", "m")
            self.put(f"{name} = {self.number()}")
            self.numbers += [name] if name not in self.numbers else []
        elif kind == 5:
            self.put(f"{self.pick(*self.arrays)} {self.pick('+', '-', '*')}= {self.pick(self.array, self.number)()}")
        elif kind == 6:
            self.put(self.pick(f"log({self.number()})", f"print({self.number()})", "print('here')", f"log({self.pick(*self.arrays)}.shape)", f"log({self.array()})"))
        elif kind == 7:
            self.put(self.pick(f"many.append({self.array()})", f"many.append({self.number()})", "many = many[:2]", f"table['k'] = {self.array()}", "many.reverse()",
                               f"table[{self.number()}] = {self.number()}", "table.clear()"))
        elif kind == 8:
            self.put(self.pick(f"box.v = {self.array()}", f"box.n = box.n + 1", f"settings['n'] = {self.number()}", f"{self.pick(*self.arrays)}[0] = {self.number()}"))
        elif kind == 9:
            self.put(f"z, w = {self.array()}, {self.array()}")
            self.arrays += [name for name in "zw" if name not in self.arrays]
        elif kind == 10:
            self.put(self.pick(f"assert {self.condition()}, 'not so'", f"del {self.pick('x', 'y', 'z')}", "seen.append(2)", "dyntrace_break()", "nothing = [v for v in many]") if r.random() < 0.5
                     else f"z = {self.array()}")
            self.arrays += ["z"] if "z = " in self.lines[-1] and "z" not in self.arrays else []
        elif kind == 11 and self.depth and r.random() < 0.3:
            self.put(self.pick("raise KeyError(n)", f"return {self.array()}"))
        elif kind == 11:
            self.put(f"x = {self.array()}")
        elif kind < 15:
            self.put(f"if {self.condition()}:")
            self.block(budget)
            if r.random() < 0.5:
                self.put("else:")
                self.block(budget)
        elif kind < 17:
            self.put(self.pick(f"for i in range({self.pick('3', '2', 'len(x) % 4', 'x.ndim')}):", f"for i, v in enumerate([x, y]):", "for v in many[:3]:", "for k in sorted(map(str, table)):"))
            self.depth += 1
            if r.random() < 0.3:
                self.put(f"if {self.condition()}:")
                self.put("    " + self.pick("break", "continue"))
            self.depth -= 1
            self.block(budget)
        elif kind == 17:
            self.put("try:")
            self.block(budget)
            self.put(self.pick("except (ValueError, KeyError, AssertionError) as error:", "except Exception as error:"))
            self.depth += 1
            self.put("log(type(error).__name__)")
            self.depth -= 1
            self.block(budget)
            if r.random() < 0.3:
                self.put("finally:")
                self.put("    log('finally')")
        elif kind == 18:
            self.put(f"with manager({self.number()}) as m:")
            self.block(budget)
        else:
            self.put("def inner(v):")
            self.put(f"    return v * {self.number()} + {self.pick(*self.arrays)}")
            self.put(f"x = inner({self.array()})")

    def text(self, torch):
        self.torch = torch
        calls = ", ".join(repr(self.pick("A(3), A(3), 1", "A(3), A(3), 2", "A(4), A(4), 1", "-A(3), A(3), 1", "shared, shared, 2", "A(3), A(1), 0", "I(3), A(3), 1", "A(3), A(3), 1.5"))
                          for _ in range(self.random.randrange(2, 5)))
        for _ in range(self.random.randrange(3, 9)):
            self.statement(2)
        self.put(f"return {self.pick('x', 'x, y', 'x, many, table', 'x + y, n', '[x, x]', 'None')}")
        return (HELPERS + "\nimport contextlib\n@contextlib.contextmanager\ndef manager(n):\n    log('in')\n    try:\n        yield n\n    finally:\n        log('out')\n"
                + "\ndef dyntrace_break():\n    pass\n" + f"\n@calls({calls})\ndef function(x, y, n, many=None, table=None):\n"
                + "    many, table = many or [], table or {}\n" + "\n".join(self.lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", default="numpy", choices=["numpy", "torch"])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--compile", default="eager", choices=corpus.COMPILERS)
    parser.add_argument("--print", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="names each seed before it runs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    library, bad, seed, began = corpus.Library(options.library), 0, options.first, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="random-") as folder:
        path = Path(folder) / "random_function.py"
        while seed < options.first + options.count and time.monotonic() - began < options.seconds:
            path.write_text(Function(seed).text(options.library == "torch"))
            if options.print:
                print(path.read_text().partition("@calls")[2], flush=True)
            if options.compile in ("eager", "every"):
                import dyntrace
                dyntrace.reset()
                if options.verbose:
                    print(seed, flush=True)
            found = corpus.compare(path, "function", library, corpus.COMPILERS[options.compile])
            if found:
                bad += 1
                print("seed %d: %s: %s differs\n    plain    %s\n    compiled %s\n@calls%s" % (
                    seed, found[0], found[1], str(found[2])[:500], str(found[3])[:500], path.read_text().partition("@calls")[2]), flush=True)
            seed += 1
    print("%d functions, %d differ; %d graphs with %d nodes" % (seed - options.first, bad, corpus.counts["graphs"], corpus.counts["nodes"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
