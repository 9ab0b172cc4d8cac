"""Programs with a compiler of their own that need a remedy of src/trace/remedies.txt, and the same with it applied: argv[1] is
"needs" or "mended". tests/test_remedies.py records both."""
import array
import sys

import dyntrace.config
from dyntrace.eval_frame import reset_code, set_eval_frame
from dyntrace.guards import (DICT_KEYS, EQUALS_MATCH, FALSE_MATCH, FUNCTION_MATCH, G, GuardTree, HASATTR, ID_MATCH, L, LIST_LENGTH, NONE_MATCH,
                             NO_HASATTR, NOT_NONE, TENSOR_MATCH, TRUE_MATCH, TYPE_MATCH)
from dyntrace.types import GuardedCode

MENDED = sys.argv[1] == "mended"
GUARDS = {}     # code -> function of the call's arguments


def compiler(frame, entry, state):
    guards = GUARDS.get(frame.f_code.co_name)
    return guards and GuardedCode(frame.f_code.replace(), GuardTree(guards(**frame.f_locals), example=frame.f_locals))


def watch(function, guards):
    GUARDS[function.__name__] = guards
    return function


def numbers(count, kind="d"):
    return array.array(kind, bytes(array.array(kind).itemsize * count))


def size_f(x):
    return sum(x)


def dtype_f(x):
    return sum(x)


def length_f(items):
    return len(items)


def keys_f(batch):
    return len(batch)


def none_f(mask):
    return mask


def flag_f(flag):
    return flag


def number_f(n):
    return n


def string_f(mode):
    return mode


def global_f():
    return SCALE


def function_f(act):
    return act


def object_f(thing):
    return thing


def type_f(thing):
    return thing


def attribute_f(thing):
    return thing


def limit_f(n):
    return n


def reset_f(n):
    return n


class Thing:
    pass


class Other:
    pass


def main():
    global SCALE
    watch(size_f, lambda x: [TENSOR_MATCH(L["x"], dynamic_sizes=[0] if MENDED else None)])
    watch(dtype_f, lambda x: [TENSOR_MATCH(L["x"])])
    watch(length_f, lambda items: [LIST_LENGTH(L["items"])])
    watch(keys_f, lambda batch: [DICT_KEYS(L["batch"])])
    watch(none_f, lambda mask: [NONE_MATCH(L["mask"]) if mask is None else NOT_NONE(L["mask"])])
    watch(flag_f, lambda flag: [TRUE_MATCH(L["flag"]) if flag else FALSE_MATCH(L["flag"])])
    for function in (number_f, limit_f, reset_f):
        watch(function, lambda n: [EQUALS_MATCH(L["n"])])
    watch(string_f, lambda mode: [EQUALS_MATCH(L["mode"])])
    watch(global_f, lambda: [EQUALS_MATCH(G["SCALE"], SCALE)])
    watch(function_f, lambda act: [FUNCTION_MATCH(L["act"])])
    watch(object_f, lambda thing: [ID_MATCH(L["thing"])])
    watch(type_f, lambda thing: [TYPE_MATCH(L["thing"])])
    watch(attribute_f, lambda thing: [HASATTR(L["thing"], "bias") if hasattr(thing, "bias") else NO_HASATTR(L["thing"], "bias")])
    dyntrace.config.recompile_limit = 4
    set_eval_frame(compiler)
    for n in (16, 18, 20):
        size_f(numbers(n))
    for kind in ("d", "f"):
        dtype_f(numbers(4, "d" if MENDED else kind))
    for n in (1, 2, 3):
        length_f([0] * (3 if MENDED else n))
    for keys in ({"x": 1}, {"x": 1, "mask": 2}):
        keys_f({"mask": 0, **keys} if MENDED else keys)
    for mask in (None, 1):
        none_f(1 if MENDED else mask)
    for flag in (True, False):
        flag_f(MENDED or flag)
    for n in (2, 3, 4):
        number_f(2 if MENDED else n)
        string_f("a" if MENDED else "abcde"[n])
        SCALE = 2 if MENDED else n
        global_f()
    kept, one, thing = [], lambda: 0, Thing()
    for _ in range(3):
        kept += [one if MENDED else lambda: 0, thing if MENDED else Thing()]
        function_f(kept[-2])
        object_f(kept[-1])
    for kind in (Thing, Other):
        type_f((Thing if MENDED else kind)())
    for bias in (MENDED, True):
        thing = Thing()
        if bias:
            thing.bias = 1
        attribute_f(thing)
    dyntrace.config.recompile_limit = 6 if MENDED else 4
    for n in (1, 2, 3, 4, 5, 6, 5, 6):
        limit_f(n)
    reset_f(1)
    if not MENDED:
        reset_code(reset_f.__code__)
    reset_f(1)
    set_eval_frame(None)


main()
