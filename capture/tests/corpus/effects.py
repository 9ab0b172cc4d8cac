"""Side effects happen once each, in order."""


def printed(x):
    print("start")
    x = x + 1
    print("middle", x.shape)
    x = x * 2
    print("end")
    return x


def printed_first(x):
    print("hello")
    return x + 1


def printed_last(x):
    y = x + 1
    print("bye")
    return y


def printed_array(x):
    y = x + 1
    print(y)
    return y * 2


@calls("A(3), []", "A(3), []")
def appended(x, out):
    out.append(x + 1)
    log("middle")
    out.append(x * 2)
    return len(out)


@calls("A(3), {}", "A(3), {'n': 5}")
def dict_filled(x, d):
    d["n"] = d.get("n", 0) + 1
    d["x"] = x * d["n"]


def effects_between(x):
    log(1)
    a = x + 1
    log(2)
    b = a * 2
    log(3)
    c = b - 3
    log(4)
    return c


def in_argument_order(x):
    def note(v, n):
        log(n)
        return v
    return note(x, 1) + note(x + 1, 2) * note(x + 2, 3)


def in_subscripts(x):
    d = {}
    def note(n):
        log(n)
        return n
    d[note(1)] = note(2)
    d[note(3)] = d[note(1)] + note(4)
    return x * d[3]


def array_and_list(x):
    many = []
    for i in range(3):
        x[i] = i * 10
        many.append(x.sum())
        log(i)
    return many, x


def iterator_advanced(x):
    it = iter(range(10))
    x = x + next(it)
    log("between")
    x = x * next(it)
    return x, next(it)


@calls("A(3), iter(range(9))", "A(3), iter(range(9))")
def outside_iterator(x, it):
    x = x + next(it)
    log("a")
    return x * next(it)


@calls("A(3), iter(range(1))", "A(3), iter(range(0))")
def outside_iterator_ends(x, it):
    x = x + next(it)
    return x * next(it)


def random_numbers(x):
    import random
    random.seed(3)
    return x * random.random() + random.random()


def random_of_library(x):
    if xp.__name__ == "torch":
        xp.manual_seed(3)
        return x + xp.rand(3), xp.rand(1)
    xp.random.seed(3)
    return x + xp.random.rand(3), xp.random.rand(1)


class Counter:
    total = 0

    def bump(self):
        self.total += 1
        Counter.total += 10
        return self.total


counter = Counter()


def object_counter(x):
    return x * counter.bump() + counter.bump(), Counter.total


def effect_before_error(x):
    log("before")
    y = x + 1
    log("also")
    y.no_such_attribute
    log("never")


@calls("A(3), []")
def list_of_itself(x, many):
    many.append(many)
    return x + len(many)


def sort_with_key(x):
    order = []
    def key(v):
        order.append(v)
        return -v
    return x * sorted([2, 3, 1], key=key)[0], order


def environment(x):
    import os
    os.environ["DYNTRACE_CORPUS"] = "1"
    y = x + 1
    return y, os.environ.pop("DYNTRACE_CORPUS")


def written_to_file(x):
    import io
    f = io.StringIO()
    f.write("a")
    y = x * 2
    f.write(str(y.shape))
    return y, f.getvalue()


def exec_inside(x):
    scope = {"x": x}
    exec("y = x + 1", scope)
    return scope["y"], eval("x * 2")


def weak_references(x):
    import weakref
    class Thing:
        pass
    t = Thing()
    r = weakref.ref(t, lambda r: log("gone"))
    y = x + 1
    del t
    log("after")
    return y, r()


class Thing:
    def __init__(self, **values):
        self.__dict__.update(values)

    def add(self, n):
        self.n += n
        return self.n


stored = None


@calls("A(3), Thing(n=0), I(1) * 0", "A(3), Thing(n=0), I(1) * 0 + 1", "A(3), Thing(n=0), I(1) * 0 + 9", "A(3), Thing(n=0), I(1) * 0 + 9")
def until_it_raises(x, o, i):
    global stored
    o.first = x + 1
    o.many = [o.first]
    stored = x
    y = o.first[i]
    o.n = 5
    stored = None
    return y * o.n


@calls("A(3), [], I(1) * 0", "A(3), [], I(1) * 0 + 1", "A(3), [], I(1) * 0 + 9", "A(3), [], I(1) * 0 + 9")
def list_until_it_raises(x, many, i):
    many.append(x * 2)
    many.append(i)
    many.append(x[i])
    many[0] = many[1]
    return many


@calls("A(3), Thing(n=1), Thing(n=2)", "*(lambda o: (A(3), o, o))(Thing(n=1))", "A(3), Thing(n=1), Thing(n=2)")
def by_two_names(x, a, b):
    a.n = x + 1
    return b.n * 2




@calls("A(3), Thing(n=1), Thing(n=2)", "A(3), *[Thing(n=1)] * 2", "A(3), Thing(n=1), Thing(n=2)")
def both_written(x, a, b):
    a.n = 1
    b.n = 2
    return x * a.n


@calls("A(3), [1], [2]", "A(3), *[[1]] * 2", "A(3), [1], [2]")
def lists_by_two_names(x, a, b):
    a.append(x + 1)
    return x * len(b), b[-1]


@calls("A(3), {'a': 1}, {'a': 2}", "A(3), *[{'a': 1}] * 2", "A(3), {'a': 1}, {'a': 2}")
def dicts_by_two_names(x, a, b):
    a["a"] = x * 3
    a["b"] = 1
    return b["a"], "b" in b, len(a), len(b)


