"""Random functions of arrays do under dyntrace.compile what they do as they are: compared as in corpus.py.

usage: random_functions.py [--library numpy|torch | --plain] [--first SEED] [--count N] [--seconds N] [--rounds N] [--compile NAME] [--print]
                           [--hypothesis]

A seed that differs is printed with its function; `--first SEED --count 1 --print` shows it again. With --hypothesis that library chooses
instead of a seed, and makes what differs as short as it can.
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

    def __init__(self, chooser):
        self.random, self.lines, self.depth = chooser, [], 0
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


PLAIN_HELPERS = '''
import functools, itertools, operator
class Box:
    kind = "box"
    def __init__(self, v, n=1): self.v, self.n = v, n
    def __add__(self, o): return Box(self.n + (o.n if isinstance(o, Box) else 1), self.n)
    def __eq__(self, o): log("eq"); return isinstance(o, Box) and self.n == o.n
    def __hash__(self): return 7
    def __bool__(self): return self.n != 0
    def __len__(self): return self.n % 3
    def __getitem__(self, k): return k, self.n
    def __iter__(self): return iter([self.n, self.v])
    def __contains__(self, k): return k == self.n
    def __call__(self, *a, **k): return len(a) + self.n
    def __repr__(self): return "Box(%r)" % self.n
    @property
    def half(self): return self.n / 2
    @classmethod
    def make(cls, v=0): return cls(v, 3)
    @staticmethod
    def stat(v=0): return [v]
    def step(self): self.n += 1; return self
class Sub(Box):
    kind = "sub"
    def step(self): super().step(); self.w = self.n; return self
    def __getattr__(self, name):
        log("getattr " + name)
        if name == "q": return 5
        raise AttributeError(name)
class Bare:
    def __repr__(self): return "Bare()"
class Slots:
    __slots__ = "n", "v"
    def __init__(self, n): self.n = n
    def __repr__(self): return "Slots()"
state, total, words = {"n": 1, "k": [1]}, 0, ["a", "b"]
def pos(a, b=2, *c, d=4, **e): return a, b, c, d, sorted(e)
def rec(n): return n if type(n) is not int or n < 1 else (n, rec(n - 1)) if n < 6 else 0
def gen(v, n=2):
    for i in range(n): yield i, v
def lazy(v):
    yield 1
    log("lazy")
    yield v
def picky(v):
    if not v: raise ValueError(v)
    return v
def add_global(v):
    global total
    total += 1
    state["n"] = total
    return total
def counter():
    n = 0
    def inc(k=1):
        nonlocal n
        n += k
        return n
    return inc
count = counter()
'''

FITTING = """1 | 2 | 3 | True | 0 | [1, 2, 3] | [2, 1] | [3] | (1, 2) | (2, 1, 0) | {'k': 1, 'n': 2} | {'k': 2} | Box(1) | Box(2, 2) | Sub(1, 2) | 'ab' | 'k' |
    [[1], [2]] | (lambda a: [a, a])([1]) | range(3) | [Box(1), Box(2, 0)] | (1, [2])""".split("|")
OTHERS = """-1 | False | 1.5 | 0.0 | -0.0 | None | '' | () | (0.0, 'k') | [] | ['k', 0] | {} | {1: 2, 'n': 3} | Box(0) | Bare() | Slots(1) | {1, 2} | b'x' | 2 ** 65 |
    len | Box | int | 1j | iter([1, 2, 3]) | float('nan')""".split("|")


class Plain(Function):
    """Without arrays: values of all kinds, which mostly do not fit; of every second function they do, more often, and what does not is caught."""

    def __init__(self, chooser):
        super().__init__(chooser)
        self.names, self.inners, self.fits = ["x", "y", "z"], 0, self.random.random() < 0.5
        self.values = [value.strip() for value in (FITTING if self.fits else FITTING + OTHERS)]

    def expression(self, deep=0):
        if deep > 2 or self.random.random() < 0.35:
            return self.pick(*self.names, *self.names, "0", "1", "2", "'k'", "'n'", "None", "True", "1.5", "state", "words", "total", "()", "[]")
        e, name, word = lambda: self.expression(deep + 1), self.pick(*self.names), self.pick("'n'", "'q'", "'kind'", "'zz'")
        return self.pick(
            lambda: f"({e()} {self.pick('+', '-', '*', '%', '//', '&', '|', '**', '/')} {e()})", lambda: f"({e()} {self.pick('==', '!=', '<', '>=', 'is', 'is not', 'in', 'not in')} {e()})",
            lambda: f"({e()} {self.pick('and', 'or')} {e()})", lambda: f"(not {e()})", lambda: f"({e()} if {e()} else {e()})", lambda: f"({e()}, {e()})", lambda: f"[{e()}, *{e()}]", lambda: f"[{e()}]",
            lambda: f"{{{e()}: {e()}}}", lambda: f"{{'k': {e()}, **{self.pick('state', '{}', name)}}}", lambda: f"({e()})" + self.pick(f"[{e()}]", "[0]", "[-1]", "[:1]", "[::-1]", "['k']"),
            lambda: f"({e()}).{self.pick('n', 'v', 'half', 'kind', 'q', 'w', 'real', '__class__', '__name__')}", lambda: f"len({e()})",
            lambda: self.pick(*"str repr bool type list tuple sorted sum abs int set dict iter any all max min callable reversed float".split()) + f"({e()})",
            lambda: f"isinstance({e()}, {self.pick('int', 'str', '(int, list)', 'Box', 'Sub', 'dict', 'type')})",
            lambda: f"pos({e()}, {self.pick('', e() + ', ', '*' + e() + ', ')}{self.pick('', 'd=' + e(), '**state', '**{}')})",
            lambda: self.pick(*"rec picky add_global count Box Sub Box.make Box.stat lazy gen Slots".split()) + f"({e()})", lambda: f"({e()}).{self.pick(*'step copy make upper items keys pop stat conjugate values'.split())}()",
            lambda: f"({e()}).get({self.pick(chr(39) + 'k' + chr(39), '1', e())}{self.pick('', ', ' + e())})", lambda: f"[v for v in {e()}]", lambda: f"[(v, {e()}) for v in {e()} if v]", lambda: f"{{k: {e()} for k in {e()}}}",
            lambda: f"sum(v for v in {e()})", lambda: f"list(map(lambda v: {self.pick('v', 'v + 1', '(v, x)')}, {e()}))", lambda: f"list(filter({self.pick('None', 'lambda v: v')}, {e()}))", lambda: f"list(zip({e()}, {e()}))",
            lambda: f"next({e()}, {e()})", lambda: f"getattr({e()}, {word}, {e()})", lambda: f"hasattr({e()}, {word})", lambda: f"f'{{{name}}}-{{{name}!r:>4}}'", lambda: f"'%s' % ({e()},)",
            lambda: f"(lambda a, b={e()}: (a, b, {name}))({e()})", lambda: f"functools.reduce(lambda a, b: (a, b), {e()}, {e()})", lambda: f"list(itertools.chain({e()}, {e()}))", lambda: f"operator.itemgetter(0)({e()})",
            lambda: f"functools.partial(pos, {e()})({e()})", lambda: f"sorted({e()}, key=lambda v: {self.pick('-v', 'str(v)', 'v')})", lambda: f"dict(enumerate({e()}))", lambda: f"({e()})({e()})")()

    def block(self, budget):
        kept = self.names[:]
        super().block(budget)
        self.names = kept

    def set(self, name):
        self.names += [name] if name not in self.names else []
        return name

    def inside(self, *lines):
        self.lines += ["    " * (self.depth + 2) + line for line in lines]

    def statement(self, budget):
        if not self.fits or budget <= 0 or self.random.random() < 0.5:
            return self.unguarded(budget)
        self.put("try:")
        self.depth += 1
        self.unguarded(0)
        self.depth -= 1
        self.put("except Exception as error:")
        self.inside("log((type(error).__name__, str(error)))")

    def unguarded(self, budget):
        e, name, kind = self.expression, self.pick(*self.names), self.random.randrange(22 if budget > 0 else 13)
        if kind < 4 or kind == 12:
            value = e()
            self.put(f"{self.set(self.pick('x', 'y', 'z', 'u', 'w'))} = {value}")
        elif kind == 4:
            self.put(f"{name} {self.pick('+', '-', '*', '|')}= {e(1)}")
        elif kind == 5:
            self.put(f"{self.pick('log', 'print')}({e()})")
        elif kind == 6:
            self.put(f"{name}.{self.pick('n', 'v', 'w')} = {e(1)}")
        elif kind == 7:
            self.put(f"{self.pick(name, 'state')}[{self.pick(chr(39) + 'k' + chr(39), '0', '1', e(2))}] = {e(1)}")
        elif kind == 8:
            self.put(f"{self.pick(name, 'words')}.{self.pick('append', 'extend', 'update', 'remove', 'add')}({e(1)})")
        elif kind == 9:
            self.put(f"u, {self.pick('', '*')}w = {e()}")
            self.set("u"), self.set("w")
        elif kind == 10:
            self.put(self.pick(f"del {self.pick('x', 'y')}", f"del {name}[0]", f"assert {e(1)}", "pass", "pass"))
        elif kind == 11:
            self.put(self.pick(f"return {e()}", f"raise KeyError({e(2)})") if self.depth and self.random.random() < 0.5 else "pass")
        elif kind < 16:
            self.put(f"if {e(1)}:")
            self.block(budget)
            if self.random.random() < 0.5:
                self.put("else:")
                self.block(budget)
        elif kind < 18:
            over = self.pick(f"tuple({e(1)})", f"list({e(1)})", f"reversed({e(1)})", "range(3)",  # not a list that grows in the loop
                              "gen(x)", "enumerate(words[:])", "list(state.items())[:3]")
            self.put(f"for {self.set(self.pick('u', 'w'))} in {over}:")
            self.block(budget)
            if self.random.random() < 0.3:
                self.inside(f"if {e(2)}: {self.pick('break', 'continue')}")
        elif kind == 18:
            self.put("try:")
            self.block(budget)
            self.put("except (ValueError, KeyError, TypeError, AttributeError) as error:")
            self.inside("log(type(error).__name__)")
            if self.random.random() < 0.3:
                self.put("finally:")
                self.inside("log('finally')")
        elif kind == 19:
            self.inners += 1
            self.put(f"def inner{self.inners}(v, q={e(2)}):")
            self.inside(*self.pick(("nonlocal x", "x = v"), ("log(v)",)), f"return v, q, {name}")
            self.put(f"y = inner{self.inners}({e()})")
        elif kind == 20:
            self.put(f"match {e(1)}:")
            self.inside("case int(v) | [v]: z = v", "case {'k': v} | Box(n=v): z = (v,)", "case _: z = 0")
        else:
            self.put(f"while {e(1)}:")
            self.block(budget)
            self.inside("break")

    def text(self, torch):
        some = [self.pick(*self.values) for _ in range(3)]
        calls = [", ".join(self.pick(*self.values) if self.random.random() < 0.35 else value for value in some) for _ in range(self.random.randrange(3, 7))]
        for _ in range(self.random.randrange(2, 7)):
            self.statement(2)
        self.put(f"return {self.pick('x', 'x, y, z', self.expression())}")
        return PLAIN_HELPERS + f"\n@calls({', '.join(map(repr, calls))})\ndef function(x, y, z):\n" + "\n".join(self.lines) + "\n"


class Judge:
    """Compares one function after the other with itself compiled. COUNT: of all so far."""

    def __init__(self, options, folder):
        self.options, self.library, self.path, self.count = options, corpus.Library(options.library), Path(folder) / "random_function.py", 0

    def difference(self, chooser, name):
        """Of the function that CHOOSER chooses, called NAME: words, or None."""
        self.path.write_text((Plain if self.options.plain else Function)(chooser).text(self.options.library == "torch"))
        function = self.path.read_text().partition("@calls")[2]
        self.count += 1
        if self.options.print:
            print(function, flush=True)
        if self.options.compile in ("eager", "every"):
            import dyntrace
            dyntrace.reset()
            if self.options.verbose:
                print(name, flush=True)
        found = corpus.compare(self.path, "function", self.library, corpus.COMPILERS[self.options.compile], self.options.rounds)
        return found and "%s: %s: %s differs\n    plain    %s\n    compiled %s\n@calls%s" % (
            name, found[0], found[1], str(found[2])[:500], str(found[3])[:500], function)


def by_seeds(judge, options):
    """How many differ; each is printed."""
    bad, seed, began = 0, options.first, time.monotonic()
    while seed < options.first + options.count and time.monotonic() - began < options.seconds:
        found = judge.difference(random.Random(seed), "seed %d" % seed)
        if found:
            bad += 1
            print(found, flush=True)
        seed += 1
    return bad


def by_hypothesis(judge, options):
    """Likewise, of the functions that hypothesis chooses: 1, the shortest that it found, or 0."""
    import hypothesis
    from hypothesis import strategies

    @hypothesis.settings(max_examples=options.count, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(strategies.randoms(use_true_random=False))
    def same(chooser):
        found = judge.difference(chooser, "chosen by hypothesis")
        assert not found, found

    try:
        same()
    except AssertionError as error:
        print(error)
        return 1
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", default="numpy", choices=["numpy", "torch"])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--rounds", type=int, default=2, help="how often each call is made, plain and compiled")
    parser.add_argument("--compile", choices=corpus.COMPILERS)
    parser.add_argument("--plain", action="store_true", help="functions without arrays, all of which are captured")
    parser.add_argument("--hypothesis", action="store_true", help="COUNT functions that hypothesis chooses")
    parser.add_argument("--print", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="names each function before it runs")
    options = parser.parse_args()
    options.compile = options.compile or ("every" if options.plain else "eager")
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="random-") as folder:
        judge = Judge(options, folder)
        bad = (by_hypothesis if options.hypothesis else by_seeds)(judge, options)
    print("%d calls compared" % corpus.counts["calls"], file=sys.stderr)
    print("%d functions, %d differ; %d graphs with %d nodes" % (judge.count, bad, corpus.counts["graphs"], corpus.counts["nodes"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
