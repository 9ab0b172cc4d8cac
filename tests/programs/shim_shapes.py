"""Every kind of function does the same when a copy of its code runs in its place.

The scenes below run three times: with no callback, with every frame of this file replaced by a copy (compiling), and
once more (hits). What they return must be equal, and the hits must be exact: one for every call but the first.
"""
import asyncio
import contextlib
import functools
import inspect
import re
import sys
import traceback
import types
import unittest
import weakref

import dyntrace
from dyntrace.eval_frame import _debug_get_cache_entry_list, set_eval_frame
from shim_help import ReplaceAll, decline, main

SCENES = []
HOOKED = []  # compared with a callback that replaces nothing: under any hook CPython's caller keeps the arguments


def scene(function):
    SCENES.append(function)
    return function


def hooked(function):
    HOOKED.append(function)
    return function


def text_of(error):
    """A traceback as printed, without the frames of the test around the scene."""
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return plain("".join(lines))


def depth():
    frame, n = sys._getframe(), 0
    while frame:
        frame, n = frame.f_back, n + 1
    return n


def stack():
    return [(f.function, f.lineno, f.index, f.frame.f_code.co_argcount, f.frame.f_code.co_kwonlyargcount,
             f.frame.f_code.co_flags, plain(str(inspect.getargvalues(f.frame))) if f.function.startswith("s_") else None)
            for f in inspect.stack()]


def plain(text):
    return re.sub("0x[0-9a-f]+", "0x", text)


# ---- arguments

@scene
def arguments():
    def a(): return depth()
    def b(x): return x
    def c(x, y=2, z=3): return x, y, z
    def d(x, /, y, *, z=3): return x, y, z
    def e(*args): return args
    def f(**kw): return sorted(kw.items())
    def g(x, *args, y, z=4, **kw): return x, args, y, z, sorted(kw.items())
    def h(*, y, z): return y, z
    def i(x=[], *, y={}):
        x.append(1)
        y[len(y)] = 1
        return list(x), dict(y)
    many = {}
    exec("def many(%s): return locals()" % ", ".join("a%d=%d" % (n, n) for n in range(40)), many)
    many = many["many"]
    many.__code__ = many.__code__.replace(co_filename=__file__)
    out = [a(), b(1), b(x=2), c(1), c(1, z=5), c(*range(3)), c(**dict(x=1, y=3)), d(1, 2), d(1, y=3, z=4), e(), e(1, 2),
           f(), f(a=1, b=2), g(1, y=2), g(1, 2, 3, y=4, z=5, w=6), h(y=1, z=2), h(z=1, y=2), i(), i(), many(), many(7, a39=8)]
    for call in (lambda: b(), lambda: b(1, 2), lambda: c(w=1), lambda: d(x=1, y=2), lambda: g(1), lambda: h(1, 2),
                 lambda: e(x=1), lambda: f(1)):
        try:
            call()
        except TypeError as error:
            out.append(str(error))
    i.__defaults__[0].clear()
    i.__kwdefaults__["y"].clear()
    return out


@scene
def variables():
    def f(a, *b, c=3, **d):
        before = sorted(locals().items(), key=repr)
        e = a
        del a
        try:
            a
        except UnboundLocalError as error:
            f1 = str(error)
        return before, sorted(locals().items(), key=repr), f1, vars() == locals()

    def g(x):
        def h():
            return x
        x += 1
        y = [h() for x in range(3)]
        return y, x, h(), locals().keys()
    return plain(str(f(1, 2, d=4))), plain(str(g(1)))


@scene
def closures():
    def outer(x, *args, key=5, **kw):
        y = 1

        def inner(z):
            nonlocal x, y
            x += z
            y += x

            def innermost():
                nonlocal y, key
                y += 1
                key += 1
                return x, y, z, args, key, kw
            return innermost
        return inner
    a = outer(3, 4, other=6)
    b = a(4)
    first = b()
    c = a(5)
    d = outer(1)(2)
    return first, b(), c(), b(), d(), [cell.cell_contents for cell in b.__closure__ if isinstance(cell.cell_contents, int)]


