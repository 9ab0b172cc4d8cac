"""Operators on arrays, and of arrays with numbers."""


def add(x):
    return x + 1


def reflected(x):
    return 2 - x, 3 * x, 1 / (x * x + 1)


def chain(x):
    return ((x + 1) * 2 - x / 3) ** 2


def unary(x):
    return -x, +x, abs(x)


@calls("I(4)", "I(5)")
def integers(x):
    return x // 3, x % 3, x << 2, x >> 1, x & 6, x | 1, x ^ 5, ~x


@calls("A(2, 3), A(3, 2)", "A(3), A(3)", "A(2), A(3)")
def matmul(x, y):
    return x @ y


@calls("A(3), A(3)", "A(3), A(1)", "A(2, 3), A(3)", "A(3), A(2)")
def broadcast(x, y):
    return x + y, x * y


def comparisons(x):
    return x < 0, x <= 1, x == 2, x != 2, x > 0, x >= -1


def chained_comparison(x):
    y = x.sum()
    return -100 < y < 100


@calls("B(4), B(4)", "B(4), ~B(4)")
def masks(x, y):
    return x & y, x | y, x ^ y, ~x


def in_place(x):
    x += 1
    x *= 2
    x -= 3
    return x


def in_place_on_a_copy(x):
    y = x * 1
    y += x
    y /= 2
    return y


@calls("I(3)", "I(3)")
def in_place_that_fails(x):
    x += 0.5
    return x


def power(x):
    return x ** 2, x ** 3.0, 2 ** x


@calls("A(3), 2", "A(3), 2.5", "A(3), True", "A(3), 2")
def with_number(x, n):
    return x * n


@calls("A(3), 'a'", "A(3), None", "A(3), [1.0, 2.0, 3.0]")
def with_strange(x, other):
    return x + other


def same_twice(x):
    y = x + 1
    return y * y, y is y


def divmod_of(x):
    q, r = divmod(x, 2) if xp.__name__ == "numpy" else (x // 2, x % 2)
    return q, r


def logical(x):
    return xp.logical_and(x > 0, x < 2), xp.logical_not(x > 0)


def or_and(x):
    return (x.sum() > 100) or (x.sum() > 0) and 5
