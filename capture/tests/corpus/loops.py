"""Loops: over what is known, over arrays, and on data."""
import itertools


def over_range(x):
    for i in range(5):
        x = x + i
    return x


@calls("A(3), 2", "A(3), 3", "A(3), 0", "A(3), 2")
def times(x, n):
    for _ in range(n):
        x = x * 2
    return x


@calls("A(3)", "A(4)", "A(3)")
def over_length(x):
    total = 0
    for i in range(len(x)):
        total = total + x[i] * i
    return total


def over_array(x):
    total = 0
    for v in x:
        total = total + v
    return total


@calls("A(2, 3)", "A(3, 3)")
def over_rows(x):
    out = []
    for row in x:
        out.append(row.sum())
    return out


def over_list(x):
    for f in [1, 2.5, True]:
        x = x * f
    return x


def over_dict(x):
    for k, v in {"a": 1, "b": 2}.items():
        x = x + v
        log(k)
    return x


def over_zip(x):
    for a, b in zip([x, x + 1], (1, 2)):
        x = x + a * b
    return x


def over_enumerate(x):
    for i, v in enumerate([x, x * 2], 1):
        x = x + v * i
    return x


def over_reversed(x):
    for v in reversed([1, 2, 3]):
        x = x * 2 + v
    return x


def over_chain(x):
    for v in itertools.chain([1], [2, 3]):
        x = x + v
    return x


def nested(x):
    for i in range(3):
        for j in range(i):
            x = x + i * j
    return x


def with_break(x):
    for i in range(10):
        if i == 3:
            break
        x = x + i
    return x, i


def with_continue(x):
    for i in range(6):
        if i % 2:
            continue
        x = x + i
    return x


def with_else(x):
    for i in range(3):
        if i > 5:
            break
    else:
        x = x * 10
    return x


@calls("A(3)", "-A(3)")
def break_on_data(x):
    for i in range(5):
        x = x + 1
        if x.sum() > 5:
            break
    return x, i


@calls("A(3), 3", "A(3), 5")
def while_known(x, n):
    while n > 0:
        x = x + n
        n -= 1
    return x


@calls("A(3)", "-A(3)")
def while_data(x):
    n = 0
    while x.sum() < 20:
        x = x * 1.5 + 1
        n += 1
    return x, n


def many(x):
    for i in range(300):
        x = x * 0.99 + i
    return x


@calls("A(3)")
def very_many(x):
    for i in range(20000):
        x = x + 1
    return x


def break_inside(x):
    for i in range(4):
        x = x + i
        log(i)
    return x * 2


def print_inside(x):
    for i in range(3):
        x = x * 2
        print("step", i)
        x = x + 1
    return x


def grows_a_list(x):
    out = []
    for i in range(4):
        out.append(x * i)
    return out


def over_growing_list(x):
    todo = [3]
    while todo:
        n = todo.pop()
        x = x + n
        if n > 0:
            todo.append(n - 1)
    return x


def over_set(x):
    for v in sorted({3, 1, 2}):
        x = x * 2 + v
    return x


def over_string(x):
    for c in "abc":
        x = x + ord(c)
    return x


@calls("A(3), iter([1, 2, 3])", "A(3), iter([1])")
def over_iterator(x, it):
    for v in it:
        x = x + v
    return x, list(it)


def next_of(x):
    it = iter([1, 2])
    x = x + next(it)
    x = x * next(it)
    return x, next(it, "end")


@calls("A(3)", "A(4)")
def unpack_array(x):
    a, b, c = x
    return a + b * c


def variable_after_loop(x):
    for i in range(3):
        y = x * i
    return y, i


def next_of_keys(x):
    """A dict's view is no iterator."""
    x = x + 1
    return x, next({"a": 1}.keys())


def next_of_values(x):
    d = {"a": x + 1}
    return next(d.values(), "end")


def next_of_items(x, d={"a": 1}):
    items = d.items()
    x = x * len([*items])
    return x, next(items)
