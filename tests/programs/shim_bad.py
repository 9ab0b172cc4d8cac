"""Bad input: a clear Python error where the caller made it, and a program that goes on unharmed."""
import gc
import os
import subprocess
import sys
import textwrap
import unittest
import weakref

import dyntrace
from dyntrace._native import native
from dyntrace.eval_frame import (_debug_get_cache_entry_list, get_eval_frame_callback, reset_code, set_code_exec_strategy,
                                 set_eval_frame, skip_code, unsupported)
from dyntrace.types import ConvertFrameReturn, FrameExecStrategy, GuardedCode
from shim_help import DEFAULT, PASS, RUN_ONLY, SKIP, Recorder, copied, copy_of, main, replacing, true, under

AT_REST = native._owner()


class Case(unittest.TestCase):
    def tearDown(self):
        self.assertIsNone(get_eval_frame_callback())
        dyntrace.reset()
        self.assertEqual(native._owner(), AT_REST)

        def works(x):
            return x + 1
        r = replacing(works)
        self.assertEqual(under(r, lambda: (works(1), works(2))), (2, 3))
        self.assertEqual(_debug_get_cache_entry_list(works.__code__)[0].hits, 2)
        dyntrace.reset()


class Answers(Case):
    def refused(self, function, answer, error, text, *args, **named):
        """ANSWER for FUNCTION is refused with ERROR, at the call, and the callback is off."""
        set_eval_frame(Recorder(**{function.__name__: answer if callable(answer) else lambda *a: answer}))
        try:
            function(*args, **named)
        except error as e:
            caught = e
        else:
            self.fail("%r was taken" % (answer,))
        finally:
            after = set_eval_frame(None)
        self.assertIsNone(after)
        self.assertRegex(str(caught), text)
        self.assertIsNone(caught.__traceback__.tb_next, "the innermost frame is the caller's")
        self.assertEqual(_debug_get_cache_entry_list(function.__code__), [])

    def test_rubbish(self):
        def f(x):
            return x
        for rubbish in (0, 1, True, False, "text", b"", [], {}, (), object(), f, f.__code__, GuardedCode, NotImplemented,
                        ConvertFrameReturn, 1.5, Exception("not raised")):
            self.refused(f, lambda *a: rubbish, (TypeError, AttributeError, ValueError), ".", 1)
        self.refused(f, 5, TypeError, r"the callback for .*f\(\) returned a int, which has no code object: "
                     "return None or a GuardedCode", 1)

    def test_rubbish_within_guarded_code(self):
        def f(x):
            return x
        for code in (None, 1, "x", f, compile("x", "f", "eval").co_code):
            self.refused(f, GuardedCode(code, true), TypeError, "has no code object", 1)
        for guard in (None, 1, "x", f.__code__):
            self.refused(f, GuardedCode(copied(f.__code__), guard), TypeError, "guard cannot be called", 1)

    def test_rubbish_that_should_hold_for_later_calls(self):
        def f(x):
            return x
        for rubbish in (7, GuardedCode(None, true), GuardedCode(f.__code__, 5)):
            for action in (SKIP, RUN_ONLY):
                answer = ConvertFrameReturn(FrameExecStrategy(action, action), True, rubbish)
                for _ in range(2):  # it is asked again: a wrong answer changes nothing
                    with self.assertRaisesRegex(TypeError, "the callback for .*f\\(\\) returned"):
                        under(Recorder(f=answer), f, 1)

    def test_rubbish_within_the_strategy(self):
        def f(x):
            return x
        code = GuardedCode(copied(f.__code__), true)
        for strategy, error in ((FrameExecStrategy(7, 0), ValueError), (FrameExecStrategy(0, -1), ValueError),
                                (FrameExecStrategy("skip", 0), TypeError), (FrameExecStrategy(None, 0), TypeError),
                                (FrameExecStrategy(1 << 70, 0), (OverflowError, ValueError)), (1, AttributeError)):
            answer = ConvertFrameReturn()
            answer.frame_exec_strategy, answer.guarded_code = strategy, code
            self.refused(f, answer, error, ".", 1)
            with self.assertRaises(error):
                set_code_exec_strategy(f.__code__, strategy)
        self.refused(f, ConvertFrameReturn(guarded_code=5), TypeError, "has no code object", 1)
        answer = ConvertFrameReturn()
        del answer.apply_to_code
        self.refused(f, answer, AttributeError, "apply_to_code", 1)

    def test_code_that_does_not_fit(self):
        cell = 1

        def f(a, b=1):
            return cell

        def other(source):
            space = {}
            exec(source, space)
            return space["g"].__code__
        free = f.__code__.co_freevars
        for source in ("def g(): pass", "def g(a): pass", "def g(a, b, c): pass", "def g(a, *b): pass", "def g(a, b, *c): pass",
                       "def g(a, b, **c): pass", "def g(a, b, *, c): pass"):
            code = other(source)
            self.refused(f, GuardedCode(code, true), TypeError, "takes other arguments than it", 1)
        self.refused(f, GuardedCode(other("def g(a, b): pass"), true), TypeError, "has 0 free variables, and it has 1", 1)
        self.refused(f, GuardedCode(compile("1", "m", "exec"), true), TypeError, "takes other arguments than it", 1)
        self.assertEqual(free, ("cell",))

        def plain(a, *, k):
            return a, k
        self.refused(plain, GuardedCode(f.__code__, true), TypeError, "1 free variables, and it has 0", 1, k=2)
        # Other names, or a keyword-only argument that is positional there: the values come in the same order.
        code = other("def g(x, y): return y, x")
        self.assertEqual(under(Recorder(plain=lambda *a: GuardedCode(code, true)), lambda: (plain(1, k=2), plain(1, k=3))),
                         ((2, 1), (3, 1)))

    def test_another_kind_of_code(self):
        def f(a):
            return a

        def gen(a):
            yield a

        async def co(a):
            return a
        self.assertEqual(list(under(Recorder(f=lambda *a: GuardedCode(gen.__code__, true)), f, 1)), [1])
        self.assertEqual(under(Recorder(gen=lambda *a: GuardedCode(f.__code__, true)), gen, 1), 1)
        self.assertRaises(StopIteration, under(Recorder(co=lambda *a: GuardedCode(co.__code__, true)), co, 1).send, None)

    def test_a_class_body_is_not_a_function(self):
        def f():
            return 1

        def body():
            class f:
                pass
            return f
        with self.assertRaisesRegex(TypeError, "takes other arguments than it"):
            under(Recorder(f=lambda *a: GuardedCode((lambda: 1).__code__, true)), body)

    def test_attributes_that_raise(self):
        class Answer:
            @property
            def frame_exec_strategy(self):
                raise KeyError("attribute")

        def f(x):
            return x
        with self.assertRaisesRegex(KeyError, "attribute"):
            under(Recorder(f=lambda *a: Answer()), f, 1)

        class Late:
            @property
            def code(self):
                raise KeyboardInterrupt
            check_fn = true
        with self.assertRaises((KeyboardInterrupt, TypeError)):
            under(Recorder(f=lambda *a: Late()), f, 1)

    def test_guards_that_return_no_bool(self):
        def f(x):
            return x
        for value in (None, 0, 1, "yes", [], object()):
            reset_code(f.__code__)
            set_eval_frame(Recorder(f=lambda *a: GuardedCode(copied(f.__code__), lambda f_locals: value)))
            f(1)
            with self.assertRaisesRegex(TypeError, "the guard of entry .* of .*f.* returned %s, not bool" % type(value).__name__):
                f(2)
            self.assertIsNone(get_eval_frame_callback())
            self.assertEqual(f(3), 3)
            set_eval_frame(None)

    def test_guards_that_take_other_arguments(self):
        def f(x):
            return x
        r = Recorder(f=lambda *a: GuardedCode(copied(f.__code__), lambda: True))
        set_eval_frame(r)
        f(1)
        with self.assertRaisesRegex(TypeError, "positional argument"):
            f(2)
        set_eval_frame(None)

    def test_guards_that_raise_what_ends_programs(self):
        for error in (KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration, MemoryError, RecursionError):
            def f(x):
                return x

            def guard(f_locals):
                raise error
            reset_code(f.__code__)
            r = Recorder(f=lambda *a: GuardedCode(copied(f.__code__), guard))
            set_eval_frame(r)
            f(1)
            with self.assertRaises(error):
                f(1)
            set_eval_frame(None)

    def test_guards_that_change_what_they_get(self):
        def f(x, *args):
            return x, args

        def guard(f_locals):
            f_locals.clear()
            f_locals["x"] = 7
            return True
        r = Recorder(f=lambda *a: GuardedCode(copied(f.__code__), guard))
        self.assertEqual(under(r, lambda: (f(1, 2), f(3, 4))), ((1, (2,)), (3, (4,))))

    def test_guards_that_delete_the_function(self):
        space = {}
        exec("def f(x): return x", space)

        def guard(f_locals):
            space.pop("f", None)
            gc.collect()
            return False
        r = Recorder(f=lambda *a: GuardedCode(copied(a[0].f_code), guard))

        def body():
            return space["f"](1), space["f"](2), "f" in space
        self.assertEqual(under(r, body), (1, 2, False))


