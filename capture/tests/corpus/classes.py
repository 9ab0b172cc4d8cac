"""Classes of the user: methods, inheritance, instances made inside, special methods."""
import dataclasses
import typing


class Linear:
    def __init__(self, w, b):
        self.w, self.b = w, b

    def __call__(self, x):
        return x * self.w + self.b

    def twice(self, x):
        return self(self(x))

    @classmethod
    def made(cls, n):
        return cls(n, 1)

    @staticmethod
    def shifted(x, n):
        return x + n

    @property
    def size(self):
        return self.w + self.b


class Scaled(Linear):
    def __call__(self, x):
        return super().__call__(x) * 2


class Chain:
    def __init__(self, *layers):
        self.layers = layers

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def __len__(self):
        return len(self.layers)

    def __getitem__(self, i):
        return self.layers[i]

    def __iter__(self):
        return iter(self.layers)

    def __contains__(self, layer):
        return layer in self.layers


linear = Linear(2, 1)


def called(x):
    return linear(x) + 1


@calls("A(3), Linear(A(3), A(1))", "A(3), Linear(A(3), A(1))", "A(3), Linear(2, 3)", "A(3), Scaled(2, 3)")
def argument_called(x, layer):
    return layer(x)


def method(x):
    return linear.twice(x)


def class_method(x):
    return Linear.made(3)(x)


def static_method(x):
    return Linear.shifted(x, 3) + linear.shifted(x, 2)


def property_read(x):
    return x * linear.size


def instance_made(x):
    return Scaled(2, x)(x)


def subclass(x):
    return Scaled(2, 3).twice(x)


def chain(x):
    c = Chain(linear, Scaled(1, 2), linear)
    return c(x), len(c), c[0] is linear, linear in c, [layer.w for layer in c]


entry(linear, "callable_object")
entry(Linear(3, 1).twice, "bound_method")
entry(Chain(Linear(2, 1), Scaled(1, 1)), "callable_chain")


@dataclasses.dataclass
class Point:
    x: typing.Any
    y: int = 2

    def sum(self):
        return self.x + self.y


@calls("Point(A(3))", "Point(A(3), 3)", "Point(A(4), 3)")
def dataclass_argument(p):
    return p.x * p.y + p.sum()


def dataclass_made(x):
    p = Point(x, 5)
    return dataclasses.replace(p, y=1).sum(), p == p


class Pair(typing.NamedTuple):
    a: typing.Any
    b: typing.Any


@calls("Pair(A(3), 2)", "Pair(A(3), 3)", "Pair(A(3), A(3))")
def namedtuple_argument(p):
    a, b = p
    return a * b + p.a, type(p).__name__


class Vector:
    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        log("add")
        return Vector(self.v + (other.v if isinstance(other, Vector) else other))

    __radd__ = __add__

    def __mul__(self, n):
        return Vector(self.v * n)

    def __neg__(self):
        return Vector(-self.v)

    def __eq__(self, other):
        log("eq")
        return True

    __hash__ = None

    def __getitem__(self, i):
        return self.v[i]

    def __len__(self):
        return 3


def overloaded(x):
    a, b = Vector(x), Vector(x + 1)
    return (a + b * 2 + 1).v, (1 + -a).v, a == b, a[0], len(a)


class Base:
    def go(self, x):
        return self.step(x) + 1

    def step(self, x):
        return x


class Derived(Base):
    def step(self, x):
        return super().step(x) * 3


@calls("A(3), Base()", "A(3), Derived()", "A(3), Base()")
def polymorphic(x, o):
    return o.go(x)


def isinstance_of(x):
    d = Derived()
    return isinstance(d, Base), issubclass(Derived, Base), type(d) is Derived, d.go(x)


def class_made_inside(x):
    class Local:
        n = 3

        def go(self, v):
            return v * self.n
    return Local().go(x)


class Meta(type):
    def __call__(cls, *args):
        log("meta")
        return super().__call__(*args)


class WithMeta(metaclass=Meta):
    def __init__(self, n):
        self.n = n


def metaclass(x):
    return x * WithMeta(3).n


class New:
    def __new__(cls, n):
        log("new")
        made = super().__new__(cls)
        made.n = n + 1
        return made

    def __init__(self, n):
        log("init")


def own_new(x):
    return x * New(3).n


@calls("A(3)", "(setattr(Base, 'step', lambda self, x: x * 100), A(3))[1]")
def method_changed(x):
    return Base().go(x)


class Finalised:
    def __del__(self):
        log("dead")


def finaliser(x):
    f = Finalised()
    y = x + 1
    log("before")
    del f
    log("after")
    return y * 2