@scene
def unset_cells():
    def f():
        def g():
            return x
        try:
            g()
        except NameError as error:
            out = [str(error)]
        x = 1
        out.append(g())
        del x
        try:
            g()
        except NameError as error:
            out.append(str(error))
        return out
    return f()


@scene
def recursive_closures():
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)
    even = lambda n: n == 0 or odd(n - 1)
    odd = lambda n: n != 0 and even(n - 1)
    return fib(12), even(20), odd(21)


# ---- classes

@scene
def classes():
    class Meta(type):
        def __new__(meta, name, bases, space, **kw):
            return super().__new__(meta, name, bases, dict(space, made=kw))

        def __prepare__(name, bases, **kw):
            return {"prepared": sorted(kw)}

        def __init__(cls, name, bases, space, **kw):
            super().__init__(name, bases, space)

        def __call__(cls, *args):
            return super().__call__(*args)

    class Base(metaclass=Meta, option=1):
        local = [n * 2 for n in range(3)]
        here = sorted(k for k in locals() if not k.startswith("__"))
        total = sum(n for n in local)

        def __init__(self, x):
            self.x = x

        def method(self, y=1):
            return "Base", __class__.__name__, self.x, y

        @property
        def p(self):
            return self.x * 2

        @p.setter
        def p(self, value):
            self.x = value

        @classmethod
        def c(cls, *args):
            return cls.__name__, args

        @staticmethod
        def s(*args):
            return args

        def __getattr__(self, name):
            if name.startswith("_"):
                raise AttributeError(name)
            return "missing " + name

        def __getitem__(self, i):
            return i

        def __len__(self):
            return 3

        def __eq__(self, other):
            return self.x == other.x

        def __hash__(self):
            return 1

        def __lt__(self, other):
            return self.x < other.x

        def __add__(self, other):
            return self.x + other

        __radd__ = __add__

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return error[0] is KeyError

        def __iter__(self):
            return iter((1, 2))

        def __contains__(self, x):
            return x == self.x

        def __call__(self, *args, **kw):
            return args, kw

        def __repr__(self):
            return "Base(%r)" % self.x

        def __bool__(self):
            return True

    class Derived(Base):
        def __init__(self, *args):
            super().__init__(*args)
            super(Derived, self).__init__(*args)

        def method(self, *args):
            return ("Derived", __class__.__name__) + super().method(*args)

        @classmethod
        def c(cls, *args):
            return super().c(*args)

        def without(*args):
            try:
                return super().method()
            except RuntimeError as error:
                return str(error)

    d, e = Derived(1), Derived(2)
    with d:
        raise KeyError("swallowed")
    d.p = 5
    return (Base.local, Base.here, Base.total, Base.made, Base.prepared, d.method(2), d.p, d.c(1), Derived.c(), d.s(1, 2),
            d.anything, d[4], len(d), d == e, d < e, sorted([d, e], key=lambda x: x.x), d + 1, 1 + d, list(d), 5 in d,
            d(1, k=2), repr(d), bool(d), {d: 1}[d], d.without(), max(d, e))


@scene
def class_bodies():
    outside = 1

    def make(base=object):
        class Inner(base):
            nonlocal outside
            outside += 1
            value = outside
            names = sorted(locals())
            module, qualname = __module__, __qualname__
            squares = {n: n * outside for n in range(3)}

            class Nested:
                deeper = 1

                def get(self):
                    return __class__.__qualname__
        return Inner
    a, b = make(), make(int)
    return a.value, b.value, a.names, a.module == __name__, a.qualname, a.squares, a.Nested().get(), b(3) + 1


@scene
def executed():
    space = {"__name__": "executed"}
    exec(compile("x = 1\ndef f(): return x + y\ny = 2\nz = f()\nclass C:\n    w = x\n", __file__, "exec"), space)
    local = {}
    exec(compile("x = 1\ny = [x for _ in range(2)] if 0 else x\n", __file__, "exec"), {}, local)
    value = eval(compile("a + (lambda: a)()", __file__, "eval"), {"a": 20})
    return space["z"], space["C"].w, local, value


