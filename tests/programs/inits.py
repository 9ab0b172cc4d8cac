"""Classes of many shapes, called from sites that specialise at any call: which frames ran, as sys.monitoring saw them.

    inits.py SEED CLASSES [record FILE]

prints [[function, its caller, times], ...]. With `record` some classes and sites are older than the recording.
"""
import abc
import collections
import contextlib
import dataclasses
import json
import pickle
import random
import sys
import threading
import types
import typing
from unittest import mock

FILE = "<inits>"
rng = random.Random(int(sys.argv[1]))


def made(number, name, text, **names):
    """A function NAME of its own, with a code object of its own."""
    scope = {"__name__": "__main__", **names}
    exec(compile(text, FILE, "exec"), scope)
    function = scope[name]
    function.__code__ = function.__code__.replace(co_qualname=f"{name}_{number}")
    return function


def init_of(number, arguments=""):
    helper = made(number, "helper", "def helper(): pass")
    return made(number, "__init__", f"def __init__(self{arguments}):\n    helper()\n", helper=helper)


def other_init():
    """An __init__ that --exclude may name."""
    init = made(0, "__init__", "def __init__(self): pass")
    init.__code__ = init.__code__.replace(co_qualname="other_init")
    return init


def used(cls):
    """CLS after some calls at a site that specialises for it."""
    site = site_of("used")
    for _ in range(rng.choice([0, 1, 2, 20])):
        site(cls)
    return cls


# ---- ways to make a class; each is given an __init__ and other bases ----

def statement(init, bases):
    class C(*bases):
        __init__ = init
    return C


def called(init, bases):
    return type("C", bases, {"__init__": init})


def called_new(init, bases):
    return type.__new__(type, "C", bases, {"__init__": init})


def called_call(init, bases):
    return type.__call__(type, "C", bases, {"__init__": init})


def through_map(init, bases):
    return next(map(type, ["C"], [bases], [{"__init__": init}]))


def new_class(init, bases):
    return types.new_class("C", bases, exec_body=lambda scope: scope.update(__init__=init))


def assigned(init, bases):
    C = used(type("C", bases, {}))
    C.__init__ = init
    return C


def assigned_by_type(init, bases):
    C = used(type("C", bases, {"__init__": other_init()}))
    type.__setattr__(C, "__init__", init)
    return C


def put_back(init, bases):
    C = type("C", bases, {"__init__": init})
    with mock.patch.object(C, "__init__", other_init()):
        used(C)
    return C


def inherited(init, bases):
    return type("D", (type("C", bases, {"__init__": init}),), {})


def inherited_later(init, bases):
    B = type("B", bases, {"__init__": other_init()})
    D = used(type("D", (type("C", (B,), {}),), {}))
    B.__init__ = init
    return D


def uncovered(init, bases):
    D = used(type("D", (type("C", bases, {"__init__": init}),), {"__init__": other_init()}))
    del D.__init__
    return D


def other_bases(init, bases):
    class A(*bases):
        __init__ = other_init()

    class B(A):
        pass
    used(B)
    B.__bases__ = (type("C", bases, {"__init__": init}),)
    return B


def other_code(init, bases):
    def __init__(self):
        pass
    C = type("C", bases, {"__init__": types.FunctionType(__init__.__code__, init.__globals__)})
    C()
    C.__init__.__code__ = init.__code__
    return C


def meta(init, bases):
    class Meta(type):
        pass
    return Meta("C", bases, {"__init__": init}) if bases == (object,) else called(init, bases)


def meta_new(init, bases):
    class Meta(type):
        def __new__(metaclass, *words):
            return type.__new__(type, *words)
    return Meta("C", bases, {"__init__": init})


def abstract(init, bases):
    return abc.ABCMeta("C", (), {"__init__": init})


def generic(init, bases):
    class C(typing.Generic[typing.TypeVar("T")]):
        __init__ = init
    return C


def slotted(init, bases):
    return type("C", (), {"__init__": init, "__slots__": ("a",)})


def data(init, bases):
    @dataclasses.dataclass
    class C:
        a: int = 0
    C.__init__ = init
    return C


def data_slots(init, bases):
    return dataclasses.dataclass(slots=rng.random() < .5, init=False)(type("C", (), {"__init__": init, "__annotations__": {"a": int}}))


def tuples(init, bases):
    return type("C", (collections.namedtuple("N", ""),), {"__init__": init})


def unpickled(init, bases):
    kept = called(init, bases)
    kept.__module__, kept.__qualname__, kept.__name__ = "__main__", "kept", "kept"
    globals()["kept"] = kept
    return type(pickle.loads(pickle.dumps(kept.__new__(kept))))


