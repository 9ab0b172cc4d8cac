"""The rules of DESIGN 7 and docs/shim.md, one by one."""
import contextlib
import gc
import io
import sys
import threading
import types
import unittest
import weakref

import dyntrace
import dyntrace.config
from dyntrace._native import native
from dyntrace.bytecode import is_generator
from dyntrace.eval_frame import (_debug_get_cache_entry_list, get_eval_frame_callback, reset_code, set_code_exec_strategy,
                                 set_eval_frame, set_guard_error_hook, set_guard_fail_hook, skip_code, unsupported)
from dyntrace.types import CacheEntry, ConvertFrameReturn, DynamoFrameType, FrameExecStrategy, GuardedCode
from shim_help import DEFAULT, PASS, RUN_ONLY, SKIP, Recorder, copied, copy_of, false, main, replacing, returning, true, under

AT_REST = native._owner()  # "-", or us under `dyntrace run`


def entries(function):
    return _debug_get_cache_entry_list(function.__code__)


class Case(unittest.TestCase):
    def setUp(self):
        limits = native._get_limits()
        self.addCleanup(native._set_limits, *limits)
        self.addCleanup(set_guard_error_hook, None)
        self.addCleanup(set_guard_fail_hook, None)
        self.addCleanup(dyntrace.reset)

    def tearDown(self):
        self.assertIsNone(get_eval_frame_callback())
        self.assertEqual(native._owner(), AT_REST)


