"""Functions of the library, under every name."""
import functools
import math
import operator


def sine(x):
    return xp.sin(x) + xp.cos(x)


def where(x):
    return xp.where(x > 0, x, -x)


def stacked(x):
    return xp.stack([x, x + 1]), xp.stack((x, x), 1)


def concatenated(x):
    return xp.concatenate([x, x * 2, x[:1]])


def aliased(x):
    f = xp.exp
    return f(x * 0.1) + f(x * 0.2)


def chosen(x):
    f = [xp.sin, xp.cos][x.ndim - 1]
    return f(x)


def by_name(x):
    return getattr(xp, "tanh")(x)


def partial(x):
    return functools.partial(xp.add, x)(1)


def from_operator(x):
    return operator.add(x, 1), operator.neg(x), operator.itemgetter(0)(x), operator.methodcaller("sum")(x)


def absolute(x):
    return abs(x) + xp.abs(x)


def length(x):
    return x * len(x)


def builtin_sum(x):
    return sum([x, x, x])


def builtin_max(x):
    return max(x.shape) + min(3, 4) + round(2.6)


def maximum(x):
    return xp.maximum(x, -x), xp.minimum(x, xp.zeros_like(x))


def keyword_arguments(x):
    return xp.clip(x, min=-1, max=1)


@calls("A(2, 3)", "A(3, 2)")
def axis_keyword(x):
    return xp.sum(x, axis=1), xp.sum(x, axis=(0, 1))


def wrong_keyword(x):
    return xp.sin(x, nonsense=1)


def star_arguments(x):
    return xp.add(*(x, 1)), xp.add(*[x], **{})


def reduce(x):
    return functools.reduce(lambda a, b: a * 2 + b, [x, x + 1, x + 2])


def mapped(x):
    return list(map(xp.sin, [x, x + 1]))


def mapped_lambda(x):
    return tuple(map(lambda v: v * 2, (x, x + 1)))


def created(x):
    return x + xp.ones(x.shape), x + xp.zeros(1), x * xp.arange(len(x))


@calls("", "")
def created_alone():
    return xp.arange(5) + xp.ones(5)


def reassigned(x):
    s = sum
    sum_ = xp.sum
    return s([1, 2]) + sum_(x)


def stored_in_dict(x):
    table = {"sin": xp.sin, "neg": operator.neg}
    return table["sin"](x), table["neg"](x)


def outer(x):
    return xp.outer(x, x)


def nested_calls(x):
    return xp.sqrt(xp.abs(xp.sin(xp.add(x, xp.cos(x)))))


def with_defaults(x):
    k = x + 1
    return [f(2) for f in [lambda v, i=i, k=k: k * v + i for i in range(3)]]


def known_functions(x):
    return x * math.hypot(3, 4) + operator.add(x, 1) - operator.neg(x), sum([x, x + 1], 2), operator.iadd([1], [2])


@calls("A(3), 5", "A(3), 10 ** 30", "A(3), -1", "A(3), 2.5")
def counted_from(x, start):
    for i, v in enumerate([x, x * 2], start):
        x = x + v * i
    return x