def copied(init, bases):
    C = called(init, bases)
    return type(C)("C", C.__bases__, {k: v for k, v in C.__dict__.items() if k not in ("__dict__", "__weakref__")})


def in_thread(init, bases):
    found = []
    thread = threading.Thread(target=lambda: found.append(called(init, bases)))
    thread.start()
    thread.join()
    return found[0]


MAKERS = [statement, called, called_new, called_call, through_map, new_class, assigned, assigned_by_type, put_back, inherited, inherited_later, uncovered,
          other_bases, other_code, meta, meta_new, abstract, generic, slotted, data, data_slots, tuples, unpickled, copied, in_thread]

class Plain:
    pass


class Counted:
    def __init__(self):
        pass


def bases():
    return rng.choice([(object,), (object,), (Plain,), (Counted,), (Plain, Counted)])


# ---- where it is called ----

SITES = ["def site(cls):\n    return cls()\n",
         "def site(cls):\n    for _ in range(3):\n        cls()\n",
         "def site(cls):\n    return [cls() for _ in range(2)]\n",
         "def site(cls):\n    return list(map(lambda _: cls(), range(2)))\n",
         "def site(cls):\n    return next(iter(cls, None), None)\n",
         "def site(cls):\n    return cls(*())\n"]


def site_of(number):
    """A site that has been warmed up by other callables, so that it specialises at any call of the next."""
    site = made(number, "site", rng.choice(SITES[:3] if rng.random() < .8 else SITES))
    other = rng.choice([dict, list, Plain, Counted, lambda: None])
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3, 5, 17, 60])):
        site(other)
    return site


LOOP = """
def site():
    for number in range(first, first + {many}):
        {make}
        cls()
        cls()
"""


def in_one_frame(number, many):
    """Classes made and called at one site, without a call of Python in between."""
    make = rng.choice(['cls = type("C", (), {"__init__": inits[number]})', 'cls = type("C", (base,), {"__init__": inits[number]})', 'cls = new(type, "C", (base,), {"__init__": inits[number]})',
                       'cls = type("C", (base,), {}); cls.__init__ = inits[number]', 'cls = old[number % 3]; cls.__init__ = inits[number]'])
    inits = {number + i: init_of(number + i) for i in range(many)}
    old = [type("C", (), {"__init__": lambda self: None}) for _ in range(3)]
    made(number, "site", LOOP.format(make=make, many=many), first=number, inits=inits, base=rng.choice([object, Plain, Counted]), new=type.__new__, old=old)()


class Registry:
    """The class is called while it is being made."""
    def __init_subclass__(cls):
        cls.__made__(cls)


class Named:
    def __set_name__(self, owner, name):
        self.site(owner)


def while_made(number):
    for i in range(number, number + 6):
        type("C", (Registry,), {"__made__": site_of(i) if rng.random() < .3 else COMMON, "__init__": init_of(i)})
    for i in range(number + 6, number + 12):
        named = Named()
        named.site = COMMON
        type("C", (), {"__init__": init_of(i), "named": named})


COMMON = made("common", "site", SITES[0])


def program(classes):
    number = 0
    while number < classes:
        kind = rng.random()
        if kind < .1:
            in_one_frame(number, 12)
            number += 12
        elif kind < .2:
            while_made(number)
            number += 12
        else:
            make = rng.choice(MAKERS)
            cls = make(init_of(f"{make.__name__}_{number}"), bases())
            site = COMMON if rng.random() < .3 else site_of(number)
            for _ in range(rng.choice([1, 2, 3, 50])):
                site(cls)
            number += 1


# ---- what ran ----

seen = collections.Counter()


def started(code, offset):
    if code.co_filename == FILE and code.co_qualname.startswith(("__init___", "helper")):
        seen[code.co_qualname, sys._getframe(2).f_code.co_qualname] += 1


def main():
    events = sys.monitoring.events
    sys.monitoring.use_tool_id(4, "inits")
    sys.monitoring.register_callback(4, events.PY_START, started)
    recording = contextlib.nullcontext()
    older = []
    if sys.argv[3:]:
        import dyntrace
        older = [(site_of(10**6 + i), make(init_of(f"{make.__name__}_{10**6 + i}"), bases())) for i, make in enumerate(MAKERS * 2)]
        for site, cls in older:
            for _ in range(rng.choice([0, 1, 2, 50])):
                site(cls)
        recording = dyntrace.record(sys.argv[4])
    with recording:
        sys.monitoring.set_events(4, events.PY_START)
        for site, cls in older:
            site(cls)
            site_of(2 * 10**6)(cls)
        program(int(sys.argv[2]))
        sys.monitoring.set_events(4, 0)
    print(json.dumps(sorted([*key, times] for key, times in seen.items())))


main()