class Callback(Case):
    def test_set_returns_the_one_before(self):
        a, b = Recorder(), Recorder()
        seen = [set_eval_frame(a), set_eval_frame(b), set_eval_frame(False), set_eval_frame(None), set_eval_frame(None)]
        self.assertEqual(seen, [None, a, b, False, None])

    def test_hook_is_in_while_there_is_a_callback(self):
        set_eval_frame(False)
        within = native._owner()
        set_eval_frame(None)
        self.assertIn("_dyntrace", within)
        self.assertEqual(native._owner(), AT_REST)

    def test_what_is_no_callback(self):
        for value in (True, 0, 1, "f", [], object()):
            with self.assertRaisesRegex(TypeError, "callable, None .off. or False .run only., got"):
                set_eval_frame(value)
        self.assertIsNone(get_eval_frame_callback())

    def test_one_callback_a_thread(self):
        def f():
            return 1
        r, seen = replacing(f), []

        def other():
            seen.append(get_eval_frame_callback())
            f()
            seen.append(list(r.asked))

        def body():
            t = threading.Thread(target=other)
            t.start()
            t.join()
            f()
        under(r, body)
        self.assertEqual(seen, [None, []])
        self.assertEqual(r.asked, ["f"])

    def test_hook_stays_for_the_last_thread(self):
        steps, done = threading.Barrier(2, timeout=120), []

        def other():
            set_eval_frame(False)
            steps.wait()  # both have one
            steps.wait()  # the main thread has none
            done.append(native._owner())
            set_eval_frame(None)
        t = threading.Thread(target=other)
        t.start()
        set_eval_frame(False)
        steps.wait()
        set_eval_frame(None)
        self.assertIn("_dyntrace", native._owner())
        steps.wait()
        t.join()
        self.assertIn("_dyntrace", done[0])

    def test_a_thread_that_ends_gives_its_callback_up(self):
        class Callable:
            def __call__(self, *args):
                return None
        seen = []

        def other():
            c = Callable()
            seen.append(weakref.ref(c))
            set_eval_frame(c)
        t = threading.Thread(target=other)
        t.start()
        t.join()
        gc.collect()
        for _ in range(100):  # join() may return before the thread state is cleared
            if native._owner() == AT_REST and seen[0]() is None:
                break
            threading.Event().wait(0.02)
        self.assertEqual(native._owner(), AT_REST)
        self.assertIsNone(seen[0]())

    def test_the_callback_is_kept_alive(self):
        class Callable:
            calls = 0

            def __call__(self, *args):
                Callable.calls += 1
                return PASS

        def f():
            return 1

        def body():
            set_eval_frame(Callable())
            gc.collect()
            f()
            c = weakref.ref(get_eval_frame_callback())
            set_eval_frame(None)
            return c
        self.assertIsNone(body()())
        self.assertGreater(Callable.calls, 0)

    def test_none_while_guards_and_callback_run(self):
        seen = []

        def helper(where):
            seen.append((where, get_eval_frame_callback()))

        def guard(f_locals):
            helper("guard")
            return True

        def f(x):
            helper("f")
            return x

        def answer(frame, entry, state):
            helper("callback")
            return GuardedCode(copied(frame.f_code), guard)
        r = Recorder(f=answer, helper=copy_of)
        self.assertEqual(under(r, lambda: (f(1), f(2))), (1, 2))
        self.assertEqual(seen, [("callback", None), ("f", r), ("guard", None), ("f", r)])
        self.assertEqual(r.asked, ["f", "helper"])

    def test_called_with_frame_entry_state(self):
        def f(a):
            return a
        seen = []

        def answer(*args):
            seen.append(args)
            return GuardedCode(f.__code__, false)
        under(Recorder(f=answer), lambda: (f(1), f(2)))
        (frame, none, state), (_, entry, state2) = seen
        self.assertIs(type(frame), DynamoFrameType)
        self.assertIsNone(none)
        self.assertIs(type(entry), CacheEntry)
        self.assertIs(state, state2)
        self.assertEqual(state, {})

    def test_one_set_by_the_frame_itself_stays(self):
        def f():
            return set_eval_frame(False)
        r = Recorder(f=copy_of)

        def body():
            f()
            return get_eval_frame_callback()
        self.assertIs(under(r, body), False)

    def test_taken_out_by_the_frame_itself(self):
        for recursive in (DEFAULT, RUN_ONLY):
            def f():
                return set_eval_frame(None)
            answer = ConvertFrameReturn(FrameExecStrategy(DEFAULT, recursive), True, GuardedCode(copied(f.__code__), true))
            set_eval_frame(Recorder(f=answer))
            f()
            self.assertIsNone(get_eval_frame_callback())
            self.assertEqual(native._owner(), AT_REST)

    def test_set_within_the_callback_does_not_last(self):
        for value in (None, False, Recorder()):
            def f():
                return get_eval_frame_callback()

            def answer(frame, entry, state):
                set_eval_frame(value)
                return GuardedCode(copied(frame.f_code), true)
            r = Recorder(f=answer)
            set_eval_frame(r)
            within, after = f(), get_eval_frame_callback()
            f()
            set_eval_frame(None)
            self.assertIs(within, r)
            self.assertIs(after, r)
            self.assertEqual(r.asked, ["f"])
            self.assertEqual(native._owner(), AT_REST)

    def test_set_within_the_guard_does_not_last(self):
        for value in (None, False, Recorder()):
            def f():
                return get_eval_frame_callback()

            def guard(f_locals):
                set_eval_frame(value)
                return True
            r = Recorder(f=lambda frame, entry, state: GuardedCode(copied(frame.f_code), guard))
            set_eval_frame(r)
            within = f(), f(), f()
            after = get_eval_frame_callback()
            set_eval_frame(None)
            self.assertEqual(within, (r, r, r))
            self.assertIs(after, r)
            self.assertEqual(native._owner(), AT_REST)

    def test_callback_that_runs_its_own_region(self):
        def inner(x):
            return x + 1

        def f(x):
            return x + 10
        r2 = replacing(inner)

        def answer(frame, entry, state):
            self.assertEqual(under(r2, inner, 1), 2)
            return GuardedCode(copied(frame.f_code), true)
        r = Recorder(f=answer)
        self.assertEqual(under(r, lambda: (f(1), f(2))), (11, 12))
        self.assertEqual((r.asked, r2.asked), (["f"], ["inner"]))

    def test_resumed_and_thrown_frames_are_not_offered(self):
        def gen():
            try:
                yield 1
                yield 2
            except ValueError:
                yield 3
        r = Recorder(gen=PASS)
        g = gen()
        under(r, lambda: (next(g), next(g), g.throw(ValueError)))
        self.assertEqual(r.asked, [])
        self.assertEqual(under(r, lambda: list(gen())), [1, 2])
        self.assertEqual(r.asked, ["gen"])
        self.assertTrue(is_generator(gen.__code__))

    def test_every_call_of_a_class_is_seen(self):
        class C:
            def __init__(self, n):
                self.n = n
        for _ in range(100):
            C(1)  # specialised by now
        count = []

        def guard(f_locals):
            count.append(f_locals["n"])
            return True
        r = Recorder(__init__=lambda frame, entry, state: GuardedCode(copied(frame.f_code), guard))

        def body():
            for i in range(1000):
                C(i)
        under(r, body)
        self.assertEqual(r.asked, ["__init__"])
        self.assertEqual(count, list(range(1, 1000)))

        class D:
            def __init__(self, n):
                self.n = n

        def warm(n):
            for i in range(n):
                D(i)
        warm(100)
        count.clear()
        under(r, warm, 1000)
        self.assertEqual(count, list(range(1, 1000)))

    def test_every_property_getitem_and_iteration_is_seen(self):
        class C:
            @property
            def p(self):
                return 1

            def __getitem__(self, i):
                return i

            def __getattr__(self, name):
                return name

        def gen():
            yield 1

        def body(n):
            c = C()
            for i in range(n):
                c.p
                c[i]
                c.missing
                for _ in gen():
                    pass
        body(100)
        count = {}

        def answer(frame, entry, state):
            name = frame.f_code.co_name

            def guard(f_locals):
                count[name] = count.get(name, 0) + 1
                return True
            return GuardedCode(copied(frame.f_code), guard)
        under(Recorder(p=answer, __getitem__=answer, __getattr__=answer, gen=answer), body, 1000)
        self.assertEqual(count, dict.fromkeys(["p", "__getitem__", "__getattr__", "gen"], 999))


