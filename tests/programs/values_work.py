"""A program whose values are secrets: recorded with --values types or off, none of them may be in the trace.

Two words and two numbers come from the environment (SECRETS="word other 123 456"), so that they are nobody's text. Every
kind of guard is made of the first, holds, and then fails because of the second.

    SECRETS="hunter2 swordfish 424242424 535353535" dyntrace run tests/programs/values_work.py [FILE]

With FILE it waits before its end until FILE is there, so that somebody may look at what it left so far.
"""
import array
import dataclasses
import enum
import os
import sys
import threading
import time
import weakref

from dyntrace import guards
from dyntrace.eval_frame import reset_code, set_eval_frame
from dyntrace.guards import G, L, GuardTree
from dyntrace.types import ConvertFrameReturn, FrameAction, FrameExecStrategy, GuardedCode

WORDS = os.environ.pop("SECRETS").split()
WORD, OTHER = WORDS[:2]
NUMBER, ANOTHER = map(int, WORDS[2:])
PASS = ConvertFrameReturn(FrameExecStrategy(FrameAction.DEFAULT, FrameAction.DEFAULT), apply_to_code=False)
held = WORD             # a global that guards look at


@dataclasses.dataclass
class Account:
    name: str
    pin: int

    def __hash__(self):
        return hash(self.pin)


class Shy:
    """Its repr is the secret, and so is what it raises."""
    def __init__(self, word):
        self.word = word

    def __repr__(self):
        return self.word

    def __eq__(self, other):
        raise ValueError("not equal to " + self.word)

    __hash__ = object.__hash__


class Tensor:
    """Like a tensor: its elements are secrets, its sizes are not."""
    dtype, device, requires_grad = "float32", "cpu", False

    def __init__(self, *sizes):
        self.shape, self.elements = sizes, [NUMBER] * 3

    def stride(self):
        return (1,) * len(self.shape)

    def size(self):
        return self.shape

    def __repr__(self):
        return "tensor(%r)" % self.elements


class Callback:
    """Answers with a copy of the code, guarded by what `self.guards` are now."""
    guards, error, label = (), None, None

    def __call__(self, frame, entry, state):
        if frame.f_code.co_name not in ("target", "inner"):
            return PASS
        if self.error is not None:
            raise self.error
        code = frame.f_code
        made = self.guards if callable(self.guards) else GuardTree(self.guards, globals=frame.f_globals, example=frame.f_locals)
        return GuardedCode(code.replace(co_name=code.co_name), made, *([self.label] if self.label else ()))


callback = Callback()
callback.__qualname__ = "the backend of " + WORD


def target(x, y=None):
    return y


def calls(made, *values):
    """Compile target() with the guards that MADE makes, and call it with VALUES, which the guards may not like."""
    set_eval_frame(None)
    reset_code(target.__code__)
    callback.guards = made
    for value in values:
        set_eval_frame(callback)
        try:
            target(*value) if type(value) is tuple else target(value)
        except (ValueError, KeyError, AttributeError) as error:
            assert any(word in str(error) for word in WORDS)
        finally:
            set_eval_frame(None)


def closure(word):
    def inner(x):
        return word
    return inner


class Keyed:
    pass


