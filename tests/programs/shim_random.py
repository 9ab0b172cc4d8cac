"""Random programs do the same when a copy of the code runs in place of every frame.

usage: shim_random.py [FIRST_SEED [COUNT [MODE]]]

Each program is some functions of every kind (arguments of all kinds, defaults, closures and cells, generators,
coroutines, async generators, classes with super(), exceptions) that call one another with arguments that fit or not.
It runs with no callback, replaced (compiling), and replaced (hits): what it logs, tracebacks included, must be equal. With
a MODE of resume_help.py functions are split instead, with "captured" they are captured (capture_help.py).
"""
import random
import re
import sys
import traceback
import warnings

import dyntrace
from dyntrace.eval_frame import _debug_get_cache_entry_list, set_eval_frame
from capture_help import Everything
from resume_help import Splitting
from shim_help import ReplaceAll

FILE = "<random>"
NAMES = "abcdefgh"


class Source:
    """Writes one program. Every function takes a budget `fuel` from a global, so that recursion ends."""

    def __init__(self, seed):
        self.random, self.lines, self.functions, self.count = random.Random(seed), [], [], 0

    def chance(self, p):
        return self.random.random() < p

    def put(self, level, text):
        self.lines.append("    " * level + text)

    def signature(self, method=False):
        names = list(NAMES[:self.random.randrange(0, 6)])
        kinds = sorted(self.random.choice("ppaaak") for _ in names)  # a(rgument), k(eyword-only), p(ositional-only)
        kinds = [k for c in "pak" for k in kinds if k == c]
        parts, known, default, star = (["self"] if method else []), [], False, False
        for i, (name, kind) in enumerate(zip(names, kinds)):
            if kind == "k" and not star:
                star = True
                if self.chance(0.5):
                    parts.append("*args")
                    known.append("args")
                else:
                    parts.append("*")
            if kind == "k":
                parts.append(name + (f"={self.value()}" if self.chance(0.5) else ""))
            else:
                default = default or self.chance(0.3)
                parts.append(name + (f"={self.value()}" if default else ""))
            known.append(name)
            if kind == "p" and (i + 1 == len(kinds) or kinds[i + 1] != "p"):
                parts.append("/")
        if not star and self.chance(0.3):
            parts.append("*args")
            known.append("args")
        if self.chance(0.3):
            parts.append("**kw")
            known.append("kw")
        self.parameters = list(zip(names, kinds)), "args" in known, "kw" in known
        return ", ".join(parts), known

    def value(self):
        return self.random.choice(["1", "-2", "'s'", "None", "3.5", "(1, 2)", "[]", "{}", "True", "7", "12", "'t'", "[5]"])

    def expression(self, known):
        r = self.random
        choice = r.randrange(9)
        if choice < 3 or not known:
            return self.value()
        if choice < 6:
            return r.choice(known)
        if choice == 6:
            return f"(lambda z={self.value()}, *y: ({r.choice(known)}, z, y))()"
        if choice == 7:
            return f"[({r.choice(known)}, i) for i in range(3) if i]"
        return f"{r.choice(known)} + {self.value()}"

    def call(self, known):
        r = self.random
        if not self.functions:
            return self.value()
        name, (parameters, star, named) = r.choice(self.functions)
        if self.chance(0.8):  # one that fits
            cut = r.randrange(len(parameters) + 1)
            arguments = []
            for i, (parameter, kind) in enumerate(parameters):
                positional = kind == "p" or kind == "a" and i <= cut
                arguments.append(self.expression(known) if positional else f"{parameter}={self.expression(known)}")
            if star and not any("=" in a.split("(")[0] for a in arguments) and self.chance(0.5):
                arguments.append("*(1, 's')")
            if named and self.chance(0.5):
                arguments.append("q=1")
            return f"{name}({', '.join(arguments)})"
        arguments = [self.expression(known) for _ in range(r.randrange(0, 4))]
        if self.chance(0.2):
            arguments.append("*%s" % r.choice(["(1,)", "range(2)", "()"]))
        for name in r.sample(NAMES, r.randrange(0, 3)):
            arguments.append(f"{name}={self.expression(known)}")
        if self.chance(0.1):
            arguments.append("**{'q': 1}")
        return f"{name}({', '.join(arguments)})"

    def body(self, level, known, kind, depth, nonlocals=()):
        r, known = self.random, list(known)
        self.put(level, "burn()")
        for _ in range(r.randrange(1, 5)):
            choice = r.randrange(14)
            if choice == 0:
                name = r.choice("xyz")
                self.put(level, f"{name} = {self.expression(known)}")
                if name not in known:
                    known.append(name)
            elif choice == 1:
                self.put(level, f"log({r.randrange(100)}, {', '.join(known)})")
            elif choice == 2:
                self.put(level, f"log(use({self.call(known)}))")
            elif choice == 3:
                self.put(level, "try:")
                self.put(level + 1, r.choice([f"log(use({self.call(known)}))", f"raise {r.choice(['KeyError', 'ValueError'])}({self.value()})",
                                              f"log({self.expression(known)})"]))
                self.put(level, "except %s as error:" % r.choice(["Exception", "KeyError", "(TypeError, ValueError)"]))
                self.put(level + 1, r.choice(["log(repr(error))", "raise", "raise LookupError('again') from error", "log(text(error))"]))
                if self.chance(0.4):
                    self.put(level, "finally:")
                    self.put(level + 1, "log('finally')")
            elif choice == 4 and depth < 2:
                self.function(level, depth + 1, known, "plain")
                known.append(self.last)
                self.put(level, f"log(use({self.last}()))" if self.chance(0.5) else f"log(callable({self.last}))")
            elif choice == 5 and kind in ("generator", "async generator"):
                self.put(level, f"log((yield {self.expression(known)}))")
            elif choice == 6 and kind == "generator":
                self.put(level, f"log((yield from iterable({self.call(known)})))")
            elif choice == 7 and kind in ("coroutine", "async generator"):
                self.put(level, f"log(await later({self.expression(known)}))")
            elif choice == 8:
                self.put(level, "log(sorted(locals(), key=str), depth())")
            elif choice == 9 and known:
                self.put(level, f"if {r.choice(known)}:")
                self.put(level + 1, f"log({self.expression(known)})")
            elif choice == 10 and nonlocals:
                pass
            elif choice == 11:
                self.put(level, f"for i in range({r.randrange(3)}):")
                self.put(level + 1, f"log(i, {self.expression(known)})")
            elif choice == 12 and self.chance(0.3):
                self.put(level, f"raise KeyError({self.expression(known)})")
            elif choice == 13 and known and self.chance(0.3):
                name = r.choice(known)
                if name not in ("self",):
                    self.put(level, f"del {name}")
        if kind in ("generator", "async generator"):
            self.put(level, f"yield {self.expression(known)}")
        if kind != "async generator":
            self.put(level, f"return {self.expression(known)}")

    def function(self, level, depth, outer, kind=None, method=False):
        kind = kind or self.random.choice(["plain"] * 5 + ["generator"] * 2 + ["coroutine", "async generator", "class"])
        self.count += 1
        name = f"f{self.count}"
        if kind == "class":
            self.klass(level, name)
            taken = [], True, True
        else:
            parameters, known = self.signature(method)
            taken = self.parameters
            self.put(level, ("async " if kind in ("coroutine", "async generator") else "") + f"def {name}({parameters}):")
            captured = [n for n in outer if n not in known and n not in "xyz"]
            written = [n for n in captured if self.chance(0.3) and not n.startswith("f")]
            for n in written:
                self.put(level + 1, f"nonlocal {n}")
                self.put(level + 1, f"{n} = {self.value()}")
            if method and self.chance(0.5):
                self.put(level + 1, "log(__class__.__name__, super().__repr__()[:8])")
            self.body(level + 1, known + [n for n in captured if self.chance(0.5)], kind, depth)
        if level == 0:
            self.functions.append((name, taken))
        self.last = name

    def klass(self, level, name):
        self.put(level, f"class {name}:")
        self.put(level + 1, f"attribute = [{self.value()} for _ in range(2)]")
        self.put(level + 1, "def __init__(self, *args, **kw):")
        self.put(level + 2, "burn()")
        self.put(level + 2, "log(args, kw)")
        self.put(level + 2, "super().__init__()")
        self.put(level + 2, f"self.value = {self.value()}")
        for _ in range(self.random.randrange(1, 3)):
            if self.chance(0.3):
                self.put(level + 1, self.random.choice(["@staticmethod", "@classmethod", "@property"]))
            self.function(level + 1, 2, [], "plain", method=True)
        self.last = name

    def program(self):
        for _ in range(self.random.randrange(2, 7)):
            self.function(0, 0, [])
        for _ in range(12):
            self.put(0, "try:")
            self.put(1, f"log(use({self.call([])}))")
            self.put(0, "except Exception as error:")
            self.put(1, "log(text(error))")
        return "\n".join(self.lines) + "\n"