class Answers(Case):
    def test_none_marks_the_code(self):
        def f():
            return 1
        r = Recorder(f=None)
        self.assertEqual(under(r, lambda: (f(), f())), (1, 1))
        self.assertEqual(r.asked, ["f"])
        self.assertEqual(entries(f), [])

    def test_skip_code(self):
        def f():
            return g()

        def g():
            return 1
        skip_code(f.__code__)
        r = replacing(f, g)
        self.assertEqual(under(r, f), 1)
        self.assertEqual(r.asked, ["g"])

    def test_code_that_differs_runs(self):
        def f(a, b=2, *, c=3):
            return "original"
        r = Recorder(f=lambda frame, entry, state: GuardedCode(returning(frame.f_code, "compiled"), true))
        self.assertEqual(under(r, lambda: (f(1), f(1, c=4))), ("compiled", "compiled"))
        self.assertEqual(f(1), "original")

    def test_run_only(self):
        def f(x):
            return x

        def new(x):
            return x
        r = Recorder(f=lambda frame, entry, state: GuardedCode(returning(frame.f_code, "compiled"),
                                                                lambda f_locals: f_locals["x"] == 1))
        self.assertEqual(under(r, f, 1), "compiled")
        self.assertEqual(under(False, lambda: (f(1), f(2), new(3))), ("compiled", 2, 3))
        self.assertEqual(len(entries(f)), 1)
        self.assertEqual(entries(f)[0].hits, 2)
        self.assertEqual(r.asked, ["f"])

    def test_strategy_of_one_code(self):
        def f():
            return 1
        r = replacing(f)
        set_code_exec_strategy(f.__code__, FrameExecStrategy(SKIP, DEFAULT))
        under(r, f)
        self.assertEqual(r.asked, [])
        set_code_exec_strategy(f.__code__, FrameExecStrategy(RUN_ONLY, DEFAULT))
        under(r, f)
        self.assertEqual(r.asked, [])
        set_code_exec_strategy(f.__code__, FrameExecStrategy())
        under(r, f)
        self.assertEqual(r.asked, ["f"])
        set_code_exec_strategy(f.__code__, FrameExecStrategy(RUN_ONLY, DEFAULT))
        under(r, f)
        self.assertEqual(entries(f)[0].hits, 2)

    def test_recursive_action(self):
        def known():
            return get_eval_frame_callback()

        def new():
            return get_eval_frame_callback()

        def f():
            return known(), new()
        for action, within in ((DEFAULT, "itself"), (SKIP, None), (RUN_ONLY, False)):
            dyntrace.reset()
            under(replacing(known), known)
            before = entries(known)[0].hits
            r = Recorder(f=lambda frame, entry, state: ConvertFrameReturn(FrameExecStrategy(DEFAULT, action), True,
                                                                          GuardedCode(copied(frame.f_code), true)),
                         known=copy_of, new=copy_of)

            def body():
                return f(), f(), get_eval_frame_callback()
            expected = r if within == "itself" else within
            self.assertEqual(under(r, body), ((expected,) * 2,) * 2 + (r,))
            self.assertEqual(r.asked.count("new"), int(action == DEFAULT))
            self.assertEqual(len(entries(new)), int(action == DEFAULT))
            if action == RUN_ONLY:
                self.assertEqual(entries(known)[0].hits - before, 2)

    def test_recursive_action_of_skipped_code(self):
        def g():
            return 1

        def f():
            return g()
        r = Recorder(f=ConvertFrameReturn(FrameExecStrategy(SKIP, SKIP)), g=copy_of)
        self.assertEqual(under(r, lambda: (f(), f())), (1, 1))
        self.assertEqual(r.asked, ["f"])

    def test_apply_to_code(self):
        def f():
            return 1
        for stays, times in ((True, 1), (False, 3)):
            reset_code(f.__code__)
            r = Recorder(f=ConvertFrameReturn(FrameExecStrategy(SKIP, DEFAULT), apply_to_code=stays))
            under(r, lambda: (f(), f(), f()))
            self.assertEqual(r.asked, ["f"] * times)

    def test_same_code_is_fine(self):
        def f(a, *args, b=1, **kw):
            return a, args, b, kw
        r = Recorder(f=lambda frame, entry, state: GuardedCode(frame.f_code, true))
        self.assertEqual(under(r, lambda: (f(1, 2, b=3, c=4), f(1))), ((1, (2,), 3, {"c": 4}), (1, (), 1, {})))
        self.assertEqual(entries(f)[0].hits, 2)

    def test_frame_state_is_of_the_code(self):
        states = {}

        def f():
            return 1

        def g():
            return 1

        def answer(frame, entry, state):
            states.setdefault(frame.f_code.co_name, []).append(state)
            state["count"] = state.get("count", 0) + 1
            return GuardedCode(frame.f_code, false)
        under(Recorder(f=answer, g=answer), lambda: (f(), g(), f(), f()))
        self.assertEqual([s["count"] for s in states["f"]], [3] * 3)
        self.assertEqual(states["g"], [{"count": 1}])
        reset_code(f.__code__)
        under(Recorder(f=answer), f)
        self.assertEqual(states["f"][-1], {"count": 1})

    def test_unsupported_gives_its_second_argument(self):
        self.assertEqual(unsupported(1, 2), 2)

    def test_guard_objects(self):
        class Manager:
            calls = 0

            def check(self, f_locals):
                Manager.calls += 1
                return True

        def f(x):
            return x
        manager = Manager()
        r = Recorder(f=lambda frame, entry, state: GuardedCode(copied(frame.f_code), guard_manager=manager))
        under(r, lambda: (f(1), f(2)))
        self.assertEqual(Manager.calls, 1)
        self.assertIs(entries(f)[0].guard_manager, manager)
        self.assertIs(entries(f)[0].check_fn, manager)

    def test_any_object_with_code_and_guard_will_do(self):
        def f(x):
            return x
        r = Recorder(f=lambda frame, entry, state: types.SimpleNamespace(code=frame.f_code, check_fn=true))
        under(r, lambda: (f(1), f(2)))
        self.assertEqual(entries(f)[0].hits, 2)
        self.assertEqual(r.asked, ["f"])


