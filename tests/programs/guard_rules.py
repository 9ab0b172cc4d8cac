"""What native guards promise, one sentence a test. Runs with any Python, alone or recorded; see tests/test_guards.py."""
import array
import gc
import math
import os
import sys
import threading
import types
import unittest
import weakref

from dyntrace import guards
from dyntrace.eval_frame import _debug_get_cache_entry_list, reset_code, set_eval_frame
from dyntrace.guards import *  # noqa: F403
from dyntrace.types import GuardedCode

try:
    import numpy
except ImportError:
    numpy = None

SANITIZED = "DYNTRACE_SANITIZED" in os.environ
L, G, B = guards.L, guards.G, guards.B


class Thing:
    def __init__(self, **values):
        self.__dict__.update(values)

    def method(self):
        return 1


def function():
    pass


def make_closure(n):
    return lambda: n


def check(guard, value, **rest):
    return GuardTree([guard], **rest).check({"x": value})


X = L["x"]
a_list, a_dict, a_thing, a_module = [1, 2], {"a": 1, "b": 2}, Thing(a=1), sys
append = a_list.append

# guard, values for which it holds, values for which it does not
KINDS = [
    (TYPE_MATCH(X, int), [0, 10**30], [True, 1.0, "1", int]),
    (TYPE_MATCH(X, Thing), [Thing()], [type("Thing", (Thing,), {})(), Thing]),
    (ID_MATCH(X, a_thing), [a_thing], [Thing(a=1), None]),
    (ID_MATCH(X, a_list), [a_list], [[1, 2], None]),
    (ID_MATCH(X, None), [None], [0]),
    (EQUALS_MATCH(X, 1), [1], [True, 1.0, 2, "1", None]),
    (EQUALS_MATCH(X, "ab"), ["ab", "".join("ab")], ["abc", b"ab"]),
    (EQUALS_MATCH(X, "\u20ac"), ["\u20ac"], ["e"]),
    (EQUALS_MATCH(X, (1, [2, ("x",)])), [(1, [2, ("x",)])], [(1, [2.0, ("x",)]), (1, [2]), (1, (2, ("x",)))]),
    (EQUALS_MATCH(X, math.nan), [math.nan, float("nan")], [0.0]),
    (EQUALS_MATCH(X, 10**30), [10**30], [10**30 + 1]),
    (EQUALS_MATCH(X, (0j,)), [(0j,), (complex(0, 0),)], [(-0j,), (complex(0.0, -0.0),), (1j,), (0,), (complex(0, math.nan),)]),
    (EQUALS_MATCH(X, range(0, 3, 2)), [range(0, 3, 2)], [range(0, 4, 2), range(0, 3), [0, 2]]),
    (EQUALS_MATCH(X, slice(1, 2)), [slice(1, 2), slice(1, 2, None)], [slice(True, 2), slice(1, 3), slice(1.0, 2)]),
    (EQUALS_MATCH(X, {"a": [1]}), [{"a": [1]}], [{"a": [2]}]),
    (CONSTANT_MATCH(X, True), [True], [1]),
    (CONSTANT_MATCH(X, None), [None], [False]),
    (CONSTANT_MATCH(X, 7), [7], [7.0]),
    (NONE_MATCH(X), [None], [0]),
    (NOT_NONE(X), [0], [None]),
    (TRUE_MATCH(X), [True], [1]),
    (FALSE_MATCH(X), [False], [0, None]),
    (HASATTR(X, "a"), [a_thing], [Thing()]),
    (NO_HASATTR(X, "a"), [Thing()], [a_thing]),
    (DICT_LENGTH(X, 2), [a_dict], [{}, [1, 2]]),
    (LIST_LENGTH(X, 2), [a_list], [[], (1, 2)]),
    (TUPLE_LENGTH(X, 2), [(1, 2)], [(), [1, 2]]),
    (SEQUENCE_LENGTH(X, 2), [a_list, a_dict, "ab"], ["a", 3]),
    (DICT_KEYS(X, ["b", "a"]), [a_dict], [{"a": 1}, {"a": 1, "c": 2}, ["a", "b"]]),
    (DICT_CONTAINS(X, "a"), [a_dict], [{}, ["a"]]),
    (DICT_NOT_CONTAINS(X, "z"), [a_dict, {}], [{"z": 1}, []]),
    (FUNCTION_MATCH(X, function), [function], [lambda: 1, None]),
    (FUNCTION_MATCH(X, a_thing.method), [a_thing.method], [Thing().method, Thing.method]),
    (CLOSURE_MATCH(X, make_closure(1)), [make_closure(2)], [lambda: 2, len]),
    (BUILTIN_MATCH(X, len), [len], [abs, None]),
    (BUILTIN_MATCH(X, append), [a_list.append], [[1, 2].append, a_list.pop, len]),
    (MODULE_MATCH(X, a_module), [sys], [types.ModuleType("sys"), None]),
    (WEAKREF_ALIVE(X, a_thing), [weakref.ref(a_thing), a_thing], [weakref.ref(Thing()), None]),
    (SHAPE_BOUND(X, 2, 5), [2, 5], [1, 6, 2**70, "3", 2.0]),
    (SHAPE_BOUND(X, low=2), [2, 10**9], [1]),
    (SHAPE_BOUND(X, high=2), [2, -5], [3]),
    (SHAPE_EQUAL(X, 3), [3], [4]),
    (SHAPE_DIVISIBLE(X, 4), [0, 8, -8], [2, "8"]),
    (TENSOR_MATCH(X, value=array.array("d", [1, 2])), [array.array("d", [3, 4])],
     [array.array("f", [1, 2]), array.array("d", [1]), memoryview(b"ab"), None]),
    (TENSOR_MATCH(X, [0], value=array.array("d", [1, 2])), [array.array("d")], [array.array("q")]),
    (TENSOR_MATCH(X, value=memoryview(b"abcd")[::2]), [memoryview(b"xyzw")[::2]], [memoryview(b"ab"), b"ab"]),
    (TENSOR_MATCH(X, dynamic_strides=[0], value=memoryview(b"abcd")[::2]), [memoryview(b"ab")], [memoryview(b"a")]),
]