@calls("A(3), Thing(n=1)", "A(3), Thing(n=1)", "A(3), Thing(n=A(2))")
def put_and_grown(x, o):
    o.many = many = []
    o.pair = (many, o.n)
    many.append(x + 1)
    o.many.append(many[0] * 2)
    o.table = {"a": many}
    o.table["b"] = o.n
    o.n = None
    return many, o.pair[1], len(o.table)


@calls("A(3), Thing(n=1)", "A(3), Thing(n=1)", "A(3), Thing(n=2)")
def in_steps(x, o):
    y = x * o.add(1) + o.add(2)
    def later(v):
        o.n = o.n * 2
        return v + o.n
    return later(y), o.n


@calls("A(3), Thing(n=1, many=[])", "A(3), Thing(n=1, many=[])", "A(3), Thing(n=2, many=[4])")
def taken_back(x, o):
    mine = []
    def inner(v):
        o.n = 7
        o.many.append(v)
        mine.append(v + 1)
        o.kept = mine
        print("breaks")
        mine.append(o.n)
        return v * o.n
    o.n = 3
    o.many.append(o.n)
    y = inner(x + o.n)
    return y * o.n, mine, len(o.many)


def make_shared():
    n, seen = 0, []
    def up(v):
        nonlocal n
        n += 1
        seen.append(n)
        return v + n
    def f(x):
        nonlocal n
        x = up(x) * n
        n = n * 2
        x = up(x) * n
        return x, len(seen)
    return f


shared_cell = entry(make_shared(), "shared_cell")


class Loud:
    def __del__(self):
        log("died")


@calls("A(3), Thing(n=1)", "A(3), Thing(n=Loud())", "A(3), Thing(n=1)", "A(3), Thing(n=[Loud()])", "A(3), Thing(n=1)")
def gives_way(x, o):
    y = x + 1
    o.n = y
    log("after")
    return y * 2


@calls("A(3), Thing(n=1)", "A(3), Thing(n=1)")
def gives_way_to_itself(x, o):
    o.n = o.n
    o.m = o
    o.n = (x, o.n)
    return x + 1


import sys
this = sys.modules[__name__]


def module_and_global(x):
    global stored
    stored = x + 1
    y = this.stored * 2
    stored = None
    return y


@calls("A(3), [1, 2]", "A(3), [1, 2]", "A(3), [3, 2, 1]")
def grown_while_gone_through(x, many):
    for n in many:
        x = x + n
        if len(many) < 5:
            many.append(n + 1)
    for a, b in zip(many, many):
        many[0] = 7
        x = x * a - b
    return x, many


@calls("A(3), Thing(n=1)", "A(3), Thing(n=1)")
def seen_by_library(x, o):
    o.n = x
    y = xp.stack([o.n, x])
    o.n = None
    many = [y]
    o.many = many
    many.append(x)
    return xp.concatenate(many[:1]) if xp.__name__ == "numpy" else xp.cat(many[:1])


class Worker(Thing):
    def work(self, v, mine):
        self.n = 7
        self.many.append(v)
        mine.append(v + 1)
        self.kept = mine
        print("breaks")
        mine.append(self.n)
        return v * self.n


@calls("A(3), Worker(n=1, many=[])", "A(3), Worker(n=1, many=[])", "A(3), Worker(n=2, many=[4])")
def taken_back_method(x, o):
    mine = []
    o.n = 3
    o.many.append(o.n)
    y = o.work(x + o.n, mine)
    return y * o.n, mine, len(o.many)


class Seer:
    def __init__(self, x):
        self.x = x

    def __del__(self):
        log(float(self.x[0]))


@calls("A(3), False", "A(3), True", "A(3), False")
def seen_by_what_gives_way(x, loud):
    o = Thing(n=Seer(x) if loud else 1)
    print("made")
    o.n = 1
    x[0] = 9
    return x + 1


class Growing:
    pass


class Loudly:
    def __set__(self, owner, value):
        log("set")

    def __get__(self, owner, kind):
        return 7


def with_growing(x, o):
    o.n = 1
    o.m = x + 1
    return o.m * o.n


@calls("A(3), Growing()", "A(3), Growing()", "(setattr(Growing, '__setattr__', lambda o, k, v: log(k) or object.__setattr__(o, k, v * 2)), A(3))[1], Growing()",
       "(delattr(Growing, '__setattr__'), A(3))[1], Growing()", "(setattr(Growing, 'n', Loudly()), A(3))[1], Growing()", "(delattr(Growing, 'n'), A(3))[1], Growing()")
def class_that_grows(x, o):
    return with_growing(x, o)


@calls("A(3), int", "A(3), Thing", "A(3), ValueError", "A(3), int")
def attribute_of_a_type_in_c(x, kind):
    y = x + 1
    try:
        kind.extra = 1
        y = y + kind.extra
        del kind.extra
    except TypeError as error:
        log(str(error)[:20])
    return y * 2


@calls("A(3), Thing(n=1, b=[1]), [2]", "*(lambda o: (A(3), o, o.b))(Thing(n=1, b=[1]))", "A(3), Thing(n=1, b={}), {}", "*(lambda o: (A(3), o, o.b))(Thing(n=1, b={}))",
       "A(3), Thing(n=1, b=[1]), [2]")
def inner_by_two_names(x, a, b):
    a.n = x * 2
    if type(b) is list:
        b.append(a.n)
        a.b.append(1)
    else:
        b["a"] = a.n
        a.b["b"] = b["a"]
        a.b["a"] = 1
    return len(b), len(a.b), x + a.n, "a" in a.b, 1 in b
