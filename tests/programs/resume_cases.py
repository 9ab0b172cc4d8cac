"""dyntrace.resume on functions made by hand: split at every point, each does what it did, to the moment at which values die."""
import dis
import functools
import gc
import operator
import sys
import traceback
import types
import unittest
import weakref

import dyntrace
from dyntrace import resume
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode
from resume_help import Splitting
from shim_help import PASS, main

log = []


class Dies:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        log.append(f"{self.name} dies")

    def __repr__(self):
        return self.name

    def method(self, *values):
        log.append(("method", self.name, values))
        return len(values)


class Manager:
    def __init__(self, takes=None):
        self.takes = takes

    def __enter__(self):
        log.append("enter")
        return self

    def __exit__(self, type, *_):
        log.append(("exit", type))
        return type is self.takes


def note(*values):
    log.append(values)
    return values[-1] if values else None


def arguments(a, b=2, /, c=3, *rest, d, e=5, **more):
    note(sorted(locals().items(), key=str))
    a = note(a + b, c)
    return a, b, c, rest, d, e, sorted(more)


def loops(n):
    total = 0
    for i in range(n):
        if i == 2:
            continue
        for j in "ab":
            total += note(i, j, len(j))
            if total > 20:
                break
        else:
            note("else", i)
    while n:
        n -= 1
        if n == 1:
            break
    else:
        note("no break")
    return total, i, n


def withs(kind):
    with Manager() as first, Manager(KeyError) as second:
        note(first is second)
        if kind:
            raise kind("in with")
        return "returned"
    return "taken"


def tries(kind):
    try:
        note("try")
        try:
            if kind:
                raise kind("in try")
        finally:
            note("inner", sys.exc_info()[0])
    except KeyError as error:
        note("except", repr(error))
    else:
        note("else")
    finally:
        note("finally", sys.exc_info()[0])
    return note("after", sys.exc_info()[0])


def nested(a):
    return note(1, note(2, *[a, note(3)], k := note(4)), *(a,)) + "-".join([str(a), note("x"), str(k)]).count(note("x")) + max(a, 1, key=lambda v: -v)


def methods():
    d = Dies("d")
    return d.method(note(1), d.method(), note(2)) + d.method(*(1, 2), **{}) + [].append(note(3) or 4) if d.name else None


def cells(a, b):
    def grow(by):
        nonlocal a
        a += by
        return a
    for c in range(2):
        grows = [grow, lambda: (a, b, c)]
        note(grow(1), grows[1]())
    b = note(grows[1]())
    del c
    for see in grows[1], lambda: b:
        try:
            note(see(), c)
        except NameError as error:
            note(repr(error))
    note(sorted(locals()))
    return grows[1].__closure__[0].cell_contents, a, b


def unbound(early):
    if early:
        x = 1
    note(sorted(locals()))
    try:
        note(x)
    except UnboundLocalError as error:
        note(str(error))
    x = 2
    del x
    note(sorted(locals()))
    return early and 5


def comprehensions(n):
    x = "outer"
    both = [(x, y) for x in range(n) for y in (x, n) if note(x) != 1]
    made = [lambda: (x, i) for i in range(n)]
    return both, x, [f() for f in made], {x: {x + z for z in "ab"} for x in "cd"}, [[note(i) for i in range(j)] for j in range(3)]


def shadows(values):
    def inner():
        return [(values, note(values)) for values in values if note(values)], values, [values for _ in "ab"]
    found, *rest = inner()
    return found, rest, sorted(locals())