SUPPORT = '''
def later(x):
    return Later(x)
class Later:
    def __init__(self, x):
        self.x = x
    def __await__(self):
        got = yield self.x
        return got
def iterable(x):
    return x if hasattr(x, "__next__") else iter(())
def use(x):
    """Run generators and coroutines to their end, methods once."""
    if hasattr(x, "send") or hasattr(x, "asend"):
        out, sent = [type(x).__name__], None
        for n in range(4):
            try:
                if hasattr(x, "asend"):
                    try:
                        step = x.asend(sent)
                        while True:
                            out.append(step.send(None))
                    except StopIteration as stop:
                        out.append(stop.value)
                elif n == 2 and len(out) % 2:
                    out.append(x.throw(ValueError("thrown")))
                else:
                    out.append(x.send(sent))
                sent = n
            except StopIteration as stop:
                out.append(("stop", stop.value))
                break
            except StopAsyncIteration:
                out.append("end")
                break
        if hasattr(x, "close"):
            x.close()
        return out
    if type(x).__module__ == "random_program":
        out = []
        for name in sorted(vars(type(x))):
            if name.startswith("f"):
                try:
                    member = getattr(x, name)
                    out.append((name, member(1) if callable(member) else member))
                except Exception as error:
                    out.append(text(error))
        return out
    return x
'''