class Kinds(unittest.TestCase):
    def test_each_kind_holds_for_what_it_names_and_for_nothing_else(self):
        for guard, good, bad in KINDS:
            for value in good:
                self.assertIs(check(guard, value), True, (guard, value))
            for value in bad:
                tree = GuardTree([guard])
                self.assertIs(tree.check({"x": value}), False, (guard, value))
                [(ordinal, expected, actual)] = tree.explain({"x": value})
                self.assertEqual(ordinal, 0)
                self.assertNotEqual(expected, actual, guard)
                self.assertLess(max(len(expected), len(actual)), 400)
            [(kind, source, expression)] = GuardTree([guard]).guards()
            self.assertEqual((kind, source), (guard.kind, "L['x']"))
            self.assertTrue(expression)
            self.assertIs(GuardTree([guard]).check({}), False, guard)

    def test_a_released_memoryview_has_no_shape(self):
        view = memoryview(b"ab")
        tree = GuardTree([TENSOR_MATCH(X, value=memoryview(b"ab"))])
        view.release()
        self.assertIs(tree.check({"x": view}), False)

    @unittest.skipUnless(numpy, "needs numpy")
    def test_numpy_arrays_by_class_dtype_sizes_and_strides(self):
        x = numpy.zeros((4, 3))

        class Sub(numpy.ndarray):
            pass
        tree = GuardTree([TENSOR_MATCH(X, value=x)])
        self.assertTrue(tree.check({"x": numpy.ones((4, 3))}))
        for other, actual in [
                (numpy.zeros((4, 4)), "size[1] = 4"), (numpy.zeros((5, 3)), "size[0] = 5"), (numpy.zeros(12), "ndim 1"),
                (numpy.zeros((4, 3), order="F"), "stride[0] = 8"), (numpy.zeros((4, 3), "f4"), "dtype dtype('float32')"),
                (numpy.zeros((4, 3), ">f8"), "dtype dtype('>f8')"), (numpy.zeros((4, 3), "M8[s]"), "dtype dtype('<M8[s]')"),
                (numpy.zeros((4, 3), object), "dtype dtype('O')"), ([[0]], "class list")]:
            self.assertFalse(tree.check({"x": other}))
            self.assertEqual(tree.explain({"x": other})[0][2], actual)
        self.assertFalse(tree.check({"x": x.view(Sub)}))
        self.assertTrue(check(TENSOR_MATCH(X, value=numpy.zeros(2, "M8[s]")), numpy.ones(2, "M8[s]")))
        pair = numpy.dtype([("a", "i4"), ("b", "f8")])
        again = numpy.dtype([("a", "i4"), ("b", "f8")])
        self.assertTrue(check(TENSOR_MATCH(X, value=numpy.zeros(2, pair)), numpy.zeros(2, again)))
        self.assertTrue(check(TENSOR_MATCH(X, value=numpy.array(3)), numpy.array(4)))

    @unittest.skipUnless(numpy, "needs numpy")
    def test_a_dynamic_size_frees_the_strides_around_it(self):
        tree = GuardTree([TENSOR_MATCH(X, dynamic_sizes=[1], value=numpy.zeros((2, 3, 4)))])
        self.assertIn("size (2, *, 4) stride (*, 32, 8)", tree.guards()[0][2])
        self.assertTrue(tree.check({"x": numpy.zeros((2, 7, 4))}))
        self.assertFalse(tree.check({"x": numpy.zeros((2, 7, 5))}))
        tree = GuardTree([TENSOR_MATCH(X, dynamic_sizes=[1], dynamic_strides=[], value=numpy.zeros((2, 3, 4)))])
        self.assertFalse(tree.check({"x": numpy.zeros((2, 7, 4))}))

    def test_tensors_by_their_attributes(self):
        class Tensor:
            def __init__(self, shape=(2, 3), dtype="f32", device="cpu", requires_grad=False, strides=(3, 1)):
                self.shape, self.dtype, self.device, self.requires_grad = shape, dtype, device, requires_grad
                self.strides = strides

            def stride(self):
                return self.strides
        tree = GuardTree([TENSOR_MATCH(X, dynamic_sizes=[0], value=Tensor())])
        self.assertTrue(tree.check({"x": Tensor((9, 3))}))
        for other, actual in [
                (Tensor((2, 4)), "size[1] = 4"), (Tensor(dtype="f64"), "dtype 'f64'"),
                (Tensor(device="cuda"), "device 'cuda'"), (Tensor(requires_grad=True), "requires_grad True"),
                (Tensor((2, 3, 1)), "ndim 3"), (Tensor(strides=(3, 2)), "stride[1] = 2")]:
            self.assertFalse(tree.check({"x": other}))
            self.assertEqual(tree.explain({"x": other})[0][2], actual)

    def test_relations_between_sources(self):
        pair = GuardTree([NO_ALIASING([L["a"], L["b"]]), SHAPE_EQUAL(L["a"][0], L["b"][0])])
        self.assertTrue(pair.check({"a": [1], "b": [1]}))
        self.assertEqual(pair.check_verbose({"a": [1], "b": [2]}), (False, 2, 1))
        same = [1]
        self.assertEqual(pair.check_verbose({"a": same, "b": same})[2], 0)
        many = GuardTree([NO_ALIASING([L["l"][i] for i in range(40)])])
        things = [object() for i in range(40)]
        self.assertTrue(many.check({"l": things}))
        self.assertFalse(many.check({"l": things[:-1] + things[:1]}))
        self.assertIn("number 1 and number 40", many.explain({"l": things[:-1] + things[:1]})[0][2])

    def test_a_lambda_gets_the_variables_or_its_sources(self):
        self.assertTrue(check(LAMBDA(lambda values: values == {"x": 3}, "x is 3"), 3))
        tree = GuardTree([LAMBDA(lambda x, n: x > n, "x > n", X, G["n"])], globals={"n": 2})
        self.assertTrue(tree.check({"x": 3}))
        self.assertFalse(tree.check({"x": 2}))
        self.assertEqual(tree.guards(), [("LAMBDA", "L['x'], G['n']", "x > n")])

    def test_a_registered_state_is_read_at_each_check(self):
        state = [True]
        calls = []
        register_global_state("grad mode", lambda: calls.append(1) or state[0])
        tree = GuardTree([GLOBAL_STATE("grad mode"), GLOBAL_STATE("grad mode", True)])
        calls.clear()
        self.assertTrue(tree.check({}))
        self.assertEqual(len(calls), 1)
        state[0] = False
        self.assertFalse(tree.check({}))
        with self.assertRaises(KeyError):
            GLOBAL_STATE("no such")