def fails(n):
    note("before")
    return [10 // note(n - i) for i in range(n + 1)]


def lifetimes(a):
    b = Dies("b")
    c = [Dies("in c")]
    note("made")
    del b
    note("b is gone")
    c = None
    note("c is gone")
    a = note(a and 1)
    note("a is gone")
    for d in (Dies("d1"), Dies("d2")):
        note(d.name)
    del d
    note("end")
    return Dies("result").name


def kept_in_cells():
    a = Dies("a")
    use = lambda: a.name
    note(use())
    del use
    note("one left")
    a = 1
    return note("none left"), a


def frames():
    here = sys._getframe()
    outer = here.f_back
    names = []
    while outer:
        names.append(outer.f_code.co_name)
        outer = outer.f_back
    return names[:3], len(traceback.extract_stack()) - len(names)


def sinking(function):
    global sunk
    sunk += 1
    function(function)


def deep(n):
    return deep(n - 1) + 1 if n else 0


def matching(subject):
    match subject:
        case {"a": value, **rest}:
            return note(value), rest
        case [first, *others] if first:
            return first, others
        case str() as text:
            return text
    return None


class Base:
    def hello(self, *values):
        return "base", values

    @classmethod
    def make(cls):
        return cls


class Derived(Base):
    def hello(self, value):
        up = super()
        return super().hello(note(value)), up.hello(up is self), __class__.__name__, super(__class__, self).hello()

    def caught(self):
        me = lambda: self
        up = super()
        return up.hello(me() is self), super().hello(note(1))

    @classmethod
    def make(cls):
        return note(super().make() is cls)

    def deleted(self):
        del self
        note(1)
        return super()

    @staticmethod
    def none(*values, known=1):
        note(known)
        return super()


class Everywhere(unittest.TestCase):
    """Each is split at each point: by hand, and by a callback that goes on splitting what comes after."""

    def outcome(self, function, values, named):
        log.clear()
        try:
            result = repr(function(*values, **named))
        except Exception as error:
            result = repr(error), [(frame.lineno, frame.name) for frame in traceback.extract_tb(error.__traceback__)[1:]]
            error = None
        return result, [repr(entry) for entry in log]

    def check(self, function, *values, **named):
        values = [value if isinstance(value, tuple) else (value,) for value in values] or [()]
        bare = getattr(function, "__func__", function)
        for arguments_ in values:
            expected = self.outcome(function, arguments_, named)
            points = resume.points(bare.__code__)
            self.assertGreater(len(points), 5)
            for offset in points:
                with self.subTest(function=function.__qualname__, offset=offset, values=arguments_):
                    split = resume.split(bare.__code__, offset)
                    self.assertEqual((split.origin, split.offset), (bare.__code__, offset))
                    made = types.FunctionType(split.prefix, bare.__globals__, bare.__name__, bare.__defaults__, bare.__closure__)
                    made.__kwdefaults__ = bare.__kwdefaults__
                    if bare is not function:
                        made = types.MethodType(made, function.__self__)
                    result, entries = self.outcome(made, arguments_, named)
                    result = repr(result).replace(split.resume.co_name, bare.__name__)
                    self.assertEqual((result, entries), (repr(expected[0]), expected[1]))
            for mode in ("every", "split=1", "split=2", "split=3"):
                splitting = Splitting(mode)

                def callback(frame, entry, state):
                    made = splitting.instead(frame.f_code) if frame.f_code.co_filename == __file__ and (
                        frame.f_code is bare.__code__ or id(frame.f_code) in splitting.splits) else None
                    return GuardedCode(made, functools.partial(lambda f_locals: True)) if made else PASS
                with self.subTest(function=function.__qualname__, mode=mode):
                    set_eval_frame(callback)
                    try:
                        got = self.outcome(function, arguments_, named)
                    finally:
                        set_eval_frame(None)
                        dyntrace.reset()
                    self.assertEqual(got, expected)
                    self.assertGreaterEqual(splitting.count, 1)

    def test_arguments(self):
        self.check(arguments, (1,), (1, 2, 3, 4, 5), d=4, q=6)

    def test_loops(self):
        self.check(loops, 0, 4, 9)

    def test_with(self):
        self.check(withs, None, KeyError, ValueError)

    def test_try(self):
        self.check(tries, None, KeyError, ValueError)

    def test_values_on_the_stack(self):
        self.check(nested, 3)

    def test_methods(self):
        self.check(methods)

    def test_cells(self):
        self.check(cells, (1, 2))

    def test_unbound(self):
        self.check(unbound, True, False)

    def test_comprehensions(self):
        if sys.version_info[:2] == (3, 12):
            self.assertIn("in the place of one in a cell", resume.why_not(comprehensions.__code__, 40))
            self.assertEqual(resume.points(comprehensions.__code__), ())
        else:
            self.check(comprehensions, 3)
        self.check(shadows, ["a", "b"])
        inner = types.FunctionType(next(c for c in shadows.__code__.co_consts if isinstance(c, types.CodeType)), globals(), "inner", None, (types.CellType("ab"),))
        self.check(inner)

    def test_exceptions(self):
        self.check(fails, 2)

    def test_lifetimes(self):
        self.check(lifetimes, None)
        self.check(kept_in_cells)

    def test_match(self):
        self.check(matching, {"a": 1, "b": 2}, [1, 2], "text", 5)

    def test_super(self):
        self.check(Derived().hello, 1)
        self.check(Derived().caught)
        self.check(Derived.make)
        self.check(Derived().deleted)
        self.check(Derived.none, (), 1)

    def test_recursion(self):
        self.check(deep, 20)

    def test_the_recursion_limit_is_where_it_was(self):
        """Under the evaluator, which has room for it on the stack; but for the last round, which is many calls of ours."""
        def rounds(mode):
            global sunk
            splitting, sunk = Splitting(mode), 0
            def callback(frame, entry, state):
                made = splitting.instead(frame.f_code) if frame.f_code.co_name == "sinking" else None
                return GuardedCode(made, functools.partial(operator.is_not, None)) if made else PASS
            dyntrace.eval_frame.reset_code(sinking.__code__)
            set_eval_frame(callback)
            try:
                sinking(sinking)
            except RecursionError:
                return sunk
            finally:
                set_eval_frame(None)
        whole = rounds("none")
        for mode in "every", *map("split={}".format, range(9)):
            self.assertAlmostEqual(rounds(mode), whole, delta=10, msg=mode)

    def test_frames(self):
        for offset in resume.points(frames.__code__):
            made = types.FunctionType(resume.split(frames.__code__, offset).prefix, globals())
            (names, more), (names_there, more_there) = frames(), made()
            self.assertEqual((names, more), (names_there, more_there))

    def test_line_of_a_frame(self):
        """A frame object stays with the prefix, at the line where it was split."""
        def line():
            note("above")
            return sys._getframe().f_lineno
        for offset in resume.points(line.__code__):
            made = types.FunctionType(resume.split(line.__code__, offset).prefix, globals())
            self.assertEqual(made(), line(), offset)


class Parts(unittest.TestCase):
    def test_what_a_split_says(self):
        def f(a, b):
            def g():
                return b
            return [a, g].count(note(a))
        offset = next(o for o in resume.points(f.__code__) if len(resume.split(f.__code__, o).stack) >= 4)
        split = resume.split(f.__code__, offset)
        self.assertEqual((split.locals, split.resume.co_freevars), (("a", "g"), ("b",)))
        self.assertEqual(split.resume.co_varnames[:split.resume.co_argcount][:2], ("a", "g"))
        self.assertEqual(split.resume.co_argcount, 2 + sum(word != "NULL" for word in split.stack))
        self.assertLessEqual(set(split.stack), {"value", "NULL", "value or NULL"})
        self.assertRegex(split.resume.co_name, rf"^__resume_at_{offset}_\d+$")
        self.assertEqual((split.resume.co_filename, split.resume.co_firstlineno), (__file__, f.__code__.co_firstlineno))
        begins = [next(at.positions for at in dis.get_instructions(code) if at.opname == "RESUME") for code in (f.__code__, split.resume)]
        self.assertEqual(*begins)
        self.assertEqual(split.prefix.co_varnames[:2], ("a", "b"))
        self.assertIs(resume.split(f.__code__, offset), split)
        self.assertIn(f"offset {offset}>", repr(split))

    def test_a_resume_function_again(self):
        points = resume.points(loops.__code__)
        first = resume.split(loops.__code__, points[5])
        again = resume.points(first.resume)
        self.assertEqual(len(again), len(points) - 5)  # what lies before it is never reached
        for place, offset in zip(again, points[5:]):
            second = resume.split(first.resume, place)
            self.assertIs(second.resume, resume.split(loops.__code__, offset).resume)
            self.assertEqual((second.origin, second.offset), (loops.__code__, offset))
        self.assertEqual(resume.why_not(first.resume, 0), "no instruction begins there")
        self.assertEqual(resume.why_not(first.resume, again[0] - points[5] + points[4]), "it is never reached")

    def test_what_is_made_dies_with_its_original(self):
        space = {}
        exec("def f(n):\n    for i in range(n): n = i\n    return n", space)
        split = resume.split(space["f"].__code__, resume.points(space["f"].__code__)[8])
        again = resume.split(split.resume, resume.points(split.resume)[1])
        here = [weakref.ref(code) for code in (space["f"].__code__, split.prefix, split.resume, again.prefix)]
        rest = split.resume
        del space
        gc.collect()
        self.assertIsNone(split.origin)
        self.assertEqual(resume.why_not(rest, 40), "the code object that it was made from is gone")
        del split, again, rest
        self.assertEqual([ref() for ref in here], [None] * 4)

    def test_call_resume(self):
        split = resume.split(nested.__code__, next(o for o in resume.points(nested.__code__) if len(resume.split(nested.__code__, o).stack) == 3))
        steps = resume.call_resume(split)
        self.assertEqual(steps[:3], [("STORE_FAST", "___stack2"), ("STORE_FAST", "___stack1"), ("STORE_FAST", "___stack0")])
        self.assertEqual(steps[-1], ("RETURN_VALUE", None))
        (call,) = (argument for name, argument in steps if name == "LOAD_CONST")
        self.assertIn(call, split.prefix.co_consts)
        with self.assertRaisesRegex(RuntimeError, "only the first part of a function"):
            call()
        with self.assertRaises(TypeError):
            call(1)

    def test_refusals(self):
        def generator():
            yield

        async def coroutine():
            pass

        def handler():
            try:
                note()
            except KeyError:
                note()
        for code, why in ((generator.__code__, "generator"), (coroutine.__code__, "coroutine"), (compile("x", "f", "exec"), "mapping")):
            self.assertEqual(resume.points(code), ())
            self.assertIn(why, resume.why_not(code, 10))
        whys = {resume.why_not(handler.__code__, offset) for offset in range(0, len(handler.__code__.co_code), 2)}
        self.assertTrue(any(why and "except handler" in why for why in whys), whys)
        self.assertIn(None, whys)

    def test_bad_input(self):
        def f():
            return note(1)
        with self.assertRaisesRegex(TypeError, "must be code, not function"):
            resume.split(f, 0)
        for function in resume.split, resume.why_not:
            with self.assertRaises(TypeError):
                function(f.__code__, 1.5)
            with self.assertRaises(TypeError):
                function(f.__code__)
        with self.assertRaisesRegex(TypeError, r"expected what split\(\) returns, got int"):
            resume.call_resume(3)
        for offset in (-2, 1, 3, 10**30, -10**30, len(f.__code__.co_code)):
            with self.assertRaisesRegex(ValueError, "cannot be split at offset .*: no instruction begins there"):
                resume.split(f.__code__, offset)
        for offset in resume.points(f.__code__):
            self.assertIsNone(resume.why_not(f.__code__, offset))

    def test_huge(self):
        space = {"note": note}
        lines = "\n".join(f"    x{i % 300} = x + {i}" for i in range(25000))
        exec(f"def f(x):\n{lines}\n    return x0, x299, note(x) and x", space)
        points = resume.points(space["f"].__code__)
        self.assertGreater(len(points), 80000)
        for offset in points[70000], points[-1], points[3]:
            split = resume.split(space["f"].__code__, offset)
            self.assertEqual(types.FunctionType(split.prefix, space)(5), space["f"](5))

    def test_no_lines(self):
        code = nested.__code__.replace(co_linetable=b"")
        for offset in resume.points(code):
            self.assertEqual(types.FunctionType(resume.split(code, offset).prefix, globals())(3), nested(3))

    def test_code_that_no_compiler_makes(self):
        code, refused = tries.__code__, 0
        for at in range(len(code.co_code) - 24):  # 3.12 writes behind the end for an instruction with caches there
            for byte in (0, 1, 27, 60, 99, 106, 110):  # none that CPython itself puts there
                made = code.replace(co_code=code.co_code[:at] + bytes([byte]) + code.co_code[at + 1:])
                refused += not resume.points(made)
        for table in (b"\x80", b"\xff" * 9, b"\x81\x7f\x7f\x7f\x7f\x7f\x7f", code.co_exceptiontable[:-1] + b"\x3f"):
            refused += not resume.points(code.replace(co_exceptiontable=table))
        for changes in ({"co_stacksize": 1}, {"co_code": code.co_code[:-2]}):
            made = code.replace(**changes)
            refused += not resume.points(made)
            self.assertEqual(resume.why_not(made, 20), "its bytecode is none that CPython's compiler makes")
        self.assertGreater(refused, 20)
        split = resume.split(code, resume.points(code)[9])
        copy = split.resume.replace(co_consts=split.resume.co_consts)
        self.assertNotEqual(copy.co_consts[-1:], ())
        self.assertTrue(resume.points(copy) or resume.why_not(copy, 20))

    def test_own_names(self):
        space = {}
        exec("def f(___stack0): return ___stack0", space)
        self.assertIn("___stack", resume.why_not(space["f"].__code__, 4))


if __name__ == "__main__":
    main()