def run(code, callback, split=False):
    lines, fuel = [], [300]

    def log(*values):
        if len(lines) < 3000:
            lines.append(re.sub("0x[0-9a-f]+", "0x", repr(values)))

    def burn():
        fuel[0] -= 1
        if fuel[0] < 0:
            raise RuntimeError("out of fuel")

    def depth():
        frame, n = sys._getframe(1), 0
        while frame:
            frame, n = frame.f_back, n + 1
        return n

    def text(error):
        words = re.sub("0x[0-9a-f]+", "0x", "".join(traceback.format_exception(type(error), error, error.__traceback__)))
        # 3.11 reads a variable together with the instruction before it once code is warm, and says that one's line; a part of a split is
        # run less often, or begins there.
        return words if sys.version_info >= (3, 12) or not split else re.sub(r"\d+(, in \w+\nUnboundLocalError)", r"?\1", words)
    space = {"__name__": "random_program", "log": log, "burn": burn, "depth": depth, "text": text}
    set_eval_frame(callback)
    try:
        exec(code, space)
    finally:
        set_eval_frame(None)
    return lines


def main(first=0, count=200, mode=None):
    first, count = int(first), int(count)
    replaced = logged = 0
    everything = Everything() if mode == "captured" else None
    warnings.simplefilter("ignore")  # coroutines that nobody awaits
    for seed in range(first, first + count):
        source = SUPPORT + Source(seed).program()
        # Two code objects, each run as often: 3.11 gives some errors another line number once code is warm.
        plain, code = (compile(source, FILE, "exec") for _ in range(2))
        callback = everything.callback if everything else ReplaceAll(FILE, Splitting(f"{mode}={seed}").instead) if mode else ReplaceAll(FILE)
        for name in ("compiled", "hits"):
            expected, result = run(plain, None, mode), run(code, callback, mode)
            if result != expected:
                line = next(i for i, (a, b) in enumerate(zip(result + [None], expected + [None])) if a != b)
                print(source)
                print(f"seed {seed}, {name}, line {line}:\n  got      {(result + ['nothing'])[line]}\n"
                      f"  expected {(expected + ['nothing'])[line]}")
                sys.exit(1)
        assert mode or len(_debug_get_cache_entry_list(code)) == 1
        replaced += 0 if everything else len(callback.asked)
        logged += len(expected)
        dyntrace.reset()
    replaced += everything.count if everything else 0
    print(f"{count} programs, {replaced} code objects replaced, {logged} lines equal")
    assert mode or replaced > 5 * count and logged > 20 * count


if __name__ == "__main__":
    main(*sys.argv[1:])
