"""Objects of builtin classes that are made in the function, iterators, and what may be done with them: also hostile ones."""
import functools
import itertools
import operator


class Same:
    """Equal to everything, and says so loudly."""

    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        log("equal %d" % self.n)
        return True

    def __hash__(self):
        log("hash %d" % self.n)
        return 1


def set_of_objects(x):
    s = {Same(1), Same(2)}
    return x + len(s), Same(3) in s


def set_order(x):
    s = set()
    for word in "the quick brown fox jumps over the lazy dog".split():
        s.add(word)
    s.discard("fox")
    s.discard("the")
    for n in range(20):
        s.add(n)
    return x * len(s), list(s), s


def set_grown_after_break(x):
    s = {1, 2}
    x = x + len(s)
    s.add(30)
    print("break")
    s.add(4)
    return x * len(s), sorted(s), 30 in s


def set_shared(x):
    s = {1}
    both = [s, s]
    s.add(2)
    o = (s | {5}, s & {1}, s - {2}, s ^ {9})
    s |= {7}
    return x + 1, both, both[0] is both[1], o, s == {1, 2, 7}, s <= {1, 2, 7, 8}


@calls("A(3), 3", "A(3), 4", "A(3), 3")
def set_that_raises(x, n):
    s = {1, 2}
    s.remove(n)
    return x


@calls("A(3), 1", "A(3), 4", "A(3), 1")
def set_raises_inside(x, n):
    s = {1, 2}
    y = x * 2
    try:
        s.add(n + 1)
        s.remove(n)
        y = y + 1
    except KeyError as error:
        y = y - 1
    return y, s


def set_in_helper(x):
    def fill(s, n):
        s.add(n)
        if n == 3:
            print("breaks")
        s.add(n * 10)
        return len(s)
    s = {0}
    return x * fill(s, 1) + fill(s, 3), s


@calls("A(3), {1, 2}", "A(3), {1, 2}", "A(3), {True, 2}", "A(3), {3}", "A(3), {1.0, 2}", "A(3), set()")
def set_given(x, s):
    y = x * len(s) + (1 in s)
    return y, list(s), (x if s else x + 1)


def exceptions_made(x):
    e = ValueError("no", x.shape)
    return x + 1, e, e.args, type(e) is ValueError


@calls("A(3), 1", "A(3), 0", "A(3), 1")
def exception_put_aside(x, n):
    seen = []
    seen.append(KeyError(n))
    if n == 0:
        raise seen[0]
    return x * 2, seen


def partial_changed(x):
    many = [x]
    f = functools.partial(len, many)
    many.append(x + 1)
    g = functools.partial(many.append)
    g(3)
    return f(), f.args[0] is many, many, f


def partial_overridden(x):
    def f(a, b=1, *more, c=2, **named):
        return a * b + c, more, named
    p = functools.partial(f, c=3, d=4)
    q = functools.partial(p, x, c=5)
    return p(x, 2), q(7, 8, e=9), p(x, c=1, d=2)


def partial_raises(x):
    return functools.partial(operator.getitem, [x])(4)


def getters(x):
    class_like = {"a": x, "b": [x + 1]}
    get = operator.itemgetter("b")
    return get(class_like)[0], operator.methodcaller("sum")(x), get


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        self.n -= 1
        if self.n < 0:
            raise StopIteration
        return self.n


def counted_down(x):
    c = Countdown(3)
    for i in c:
        x = x + i
    return x, c.n, [j for j in Countdown(2)], next(c, "end")


@calls("A(3), Countdown(3)", "A(3), Countdown(2)", "A(3), Countdown(3)")
def counted_outside(x, c):
    for i in c:
        x = x + i
    return x, c.n


class Stops:
    def __init__(self, n, error):
        self.n, self.error = n, error

    def __iter__(self):
        return self

    def __next__(self):
        self.n -= 1
        if self.n == 0:
            raise self.error
        return self.n


def stopped_by_other(x):
    out = []
    for i in Stops(3, StopIteration(5)):
        out.append(x * i)
    try:
        for i in Stops(3, KeyError("k")):
            out.append(x + i)
    except KeyError as error:
        out.append("key")
    return out


class Logs:
    n = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.n += 1
        log(self.n)
        if self.n > 2:
            raise StopIteration
        return self.n


def logged_iterator(x):
    return [x * i for i in Logs()]


def echo(x):
    got = yield x
    while got is not None:
        log("got")
        got = yield got * 2
    return "done"


def echoes(x):
    got = yield x + 1
    got = yield got * x
    try:
        yield got
    except ValueError:
        yield 0


def sends(x):
    e = echo(x)
    return next(e), e.send(x + 1), e.send(3), next(e, "end")


def sends_silently(x):
    def twice(v):
        got = yield v
        yield got * v
    g = twice(x)
    first = next(g)
    second = g.send(first + 1)
    try:
        g.send(1)
    except StopIteration as stop:
        return first, second, stop.value


def sends_too_early(x):
    g = (v for v in [x])
    return g.send(1)


def moved(x):
    many = [x, x + 1]
    out = list(itertools.chain(many, (2, x), "ab", {"k": x}))
    many.append(5)
    return out, list(itertools.product([x, 1], repeat=2))[3], list(itertools.permutations([x, 1, 2], 2))[0][0], list(itertools.islice(itertools.cycle([1, x]), 3))


