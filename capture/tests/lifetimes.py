"""Random small functions about when objects die and what is warned of: each does the same captured as plain.

    python3 lifetimes.py FIRST COUNT [--show]

A function makes, passes on and drops objects that log their death (__del__, weakref callbacks, generators with `finally`, object arrays),
warns in its own lines, in helpers of its module and of another one, and logs in between. It is called several times with
arguments of several kinds, under several warning filters. After each call the log, the warnings (text, class, file, line), both modules'
__warningregistry__, what is still alive and the exception must be the same. The first difference is printed; --show: with the program.
As plain it is called by functools.partial, whose caller keeps the arguments as long, as that of a compiled function does.
What dies together because the function ends is compared without its order (docs/resume.md).
"""
import functools
import gc
import random
import sys
import types
import warnings

import numpy as np

HELPERS = '''
import warnings, weakref
import numpy as np

class D:
    """Logs its death."""
    def __init__(self, name):
        self.name = name
    def __del__(self):
        LOG.append("del %s" % self.name)

class P:
    """An ordinary class, with nothing to do when it dies."""
    def __init__(self, name):
        self.name = name

class R:
    """Sums, and raises in a method."""
    def __init__(self, x):
        self.x = x
    def add(self, x):
        return self.x + x

class C:
    """A context manager, which logs."""
    def __init__(self, name):
        self.name = name
    def __enter__(self):
        LOG.append("enter %s" % self.name)
        return self
    def __exit__(self, *what):
        LOG.append("exit %s %s" % (self.name, what[0] and what[0].__name__))

LOG, REFS, KEEP = [], [], []

def log(word):
    LOG.append(word)

def watched(thing, name):
    """THING, whose death is logged by a weak reference's callback."""
    REFS.append(weakref.ref(thing, lambda ref: LOG.append("gone %s" % name)))
    return thing

def alive():
    return [ref() is not None for ref in REFS]

def objects(thing):
    found = np.empty(2, dtype=object)
    found[0] = thing
    return found

def generator(name):
    try:
        yield 1
        yield 2
    finally:
        LOG.append("closed %s" % name)

def plain_generator(thing):
    yield thing
    yield None

def identity(thing):
    return thing

def ignore(*things):
    return None

def divide(x):
    return x / (x - x)

def deeper(x):
    y = x * 2
    return divide(y) + y

def warn_here(x):
    warnings.warn("here")
    return x + 1

def warn_caller(x):
    warnings.warn("caller", RuntimeWarning, stacklevel=2)
    return x + 1

def make_and_drop(x, name):
    thing = D(name)
    return x + 1
'''