class Sources(unittest.TestCase):
    def test_print_as_the_program_would_write_them(self):
        self.assertEqual(repr(L["x"].size()[0]), "L['x'].size()[0]")
        self.assertEqual(repr(G["cfg"].mode), "G['cfg'].mode")
        self.assertEqual(repr(attribute(L["x"], "__class__").__name__), "L['x'].__class__.__name__")

    def test_lead_through_attributes_items_and_calls(self):
        class Slotted:
            __slots__ = ("a", "b")

            @property
            def two(self):
                return 2

        class Getter:
            def __getattr__(self, name):
                return name

        class Own:
            def __getattribute__(self, name):
                return name.upper()
        slotted = Slotted()
        slotted.a = 1
        other = types.ModuleType("other")
        other.n = 7
        values = {"x": slotted, "g": Getter(), "o": Own(), "t": ([1, 2], {"k": {3: "v"}}), "m": other, "s": Thing(a=Thing(b=1)),
                  "c": Thing}
        good = [(X.a, 1), (X.two, 2), (L["g"].hello, "hello"), (L["o"].hello, "HELLO"), (L["t"][0][-1], 2),
                (L["t"][1]["k"][3], "v"), (L["m"].n, 7), (L["s"].a.b, 1), (L["s"].method(), 1), (L["t"][1].keys().__len__(), 1),
                (L["t"][0].__len__(), 2), (attribute(L["s"], "__class__").__name__, "Thing"), (L["t"][0][0:2], [1, 2])]
        tree = GuardTree([EQUALS_MATCH(source, value) for source, value in good])
        for _ in range(3):
            self.assertEqual(tree.check_verbose(values), (True, len(good), None), tree.explain(values))
        missing = [X.b, X.nothing, L["nobody"], L["t"][0][2], L["t"][0][-3], L["t"][0]["a"], L["t"][1]["z"], L["m"].z,
                   L["s"].a.c, L["s"].a(), L["s"][0], L["s"].nothing(), X.a(), X.a[0], L["t"][0][10**30]]
        for source in missing:
            tree = GuardTree([NOT_NONE(source)])
            self.assertIs(tree.check(values), False, source)
            self.assertEqual(len(tree.explain(values)), 1)

    @unittest.skipIf(sys.version_info < (3, 15), "lazy imports are 3.15's")
    def test_a_name_that_a_module_imports_lazily_is_what_it_stands_for(self):
        one, other = types.ModuleType("one"), types.ModuleType("other")
        one.colorsys = __import__("colorsys")
        exec("lazy import colorsys", other.__dict__)
        tree = GuardTree([MODULE_MATCH(X.colorsys, one.colorsys)])
        self.assertTrue(tree.check({"x": one}) and tree.check({"x": one}))
        self.assertIsNot(other.__dict__["colorsys"], one.colorsys)
        self.assertTrue(tree.check({"x": other}))

    def test_an_attribute_is_found_wherever_it_moves(self):
        class Moving:
            pass
        tree = GuardTree([EQUALS_MATCH(X.a, 1)])
        one = Moving()
        self.assertFalse(tree.check({"x": one}))
        one.a = 1
        self.assertTrue(tree.check({"x": one}))
        one.__dict__["a"] = 2
        self.assertFalse(tree.check({"x": one}))
        one.__dict__ = {"a": 1}
        self.assertTrue(tree.check({"x": one}))
        del one.a
        self.assertFalse(tree.check({"x": one}))
        Moving.a = 1
        self.assertTrue(tree.check({"x": one}))
        Moving.a = property(lambda self: 3)
        one.__dict__["a"] = 1
        self.assertFalse(tree.check({"x": one}))
        del Moving.a
        self.assertTrue(tree.check({"x": one}))
        Moving.__getattribute__ = lambda self, name: 5
        self.assertFalse(tree.check({"x": one}))
        del Moving.__getattribute__
        self.assertTrue(tree.check({"x": one}))
        self.assertTrue(tree.check({"x": Thing(a=1)}))
        many = [Thing() for i in range(3)]
        for i, thing in enumerate(many):
            for j in range(i * 20):
                setattr(thing, "b%d" % j, j)
            thing.a = 1
            self.assertTrue(tree.check({"x": thing}))

    def test_looking_at_a_defaultdict_adds_nothing(self):
        import collections
        d = collections.defaultdict(list)
        self.assertFalse(check(NOT_NONE(X["k"]), d))
        self.assertEqual(len(d), 0)

    def test_a_shared_prefix_is_read_once(self):
        reads = []

        class Counting:
            @property
            def a(self):
                reads.append("a")
                return Thing(b=1, c=2)

            def size(self):
                reads.append("size")
                return (4, 5)
        tree = GuardTree([EQUALS_MATCH(X.a.b, 1), EQUALS_MATCH(X.a.c, 2), EQUALS_MATCH(X.size()[0], 4),
                          EQUALS_MATCH(X.size()[1], 5), SHAPE_EQUAL(X.size()[0], X.size()[0]), LAMBDA(lambda a: True, "", X.a)])
        self.assertTrue(tree.check({"x": Counting()}))
        self.assertEqual(reads, ["a", "size"])

    def test_what_cannot_be_a_source_is_refused(self):
        for wrong in [lambda: TYPE_MATCH(3, int), lambda: GuardTree([3]), lambda: GuardTree([TYPE_MATCH(X, 3)]),
                      lambda: GuardTree([MODULE_MATCH(X, 3)]), lambda: GuardTree([CLOSURE_MATCH(X, len)]),
                      lambda: GuardTree([TENSOR_MATCH(X, value=3)]), lambda: LAMBDA(3), lambda: GuardTree([], globals=[]),
                      lambda: GuardTree([HASATTR(X, 3)]), lambda: SHAPE_EQUAL(X), lambda: SHAPE_BOUND(X),
                      lambda: GuardTree([DICT_CONTAINS(X, [])]), lambda: iter(X), lambda: attribute(X, 3),
                      lambda: GuardTree([]).check([])]:
            with self.assertRaises(TypeError):
                wrong()
        with self.assertRaises(ValueError):
            GuardTree([EQUALS_MATCH(X)])
        with self.assertRaises(ValueError):
            GuardTree([SHAPE_DIVISIBLE(X, 0)])
        with self.assertRaises(IndexError):
            GuardTree([TENSOR_MATCH(X, [3], value=array.array("d"))])
        with self.assertRaises(RuntimeError):
            GuardTree([NOT_NONE(G["a"])]).check({})
        deep = X
        for i in range(250):
            deep = deep.a
        with self.assertRaises(ValueError):
            GuardTree([NOT_NONE(deep)])

    def test_values_left_out_come_from_the_example(self):
        example = {"n": 3, "d": {"a": 1}, "f": function}
        tree = GuardTree([EQUALS_MATCH(L["n"]), TYPE_MATCH(L["n"]), DICT_KEYS(L["d"]), DICT_LENGTH(L["d"]), FUNCTION_MATCH(L["f"]),
                          EQUALS_MATCH(G["g"]), BUILTIN_MATCH(B["len"])], example=example, globals={"g": 4})
        self.assertTrue(tree.check(example))
        example["d"]["b"] = 1
        self.assertFalse(tree.check(example))

    def test_a_changed_constant_changes_no_guard(self):
        wanted = [1, [2]]
        tree = GuardTree([EQUALS_MATCH(X, wanted)])
        wanted[1].append(3)
        self.assertTrue(tree.check({"x": [1, [2]]}))