def moved_twice(x):
    c = itertools.chain([x], [1, 2])
    first = next(c)
    d = itertools.islice(c, 1)
    return first + next(d), list(c), list(itertools.zip_longest([x], [1, 2], fillvalue=[]))


def moved_over_break(x):
    c = itertools.chain([x], [1, 2])
    y = next(c) + 1
    log("break")
    return y * next(c)


class Tally:
    total = 0
    seen = ()

    @classmethod
    def add(cls, n):
        cls.total += n
        return cls.total


class Below(Tally):
    pass


def class_value(x):
    Tally.total += 1
    y = x * Tally.total
    Tally.total = 5
    return y, Tally.total, Tally().total, Below.total, Below.add(2), Tally.add(3), Tally.total


def class_value_read_by_instance(x):
    t = Below()
    a = t.total
    Tally.total = a + 7
    return x * t.total, Tally.total


@calls("A(3), 3", "A(3), 4", "A(3), 4", "A(3), 9", "A(3), -2")
def compared(x, n):
    m = n * 2 - 1
    if m > 6 and n != 9:
        x = x + n
    return x * (n < 4), m >= n, n if n else 0


@calls("A(4)", "A(6)", "A(8)", "A(1)", "A(0)", "A(3)")
def size_decides(x):
    n = x.shape[0]
    if n % 2:
        return x + n
    if len(x) // 2 == 3:
        return x[:n // 2] * n, n
    return x * n, x.shape


@calls("A(2, 3)", "A(4, 3)", "A(4, 5)", "A(5, 4)", "A(2, 3)")
def sizes_of_both(x):
    a, b = x.shape
    y = x.reshape(b, a)
    return (y * a if a > b else y + b), len(x.shape), x.shape[-1], x.shape[0] == 4


@calls("A(3), A(3)", "A(4), A(4)", "A(5), A(4)", "A(5), A(5)", "shared, shared")
def sizes_of_two(x, y):
    if x.shape[0] == y.shape[0]:
        return x + y, x is y
    return x.sum() * y


@calls("A(3), slice(0, 2)", "A(3), slice(1, None)", "A(3), slice(0, 2)", "A(3), slice(0, True)")
def slice_given(x, s):
    return x[s] * 2, [1, 2, 3][s], s.stop


def keyword_defaults(x):
    many = []
    def f(v, *, by=2, into=many):
        into.append(by)
        return v * by
    return f(x), f(x, by=3), many, f, f.__kwdefaults__


class Maybe:
    def __init__(self, how):
        self.how = how

    def __bool__(self):
        log("asked")
        if self.how == 2:
            raise ValueError("no truth")
        return self.how == 1

    @property
    def lacks(self):
        raise AttributeError("lacks")


@calls("A(3), 0", "A(3), 1", "A(3), 2", "A(3), 0")
def truths(x, how):
    m = Maybe(how)
    return x * bool(m), hasattr(m, "lacks"), getattr(m, "lacks", 3), getattr(m, "how", 4), getattr(m, "other", 5), hasattr(m, "other")


def tuple_keys(x):
    d = {(1, 2): x, x.shape: 1, 3: 2}
    d[(1, 2)] = 5
    d[tuple(x.shape)] = x + 1
    return d, len(d)


@calls("A(3), []", "A(3), [1]", "A(3), []")
def ends_are_seen_once(x, many):
    def gives():
        many.append("begun")
        yield x
        many.append("ended")
    g, c = gives(), Countdown(1)
    y = next(g) + next(c)
    try:
        next(g)
    except StopIteration:
        y = y + 1
    try:
        next(c)
    except StopIteration:
        y = y * 2
    return y, many, c.n


class Held:
    pass


@calls("A(3), functools.partial(max, 3)", "A(3), functools.partial(max, 4)", "A(3), functools.partial(max, 3)")
def partials_of_partials(x, given):
    def f(a, b=1, *more, c=2, **named):
        return a * b + c, more, named
    p = functools.partial(f, x, c=3)
    q = functools.partial(p, 5, c=4, d=[x])
    r = functools.partial(given, 1)
    q.keywords["d"].append(7)
    return q.func is f, q.args[0] is x, q.keywords, q(), p(c=1)[0], q, r(2), functools.partial(functools.partial(p))()


def gone_through_and_changed(x):
    many = [x, x + 1, 3]
    c, d = itertools.chain(many, [5]), itertools.cycle(many)
    first, second = next(c), next(d)
    many[1] = x * 7
    many.append(9)
    return first * 2, second, list(c), next(d), many


@calls("A(3), [A(3), 1]", "A(3), [A(2), 1]", "A(3), [Held(), 2]", "A(3), [1, [2]]", "A(3), [A(3), 1]", "A(3), []")
def list_that_lets_go(x, many):
    y = x * len(many)
    del many[:1]
    many[0:0] = [y, x]
    many.clear()
    many.append(y + 1)
    return many, y


def equal_keys(x):
    d = {(1, 0): x, (True, False): x + 1, 1: x, x.shape: 2}
    d[(1.0, 0)] = x * 2
    d[tuple(x.shape)] = 3
    return d, d[1], len(d)