class Frame(Case):
    def view(self, function, *args, **named):
        seen = []

        def answer(frame, entry, state):
            seen.append((frame, frame.f_locals))
            return None
        under(Recorder(**{function.__name__: answer}), function, *args, **named)
        return seen[0]

    def test_fields(self):
        def f(x):
            return x
        frame, f_locals = self.view(f, 3)
        self.assertEqual(f_locals, {"x": 3})
        self.assertIs(frame.f_code, f.__code__)
        self.assertIs(frame.f_globals, globals())
        self.assertEqual(frame.f_builtins["len"], len)
        self.assertEqual((frame.f_lineno, frame.f_lasti, frame.f_back), (f.__code__.co_firstlineno, 0, None))
        self.assertEqual(frame.closure, ())
        self.assertEqual(frame.__module__, __name__)

    def test_locals_end_with_the_callback(self):
        frame, _ = self.view(lambda_named(), 1)
        self.assertIsNone(frame.f_locals)

    def test_arguments_of_every_kind(self):
        def f(a, b=2, /, c=3, *d, e=5, **g):
            h = 1
            return h
        self.assertEqual(self.view(f, 1)[1], dict(a=1, b=2, c=3, d=(), e=5, g={}))
        dyntrace.reset()
        self.assertEqual(self.view(f, 1, 2, 3, 4, e=6, z=7)[1], dict(a=1, b=2, c=3, d=(4,), e=6, g={"z": 7}))

    def test_cells_and_free_variables(self):
        free, unset = 1, None

        def f(x):
            def g():
                return x, free, unset
            return g
        del unset
        frame, f_locals = self.view(f, 5)
        self.assertEqual(f_locals, {"x": 5, "free": 1})
        self.assertEqual(frame.closure, f.__closure__)

    def test_class_body(self):
        def body():
            class Thing:
                a = 1
            return Thing
        seen = []

        def answer(frame, entry, state):
            seen.append(dict(frame.f_locals))
            return None
        under(Recorder(Thing=answer), body)
        self.assertEqual(seen, [{}])

    def test_read_only(self):
        frame, _ = self.view(lambda_named(), 1)
        for name in ("f_code", "f_locals", "f_globals", "f_lineno", "other"):
            with self.assertRaises(AttributeError):
                setattr(frame, name, 1)
        with self.assertRaises(TypeError):
            DynamoFrameType()

    def test_changing_the_locals_changes_nothing(self):
        def f(x):
            return x

        def answer(frame, entry, state):
            frame.f_locals["x"] = "changed"
            return GuardedCode(copied(frame.f_code), true)
        self.assertEqual(under(Recorder(f=answer), f, 1), 1)


def lambda_named():
    def f(x):
        return x
    return f