class Order(unittest.TestCase):
    def test_what_fails_moves_forward_within_its_level(self):
        tree = GuardTree([EQUALS_MATCH(L["a"], 1), EQUALS_MATCH(L["b"].p, 1), EQUALS_MATCH(L["b"].q, 1), EQUALS_MATCH(L["c"], 1)])
        self.assertEqual(tree.order(), [0, 1, 2, 3])
        values = {"a": 1, "b": Thing(p=1, q=2), "c": 1}
        self.assertEqual(tree.check_verbose(values), (False, 3, 2))
        self.assertEqual(tree.order(), [2, 1, 0, 3])
        self.assertEqual(tree.check_verbose(values), (False, 1, 2))
        self.assertEqual([kind for kind, source, text in tree.guards()], ["EQUALS_MATCH"] * 4)
        self.assertEqual([source for kind, source, text in tree.guards()][2], "L['b'].q")

    def test_what_fails_more_often_stands_before_what_fails_less(self):
        tree = GuardTree([EQUALS_MATCH(L["a"], 1), EQUALS_MATCH(L["b"], 1)])
        tree.check({"a": 2, "b": 1})
        tree.check({"a": 2, "b": 1})
        tree.check({"a": 1, "b": 2})
        self.assertEqual(tree.order(), [0, 1])
        for _ in range(2):
            tree.check({"a": 1, "b": 2})
        self.assertEqual(tree.order(), [1, 0])

    def test_a_guard_that_runs_code_is_never_moved_before_one_that_protects_it(self):
        tree = GuardTree([TYPE_MATCH(X, Thing), HASATTR(X, "a"), DICT_LENGTH(X, 3), SHAPE_BOUND(X, 1)])
        for value in [Thing(), Thing(a=1), 3]:
            for _ in range(3):
                tree.check({"x": value})
        order = tree.order()
        self.assertLess(order.index(0), order.index(1))
        self.assertLess(order.index(1), order.index(3))

    def test_explaining_moves_nothing_and_tells_all(self):
        tree = GuardTree([EQUALS_MATCH(L["a"], 1), EQUALS_MATCH(L["b"], 1), EQUALS_MATCH(L["c"].d, 1)])
        self.assertEqual(tree.explain({"a": 1, "b": 2}), [(1, "1", "2"), (2, "1", "L['c'] is not bound")])
        self.assertEqual(tree.order(), [0, 1, 2])


