"""Frames of functions that dyntrace.resume split, as CPython's own introspection sees and changes them: f_locals, trace and
profile functions, jumps of a debugger, tracemalloc, faulthandler, gc. Each function is split at points all over, and again at each point behind."""
import contextlib
import ctypes
import faulthandler
import gc
import sys
import tempfile
import threading
import traceback
import tracemalloc
import types
import unittest
import warnings

import dyntrace
from dyntrace import resume
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode
from resume_help import Splitting
from shim_help import PASS, main, under

seen = []
act = None  # what the functions below do where they call here()


def here():
    if act:
        act(sys._getframe(1))


def no_cells(x, items):
    for item in items:
        x = x + item
        here()
    return [x, len(items)]


def own_cell(x, items):
    for item in items:
        x = x + 1
        here()
    x = (lambda y: y + x)(1)
    here()
    return x, sorted(items, key=lambda y: (here(), -y)[1])


def nonlocal_cell(x, items):
    z = w = x

    def inner(q, b=x):
        nonlocal z
        z = q
        here()
        return b + q
    here()
    x = inner(w + x)
    del w
    here()
    return x, z, [inner(i) + z for i in items]


def free_cell(x, items):
    def inside(y):
        here()
        total = x + y
        for item in items:
            total += (lambda: total + item)()
            here()
        return total, x
    return inside(2), inside(3)


def comprehensions(x, items):
    fs = [lambda: x for x in items]
    here()
    y = [(here(), [x + i for i in items])[1] for x in items]
    here()
    return [f() for f in fs], y, x, [sum(i * j for j in items) for i in items]


def unbound(x, items):
    del items
    def get():
        return items
    here()
    try:
        return get()
    except NameError as error:
        here()
        return str(error), x


def many(x, items):
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = x
    f = lambda: (a0, a1, a2, a3, a4, a5, a6, a7)
    here()
    a3 = x + 1
    here()
    return f(), [here() or a for a in f()]


def loops(x, items):
    """Two iterables on the stack, then a result between them."""
    for item in items:
        for other in [item, x]:
            here()
            return [item, here(), other]


class Sup:
    def hello(self, x):
        return x


class Own(Sup):
    def hello(self, x):
        me = lambda: self
        here()
        return super().hello(x), me() is self, here()


def with_super(x, items):
    return Own().hello(x)


FUNCTIONS = [no_cells, own_cell, nonlocal_cell, free_cell, unbound, many, loops, with_super]
if not (3, 13) <= sys.version_info < (3, 13, 2):  # where f_locals takes anything for a cell: gh-128396
    FUNCTIONS.append(comprehensions)
CODES = {function.__code__ for function in FUNCTIONS}
CODES.update(constant for function in FUNCTIONS for constant in function.__code__.co_consts if isinstance(constant, types.CodeType))
CODES.add(Own.hello.__code__)
NAMES = {code.co_name for code in CODES} - {"<lambda>"}


def is_ours(code):
    return code.co_filename == __file__ and (code.co_name in NAMES or code.co_name.startswith("__resume_at_"))


def splitting(point):
    """A callback that splits each of CODES at its point number POINT, counted round, and each resume function at the next."""
    after = Splitting("every")

    def instead(frame, entry, state):
        code = frame.f_code
        if code.co_filename != __file__ or code not in CODES and id(code) not in after.splits:
            return PASS
        if id(code) in after.splits:
            made = after.instead(code)
        else:
            points = resume.points(code)
            split = resume.split(code, points[point % len(points)]) if points else None
            if split:
                after.splits[id(split.resume)] = split
            made = split.prefix if split else None
        return GuardedCode(made, lambda f_locals: True) if made else PASS
    return instead


def count_points():
    return max(len(resume.points(code)) for code in CODES)


def outcome(function):
    seen.clear()
    try:
        result = repr(function(1, (1, 2, 3)))
    except Exception as error:
        result = repr(error)
    return result, list(seen)