def finaliser_at_the_end(x):
    f = Finalised()
    log("inside")
    return x * 2


class Changing:
    def __init__(self, k):
        self.k = k

    def __call__(self, v):
        return v * self.k


class Pretends(Changing):
    @property
    def __class__(self):
        log("asked for its class")
        return int


@calls("A(3), Changing(2), 0", "A(3), Changing(3), 0", "A(3), Changing(3), 1", "A(3), Pretends(3), 0", "A(3), Linear(2, 3), 0")
def object_called(x, o, n):
    y = o(x) + 1
    if n:
        Changing.__call__ = lambda self, v: v - self.k
        y = y + o(x)
    return y


class Account:
    kind = "plain"

    def __init__(self, value, limit=3):
        self.value = value
        self._limit = limit
        self.history = []

    @property
    def limit(self):
        return self._limit

    @limit.setter
    def limit(self, limit):
        self._limit = limit * 2

    def add(self, x):
        self.value = self.value + x
        self.history.append(x)
        return self

    def __len__(self):
        return len(self.history)

    def __contains__(self, x):
        return x in (1, 2)

    def __iadd__(self, other):
        self.value = self.value + other
        return self

    def __lt__(self, other):
        return self.limit < other.limit

    def __setitem__(self, k, v):
        self.value = self.value * v
        self.kind = k


def made_and_changed(x):
    a = Account(x)
    a.limit = 5
    a.add(x).add(x + 1)
    a += 2
    a["other"] = 3
    return a.value, a.limit, len(a), 1 in a, 5 in a, a.kind, Account.kind, a.history, a < Account(x, 1), bool(a), bool(Account(x))


def made_returned(x):
    a = Account(x)
    b = Account(a.value, 2)
    return a, [b, b], {"a": a}


def made_then_break(x):
    a = Account(x)
    a.add(1)
    log("broken")
    a.add(2)
    return a.value, len(a)


def made_in_a_loop(x):
    total = x
    for i in range(3):
        total = total + Account(x * i).add(i).value
    return total


class BadInit:
    def __init__(self, x):
        self.x = x
        raise ValueError("no")


def init_raises(x):
    return BadInit(x + 1)


class ReturnsValue:
    def __init__(self, x):
        return x


def init_returns(x):
    return ReturnsValue(x)


class A1:
    def __init__(self, n):
        self.n = n

    def go(self, x):
        return x + self.n


class B1(A1):
    def __init__(self, n):
        super().__init__(n)
        self.b = n * 2

    def go(self, x):
        return super().go(x) * self.b


class C1(A1):
    def go(self, x):
        return super().go(x) - 1


class D1(B1, C1):
    def go(self, x):
        return super().go(x) + 7


def diamond(x):
    return D1(2).go(x), D1.__mro__[1].__name__, super(D1, D1(1)).go(x)


@calls("A(3), D1(2)", "A(3), B1(3)", "A(3), C1(4)", "A(3), D1(2)", "A(3), D1(5)")
def super_of_argument(x, o):
    return o.go(x)


class Money:
    def __init__(self, n):
        self.n = n

    def __add__(self, other):
        if not isinstance(other, Money):
            return NotImplemented
        return Money(self.n + other.n)

    def __rmul__(self, k):
        return Money(k * self.n)

    def __eq__(self, other):
        return isinstance(other, Money) and self.n is other.n

    def __bool__(self):
        return self.n is not None


class More(Money):
    def __radd__(self, other):
        return More(other.n - self.n)


def arithmetic(x):
    return (Money(x) + Money(1)).n, (2 * Money(x)).n, Money(3) == Money(3), Money(3) != Money(4), not Money(None), (Money(x) + More(1)).n


def not_added(x):
    return Money(x) + 1


class Silent:
    pass


def empty_object(x):
    s = Silent()
    s.a, s.b = x, x + 1
    if s:
        s.c = s.a * s.b
    return s, s.c


@calls("A(3), 0", "A(3), 0", "A(3), 1", "A(3), 2", "A(3), 3", "A(3), 0")
def class_changes(x, n):
    class_ = Silent
    if n == 1:
        class_.a = property(lambda self: 5, lambda self, v: log(("set", v)))
    if n == 2:
        del class_.a
        class_.__bool__ = lambda self: False
    if n == 3:
        del class_.__bool__
        class_.__setattr__ = lambda self, k, v: object.__setattr__(self, k, v + 1)
    y = empty_object(x) if n != 2 else x
    if n == 3:
        del class_.__setattr__
    return y


class Slotted:
    __slots__ = ("v", "n")

    def __init__(self, v):
        self.v = v
        self.n = 2