class Bad:
    def __init__(self, error=ValueError):
        self.error = error

    def __eq__(self, other):
        raise self.error("eq")
    __hash__ = None

    def __repr__(self):
        raise self.error("repr")

    def __len__(self):
        raise self.error("len")

    def __index__(self):
        raise self.error("index")

    def __getattr__(self, name):
        raise self.error("attribute")

    def __getitem__(self, name):
        raise self.error("item")

    def __call__(self):
        raise self.error("call")


class Errors(unittest.TestCase):
    def test_a_guard_that_raises_is_an_error_never_a_pass_or_a_failure(self):
        bad = Bad()
        for guard in [EQUALS_MATCH(X, Bad()), HASATTR(X, "a"), NO_HASATTR(X, "a"), SEQUENCE_LENGTH(X, 1), SHAPE_BOUND(X, 1),
                      SHAPE_DIVISIBLE(X, 2), SHAPE_EQUAL(X, L["y"]), NOT_NONE(X.a), NOT_NONE(X[0]), NOT_NONE(X()), NOT_NONE(X.m()),
                      LAMBDA(lambda x: 1 / 0, "", X), LAMBDA(lambda x: 1, "not a bool", X), LAMBDA(lambda: True, "", X)]:
            tree = GuardTree([guard])
            with self.assertRaises((ValueError, ZeroDivisionError, TypeError), msg=guard):
                tree.check({"x": bad, "y": 1})
            self.assertEqual(len(tree.explain({"x": bad, "y": 1})), 1)
            self.assertIn("raised", tree.explain({"x": bad, "y": 1})[0][2])

    def test_a_hostile_repr_becomes_part_of_the_text(self):
        tree = GuardTree([NONE_MATCH(X), EQUALS_MATCH(L["y"], Bad())])
        self.assertIn("ValueError: repr", tree.guards()[1][2])
        self.assertIn("Bad object whose repr raised ValueError: repr", tree.explain({"x": Bad(), "y": 1})[0][2])
        with self.assertRaises(KeyboardInterrupt):
            tree.explain({"x": Bad(KeyboardInterrupt), "y": 1})

    def test_texts_are_short(self):
        loop = [1]
        loop.append(loop)
        for value in ["x" * 10**6, b"x" * 10**6, list(range(10**5)), 10**5000, {i: i for i in range(10**4)}, loop,
                      set(range(10**4)), [["y" * 1000] * 100] * 100, array.array("d", range(1000)), Thing]:
            text = GuardTree([NONE_MATCH(X)]).explain({"x": value})[0][2]
            self.assertLessEqual(len(text), 130)

    def test_lone_surrogates_do_no_harm(self):
        tree = GuardTree([EQUALS_MATCH(L["\ud800"], "\udfff")])
        self.assertTrue(tree.check({"\ud800": "\udfff"}))
        self.assertEqual(len(tree.explain({})), 1)