def every_kind():
    x = L["x"]
    first, second = Account(WORD, NUMBER), Account(OTHER, ANOTHER)
    Colour = enum.Enum("Colour", {"RED": WORD, "BLUE": OTHER})
    simple = [(WORD, OTHER), (NUMBER, ANOTHER), (WORD.encode(), OTHER.encode()), (NUMBER / 1e4, ANOTHER / 1e4),
              (first, second), ((WORD, NUMBER), (OTHER, ANOTHER)), ([[WORD]], [[OTHER]]), ({WORD: NUMBER}, {OTHER: ANOTHER}),
              (Colour.RED, Colour.BLUE), (complex(NUMBER, 1), complex(ANOTHER, 1)), (frozenset([WORD]), frozenset([OTHER])),
              (bytearray(WORD.encode()), bytearray(OTHER.encode())), (range(NUMBER), range(ANOTHER)), (WORD, NUMBER)]
    for one, two in simple:
        calls([guards.EQUALS_MATCH(x, one)], [one] if type(one) is tuple else one, [two] if type(two) is tuple else two)
        calls([guards.EQUALS_MATCH(x)], one if type(one) is not tuple else [one], two if type(two) is not tuple else [two])
        calls([guards.ID_MATCH(x, one)], one if type(one) is not tuple else [one], two if type(two) is not tuple else [two])
        calls([guards.TYPE_MATCH(x)], one if type(one) is not tuple else [one], OTHER if type(one) is not str else ANOTHER)
    calls([guards.EQUALS_MATCH(x)], Shy(WORD), Shy(OTHER))
    calls([guards.NONE_MATCH(x)], None, WORD)
    calls([guards.NOT_NONE(x)], WORD, None)
    calls([guards.TRUE_MATCH(x)], True, WORD)
    calls([guards.FALSE_MATCH(x)], False, NUMBER)
    holder = Keyed()
    setattr(holder, WORD, NUMBER)
    calls([guards.HASATTR(x, WORD)], holder, Keyed())
    calls([guards.NO_HASATTR(x, WORD)], Keyed(), holder)
    for key in (WORD, NUMBER, first, WORD.encode(), (WORD, NUMBER)):
        one, two = {key: key}, {OTHER: ANOTHER}
        calls([guards.DICT_KEYS(x)], one, two)
        calls([guards.DICT_CONTAINS(x, key)], one, two)
        calls([guards.DICT_NOT_CONTAINS(x, key)], two, one)
        calls([guards.EQUALS_MATCH(x[key])], one, {key: OTHER}, two)
        calls([guards.TYPE_MATCH(L["x"][key])], one, {key: Shy(OTHER)}, two)
        calls([guards.EQUALS_MATCH(x[key], Shy(WORD))], {key: Shy(OTHER)}, two)
    calls([guards.DICT_LENGTH(x)], {WORD: NUMBER}, {})
    calls([guards.LIST_LENGTH(x)], [WORD], [])
    calls([guards.TUPLE_LENGTH(x)], [(WORD,)], [()])
    calls([guards.SEQUENCE_LENGTH(x)], WORD, OTHER * 2)
    calls([guards.FUNCTION_MATCH(x)], closure(WORD), closure(OTHER))
    renamed = closure(WORD)
    renamed.__qualname__ = renamed.__name__ = WORD
    calls([guards.FUNCTION_MATCH(x)], renamed, closure(OTHER))
    calls([guards.CLOSURE_MATCH(x)], closure(WORD), every_kind)
    calls([guards.BUILTIN_MATCH(x)], [WORD].append, len)
    module = type(sys)(WORD)
    calls([guards.MODULE_MATCH(x, module)], module, sys)
    calls([guards.WEAKREF_ALIVE(x)], weakref.ref(first), weakref.ref(Account(OTHER, ANOTHER)))
    guards.register_global_state("mode", lambda: held)
    calls([guards.GLOBAL_STATE("mode")], 1, 1)
    calls([guards.TENSOR_MATCH(x)], Tensor(2, 3), Tensor(4, 3), array.array("d", [1.5, NUMBER]))
    calls([guards.TENSOR_MATCH(x)], array.array("d", [1.5, NUMBER]), array.array("q", [NUMBER]))
    calls([guards.SHAPE_BOUND(x, NUMBER, NUMBER)], NUMBER, ANOTHER)
    calls([guards.SHAPE_BOUND(x.shape[0], 2, 2)], Tensor(2, 3), Tensor(4, 3))
    calls([guards.SHAPE_DIVISIBLE(x, NUMBER)], NUMBER, ANOTHER)
    calls([guards.SHAPE_EQUAL(x, L["y"])], (NUMBER, NUMBER), (NUMBER, ANOTHER))
    calls([guards.NO_ALIASING([x, L["y"]])], (WORD, NUMBER), (WORD, WORD))
    calls([guards.LAMBDA(lambda x: x == WORD, "x == %r" % WORD, x)], WORD, OTHER)
    calls([guards.EQUALS_MATCH(G["held"], WORD)], 1)
    calls(lambda f_locals: f_locals["x"] == WORD, WORD, OTHER)


def globals_change():
    global held
    calls([guards.EQUALS_MATCH(G["held"])], 1)
    held = OTHER
    target(1)
    set_eval_frame(callback)
    target(1)
    set_eval_frame(None)


def names():
    """Labels, errors, threads, and a closure that is looked at."""
    callback.label = "label of " + WORD
    calls([guards.EQUALS_MATCH(L["x"])], WORD, OTHER)
    callback.label = None
    callback.error = ValueError("cannot compile " + WORD)
    calls([], WORD)
    callback.error = None
    inner = closure(WORD)
    callback.guards = [guards.EQUALS_MATCH(L["word"])]
    set_eval_frame(callback)
    inner(1)
    closure(OTHER)(1)
    set_eval_frame(None)
    for name in (WORD, "worker of " + WORD, None):
        thread = threading.Thread(target=globals_change, name=name)
        thread.start()
        thread.join()


every_kind()
names()
if len(sys.argv) > 1:
    print("done", flush=True)
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
