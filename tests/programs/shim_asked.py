"""What of the program's runs while entries are looked through, by kind of guard: a line for each time."""
from dyntrace.eval_frame import set_eval_frame
from dyntrace.guards import EQUALS_MATCH, HASATTR, ID_MATCH, LAMBDA, SEQUENCE_LENGTH, TYPE_MATCH, GuardTree, L
from dyntrace.types import GuardedCode

class Plain:
    n, k = 1, 2

class Hooked:
    def __getattr__(self, name):
        print("asked for", name)
        return 3

class Own:
    @property
    def n(self):
        print("asked for a property")
        return 1

    k = 5

    def __len__(self):
        print("asked for its length")
        return 1

def f(a, b):
    return a

def last(a):
    print("the last guard is asked")
    return False

def compiler(frame, entry, state):
    if frame.f_code is f.__code__:
        return GuardedCode(frame.f_code.replace(), GuardTree(guards(), example={"a": Plain(), "b": [0]}))

def calls():
    set_eval_frame(compiler)
    for a in Plain(), Hooked(), Own():
        f(a, [1])
    set_eval_frame(None)
    f.__code__ = f.__code__.replace()

ATTRIBUTES = [EQUALS_MATCH(L["a"].n), EQUALS_MATCH(L["a"].k)]
for name, guards in {
    "type": lambda: [TYPE_MATCH(L["a"]), *ATTRIBUTES, SEQUENCE_LENGTH(L["b"])],
    "attributes": lambda: ATTRIBUTES,
    "hasattr": lambda: [HASATTR(L["a"], "n"), *ATTRIBUTES],
    "lambda": lambda: [LAMBDA(last, L["a"]), ID_MATCH(L["b"])],
}.items():
    print("--", name)
    calls()