class Entries(Case):
    def setUp(self):
        super().setUp()

        def f(x):
            return x
        self.f = f

    def fill(self, *values):
        """One entry for each value of x, each returning it in a tuple."""
        def answer(frame, entry, state):
            x = frame.f_locals["x"]
            return GuardedCode(returning(frame.f_code, (x,)), lambda f_locals: f_locals["x"] == x)
        self.r = Recorder(f=answer)
        return under(self.r, lambda: [self.f(v) for v in values])

    def order(self):
        return [e.code.co_consts for e in entries(self.f)]

    def test_a_new_entry_is_in_front(self):
        self.assertEqual(self.fill(1, 2, 3), [(1,), (2,), (3,)])
        self.assertEqual([c[-1] for c in self.order()], [(3,), (2,), (1,)])

    def test_next(self):
        self.fill(1, 2, 3)
        first, second, third = entries(self.f)
        self.assertIs(first.next, second)
        self.assertIs(second.next, third)
        self.assertIsNone(third.next)

    def test_a_hit_moves_to_the_front(self):
        self.fill(1, 2, 3)
        a, b, c = entries(self.f)
        self.assertEqual(under(self.r, self.f, 1), (1,))
        self.assertEqual(entries(self.f), [c, a, b])
        self.assertEqual(under(False, self.f, 2), (2,))
        self.assertEqual(entries(self.f), [b, c, a])

    def test_hits(self):
        self.fill(1, 1, 1, 2, 1)
        self.assertEqual([e.hits for e in entries(self.f)], [4, 1])

    def test_fields(self):
        self.fill(1)
        e, = entries(self.f)
        self.assertIs(e.backend, self.r)
        self.assertTrue(e.valid)
        self.assertIsNone(e.invalid_reason)
        self.assertEqual(e.trace_annotation, "Unknown")
        self.assertRegex(str(e.compile_id), r"^\d+/0$")
        self.assertRegex(repr(e), r"^<CacheEntry \d+/0, 1 hits>$")
        with self.assertRaises(AttributeError):
            e.code = None
        with self.assertRaises(TypeError):
            CacheEntry()

    def test_compile_ids(self):
        def g(x):
            return x
        self.fill(1, 2)
        number = int(entries(self.f)[0].compile_id.split("/")[0])
        under(replacing(g), g, 1)
        self.assertEqual([e.compile_id for e in entries(self.f)], [f"{number}/1", f"{number}/0"])
        self.assertEqual(entries(g)[0].compile_id, f"{number + 1}/0")

    def test_compile_id_and_annotation_of_the_callback(self):
        mine = object()
        r = Recorder(f=lambda frame, entry, state: GuardedCode(frame.f_code, true, mine, "Compiled-Region"))
        under(r, self.f, 1)
        e, = entries(self.f)
        self.assertIs(e.compile_id, mine)
        self.assertEqual(e.trace_annotation, "Compiled-Region")

    def test_invalidate(self):
        self.fill(1, 2, 3)
        c, b, a = entries(self.f)
        b.invalidate("the model was freed")
        self.assertEqual((b.valid, b.code, b.guard_manager, b.invalid_reason), (False, None, None, "the model was freed"))
        self.assertEqual(entries(self.f), [c, a, b])
        self.assertEqual(under(False, self.f, 2), 2)
        self.assertEqual(under(self.r, self.f, 2), (2,))
        self.assertEqual([e.valid for e in entries(self.f)], [True, True, True, False])
        b.invalidate("again")
        self.assertEqual(b.invalid_reason, "the model was freed")
        self.assertIn("(invalid)", repr(b))

    def test_invalidated_by_its_own_guard(self):
        def answer(frame, entry, state):
            def guard(f_locals):
                entries(self.f)[0].invalidate()
                return True
            return GuardedCode(returning(frame.f_code, "compiled"), guard)
        r = Recorder(f=answer)
        self.assertEqual(under(r, lambda: [self.f(1), self.f(2)]), ["compiled"] * 2)
        self.assertEqual(len(r.asked), 2)

    def test_invalidated_while_it_runs(self):
        def f(x):
            entries(f)[0].invalidate()
            gc.collect()
            return x, x
        self.assertEqual(under(replacing(f), lambda: (f(1), f(2))), ((1, 1), (2, 2)))

    def test_reset_code(self):
        self.fill(1, 2)
        kept = entries(self.f)
        reset_code(self.f.__code__)
        self.assertEqual(entries(self.f), [])
        self.assertEqual([(e.valid, e.next) for e in kept], [(False, None)] * 2)
        self.assertEqual([e.code for e in kept], [None] * 2)
        self.assertEqual(under(self.r, self.f, 1), (1,))
        self.assertEqual(len(self.r.asked), 3)

    def test_reset_clears_marks(self):
        r = Recorder(f=None)
        under(r, self.f, 1)
        dyntrace.reset()
        under(r, self.f, 1)
        self.assertEqual(len(r.asked), 2)

    def test_reset_of_everything(self):
        self.fill(1)

        def g():
            return 1
        under(replacing(g), g)
        dyntrace.reset()
        self.assertEqual((entries(g), entries(self.f)), ([], []))

    def test_reset_code_of_what_was_never_seen(self):
        reset_code((lambda: 1).__code__)
        for call in (reset_code, skip_code, _debug_get_cache_entry_list):
            with self.assertRaisesRegex(TypeError, "expected a code object, got function"):
                call(self.f)

    def test_reset_within_a_guard(self):
        for reset in (lambda: reset_code(self.f.__code__), dyntrace.reset):
            def answer(frame, entry, state):
                def guard(f_locals):
                    reset()
                    gc.collect()
                    return True
                return GuardedCode(returning(frame.f_code, "compiled"), guard)
            r = Recorder(f=answer)
            self.assertEqual(under(r, lambda: [self.f(i) for i in range(4)]), ["compiled"] * 4)
            self.assertEqual(len(r.asked), 4)  # an entry that is reset by its guard does not run
            self.assertEqual(len(entries(self.f)), 1)
            reset_code(self.f.__code__)

    def test_reset_within_the_callback(self):
        def answer(frame, entry, state):
            reset_code(frame.f_code)
            return GuardedCode(returning(frame.f_code, "compiled"), true)
        r = Recorder(f=answer)
        self.assertEqual(under(r, lambda: [self.f(i) for i in range(3)]), ["compiled"] * 3)
        self.assertEqual(len(entries(self.f)), 1)
        self.assertEqual(len(r.asked), 1)

    def test_reset_within_the_frame(self):
        def f(x):
            reset_code(f.__code__)
            gc.collect()
            return x + 1
        self.assertEqual(under(replacing(f), lambda: [f(i) for i in range(4)]), [1, 2, 3, 4])

    def test_finalisers_of_entries_may_reset(self):
        events = []
        f = self.f

        class Guard:
            def __call__(self, f_locals):
                return False

            def __del__(self):
                events.append(len(entries(f)))
                reset_code(f.__code__)
                dyntrace.reset()

        def other():
            return 1
        r = Recorder(f=lambda frame, entry, state: GuardedCode(copied(frame.f_code), Guard()), other=copy_of)
        under(r, lambda: [other()] + [f(i) for i in range(4)])
        reset_code(f.__code__)
        self.assertEqual(events, [0] * 4)
        under(r, lambda: [other()] + [f(i) for i in range(4)])
        dyntrace.reset()
        self.assertEqual(events, [0] * 8)

    def test_finalisers_may_fill_the_cache_again(self):
        f, made = self.f, []

        class Guard:
            def __call__(self, f_locals):
                return True

            def __del__(self):
                if len(made) < 3:
                    made.append(under(r, f, 7))
        r = Recorder(f=lambda frame, entry, state: GuardedCode(copied(frame.f_code), Guard()))
        under(r, f, 1)
        reset_code(f.__code__)
        self.assertEqual(made, [7])
        self.assertEqual(len(entries(f)), 1)
        dyntrace.reset()
        dyntrace.reset()

    def test_entries_die_with_the_code(self):
        class Guard:
            def __call__(self, f_locals):
                return True
        space = {}
        exec("def f(x): return x", space)
        guard = Guard()
        r = Recorder(f=lambda frame, entry, state: GuardedCode(copied(frame.f_code), guard))
        under(r, space["f"], 1)
        kept, guard_gone, code_gone = entries(space["f"])[0], weakref.ref(guard), weakref.ref(space["f"].__code__)
        r.answers.clear()
        del guard
        space.clear()
        gc.collect()
        self.assertIsNone(code_gone())
        self.assertFalse(kept.valid)
        self.assertIsNone(kept.next)
        del kept
        gc.collect()
        self.assertIsNone(guard_gone())

    def test_a_namespace_is_not_kept_by_what_is_cached(self):
        class Witness:
            pass
        space = {"witness": Witness()}
        gone = weakref.ref(space["witness"])
        exec("def f(x): return x\ndef g():\n yield 1\nasync def h(*a): return 1\n", space)
        r = Recorder(f=copy_of, g=copy_of, h=copy_of)

        def body():
            space["f"](1)
            space["f"](1)
            list(space["g"]())
            list(space["g"]())
            space["h"](1).close()
            space["h"](1).close()
        under(r, body)
        del space
        gc.collect()
        self.assertIsNone(gone())

    def test_code_is_freed_while_in_use(self):
        for where in ("callback", "guard", "frame"):
            space = {}
            exec("def f(x):\n    hook('frame')\n    return x\n", space)
            gone = weakref.ref(space["f"].__code__)

            def act(at):
                if at == where:
                    space.pop("f", None)
                    gc.collect()
            space["hook"] = act

            def answer(frame, entry, state):
                act("callback")
                return GuardedCode(copied(frame.f_code), guard)

            def guard(f_locals):
                act("guard")
                return True
            r = Recorder(f=answer)

            def body():
                out = []
                while "f" in space and len(out) < 4:
                    out.append(space["f"](1))
                return out
            self.assertEqual(under(r, body), [1] * (2 if where == "guard" else 1))
            del r
            gc.collect()
            self.assertIsNone(gone(), where)

    def test_function_gets_other_code_within_the_callback(self):
        def f(x):
            return x

        def answer(frame, entry, state):
            f.__code__ = (lambda x: "other").__code__
            gc.collect()
            return GuardedCode(copied(frame.f_code), true)
        self.assertEqual(under(Recorder(f=answer), f, 1), 1)
        self.assertEqual(f(1), "other")