@scene
def builtins_of_its_own():
    space = {"__builtins__": {"len": lambda x: "own len"}}
    exec(compile("def f(x): return len(x)\n", __file__, "exec"), space)
    f = space["f"]
    out = [f([])]
    space["__builtins__"] = {"len": lambda x: "later len"}
    g = types.FunctionType(f.__code__, space)
    out += [f([]), g([]), f([])]
    space["__builtins__"] = {}
    return out + [f([]), g([])]


@scene
def one_code_many_functions():
    def make(n):
        def f(x=n, *, y=-n):
            return n, x, y, f.__name__
        return f
    fs = [make(n) for n in range(4)]
    fs[1].__name__ = "renamed"
    plain = types.FunctionType((lambda: marker).__code__, {"marker": "first"})
    other = types.FunctionType(plain.__code__, {"marker": "second"})
    out = [f() for f in fs + fs] + [plain(), other(), plain()]
    fs[0].__defaults__ = (9,)
    fs[0].__kwdefaults__ = None
    with contextlib.suppress(TypeError):
        fs[0]()
    out += [fs[0](y=1)]
    return out


# ---- generators and coroutines

@scene
def generators():
    log = []

    def gen(n, *args, step=1):
        try:
            for i in range(0, n, step):
                got = yield i * 2
                if got:
                    log.append(got)
                    yield got, args
        except ValueError as error:
            yield "caught", str(error)
        finally:
            log.append("finally")
        return "returned"

    def delegating(n):
        result = yield from gen(n, 1, 2)
        yield result
        result = yield from inner(n)
        return result

    def inner(n):
        yield from (k for k in range(n))
        return "inner"

    g = gen(4)
    out = [g.gi_code.co_name, g.gi_code.co_kwonlyargcount, g.__name__, g.__qualname__, next(g), g.send(7), next(g), g.throw(ValueError("x"))]
    g.close()
    try:
        next(g)
    except StopIteration as stop:
        out.append(stop.value)
    out += [list(gen(5, step=2)), list(delegating(3))]
    d = delegating(3)
    out += [next(d), d.send("hello"), d.throw(ValueError("y")), next(d), next(d)]
    d.close()
    h = gen(3)
    next(h)
    del h  # closed by its end
    out.append(next(gen(1), None))
    try:
        gen(2).throw(KeyError("never started"))
    except KeyError as error:
        out.append(text_of(error))
    try:
        gen(3).send(1)
    except TypeError as error:
        out.append(str(error))

    def bad():
        yield 1
        raise StopIteration("within")
    try:
        list(bad())
    except RuntimeError as error:
        out.append(text_of(error))

    def recursive():
        yield next(it)
    it = recursive()
    try:
        next(it)
    except ValueError as error:
        out.append(str(error))
    return out, log, [sum(x for x in range(n)) for n in range(4)]


@scene
def coroutines():
    class Later:
        def __init__(self, *values):
            self.values = values

        def __await__(self):
            out = []
            for v in self.values:
                out.append((yield v))
            return out

    class Context:
        async def __aenter__(self):
            return await Later("enter")

        async def __aexit__(self, *error):
            await Later("exit")
            return error[0] is KeyError

    async def f(x, *args, y=1, **kw):
        async with Context() as entered:
            raise KeyError("swallowed")
        try:
            return entered, await Later(x, y), args, kw
        finally:
            await Later("finally")

    async def agen(n):
        try:
            for i in range(n):
                got = yield i
                if got:
                    yield "sent", got
        except ValueError:
            yield "caught"
        finally:
            await Later("agen finally")

    async def use():
        out = [v async for v in agen(3)] + [await f(1, 2, y=3, z=4)]
        g = agen(5)
        out += [await g.asend(None), await g.asend("x"), await g.athrow(ValueError())]
        await g.aclose()
        return out

    def run(coroutine):
        sent, steps = None, []
        try:
            while True:
                steps.append(coroutine.send(sent))
                sent = len(steps)
        except StopIteration as stop:
            return stop.value, steps

    c = f(1)
    c.send(None)
    try:
        c.throw(ZeroDivisionError("thrown"))
    except ZeroDivisionError as error:
        thrown = text_of(error)
    except RuntimeError as error:
        thrown = text_of(error)
    else:
        thrown = "went on"
    c.close()
    unstarted = f(1)
    unstarted.close()
    return run(use()), thrown, f.__code__.co_flags


