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