class Objects(unittest.TestCase):
    """Guards that name objects, through the evaluator."""

    def setUp(self):
        self.addCleanup(set_eval_frame, None)
        self.asked = 0

    def evaluate(self, guards_of, *args, keep=None):
        def target(x):
            return "original"

        def other(x):
            return "compiled"
        target = types.FunctionType(target.__code__.replace(), globals())  # a code object of its own

        def callback(frame, entry, state):
            if frame.f_code is not target.__code__:
                return None
            self.asked += 1
            tree = guards_of()
            if type(tree) is list:
                tree = GuardTree(tree, example=frame.f_locals, globals=globals())
            if keep is not None:
                keep.append(tree)
            return GuardedCode(other.__code__, tree)

        def call(x):
            set_eval_frame(callback)
            try:
                return target(x)
            finally:
                set_eval_frame(None)
        call.entries = lambda: _debug_get_cache_entry_list(target.__code__)
        call.target = target
        return call

    def test_an_object_that_dies_takes_its_entries_with_it_at_once(self):
        for keep in (None, []):
            self.asked = 0
            call = self.evaluate(lambda: [ID_MATCH(X)], keep=keep)
            thing = Thing()
            self.assertEqual([call(thing), call(thing)], ["compiled"] * 2)
            [entry] = call.entries()
            self.assertEqual((self.asked, entry.valid), (1, True))
            address = "%#x" % id(thing)
            del thing
            self.assertFalse(entry.valid)
            self.assertIn("Thing object at " + address, entry.invalid_reason)
            self.assertIn("L['x']", entry.invalid_reason)

    def test_a_new_object_at_the_same_address_does_not_hit(self):
        call = self.evaluate(lambda: [ID_MATCH(X)])
        met = 0
        for _ in range(50):
            thing = Thing()
            address = id(thing)
            call(thing)
            del thing
            again = [Thing() for _ in range(20)]
            before = self.asked
            for thing in again:
                if id(thing) == address:
                    met += 1
                    call(thing)
                    self.assertEqual(self.asked, before + 1)
            del again, thing
            reset_code(call.target.__code__)
        self.assertTrue(met or SANITIZED)  # which gives out new addresses for a while

    def test_classes_functions_code_and_weakly_referenced_objects_too(self):
        def cases():
            yield type("Local", (), {})(), lambda: [TYPE_MATCH(X)]
            exec("def f(): pass", space := {})
            yield space.pop("f"), lambda: [FUNCTION_MATCH(X)]
            exec("def f(): pass", space := {})
            yield space.pop("f"), lambda: [CLOSURE_MATCH(X)]
            yield types.ModuleType("m"), lambda: [MODULE_MATCH(X)]
            yield Thing().method, lambda: [FUNCTION_MATCH(X)]
        for value, guards_of in cases():
            call = self.evaluate(guards_of)
            self.assertEqual([call(value), call(value)], ["compiled"] * 2)
            [entry] = call.entries()
            self.assertTrue(entry.valid)
            del value
            gc.collect()
            self.assertFalse(entry.valid, guards_of)
            gc.collect()

    def test_an_object_in_a_cycle_too(self):
        call = self.evaluate(lambda: [ID_MATCH(X)])
        thing = Thing()
        thing.me = thing
        call(thing)
        [entry] = call.entries()
        del thing
        self.assertTrue(entry.valid)
        gc.collect()
        self.assertFalse(entry.valid)

    def test_a_referent_that_dies_too(self):
        call = self.evaluate(lambda: [WEAKREF_ALIVE(X)])
        thing = Thing()
        call(weakref.ref(thing))
        [entry] = call.entries()
        del thing
        self.assertFalse(entry.valid)

    def test_what_cannot_be_referenced_weakly_is_kept_alive(self):
        tree = GuardTree([ID_MATCH(X, value := [1])])
        before = sys.getrefcount(value)
        del tree
        self.assertEqual(sys.getrefcount(value), before - 1)

    def test_an_object_that_is_dead_before_the_entry_lives(self):
        call = self.evaluate(lambda: [ID_MATCH(X, Thing())])
        self.assertEqual(call(3), "original")
        self.assertEqual(self.asked, 1)

    def test_after_the_object_has_died_none_does_not_match(self):
        tree = GuardTree([ID_MATCH(X, Thing())])
        self.assertFalse(tree.check({"x": None}))

    def test_one_tree_in_two_entries(self):
        thing = Thing()
        tree = GuardTree([ID_MATCH(X, thing)])
        calls = [self.evaluate(lambda: tree) for _ in range(2)]
        for call in calls:
            self.assertEqual(call(thing), "compiled")
        self.assertEqual([c.entries()[0].valid for c in calls], [True, True])
        del thing
        self.assertEqual([c.entries()[0].valid for c in calls], [False, False])

    def test_reset_lets_go_of_tree_and_objects(self):
        trees = []
        call = self.evaluate(lambda: [ID_MATCH(X, a_thing)], keep=trees)
        call(a_thing)
        [entry] = call.entries()
        before = sys.getrefcount(entry)
        reset_code(call.target.__code__)
        self.assertFalse(entry.valid)
        self.assertEqual(sys.getrefcount(trees[0]), 2)
        trees.clear()
        self.assertLess(sys.getrefcount(entry), before)

    def test_guards_read_the_frame_that_is_about_to_run(self):
        cell = 5

        def target(a, *args, k=2, **rest):
            return cell, (lambda: a)
        seen = []

        def callback(frame, entry, state):
            if frame.f_code is not target.__code__:
                return None
            seen.append(1)
            return GuardedCode(frame.f_code, GuardTree(
                [EQUALS_MATCH(L["a"]), EQUALS_MATCH(L["args"]), EQUALS_MATCH(L["k"]), EQUALS_MATCH(L["rest"]),
                 EQUALS_MATCH(L["cell"]), MODULE_MATCH(G["gc"]), BUILTIN_MATCH(B["len"]), LAMBDA(lambda v: v["cell"] == 5 or True, "")],
                example=frame.f_locals, globals=frame.f_globals))
        expected = 0
        for args, keywords in [((1,), {}), ((2,), {}), ((1, 2), {}), ((1,), {"k": 3}), ((1,), {"z": 3})]:
            expected += 1
            for _ in range(3):
                set_eval_frame(callback)
                target(*args, **keywords)
                set_eval_frame(None)
                self.assertEqual(len(seen), expected)
        cell = 6
        set_eval_frame(callback)
        target(1)
        set_eval_frame(None)
        self.assertEqual(len(seen), expected + 1)