@scene
def event_loop():
    async def double(x):
        await asyncio.sleep(0)
        return x * 2

    async def several():
        for i in range(3):
            yield await double(i)

    async def fails():
        await asyncio.sleep(0)
        raise KeyError("task")

    async def run():
        results = await asyncio.gather(double(1), double(2), fails(), return_exceptions=True)
        return [repr(r) for r in results], [v async for v in several()], await asyncio.wait_for(double(4), 120)
    return asyncio.run(run())


# ---- exceptions, stacks

@scene
def exceptions():
    def fail(n, *args, key=None):
        if not n:
            raise KeyError("deep", args)
        try:
            fail(n - 1, *args, n, key=key)
        except KeyError as error:
            if n == 2:
                raise ValueError("from two") from error
            if n == 3:
                raise LookupError("while handling") from None
            raise
        finally:
            log.append(n)
    log, out = [], []
    for n in range(5):
        try:
            fail(n)
        except Exception as error:
            out.append(text_of(error))
            out.append([f.f_code.co_name for f, _ in traceback.walk_tb(error.__traceback__)])

    def noted():
        error = ValueError("v")
        error.add_note("a note")
        raise ExceptionGroup("group", [error, TypeError(1)])
    try:
        noted()
    except* TypeError as group:
        out.append(repr(group.exceptions))
    except* ValueError as group:
        out.append(text_of(group))

    def current():
        return sys.exc_info()[0]
    try:
        raise IndexError
    except IndexError:
        out.append(current().__name__)
    out.append(current())
    return out, log


@scene
def locals_of_frames_in_tracebacks():
    def fail(a, *b, c=3, **d):
        e = a
        raise KeyError(e)
    try:
        fail(1, 2, x=4)
    except KeyError as error:
        frame = error.__traceback__.tb_next.tb_frame
    return sorted(frame.f_locals.items(), key=repr), str(inspect.getargvalues(frame)), frame.f_lineno


@scene
def stacks():
    def s_one(a, *b, c=1): return s_two(a, b, c=c)
    def s_two(*a, c, **k): return [s_three(x) for x in (1, 2)], depth()
    def s_three(x): return stack(), sys._getframe(1).f_code.co_name, sys._getframe().f_locals["x"]
    return s_one(1, 2, c=3)


@scene
def frame_code_is_the_code():
    def f(a, *b, c=3):
        return sys._getframe().f_code

    def g(a, *b, c=3):
        yield sys._getframe().f_code
    out = []
    for code, function in ((f(1), f), (next(g(1)), g)):
        entries = _debug_get_cache_entry_list(function.__code__)
        wanted = entries[0].code if entries else function.__code__
        if set_eval_frame(set_eval_frame(None)) is None and not entries:
            wanted = function.__code__
        out.append(code is wanted)
    return out


@scene
def deep():
    def down(n, *args, k=0):
        return 0 if n == 0 else 1 + down(n - 1, k=n)

    def forever():
        return forever() + 1

    def limit():
        try:
            forever()
        except RecursionError as error:
            return str(error)
    limit_now = sys.getrecursionlimit()
    here = depth()
    reached = 0
    for n in range(limit_now - here - 30, limit_now):
        try:
            down(n)
            reached = n
        except RecursionError:
            break
    return down(700), limit(), reached - (limit_now - here)


@scene
def traced():
    def f(a, *b, c=1):
        d = a
        return [d, b, c]

    def g(n):
        for i in range(n):
            yield i

    def body():
        f(1, 2, c=3)
        list(g(2))
    events = []

    def trace(frame, event, arg):
        if frame.f_code.co_filename != __file__:
            return None
        events.append((frame.f_code.co_name, event, frame.f_lineno - frame.f_code.co_firstlineno, plain(repr(arg))))
        return trace
    sys.settrace(trace)
    try:
        body()
    finally:
        sys.settrace(None)
    lines = len(events)
    sys.setprofile(lambda frame, event, arg: frame.f_code.co_filename == __file__ and events.append((frame.f_code.co_name, event)))
    try:
        body()
    finally:
        sys.setprofile(None)
    return events, lines


