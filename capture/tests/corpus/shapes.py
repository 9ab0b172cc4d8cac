"""Sizes, strides, dtypes that change between calls."""


@calls("A(3)", "A(4)", "A(5)", "A(6)", "A(1)", "A(0)")
def sizes_change(x):
    return x * 2 + 1


@calls("A(2, 3)", "A(4, 3)", "A(4, 5)", "A(1, 1)", "A(2, 3)")
def two_sizes_change(x):
    return (x + 1).sum(0)


@calls("A(3)", "A(2, 3)", "A(1, 2, 3)", "A()")
def dimensions_change(x):
    return x + 1, x.sum()


@calls("A(3)", "I(3)", "B(3)", "A(3)")
def dtypes_change(x):
    return x * 1, x.sum()


@calls("A(3, 4)", "A(4, 3).T", "A(6, 8)[::2, ::2]", "A(3, 4)")
def strides_change(x):
    return x.reshape(-1) * 2


@calls("A(4)", "A(6)", "A(8)")
def size_in_arithmetic(x):
    n = x.shape[0] // 2
    return x[:n] * n + x[n:]


@calls("A(4)", "A(6)", "A(8)", "A(5)")
def size_in_branch(x):
    if x.shape[0] > 5:
        return x * 2
    return x + 1


@calls("A(4)", "A(6)")
def size_in_loop(x):
    for i in range(x.shape[0] // 2):
        x = x + i
    return x


@calls("A(4)", "A(6)", "A(8)")
def size_returned(x):
    return x * 2, x.shape[0], x.shape


@calls("A(2, 3)", "A(4, 3)", "A(4, 6)")
def sizes_unpacked(x):
    n, m = x.shape
    return x.reshape(m, n) * (n - m)


@calls("A(2, 3)", "A(4, 3)")
def sizes_made(x):
    return xp.zeros((x.shape[0], 2)) + x[:, :2]


@calls("A(3), A(3)", "A(4), A(4)", "A(5), A(1)", "A(5), A(4)")
def two_arrays(x, y):
    return x + y * 2


@calls("A(0)", "A(0, 3)", "A(3, 0)")
def empty(x):
    return x.sum(), x * 2, x.shape


@calls("A()", "A()", "A(1)")
def scalars(x):
    return x * 2 + 1, x.ndim


@calls("A(3)", "A(4)", "A(5)")
def mean_by_hand(x):
    return x.sum() / x.shape[0], x.sum() / len(x)


@calls("A(3, 3)", "A(4, 4)", "A(2, 3)")
def square_only(x):
    assert x.shape[0] == x.shape[1]
    return x @ x


@calls("A(3)", "A(4)")
def size_as_key(x):
    return {x.shape: 1, x.shape[0]: 2}, x + 1


@calls("A(2, 3)", "A(3, 2)")
def flat_index(x):
    return x.reshape(-1)[x.shape[1]]


@calls("A(2)", "A(3)", "A(4)")
def size_to_text(x):
    return f"{x.shape[0]}", x + 1


@calls("A(2), 2", "A(2), 3", "A(3), 3", "A(5), 5")
def number_and_size(x, n):
    return x * n if x.shape[0] == n else x + n
