"""Generators and iterators, made and used."""
import itertools


def count(n):
    for i in range(n):
        log(("yield", i))
        yield i


def arrays(x):
    yield x
    yield x + 1
    return 5


def consumed(x):
    for i in count(3):
        x = x + i
    return x


def consumed_arrays(x):
    total = 0
    for v in arrays(x):
        total = total + v
    return total


def listed(x):
    return list(count(3)), list(arrays(x))


def partly(x):
    it = count(5)
    x = x + next(it) + next(it)
    it.close()
    return x


def delegating(x):
    yield 1
    r = yield from arrays(x)
    yield r


def delegated(x):
    return list(delegating(x))


def sends(x):
    got = yield x
    while got is not None:
        got = yield got * 2


def sent(x):
    g = sends(x)
    return next(g), g.send(x + 1), g.send(3)


def a_generator_itself(x):
    """Its result is a generator."""
    yield x + 1
    yield x * 2


def expression(x):
    g = (x * i for i in range(3))
    return next(g), sum(g)


def passed_on(x):
    return (v + 1 for v in [x, x * 2])


def taken(x):
    return list(itertools.islice(itertools.count(2), 3)), list(itertools.accumulate([x, x, x]))


def products(x):
    return [x * a + b for a, b in itertools.product([1, 2], [3, 4])]


class Iterable:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        self.i = 0
        return self

    def __next__(self):
        self.i += 1
        if self.i > self.n:
            raise StopIteration
        return self.i


def own_iterator(x):
    for i in Iterable(3):
        x = x * i
    return x


def unpacked(x):
    a, b = arrays(x)
    first, *rest = count(4)
    return a + b, first, rest


def filtered(x):
    return [x + i for i in filter(lambda n: n % 2, range(5))]


async def later(x):
    return x + 1


def coroutine_driven(x):
    c = later(x)
    try:
        c.send(None)
    except StopIteration as stop:
        return stop.value


def abandoned(x):
    g = arrays(x)
    next(g)
    return x * 2


def in_place_between(x):
    """What is yielded changes before the next is added."""
    def changing():
        y = x * 1
        for i in range(3):
            y += i
            yield y
    return sum(changing()), sum(v * 1 for v in changing())


def of_floats(x):
    return x + sum(0.1 for _ in range(10)), sum((i / 7 for i in range(5)), 1), x * sum(i for i in range(4))


def stops_early(x):
    noted = []

    def told():
        for i in range(5):
            noted.append(i)
            yield i > 1
    return any(told()), all(told()), noted, x + 1


def logs_inside(x):
    return [v * 2 for v in map(lambda i: (log(i), x + i)[1], range(3))]


def maps(x):
    return list(map(lambda a, b: a * b, [x, x + 1, x + 2], (1, 2))), [v for v in map(xp.sin, [x, x * 2])], sum(map(lambda v: v * v, (x, x)))


def filters(x):
    return list(filter(None, [0, 1, "", "a"])), [x * i for i in filter(lambda i: i % 2, range(6))], tuple(filter(lambda v: v is not None, [x, None]))


def zipped_iterators(x):
    first = iter([x, x + 1, x + 2])
    pairs = list(zip(first, [1, 2]))
    return pairs, list(first), dict(zip("ab", [x, 1])), [a + b for a, b in zip((v for v in [x, x]), [1, 2, 3])]


def zipped_again(x):
    a, b = iter([x, x * 2]), iter([1])
    out = [u * v for u, v in zip(a, b)]
    return out, next(a, None), next(b, 5)


def enumerated(x):
    def both():
        yield x
        yield x + 1
    return [v * i for i, v in enumerate(both(), 1)], [v - i for i, v in enumerate(zip([x, x], [x, x + 1])) for v in v]


def backwards(x):
    out = []
    for v in reversed([x, x + 1]):
        out.append(v)
    return out, [i for i in reversed((1, 2, 3))]


def next_raises(x):
    it = iter([x])
    return next(it) + next(it)


def next_of_finished(x):
    def short():
        yield x
        return 7
    g = short()
    try:
        return next(g) + next(g)
    except StopIteration as stop:
        return x, stop.value