class Callbacks(Case):
    def test_other_arguments(self):
        def f(x):
            return x
        set_eval_frame(lambda: None)
        try:
            f(1)
        except TypeError as e:
            error = str(e)
        set_eval_frame(None)
        self.assertIn("positional argument", error)

    def test_what_ends_programs(self):
        for error in (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
            def f(x):
                return x

            def answer(*args):
                raise error
            set_eval_frame(Recorder(f=answer))
            with self.assertRaises(error):
                f(1)
            self.assertIsNone(get_eval_frame_callback())

    def test_recursing_into_itself(self):
        def f(x):
            return x

        def callback(frame, entry, state):
            if frame.f_code is f.__code__:
                set_eval_frame(callback)
                f(frame.f_locals["x"])
            return PASS
        set_eval_frame(callback)
        with self.assertRaises(RecursionError):
            f(1)
        set_eval_frame(None)

    def test_guard_recursing_into_itself(self):
        def f(x):
            return x
        r = None

        def guard(f_locals):
            set_eval_frame(r)
            return f(2) == 2
        r = Recorder(f=lambda *a: GuardedCode(copied(f.__code__), guard))
        set_eval_frame(r)
        f(1)
        with self.assertRaises(RecursionError):
            f(1)
        set_eval_frame(None)

    def test_setting_another(self):
        other = Recorder()

        def f(x):
            return get_eval_frame_callback()

        def answer(frame, entry, state):
            self.assertIsNone(set_eval_frame(other))
            return GuardedCode(copied(frame.f_code), true)
        r = Recorder(f=answer)
        self.assertIs(under(r, f, 1), r)

    def test_setting_another_and_raising(self):
        def f(x):
            return x

        def answer(frame, entry, state):
            set_eval_frame(Recorder())
            raise KeyError
        set_eval_frame(Recorder(f=answer))
        with self.assertRaises(KeyError):
            f(1)
        set_eval_frame(None)

    def test_collected_while_it_runs(self):
        gone = []

        class Callback:
            def __call__(self, frame, entry, state):
                if frame.f_code.co_name == "f":
                    set_eval_frame(None)
                    gc.collect()
                    gone.append(ref() is None)
                return PASS

        def f(x):
            return x
        callback = Callback()
        ref = weakref.ref(callback)
        set_eval_frame(callback)
        del callback
        f(1)
        self.assertEqual(gone, [False])
        set_eval_frame(None)
        gc.collect()
        self.assertIsNone(ref())

    def test_a_builtin_as_callback(self):
        def f(x):
            return x
        set_eval_frame(print)
        prior = sys.stdout
        try:
            sys.stdout = open(os.devnull, "w")
            out = f(1)  # print returns None: skip
        finally:
            set_eval_frame(None)
            sys.stdout.close()
            sys.stdout = prior
        self.assertEqual(out, 1)

    def test_in_a_generator(self):
        def f(x):
            return x
        r = replacing(f)

        def gen():
            prior = set_eval_frame(r)
            try:
                while True:
                    yield f(1)
            finally:
                set_eval_frame(prior)
        g = gen()
        self.assertEqual(next(g), 1)
        self.assertIs(get_eval_frame_callback(), r)
        self.assertEqual(next(g), 1)
        g.close()
        self.assertIsNone(get_eval_frame_callback())
        self.assertEqual(r.asked, ["f"])

    def test_in_a_replaced_generator(self):
        def f(x):
            return x
        r = Recorder(f=copy_of, gen=copy_of)

        def gen():
            yield set_eval_frame(None)
            yield f(1)
            yield set_eval_frame(r)
            yield f(1)
        out = under(r, lambda: list(gen()))
        self.assertEqual(out, [r, 1, None, 1])
        self.assertEqual(r.asked, ["gen", "f"])

    def test_generators_on_other_threads(self):
        import threading

        def f(x):
            return x
        r = replacing(f)

        def gen():
            yield set_eval_frame(r)
            yield f(1)
            yield set_eval_frame(None)
        g, out = gen(), []
        for _ in range(3):
            t = threading.Thread(target=lambda: out.append(next(g)))
            t.start()
            t.join()
        self.assertEqual(out, [None, 1, None])

    def test_arguments_of_the_functions(self):
        for call in (lambda: set_eval_frame(), lambda: set_eval_frame(None, None), lambda: reset_code(),
                     lambda: reset_code(None), lambda: skip_code("f"), lambda: unsupported(1), lambda: native._set_limits(1),
                     lambda: set_code_exec_strategy(1), lambda: set_code_exec_strategy(1, FrameExecStrategy())):
            with self.assertRaises(TypeError):
                call()

    def test_finalisers_of_callbacks(self):
        events = []

        class Callback(Recorder):
            def __del__(self):
                events.append(get_eval_frame_callback() is None)
                set_eval_frame(None)
        set_eval_frame(Callback())
        set_eval_frame(Callback())
        set_eval_frame(Callback())
        set_eval_frame(None)
        self.assertEqual(len(events), 3)


class Ends(Case):
    """Exits, forks: programs of their own."""

    def run_program(self, text, status=0, err=""):
        text = "from dyntrace.eval_frame import *\nfrom shim_help import *\nimport atexit, gc, os, sys, threading, time\n" \
            + "from dyntrace._native import native\n" + textwrap.dedent(text)
        done = subprocess.run([sys.executable, "-X", "faulthandler", "-W", "ignore", "-c", text], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p)))
        self.assertEqual((done.returncode, done.stderr), (status, err))
        return done.stdout

    F = "def f(x):\n return x + 1\n"

    def test_callback_set_at_exit(self):
        self.assertEqual(self.run_program(self.F + "r = replacing(f)\nset_eval_frame(r)\nprint(f(1), f(2))"), "2 3\n")

    def test_callback_in_python_that_outlives_its_module(self):
        self.run_program("""
            class Late:
                def __del__(self):
                    def g(): return 1
                    g(); g()
            keep = Late()
            sys.late = Late()
            def callback(frame, entry, state):
                return GuardedCode(copied(frame.f_code), true) if frame.f_code.co_name == "g" else None
            def f(): return 1
            set_eval_frame(callback)
            f()
        """)

    def test_atexit(self):
        out = self.run_program(self.F + textwrap.dedent("""
            r = replacing(f)
            def late():
                set_eval_frame(r)
                print(f(1), f(2))
            atexit.register(late)
        """))
        self.assertEqual(out, "2 3\n")

    def test_del_at_exit(self):
        out = self.run_program(self.F + textwrap.dedent("""
            r = replacing(f)
            class Late:
                def __del__(self, f=f, r=r, set_eval_frame=set_eval_frame, write=os.write):
                    set_eval_frame(r)
                    write(1, b"%d %d\\n" % (f(1), f(2)))
                    set_eval_frame(None)
            keep = Late()
        """))
        self.assertEqual(out, "2 3\n")

    def test_system_exit_from_callback_and_guard(self):
        self.run_program(self.F + "set_eval_frame(Recorder(f=lambda *a: sys.exit(7)))\nf(1)", 7)
        self.run_program(self.F + "set_eval_frame(Recorder(f=lambda *a: GuardedCode(copied(f.__code__), lambda l: sys.exit(7))))\n"
                         "f(1)\nf(1)", 7)

    def test_threads_running_at_exit(self):
        self.run_program(self.F + textwrap.dedent("""
            def busy():
                set_eval_frame(replacing(f))
                while True:
                    f(1)
            for _ in range(3):
                threading.Thread(target=busy, daemon=True).start()
            time.sleep(0.2)
        """))

    def test_fork(self):
        out = self.run_program(self.F + textwrap.dedent("""
            rest = native._owner()
            r = replacing(f)
            ready, end = threading.Event(), threading.Event()
            def other():
                set_eval_frame(r)
                ready.set()
                end.wait()
                set_eval_frame(None)
            t = threading.Thread(target=other)
            t.start()
            ready.wait()
            set_eval_frame(r)
            f(1)
            pid = os.fork()
            if not pid:
                set_eval_frame(r)
                assert f(2) == 3 and f(3) == 4
                set_eval_frame(None)
                print("child", native._owner() == rest, r.asked.count("f"), flush=True)
                os._exit(0)
            os.waitpid(pid, 0)
            set_eval_frame(None)
            end.set()
            t.join()
            for _ in range(100):
                if native._owner() == rest: break
                time.sleep(0.02)
            print("parent", native._owner() == rest)
        """))
        self.assertEqual(out, "child True 1\nparent True\n")

    def test_fork_within_guard_callback_and_frame(self):
        out = self.run_program("""
            def forked(where):
                pid = os.fork()
                if pid:
                    os.waitpid(pid, 0)
                else:
                    children.append(where)
                return pid
            children = []
            def f(where):
                if where == "frame": forked(where)
                return where
            def answer(frame, entry, state):
                if frame.f_locals["where"] == "callback": forked("callback")
                return GuardedCode(copied(frame.f_code), guard)
            def guard(f_locals):
                if f_locals["where"] == "guard": forked("guard")
                return f_locals["where"] != "callback"
            r = Recorder(f=answer)
            set_eval_frame(r)
            out = f("callback"), f("guard"), f("frame"), f("last")
            set_eval_frame(None)
            print(children, out, len(r.asked), flush=True)
        """)
        rest = "('callback', 'guard', 'frame', 'last') 1"
        self.assertEqual(sorted(out.splitlines()), sorted([
            f"[] {rest}", f"['frame'] {rest}", f"['guard'] {rest}", f"['guard', 'frame'] {rest}", f"['callback'] {rest}",
            f"['callback', 'frame'] {rest}", f"['callback', 'guard'] {rest}", f"['callback', 'guard', 'frame'] {rest}"]))

    # Not f(*args, k=k): where that is specialised, as it is after the first call here, 3.15 has no limit (gh-155151).
    def test_recursion_without_end(self):
        self.assertEqual(self.run_program("""
            def f(*args, k=0): return f(1, k=k) + 1
            def g(n):
                try: f(n)
                except RecursionError as e: return "RecursionError"
            set_eval_frame(replacing(f, g))
            print(g(1), g(2))
        """), "RecursionError RecursionError\n")

    def test_a_high_recursion_limit(self):
        self.assertEqual(self.run_program("""
            sys.setrecursionlimit(30000)
            def f(n, *a): return 0 if not n else 1 + f(n - 1)
            set_eval_frame(replacing(f))
            print(f(20000), f(20000))
        """), "20000 20000\n")


if __name__ == "__main__":
    main()
