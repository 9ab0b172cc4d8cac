"""Which array is which: what is returned is what came in, views, the same argument twice."""


def identity(x):
    return x


def twice_the_same(x):
    return x, x


def same_result_twice(x):
    y = x + 1
    return y, y, [y]


@calls("shared, shared", "A(3), A(3)", "shared, shared")
def same_argument_twice(x, y):
    return x + y, x is y


@calls("shared, shared", "A(3), A(3)", "shared, shared[:]")
def written_through_other(x, y):
    x += 1
    return y * 2, x


@calls("shared, shared[1:]", "A(3), A(2)")
def overlapping(x, y):
    y *= 2
    return x.sum(), y


def view_returned(x):
    return x[1:], x.reshape(-1), x.T


def argument_changed(x):
    x *= 2
    return x.sum()


def argument_changed_after_break(x):
    y = x + 1
    print("break")
    x += 10
    return x, y


def copy_kept(x):
    y = x + 0
    x += 1
    return x, y


@calls("A(3), [A(3)]", "A(3), [A(3)]")
def put_into_list(x, many):
    many[0] = x
    x += 1
    return many[0] is x, many


@calls("A(3), [shared]", "A(3), [shared]")
def taken_from_list(x, many):
    y = many[0]
    y += x
    return y is many[0]


def in_place_method(x):
    if xp.__name__ == "torch":
        x.add_(1).mul_(2)
    else:
        x.fill(3)
    return x


def out_argument(x):
    y = xp.zeros_like(x)
    r = xp.add(x, 1, out=y)
    return r is y, y * 2


def constant_returned(x):
    return 5


def nothing_returned(x):
    x + 1


def closure_keeps(x):
    y = x + 1
    return (lambda: y), y


def chain_of_views(x):
    y = x[1:]
    z = y[1:]
    z += 5
    return x, y.shape, z


weights = A(3)


def global_changed(x):
    global weights
    weights += x
    return weights * 2


def swap(x):
    y = x + 1
    x, y = y, x
    return x, y