# ---- lifetimes

@hooked
@scene
def finalisers():
    log = []

    class Dies:
        def __init__(self, name):
            self.name = name

        def __del__(self):
            log.append(self.name)

    def drops(a, *b, c=None, **d):
        log.append("in")
        a = None
        log.append("a gone")
        b = c = d = None
        log.append("all gone")

    def keeps(a):
        log.append("keeps")

    def returns(a):
        return a

    def raises(a):
        raise KeyError

    def gen(a):
        yield 1
        log.append("gen end")
    drops(Dies("a"), Dies("b"), c=Dies("c"), d=Dies("d"))
    keeps(Dies("k"))
    log.append("after keeps")
    x = returns(Dies("r"))
    log.append("after returns")
    del x
    try:
        raises(Dies("x"))
    except KeyError:
        log.append("handling")
    log.append("handled")
    g = gen(Dies("g"))
    next(g)
    del g
    log.append("gen gone")
    return log


@hooked
@scene
def reference_counts():
    class Thing:
        pass

    def take(a, *b, c=None, **d):
        return sys.getrefcount(a), len(b)

    def gen(a):
        yield sys.getrefcount(a)

    def cell(a):
        return (lambda: a)()

    def fails(a):
        raise KeyError
    thing = Thing()
    before = sys.getrefcount(thing)
    out = []
    for _ in range(10):
        out += [take(thing), take(thing, thing, c=thing, d=thing), list(gen(thing)), cell(thing) is thing]
        with contextlib.suppress(KeyError):
            fails(thing)
    gone = weakref.ref(thing)
    out.append(sys.getrefcount(thing) - before)
    del thing
    return out, gone() is None


@scene
def decorated():
    @functools.lru_cache(None)
    def cached(n):
        return n if n < 2 else cached(n - 1) + cached(n - 2)

    @contextlib.contextmanager
    def manager(*names):
        log.append(names)
        try:
            yield len(names)
        except KeyError:
            log.append("caught")
        finally:
            log.append("left")
    log = []
    with manager(1, 2) as n:
        log.append(n)
        raise KeyError

    class Descriptor:
        def __get__(self, instance, owner):
            return instance, owner.__name__

        def __set_name__(self, owner, name):
            log.append((owner.__name__, name))

    class Owner:
        d = Descriptor()

        @functools.cached_property
        def once(self):
            log.append("once")
            return 1
    o = Owner()
    return cached(30), log, Owner.d, o.once + o.once, functools.reduce(lambda a, b: a * b, range(1, 6)), \
        sorted("hello", key=lambda c: -ord(c)), list(map(lambda *a: a, (1, 2), (3, 4))), functools.partial(lambda a, *, b: (a, b), b=1)(2)


class Same(unittest.TestCase):
    maxDiff = None


def make(function):
    def test(self):
        dyntrace.reset()
        self.addCleanup(dyntrace.reset)
        replace, results = ReplaceAll(__file__), []
        for callback in (decline if function in HOOKED else None, replace, replace):
            set_eval_frame(callback)
            try:
                results.append(outside(function))
            finally:
                set_eval_frame(None)
        self.assertEqual(results[1], results[0], "compiled")
        self.assertEqual(results[2], results[0], "hits")
        self.assertIn(function.__code__, replace.asked)
        self.assertEqual(len(set(map(id, replace.asked))), len(replace.asked))
        self.assertEqual(_debug_get_cache_entry_list(function.__code__)[0].hits, 2)
    return test


def outside(function):
    """Called in one place, so that tracebacks and stacks are the same."""
    try:
        return "returned", function()
    except Exception as error:
        return "raised", text_of(error)


for each in SCENES:
    setattr(Same, "test_" + each.__name__, make(each))

if __name__ == "__main__":
    main()
