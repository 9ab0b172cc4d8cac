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
