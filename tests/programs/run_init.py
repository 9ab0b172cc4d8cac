"""Makes objects in every way, and says what came of it: a class with a Python __init__ is called in another way when recorded (3.13)."""
import abc
import dataclasses
import functools
import sys
import traceback
import weakref


def say(name, function, *args, **kw):
    for _ in range(40):  # often enough for a specialised call
        try:
            result = function(*args, **kw)
            said = type(result).__name__, getattr(result, "__dict__", None)
        except Exception as error:
            lines = [line.name for line in traceback.extract_tb(error.__traceback__)]
            said = type(error).__name__, str(error), lines
    print(name, said)


class Plain:
    def __init__(self, a, b=2, *rest, c=3, **more):
        self.all = a, b, rest, c, more


def forms():
    one = [1, 5, 6]
    say("positional", lambda: Plain(1))
    say("two", lambda: Plain(1, 2))
    say("keyword", lambda: Plain(1, c=5, d=6))
    say("star", lambda: Plain(*one, **{"c": 1, "e": 2}))
    say("star star", lambda: Plain(**{"a": 1}))
    say("missing", lambda: Plain())
    say("wrong", lambda: Plain(1, a=2))
    say("partial", functools.partial(Plain, 7, c=1))
    say("map", lambda: list(map(Plain, one))[2])
    say("call", lambda: Plain.__call__(3))
    say("type.__call__", lambda: type.__call__(Plain, 3, 4))
    say("sorted", lambda: sorted([3, 1], key=lambda x: Plain(x).all[0]))


class Bad:
    def __init__(self, what=None):
        if what is None:
            raise ValueError("no")
        self.what = what
        return what


class Slots:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


class Abstract(abc.ABC):
    def __init__(self, x):
        self.x = x

    @abc.abstractmethod
    def f(self): ...


class Concrete(Abstract):
    def f(self): ...


class Meta(type):
    def __call__(cls, *args, **kw):
        made = super().__call__(*args, **kw)
        made.meta = args
        return made


class Made(metaclass=Meta):
    def __init__(self, x):
        self.x = x


class Quiet(type):
    pass


class Quieter(metaclass=Quiet):
    def __init__(self, x):
        self.x = x


class New:
    def __new__(cls, x):
        return super().__new__(cls) if x else 17

    def __init__(self, x):
        self.x = x


class Fails(Exception):
    def __init__(self, x):
        super().__init__(x)
        self.x = x


@dataclasses.dataclass
class Data:
    a: int
    b: str = "b"


class Gone:
    died = 0

    def __init__(self, fail):
        self.ref = weakref.ref(self)
        if fail:
            raise KeyError(fail)

    def __del__(self):
        Gone.died += 1


class Changing:
    def __init__(self, x):
        self.x = x


class Below(Changing):
    def __init__(self, x):
        super().__init__(x + 1)
        self.y = x


class Switch:
    def __init__(self, other=None):
        if other:
            self.__class__ = other  # from here on it is an object of another class
        self.done = True


def changes():
    make = lambda: Changing(1)
    say("before", make)
    say("below", lambda: Below(1))
    Changing.__init__ = lambda self, x: setattr(self, "z", x)
    say("exchanged", make)
    say("below", lambda: Below(1))
    Changing.__init__ = functools.partialmethod(lambda self, a, x: setattr(self, "p", (a, x)), 8)
    say("partialmethod", make)
    Changing.__init__ = staticmethod(lambda x: None)
    say("static", make)
    Changing.__init__ = classmethod(lambda cls, x: setattr(cls, "k", x))
    say("class", make)
    Changing.__init__ = property(lambda self: lambda x: setattr(self, "q", x))
    say("property", make)
    Changing.__init__ = len
    say("builtin", make)
    Changing.__init__ = 5
    say("not callable", make)
    del Changing.__init__
    say("none", make)
    say("none", lambda: Changing())
    Changing.__new__ = lambda cls, x: 4
    say("new", make)
    Changing.__new__ = lambda cls, *x: object.__new__(cls)
    Changing.__init__ = lambda self, *x: setattr(self, "n", x)
    say("new", make)
    Made.__init__ = lambda self, *x: None
    say("made", lambda: Made(3))
    Quiet.__call__ = lambda cls, *x: ("quiet", x)
    say("quiet", lambda: Quieter(3))
    del Quiet.__call__
    say("loud", lambda: Quieter(3))


def deep(n):
    class Nest:
        def __init__(self, n):
            self.inner = Nest(n - 1) if n else None
    return Nest(n)


def main():
    forms()
    say("raises", lambda: Bad())
    say("returns", lambda: Bad(3))
    say("slots", lambda: Slots(3).x)
    say("abstract", lambda: Abstract(3))
    say("concrete", lambda: Concrete(3))
    say("meta", lambda: Made(3))
    say("quiet", lambda: Quieter(3))
    say("new", lambda: New(3))
    say("new", lambda: New(0))
    say("exception", lambda: Fails(3))
    say("data", lambda: Data(3))
    say("gone", lambda: Gone(0).ref())
    say("gone", lambda: Gone(1))
    print(Gone.died)
    say("switch", lambda: Switch(Plain))
    changes()
    deep(300)
    try:
        deep(10000)
    except RecursionError as error:
        print(error)
    events = []
    sys.setprofile(lambda frame, event, argument: events.append((event, frame.f_code.co_name)))
    Slots(1), Plain(1, b=2), Made(1)
    sys.setprofile(None)
    print(events)


main()