class Errors(Case):
    def test_guard_raises(self):
        def f(x):
            return x

        def guard(f_locals):
            raise KeyError("guard")
        r = Recorder(f=lambda frame, entry, state: GuardedCode(copied(frame.f_code), guard))
        set_eval_frame(r)
        f(1)
        with self.assertRaisesRegex(KeyError, "guard"):
            f(2)
        self.assertIsNone(get_eval_frame_callback())
        self.assertEqual(native._owner(), AT_REST)
        self.assertEqual(f(3), 3)
        self.assertEqual(len(entries(f)), 1)

    def test_callback_raises(self):
        def f(x):
            return x

        def answer(frame, entry, state):
            raise KeyError("callback")
        set_eval_frame(Recorder(f=answer))
        with self.assertRaisesRegex(KeyError, "callback"):
            f(2)
        self.assertIsNone(get_eval_frame_callback())
        self.assertEqual(native._owner(), AT_REST)
        self.assertEqual(entries(f), [])

    def test_traceback_leads_from_the_call_to_the_callback(self):
        def f(x):
            return x

        def answer(frame, entry, state):
            raise KeyError("callback")
        names = []
        try:
            under(Recorder(f=answer), f, 1)
        except KeyError as e:
            t = e.__traceback__
            while t:
                names.append(t.tb_frame.f_code.co_name)
                t = t.tb_next
        self.assertEqual(names, ["test_traceback_leads_from_the_call_to_the_callback", "under", "__call__", "answer"])

    def test_the_frame_raises(self):
        def f(x):
            raise KeyError(x)
        r = replacing(f)

        def body():
            for i in range(2):
                with contextlib.suppress(KeyError):
                    f(i)
            return get_eval_frame_callback()
        self.assertIs(under(r, body), r)
        self.assertEqual(r.asked, ["f"])

    def test_raising_under_another_action(self):
        def g():
            raise KeyError("g")

        def f():
            return g()
        for action in (SKIP, RUN_ONLY):
            reset_code(f.__code__)
            r = Recorder(f=ConvertFrameReturn(FrameExecStrategy(SKIP, action)))

            def body():
                for i in range(2):
                    with contextlib.suppress(KeyError):
                        f()
                return get_eval_frame_callback()
            self.assertIs(under(r, body), r)

    def test_guard_error_hook(self):
        seen = []
        hook = lambda *args: seen.append(args)
        self.assertIsNone(set_guard_error_hook(hook))
        self.assertIs(set_guard_error_hook(hook), hook)

        def f(x):
            return x

        def guard(f_locals):
            1 / 0
        r = Recorder(f=lambda frame, entry, state: GuardedCode(copied(frame.f_code), guard))
        under(r, f, 1)
        with self.assertRaises(ZeroDivisionError):
            under(r, f, 2)
        self.assertEqual(seen, [(guard, f.__code__, {"x": 2}, 0, True)])

    def test_guard_fail_hook(self):
        seen = []
        hook = lambda *args: seen.append(args)
        self.assertIsNone(set_guard_fail_hook(hook))

        def f(x):
            return x

        def answer(frame, entry, state):
            x = frame.f_locals["x"]

            def guard(f_locals):
                return f_locals["x"] == x
            guards.append(guard)
            return GuardedCode(copied(frame.f_code), guard)
        guards = []
        r = Recorder(f=answer)
        under(r, lambda: (f(1), f(2), f(1)))
        self.assertEqual(seen, [(guards[0], f.__code__, {"x": 2}, 0, True), (guards[1], f.__code__, {"x": 1}, 0, False)])
        self.assertIs(set_guard_fail_hook(None), hook)

    def test_hooks_that_raise_are_reported_and_change_nothing(self):
        def hook(*args):
            raise KeyError("hook")

        def f(x):
            return x
        set_guard_fail_hook(hook)
        set_guard_error_hook(hook)
        told, before = [], sys.unraisablehook
        sys.unraisablehook = lambda u: told.append(type(u.exc_value))
        try:
            r = Recorder(f=lambda frame, entry, state: GuardedCode(copied(frame.f_code), false))
            self.assertEqual(under(r, lambda: (f(1), f(2))), (1, 2))
            r = Recorder(f=lambda frame, entry, state: GuardedCode(copied(frame.f_code), lambda f_locals: 1 / 0))
            reset_code(f.__code__)
            under(r, f, 1)
            with self.assertRaises(ZeroDivisionError):
                under(r, f, 2)
        finally:
            sys.unraisablehook = before
        self.assertEqual(told, [KeyError, KeyError])

    def test_what_is_no_hook(self):
        for set_hook in (set_guard_error_hook, set_guard_fail_hook):
            with self.assertRaisesRegex(TypeError, "expected a callable or None, got int"):
                set_hook(1)