def raises_in_map(x):
    return [v for v in map(lambda i: x + 1 // i, [1, 0])]


def raises_in_key(x):
    return sorted([x, 1], key=lambda v: v.nothing)


def raises_in_generator(x):
    def bad():
        yield x
        raise ValueError("bad")
    return sum(bad())


def caller_of_key(x):
    import sys
    return [v + 1 for v in sorted([x], key=lambda v: log(sys._getframe(1).f_code.co_filename[-13:]))], max([1, 2], key=lambda v: log(sys._getframe(1).f_lineno) or v)


def keys(x):
    words = ["bb", "a", "ccc"]
    return (x * len(sorted(words, key=len)[0]), sorted(words, key=lambda w: -len(w)), sorted([3, 1, 2], reverse=True), min(words, key=len),
            max([x, x * 2], key=lambda v: v.ndim), max((i * i for i in range(4))), sorted(words, key=lambda w: w == "a", reverse=True))


def keys_of_data(x):
    return max([x, x * 2], key=lambda v: float(v.sum())) + 1, sorted([x + 1, x], key=lambda v: float(v[0]))


def empty(x):
    return max([], default=x), sum([], x), list(map(xp.sin, [])), tuple(zip([], [x])), x + 1


def empty_raises(x):
    return x + max(i for i in [])


def helper_takes(x):
    def total(values, more):
        out = more
        for v in values:
            out = out + v
        return out
    return total((x * i for i in range(3)), x), total(map(xp.cos, [x, x + 1]), 0), total(iter([x, x]), 1)


def broken_in_helper(x):
    def takes(values):
        first = next(values)
        log("helper")
        return first + next(values)
    return takes(iter([x, x + 1, x + 2])), takes(x * i for i in range(3))


def alive_at_break(x):
    g = (x + i for i in range(3))
    y = next(g)
    log("break")
    return y + next(g), list(g)


def with_finally(x):
    def guarded():
        try:
            yield x
            yield x + 1
        finally:
            log("finally")
    for v in guarded():
        break
    return v * 2, list(guarded())


def closed_over(x):
    n = 1

    def counts():
        nonlocal n
        for _ in range(3):
            n += 1
            yield n * x
    return list(counts()), n


def takes_arguments(x):
    def scaled(v, *more, k=2, **other):
        yield v * k
        for m in more:
            yield m + other["n"]
    return list(scaled(x, 1, 2, n=3)), [*scaled(x, k=5)]


def starred(x):
    a, *b = (x * i for i in range(4))
    *c, d = map(lambda v: v + 1, [x, x * 2])
    e, *f, g = [x, x + 1]
    return a, b, c, d, e, f, g


def too_many(x):
    a, b = (x + i for i in range(3))
    return a


def too_few(x):
    a, b, *c = iter([x])
    return a


def grows(x):
    many = [x, x + 1]
    for v in many:
        if len(many) < 4:
            many.append(v * 2)
    return many


def grown_by_generator(x):
    many = [x]
    many.extend(v + 1 for v in [x, x])
    many += map(xp.sin, [x])
    return many, [*zip(many, "abc")]


def reduced(x):
    import functools
    return functools.reduce(lambda a, b: a * 2 + b, [x, x + 1, x + 2]), functools.reduce(lambda a, b: a + b, (x * i for i in range(3)), x)


def nested_generators(x):
    def inner(n):
        for i in range(n):
            yield x + i

    def outer():
        for n in (1, 2):
            for v in inner(n):
                yield v * n
    return list(outer())


def shared_iterator(x):
    it = iter([1, 2, 3, 4])
    return [x * (a + b) for a, b in zip(it, it)], [x + v for v in map(lambda a: a, it)]


def generator_in_attribute(x):
    class Holder:
        pass
    h = Holder()
    h.g = (x * i for i in range(3))
    return next(h.g) + next(h.g)


@calls("A(3), [1, 2]", "A(3), [1, 2]", "A(3), [1, 2, 3]", "A(3), (1, 2)", "A(3), range(2)", "A(3), {'a': 1}", "A(3), 5")
def of_argument(x, many):
    return sum(x * len(str(m)) for m in many), [a for a in zip(many, [x])], list(map(lambda m: x, many))


def zip_takes_one_more(x):
    a, b, c, d = iter([x, x * 2, x * 3]), iter([1]), (v for v in [x + 1, x + 2, x + 3]), iter(range(3))
    out = [u * v * w * n for n, (u, w, v) in zip(d, zip(a, c, b))]
    return out, next(a), next(c), next(d), list(a), list(c)