class Frames(unittest.TestCase):
    maxDiff = None

    def everywhere(self, action, begin=lambda: None, end=lambda: None, functions=FUNCTIONS, step=8):
        """Under ACTION each function does what it does when it is not split."""
        global act
        act = action
        for function in functions:
            plain = self.run_one(function, None, begin, end)
            for point in range(0, len(resume.points(function.__code__)) or count_points(), step):
                with self.subTest(function.__name__, point=point):
                    self.assertEqual(self.run_one(function, splitting(point), begin, end), plain)
        act = None

    def run_one(self, function, callback, begin, end):
        dyntrace.reset()  # else the recompile limit keeps the functions whole after eight callbacks
        begin()
        try:
            return under(callback, outcome, function)
        finally:
            end()

    def test_f_locals(self):
        def look(frame):
            values = frame.f_locals
            names = [name for name in list(values) if not name.startswith("___stack")]
            seen.append(sorted((name, str(values[name])[:9]) for name in names))
            self.assertEqual(len(names), len(set(names)))
        self.everywhere(look, step=2)

    def test_trace_functions(self):
        """Which read f_locals: up to CPython 3.12 it is written back when they return."""
        def trace(frame, event, argument):
            if not is_ours(frame.f_code):
                return None
            frame.f_trace_opcodes = True
            dict(frame.f_locals)  # since 3.13 f_locals alone reads nothing
            return trace
        for action in (None, lambda frame: setattr(frame, "f_trace", trace)):
            with self.subTest(action=action):
                self.everywhere(action, lambda: sys.settrace(trace), lambda: sys.settrace(None))

        def turn_on(frame):
            frame.f_trace = trace
            frame.f_trace_opcodes = True
            sys.settrace(trace)
        self.everywhere(turn_on, end=lambda: sys.settrace(None))

    def test_f_locals_written(self):
        def write(frame):
            values = frame.f_locals
            for name, value in list(values.items()):
                if type(value) is int:
                    values[name] = value + 100
            if sys.version_info < (3, 13):
                ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
        self.everywhere(write, step=2)

    def test_profile_functions(self):
        def profile(frame, event, argument):
            if is_ours(frame.f_code):
                dict(frame.f_locals)
        self.everywhere(lambda frame: seen.append(sum(1 for _ in traceback.walk_stack(frame))), lambda: sys.setprofile(profile), lambda: sys.setprofile(None))

    def test_others(self):
        """clear(), other threads, tracemalloc, faulthandler, tracebacks, gc."""
        def look(frame):
            try:
                frame.clear()
                seen.append("cleared")
            except RuntimeError as error:
                seen.append(str(error))
            found = []
            thread = threading.Thread(target=lambda: found.append([dict(f.f_locals) for f in sys._current_frames().values()]))
            thread.start()
            thread.join()
            with tempfile.TemporaryFile() as file:
                faulthandler.dump_traceback(file)
            seen.append([line.name for line in traceback.extract_stack(frame)][-1] in NAMES)
            gc.get_referrers(frame)
            gc.get_referrers(*frame.f_locals.values())
            gc.collect()
        self.everywhere(look, lambda: tracemalloc.start(20), tracemalloc.stop, FUNCTIONS[1:4])

    def test_jump_to_the_first_line(self):
        """A debugger may send a frame back to its first line, where the prologue of a resume function is: that is an
        error, or begins it once more, as in a function that is not split."""
        def trace(frame, event, argument):
            nonlocal jumps
            if not is_ours(frame.f_code):
                return None
            if event == "line" and frame.f_lineno > frame.f_code.co_firstlineno + 1 and jumps:
                jumps -= 1
                frame.f_lineno = frame.f_code.co_firstlineno
            return trace
        for function in FUNCTIONS:
            for point in range(count_points()):
                jumps = 1
                dyntrace.reset()
                callback = splitting(point)
                sys.settrace(trace)
                try:
                    with warnings.catch_warnings(), contextlib.suppress(ValueError, RuntimeError, TypeError, NameError):
                        warnings.simplefilter("ignore")
                        under(callback, function, 1, (1, 2))
                finally:
                    sys.settrace(None)

    def test_strangers(self):
        """The function of a resume function's frame, and what the two parts call, in the hands of others."""
        def look(frame):
            for thing in gc.get_objects():
                if type(thing) is types.FunctionType and thing.__code__.co_name.startswith("__resume_at_"):
                    with self.assertRaises(RuntimeError):
                        thing(*range(thing.__code__.co_argcount))
            for constant in frame.f_code.co_consts:
                if type(constant) is types.BuiltinFunctionType and constant.__name__ in ("leave", "enter"):
                    with self.assertRaises(RuntimeError):
                        constant()
        self.everywhere(look, functions=FUNCTIONS[1:2])

        def f(a):
            here()
            return lambda: a
        for offset in resume.points(f.__code__):
            made = resume.split(f.__code__, offset).resume
            function = types.FunctionType(made, globals(), "f", None, tuple(types.CellType(1) for _ in made.co_freevars))
            with self.assertRaises(RuntimeError):
                function(*range(made.co_argcount))
            function.__doc__ = (resume.UNBOUND,)  # as that of the function that leave makes
            with self.assertRaises(RuntimeError):
                function(*[resume.UNBOUND] * made.co_argcount)

    def test_a_slot_that_is_unbound(self):
        """A value of the stack that a trace function has taken away, which must be there, is missed in words."""
        def f(a):
            return [a, abs(a)]

        def trace(frame, event, argument):
            if frame.f_code is not split.prefix:
                return None
            frame.f_trace_opcodes = True
            for name in list(frame.f_locals):
                if name.startswith("___stack"):
                    frame.f_locals[name] = resume.UNBOUND
            return trace

        gone = 0
        for offset in resume.points(f.__code__):
            split = resume.split(f.__code__, offset)
            prefix = types.FunctionType(split.prefix, globals())
            sys.settrace(trace)
            try:
                prefix(-3)
            except RuntimeError as error:
                self.assertRegex(str(error), "a value on the stack of __resume_at_[0-9]+_[0-9]+\\(\\) is gone")
                gone += 1
            finally:
                sys.settrace(None)
            self.assertEqual(prefix(-3), [-3, 3])
        self.assertGreater(gone, 2)


if __name__ == "__main__":
    main()