class Limits(Case):
    def test_defaults(self):
        self.assertEqual((dyntrace.config.recompile_limit, dyntrace.config.accumulated_recompile_limit), (8, 256))

    def fill(self, f, calls):
        r = Recorder(f=lambda frame, entry, state: GuardedCode(returning(frame.f_code, "compiled"), false))
        return under(r, lambda: [f(i) for i in range(calls)]), r

    def test_recompile_limit(self):
        def f(x):
            return x
        for limit in (0, 1, 8, 20):
            dyntrace.reset()
            dyntrace.config.recompile_limit = limit
            out, r = self.fill(f, 30)
            self.assertEqual(out, ["compiled"] * limit + list(range(limit, 30)))
            self.assertEqual((len(r.asked), len(entries(f))), (limit, limit))

    def test_invalid_entries_do_not_count(self):
        def f(x):
            return x
        self.fill(f, 20)
        for e in entries(f)[:3]:
            e.invalidate()
        out, r = self.fill(f, 20)
        self.assertEqual(len(r.asked), 3)

    def test_accumulated_limit(self):
        def f(x):
            return x
        dyntrace.config.accumulated_recompile_limit = 5
        r = Recorder(f=lambda frame, entry, state: GuardedCode(copied(frame.f_code), false))

        def body():
            for i in range(20):
                f(i)
                for e in entries(f):
                    e.invalidate()
        under(r, body)
        self.assertEqual(len(r.asked), 5)

    def test_what_is_no_limit(self):
        for name in ("recompile_limit", "accumulated_recompile_limit"):
            for value, error in ((-1, (ValueError, OverflowError)), ("8", TypeError), (None, TypeError), (1.5, TypeError),
                                 (1 << 80, (ValueError, OverflowError))):
                with self.assertRaises(error):
                    setattr(dyntrace.config, name, value)
        self.assertEqual(native._get_limits(), (8, 256))