def slotted(x):
    s = Slotted(x)
    s.v = s.v * s.n
    return s.v + 1


def missing_attribute(x):
    return Slotted(x).nothing


def unset_slot(x):
    s = Slotted(x)
    del s.n
    return s.n


class Linked:
    def __init__(self, v, next=None):
        self.v, self.next = v, next
        self.me = self


def linked(x):
    a = Linked(x, Linked(x + 1))
    return a.v + a.next.v, a.me is a, a.next.me is a


def kept_outside(x):
    a = Account(x)
    shared_list.append(a)
    a.add(1)
    log(len(shared_list))
    a.add(2)
    return shared_list.pop().value


shared_list = []


class Counted:
    made = 0

    def __init__(self):
        Counted.made += 1
        self.number = Counted.made

    @classmethod
    def another(cls):
        return cls()

    @staticmethod
    def twice(x):
        return x * 2


def class_counter(x):
    return Counted().another().number - Counted.another().number, Counted.twice(x), Counted().twice(x)


class Denies(type):
    def __instancecheck__(cls, o):
        log("instance")
        return False

    def __subclasscheck__(cls, sub):
        log("subclass")
        return False


class Denied(metaclass=Denies):
    pass


class Beneath(Denied):
    pass


@calls("A(3), Denied()", "A(3), Beneath()", "A(3), 5")
def metaclass_says(x, o):
    return isinstance(o, Denied), issubclass(type(o), Denied), isinstance(x, Denied), issubclass(Derived, Base), issubclass(Base, (Derived, int)), x + 1


class Again(Counted):
    def __init__(self, number=1):
        self.number = number

    def again(self):
        return type(self)(self.number + 1)


class AgainTwice(Again):
    def again(self):
        return type(self)(self.number + 2)


@calls("A(3), Again(1)", "A(3), Again(2)", "A(3), AgainTwice(1)", "A(3), Again(1)")
def class_of_itself(x, o):
    return x + o.again().number, type(o) is Again


class Proxy:
    def __init__(self, to):
        self.to = to

    def __getattribute__(self, name):
        to = object.__getattribute__(self, "to")
        return to if name == "to" else getattr(to, name)


@calls("A(3), Proxy(Again())", "A(3), Again()", "A(3), Proxy(5)", "A(3), 5")
def instance_by_proxy(x, o):
    return x + 1 if isinstance(o, Again) else x - 1


class Switch:
    def __init__(self, on):
        self.on = on

    def __bool__(self):
        return self.on

    def __contains__(self, item):
        return self.on


@calls("A(3), Switch(True)", "A(3), Switch(False)", "A(3), Switch(True)")
def not_by_method(x, o):
    return x + 1, not o


@calls("A(3), Switch(True)", "A(3), Switch(False)", "A(3), Switch(True)")
def if_by_method(x, o):
    return x + 1 if o else x - 1


@calls("A(3), Switch(True)", "A(3), Switch(False)", "A(3), Switch(True)")
def not_in_by_method(x, o):
    return x + 1, 5 not in o


class Above:
    def __init__(self, v):
        self.v = v

    def __sub__(self, other):
        return "above", self.v - other.v

    def __eq__(self, other):
        return self.v is other.v

    def __lt__(self, other):
        return "lt", self.v


class Same(Above):
    pass


class Other(Above):
    def __rsub__(self, other):
        return "other", self.v + other.v

    def __isub__(self, other):
        return "in place"

    def __ne__(self, other):
        return NotImplemented

    def __gt__(self, other):
        return "gt", self.v


def right_before_left(x):
    a, b, c = Above(x), Same(x), Other(x)
    d = c
    d -= a
    return a - b, a - c, b - c, c - a, d, a == b, a != b, a != c, c != c, a < c, a.__class__ is Above, (a, 1) == (b, 1), (a, 2) != (b, 2), [a] == [b, a], [c, b] != [a, a]


@calls("A(3), Above(1), Above(1)", "A(3), Above(1), Above(2)", "*(lambda o: (A(3), o, o))(Above(1))", "A(3), (1, [2.5]), (1, [2.5])", "A(3), [A(1)], [A(1)]", "shared, (shared, 1), (shared, 1)")
def equal_or_not(x, a, b):
    return x + 1, (a, 1) == (b, 1), [a, b] != [b, a], a.__class__, a is b


class Variadic:
    def __call__(self, x, a=1, *more, k=2, **named):
        return x * k + a + len(more) + named.get("z", 0)


variadic = Variadic()


def called_with_names(x):
    return variadic(x, k=3) + variadic(x, 1, 2, 3, z=5) + variadic(x, **{"k": 4, "a": 7})
