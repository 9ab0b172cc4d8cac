"""Comprehensions and generator expressions."""


def list_of(x):
    return [x * i for i in range(3)]


def filtered(x):
    return [x + i for i in range(6) if i % 2]


def nested(x):
    return [x * i + j for i in range(2) for j in range(i + 1)]


def dict_of(x):
    return {str(i): x + i for i in range(3)}


def set_of(x):
    return {i * i for i in range(-2, 3)}, x + 1


def summed(x):
    return sum(x * i for i in range(3))


def any_of(x):
    return any(s > 2 for s in x.shape), all(s for s in x.shape), x


def over_array(x):
    return [v + 1 for v in x]


def shadowing(x):
    i = 10
    y = [x + i for i in range(2)]
    return y, i


def inner_closure(x):
    scale = 3
    return [x * scale for _ in range(2)], [f() for f in [lambda: scale]]


def lambdas(x):
    return [f(x) for f in [lambda v, i=i: v + i for i in range(3)]]


def late_binding(x):
    return [f(x) for f in [lambda v: v + i for i in range(3)]]


def tuple_of(x):
    return tuple(x + i for i in range(3))


def zipped(x):
    return [a * b for a, b in zip([x, x + 1], [x + 2, x + 3])]


def walrus(x):
    return [y := x + 1, y * 2, [z := i for i in range(3)], z]


def with_condition_on_data(x):
    return [v for v in x if v > 0]


def nested_lists(x):
    return [[x + i * j for i in range(2)] for j in range(2)]


def joined(x):
    return ", ".join(str(n) for n in x.shape), x


def in_argument(x):
    return xp.stack([x * i for i in range(3)]).sum(0)


def with_effects(x):
    return [log(i) or x + i for i in range(3)]