class Safety(unittest.TestCase):
    def test_a_guard_may_check_its_own_tree(self):
        depth = []

        def again(values):
            if len(depth) < 5:
                depth.append(1)
                return tree.check({"x": len(depth) % 2})
            return False
        tree = GuardTree([NOT_NONE(X), NOT_NONE(X), LAMBDA(again, "")])
        self.assertFalse(tree.check({"x": 1}))

    def test_a_guard_may_drop_its_own_tree_and_values(self):
        class Dropper:
            def __eq__(self, other):
                values.clear()
                trees.clear()
                gc.collect()
                return True
        trees = [GuardTree([EQUALS_MATCH(X.a[0], Dropper()), NOT_NONE(X.a[1])])]
        values = {"x": Thing(a=[Dropper(), object()])}
        self.assertTrue(trees[0].check(values))

    def test_threads_may_check_one_tree_at_once(self):
        tree = GuardTree([EQUALS_MATCH(L["v%d" % i].a, i) for i in range(8)] + [LAMBDA(lambda a, b: a is not b, "", L["v0"], L["v1"])])
        good = {"v%d" % i: Thing(a=i) for i in range(8)}
        wrong = []

        def work(n):
            bad = dict(good, **{"v%d" % n: Thing(a=-1)})
            for _ in range(3000):
                if tree.check(good) is not True or tree.check(bad) is not False:
                    wrong.append(n)
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
        self.assertEqual(wrong, [])
        self.assertEqual(sorted(tree.order()), list(range(9)))

    def test_a_tree_in_a_cycle_is_collected(self):
        box = Thing()
        box.tree = GuardTree([LAMBDA(lambda values: box is None, ""), EQUALS_MATCH(X, [box])])
        gone = weakref.ref(box)
        del box
        gc.collect()
        self.assertIsNone(gone())

    def test_nothing_leaks(self):
        def resident():
            with open("/proc/self/status") as f:
                return int(next(line for line in f if line.startswith("RssAnon")).split()[1]) << 10
        values = {"x": 3, "y": Thing(a=1, b=[1, 2]), "d": a_dict, "z": array.array("d", [1, 2])}
        wrong = dict(values, x=Bad(), y=Thing(a=2, b=Bad()), z=memoryview(b""))

        def once():
            tree = GuardTree([EQUALS_MATCH(L["x"]), EQUALS_MATCH(L["y"].b), TYPE_MATCH(L["y"]), ID_MATCH(L["y"]), DICT_KEYS(L["d"]),
                              TENSOR_MATCH(L["z"]), NO_ALIASING([L["x"], L["y"]]), LAMBDA(lambda v: True, "t"), HASATTR(L["y"], "a"),
                              FUNCTION_MATCH(L["y"].method), SHAPE_EQUAL(L["y"].b.__len__(), 2), ID_MATCH(X, Thing())],
                             example=dict(values, x=3))
            for each in (values, wrong, {}):
                try:
                    tree.check(each)
                except ValueError:
                    pass
                tree.explain(each)
            try:
                GuardTree([NOT_NONE(X), TENSOR_MATCH(X, [7], value=values["z"])])
            except IndexError:
                pass
        for _ in range(2000):
            once()
        gc.collect()
        objects, blocks, memory = len(gc.get_objects()), sys.getallocatedblocks(), resident()
        counts = [sys.getrefcount(o) for o in (None, Thing, int, a_dict, values["y"], values["z"], array.array)]
        for _ in range(4000):
            once()
        gc.collect()
        self.assertLess(abs(len(gc.get_objects()) - objects), 50)
        after = [sys.getrefcount(o) for o in (None, Thing, int, a_dict, values["y"], values["z"], array.array)]
        for a, b in zip(counts, after):
            self.assertLess(abs(a - b), 50)
        self.assertLess(abs(sys.getallocatedblocks() - blocks), 1000)  # a leak would be 4000 or more
        if not SANITIZED:  # which keeps freed memory for a while
            self.assertLess(resident() - memory, 3 << 20)


if __name__ == "__main__":
    unittest.main()