class Writer:
    """Writes one random function."""

    def __init__(self, rng):
        self.rng, self.count = rng, 0
        self.objects, self.arrays = ["o"], ["a", "b"]

    def name(self, kind):
        self.count += 1
        return "%s%d" % (kind, self.count)

    def thing(self):
        """An expression that makes an object; and what is said when it dies."""
        rng, name = self.rng, self.name("n")
        return rng.choice([
            'D("%s")' % name, 'watched(P("%s"), "%s")' % (name, name), 'P("%s")' % name, 'objects(D("%s"))' % name, '[D("%s")]' % name, '(D("%s"), 1)' % name,
            '{"k": D("%s")}' % name, 'watched(a + 1, "%s")' % name, '[1, watched(P("%s"), "%s")]' % (name, name), 'generator("%s")' % name,
            'other.D("%s")' % name, 'P(D("%s"))' % name, 'np.array([D("%s"), 2], dtype=object)' % name, '[a + 1, D("%s")]' % name,
            'plain_generator(D("%s"))' % name, 'watched(lambda: a, "%s")' % name, 'functools.partial(identity, D("%s"))' % name, 'D("%s").__init__' % name,
            '[D("%s")].append' % name, 'R(watched(a * 2, "%s"))' % name, 'iter([D("%s")])' % name, 'watched({1}, "%s")' % name, 'weakref.ref(a)'])

    def array(self):
        rng = self.rng
        x, y = rng.choice(self.arrays), rng.choice(self.arrays)
        return rng.choice(["%s + %s" % (x, y), "%s * 2" % x, "%s / (%s - %s)" % (x, y, y), "np.log(-abs(%s))" % x, "np.sqrt(-abs(%s) - 1)" % x, "divide(%s)" % x,
                           "other.divide(%s)" % x, "deeper(%s)" % x, "other.deeper(%s)" % x, "warn_here(%s)" % x, "warn_caller(%s)" % x, "other.warn_caller(%s)" % x,
                           "other.warn_here(%s)" % x, "make_and_drop(%s, '%s')" % (x, self.name("m")), "(%s * 1000).astype(np.int8) * np.int8(100)" % x,
                           "R(%s).add(%s)" % (x, y), "np.exp(%s * 1000)" % x, "%s.clip(0, 1)" % x, "np.std(%s[:1], ddof=1) + %s" % (x, x), "np.float64(1) / (%s.size * 0.0)" % x,
                           "np.nanmean(%s * np.nan) + %s" % (x, x)])

    def statement(self, depth):
        rng = self.rng
        kind = rng.randrange(24)
        one, some = rng.choice(self.objects or ["None"]), rng.choice(self.arrays)
        if kind < 4:
            name = self.name("t") if rng.random() < 0.7 or not self.objects else one
            made = self.thing()
            if name not in self.objects:
                self.objects.append(name)
            return ["%s = %s" % (name, made)]
        if kind < 8:
            name = self.name("x") if rng.random() < 0.6 else some
            made = self.array()
            if name not in self.arrays:
                self.arrays.append(name)
            return ["%s = %s" % (name, made)]
        if kind == 8:
            return ["%s = None" % one] if self.objects else ["pass"]
        if kind == 9 and len(self.objects) > 1:
            self.objects.remove(one)
            return ["del %s" % one]
        if kind == 10:
            return [self.thing()]
        if kind == 11:
            return ["log('%s')" % self.name("l")]
        if kind == 12:
            return ["LOG.append('%s')" % self.name("l")]
        if kind == 13:
            return ["print(end='')"]
        if kind == 14:
            return ["[1].append(%s)" % (self.thing() if rng.random() < 0.5 else one)]
        if kind == 15:
            name = self.name("t")
            self.objects.append(name)
            return ["%s = [%s]" % (name, one), "%s.append(%s)" % (name, self.thing())]
        if kind == 16:
            return ["ignore(%s, %s)" % (self.thing(), one)]
        if kind == 17:
            return ["KEEP[:] = [%s]" % one] if rng.random() < 0.5 else ["KEEP[:] = []"]
        if kind == 18:
            return ["box.v = %s" % rng.choice([one, some, "None", self.thing()])]
        if kind == 19 and depth:
            head = rng.choice(["with np.errstate(all='%s'):" % rng.choice(["ignore", "warn", "raise"]), "with warnings.catch_warnings():", "try:", "with C('%s'):" % self.name("c"),
                               "if box.flag:", "for i in range(2):", "with warnings.catch_warnings(record=True) as w:"])
            arrays, objects = list(self.arrays), list(self.objects)
            body = self.block(rng.randrange(1, 4), depth - 1)
            if head.startswith("with warnings"):
                body.insert(0, "warnings.simplefilter('%s')" % rng.choice(["ignore", "always", "error", "default"]))
            self.arrays, self.objects = [x for x in arrays], [o for o in objects if o in self.objects]
            lines = [head] + ["    " + line for line in body]
            if head == "try:":
                lines += ["except (ArithmeticError, Warning, FloatingPointError) as e:", "    log(type(e).__name__)"]
            return lines
        if kind == 20:
            return ["%s = %s" % (some, some)]
        if kind == 21:
            name = self.name("t")
            self.objects.append(name)
            return ["%s = identity(%s)" % (name, one)]
        if kind == 22:
            return ["a, b = b, a"]
        if kind == 23:
            return ["%s += 1" % some] if some not in "ab" else ["%s = %s - 0" % (some, some)]
        return ["log('%s')" % self.name("l")]

    def block(self, count, depth):
        return sum((self.statement(depth) for _ in range(count)), [])


def program(seed):
    writer = Writer(random.Random(seed))
    body = writer.block(writer.rng.randrange(2, 9), 2)
    result = writer.rng.choice([writer.rng.choice(writer.arrays), "None", "(%s, %s)" % (writer.rng.choice(writer.arrays), writer.rng.choice(writer.objects))])
    return "\n".join(["import functools, weakref, warnings", "def f(a, b, o, box):"] + ["    " + line for line in body + ["return " + result]])