class Backends(Case):
    class Callback(Recorder):
        pass

    def callback(self, backend=None, inner=None, name="_torchdynamo_orig_backend", **answers):
        r = Recorder(**answers)
        if inner is not None:
            r._torchdynamo_orig_callable = inner
        else:
            setattr(r, name, backend)
        return r

    def test_the_backend_is_part_of_the_match(self):
        def f(x):
            return x

        def one():
            pass

        def two():
            pass
        a = self.callback(one, f=lambda frame, entry, state: GuardedCode(returning(frame.f_code, "one"), true))
        b = self.callback(two, f=lambda frame, entry, state: GuardedCode(returning(frame.f_code, "two"), true))
        for _ in range(3):
            self.assertEqual(under(a, f, 1), "one")
            self.assertEqual(under(b, f, 1), "two")
        self.assertEqual([len(a.asked), len(b.asked)], [1, 1])
        self.assertEqual({e.backend for e in entries(f)}, {one, two})
        again = self.callback(inner=self.callback(inner=self.callback(one)), f=None)
        self.assertEqual(under(again, f, 1), "one")
        self.assertEqual(again.asked, [])
        self.assertIn(under(False, f, 1), ("one", "two"))

    def test_equal_backends_match(self):
        class Backend:
            def __eq__(self, other):
                return isinstance(other, Backend)
            __hash__ = None

        def f(x):
            return x
        a, b = (self.callback(Backend(), f=lambda frame, entry, state: GuardedCode(returning(frame.f_code, 1), true))
                for _ in range(2))
        under(a, f, 1)
        under(b, f, 1)
        self.assertEqual((len(a.asked), len(b.asked)), (1, 0))

    def test_a_comparison_that_raises_is_no_match(self):
        class Backend:
            def __eq__(self, other):
                raise KeyError("eq")

        def f(x):
            return x
        a, b = (self.callback(Backend(), f=copy_of) for _ in range(2))
        under(a, f, 1)
        self.assertEqual(under(b, f, 1), 1)
        self.assertEqual((len(a.asked), len(b.asked)), (1, 1))

    def test_a_callback_with_attributes_made_in_python(self):
        class Callback(Recorder):
            looked = 0

            def __getattr__(self, name):
                if name == "_torchdynamo_orig_backend":
                    Callback.looked += 1
                    return [name]  # nobody else keeps it
                raise AttributeError(name)

        def f(x):
            return x
        r = Callback(f=copy_of)
        self.assertEqual(under(r, lambda: (f(1), f(2), f(3))), (1, 2, 3))
        self.assertEqual(r.asked, ["f"])
        self.assertLess(Callback.looked, 20)
        self.assertEqual(entries(f)[0].backend, ["_torchdynamo_orig_backend"])

    def test_a_backend_is_asked_for_nothing_that_only_torchs_have(self):
        looked = set()

        class Callback(Recorder):
            def __getattr__(self, name):
                looked.add(name)
                raise AttributeError(name)

        def f(x):
            return x
        self.assertEqual(under(Callback(f=copy_of), f, 1), 1)
        self.assertTrue({"_torchdynamo_orig_backend", "_torchdynamo_orig_callable"} <= looked, looked)
        self.assertEqual({name for name in looked if "compiler" in name}, set())

    def test_a_chain_without_end(self):
        class Callback(Recorder):
            @property
            def _torchdynamo_orig_callable(self):
                return self

        def f(x):
            return x
        r = Callback(f=copy_of)
        self.assertEqual(under(r, lambda: (f(1), f(2))), (1, 2))
        self.assertEqual(r.asked, ["f"])

    def test_an_attribute_that_raises(self):
        class Callback(Recorder):
            @property
            def _torchdynamo_orig_callable(self):
                raise KeyError("attribute")

        def f(x):
            return x
        r = Callback(f=copy_of)
        self.assertEqual(under(r, lambda: (f(1), f(2))), (1, 2))
        self.assertEqual(r.asked, ["f"])


if __name__ == "__main__":
    main()
