"""Objects: attributes read and written, properties, descriptors, __getattr__."""


class Plain:
    def __init__(self, **values):
        self.__dict__.update(values)


class Slotted:
    __slots__ = ("w", "n")

    def __init__(self, w, n):
        self.w, self.n = w, n


class WithProperty:
    def __init__(self, w):
        self._w = w

    @property
    def w(self):
        log("asked")
        return self._w * 2

    @w.setter
    def w(self, value):
        log("set")
        self._w = value


class Dynamic:
    def __getattr__(self, name):
        log("getattr " + name)
        if name == "two":
            return 2
        raise AttributeError(name)


class Everything:
    def __getattribute__(self, name):
        log("get " + name)
        return object.__getattribute__(self, name)

    n = 3


class Guarding:
    def __setattr__(self, name, value):
        log("set " + name)
        super().__setattr__(name, value)


class Descriptor:
    def __get__(self, owner, kind):
        log("descriptor")
        return 5


class Described:
    d = Descriptor()


plain = Plain(w=3, n=1)


@calls("A(3), Plain(w=2)", "A(3), Plain(w=2)", "A(3), Plain(w=3)", "A(3), Plain(v=3)")
def read(x, o):
    return x * o.w


@calls("A(3), Plain(w=A(3), b=A(1))", "A(3), Plain(w=A(3), b=A(1))", "A(3), Plain(w=A(1), b=A(3))")
def read_arrays(x, o):
    return x * o.w + o.b


@calls("A(3), Plain(w=2)", "A(3), Plain(w=2)")
def written(x, o):
    o.w = x * o.w
    o.n = 5
    return o.w + o.n


@calls("A(3), Plain(n=0)", "A(3), Plain(n=1)")
def counted(x, o):
    o.n += 1
    return x * o.n


def of_global(x):
    plain.n += 1
    return x * plain.n + plain.w


@calls("A(3), Slotted(2, 3)", "A(3), Slotted(A(3), 3)", "A(3), Slotted(2, 4)")
def slots(x, o):
    o.n = o.n * 2
    return x * o.w + o.n


@calls("A(3), WithProperty(2)", "A(3), WithProperty(3)")
def a_property(x, o):
    y = x * o.w
    o.w = 7
    return y + o.w


@calls("A(3), Dynamic()", "A(3), Dynamic()")
def dynamic(x, o):
    return x * o.two


@calls("A(3), Dynamic()")
def dynamic_missing(x, o):
    return x * o.three


@calls("A(3), Everything()", "A(3), Everything()")
def everything(x, o):
    return x * o.n


@calls("A(3), Guarding()")
def guarding(x, o):
    o.n = 3
    o.x = x + 1
    return o.x * o.n


@calls("A(3), Described()", "A(3), Described()")
def described(x, o):
    return x * o.d


@calls("A(3), Plain(n=1)", "A(3), Plain()")
def asked_for(x, o):
    if hasattr(o, "n"):
        return x + getattr(o, "n")
    return x + getattr(o, "n", 10)


@calls("A(3), Plain(n=1)", "A(3), Plain(n=1)")
def set_by_name(x, o):
    setattr(o, "m", x)
    delattr(o, "n")
    return o.m, vars(o)


@calls("A(3), Plain(o=Plain(o=Plain(n=2)))", "A(3), Plain(o=Plain(o=Plain(n=3)))")
def nested(x, o):
    return x * o.o.o.n


@calls("A(3), Plain(items=[A(3), A(3)])", "A(3), Plain(items=[A(3)])")
def list_in_attribute(x, o):
    for each in o.items:
        x = x + each
    o.items.append(x)
    return x


class Constant:
    N = 4


def class_attribute(x):
    return x * Constant.N


@calls("A(3)", "(setattr(Constant, 'N', 6), A(3))[1]")
def class_attribute_changed(x):
    return x * Constant.N


@calls("A(3), Plain(n=1), Plain(n=1)", "A(3), plain, plain", "A(3), Plain(n=1), Plain(n=1)")
def same_object(x, a, b):
    a.n = 10
    return x * b.n, a is b


def attribute_of_array(x):
    try:
        x.some_note = 3
        return x * x.some_note
    except AttributeError as error:
        return "no"


@calls("A(3), Plain(f=lambda v: v * 2)", "A(3), Plain(f=lambda v: v * 3)")
def function_in_attribute(x, o):
    return o.f(x)


@calls("A(3), Plain(n=1), {'k': 1}", "A(3), Plain(), {'k': 1}", "A(3), Plain(n=1), {}", "A(3), Plain(n=1), {'k': 1}")
def read_for_nothing(x, o, d):
    o.n
    d["k"]
    return x + 1


@calls("A(3), Plain(n=1)", "A(3), Plain()", "A(3), Plain(n=2)", "A(3), Dynamic()", "A(3), 5")
def asked_in_turn(x, o):
    if hasattr(o, "n") and hasattr(x, "sum"):
        return x + getattr(o, "n")
    return x - 1


class NotThere(type):
    @property
    def n(cls):
        log("asked of the class")
        raise AttributeError


class WithoutIt(metaclass=NotThere):
    @property
    def n(self):
        log("asked of the object")
        raise AttributeError


@calls("A(3), WithoutIt", "A(3), WithoutIt()", "A(3), WithoutIt", "A(3), Plain(n=1)")
def property_is_not_there(x, o):
    if hasattr(o, "n"):
        return x + 1
    return x - 1