def module(name, text, file):
    made = types.ModuleType(name)
    made.__file__ = file
    exec(compile(text, file, "exec"), made.__dict__)
    return made


class Box:
    flag, v = True, None


def filters(number):
    warnings.resetwarnings()
    if number % 6 == 0:
        warnings.simplefilter("always")
    elif number % 6 == 1:
        warnings.simplefilter("default")
    elif number % 6 == 2:
        warnings.filterwarnings("ignore", module="other")
        warnings.filterwarnings("error", module="own")
    elif number % 6 == 3:
        warnings.filterwarnings("error", message=".*invalid.*")
    elif number % 6 == 4:
        warnings.simplefilter("module")
    else:
        warnings.simplefilter("once")


def arguments(own, number, salt):
    """Of call NUMBER, and nobody else's."""
    made = [np.arange(3.0) + number % 2, np.ones(3)]
    kind = (number + salt) % 8
    if kind == 1:
        made[0] = own.watched(made[0], "a%d" % number)
    if kind == 2:
        made[1] = own.watched(made[1], "b%d" % number)
    made.append([lambda: 1, lambda: None, lambda: own.D("o%d" % number), lambda: own.watched(own.P("o"), "o%d" % number), lambda: [own.D("o%d" % number)],
                 lambda: own.objects(own.D("o%d" % number)), lambda: own.generator("o%d" % number), lambda: own.watched(np.ones(2), "o%d" % number)][kind]())
    return made


def ran(seed, wrap):
    """What each call of program SEED did."""
    other = module("other", HELPERS, "other.py")
    own = module("own", HELPERS + program(seed), "own.py")
    own.__dict__.update(other=other, box=None)
    sys.modules["own"], sys.modules["other"] = own, other
    function, found = wrap(own.f), []
    box = Box()
    for number in range(10):
        filters(seed + number // 3)
        box.flag = number != 7
        del own.LOG[:], other.LOG[:]
        gc.collect()
        with warnings.catch_warnings(record=False):
            said, raised = [], None
            warnings.showwarning = lambda message, category, filename, lineno, *rest: said.append((str(message), category.__name__, filename, lineno))
            try:
                result = function(*arguments(own, number, seed), box)
            except Exception as error:
                raised, lines, trace = "%s: %s" % (type(error).__name__, error), [], error.__traceback__.tb_next
                while trace:
                    lines.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
                    trace = trace.tb_next
                raised = raised, [line for line in lines if line[0] in ("own.py", "other.py")]
                del error, trace
            else:
                own.LOG.append("returned")
                result = None
            box.v = None
            registries = [sorted(str(key) for key in m.__dict__.get("__warningregistry__", ()) if key != "version") for m in (own, other)]
            found.append({"log": list(own.LOG), "log of other": list(other.LOG), "warned": said, "registries": registries, "raised": raised, "alive": own.alive()})
            del own.LOG[:]
            gc.collect()
            found[-1]["collected"] = list(own.LOG), own.alive()
    return found


def settled(log):
    """LOG with what the function's end let die in the order of its letters."""
    end = log.index("returned") if "returned" in log else len(log)
    first = end
    while first and log[first - 1].split()[0] in ("del", "gone", "closed"):
        first -= 1
    return log[:first] + sorted(log[first:end]) + log[end:]


def differs(seed, wrap):
    """(call, what, plain, captured) of the first difference, or None."""
    plain, captured = ran(seed, functools.partial), ran(seed, wrap)
    for number, (one, two) in enumerate(zip(plain, captured)):
        for side in one, two:
            side["log"] = settled(side["log"])
        for what in one:
            if one[what] != two[what]:
                return number, what, one[what], two[what]
    return None


def main():
    import dyntrace
    first, count = int(sys.argv[1]), int(sys.argv[2])
    sys.unraisablehook = lambda *what: None
    gc.freeze()
    wrong = 0
    for seed in range(first, first + count):
        found = differs(seed, dyntrace.compile)
        dyntrace.reset()
        if found:
            wrong += 1
            print("seed %d, call %d: %s\n    plain    %r\n    captured %r" % (seed, *found))
            if "--show" in sys.argv:
                print(program(seed))
    print("%d of %d differ" % (wrong, count))
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
