"""Operations inside try and with, whose exceptions are handled there: also those that only a later call raises."""
import contextlib


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99", "A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def later_raises(x, at):
    try:
        y = x + 1
        return y[at] * 2
    except IndexError as error:
        log(type(error).__name__)
        return x * 3


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def in_finally(x, at):
    try:
        y = x[at] + 1
    finally:
        log("finally")
        x = x + 1
    return y, x


@calls("A(4), I(2) * 0, []", "A(4), I(2) * 0 + 99, []")
def effects_inside(x, at, many):
    try:
        many.append(x + 1)
        many.append(x[at])
        many.append(3)
    except IndexError:
        many.append("no")
    return many, x * 2


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def changed_before(x, at):
    x += 1
    try:
        return x[at]
    except IndexError:
        return x * 2


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def changed_inside(x, at):
    try:
        y = x * 2
        x += 1
        return y[at]
    except IndexError:
        return x * 2


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def changed_behind(x, at):
    try:
        y = x[at]
    except IndexError:
        y = x * 2
    x += 1
    return y, x


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def breaks_inside(x, at):
    try:
        y = x + 1
        log("inside")
        z = y[at]
        log("still")
        return z
    except IndexError:
        return x - 1


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def breaks_behind(x, at):
    try:
        y = x[at]
    except IndexError:
        y = x
    log("behind")
    return y * 2


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def in_loop(x, at):
    out = []
    while len(out) < 3:
        try:
            out.append(x[at + len(out)] * 2)
        except IndexError:
            out.append(len(out))
    return out


def taken(x, at):
    return x[at] + 1


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def in_helper(x, at):
    n = 0
    try:
        n = n + 1
        return taken(x * 2, at), n
    except IndexError:
        return n + 5, x


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def helper_handles(x, at):
    def tries(v):
        try:
            return v[at]
        except IndexError:
            return v * 0
    return tries(x) + 1, tries(x + 1)


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def cell_of_argument(x, at):
    def inner():
        return x * 2
    try:
        return x[at], inner()
    except IndexError:
        x = x + 1
        return inner()


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def after_break(x, at):
    log("first")
    try:
        return x[at] * 2
    except IndexError:
        return x + 5


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99", "A(4), I(2) * 0 + 99")
def changes_after_break(x, at):
    log("first")
    try:
        y = x[at]
        y[0] = 7.0
        return y * 2
    except IndexError:
        return x + 5


@calls("A(4), 3, I(2) * 0", "A(4), 3, I(2) * 0 + 99", "A(4), 4, I(2) * 0", "A(4), 5, I(2) * 0 + 99")
def with_number(x, n, at):
    try:
        if n > 3:
            return x[at] * n
        return x[at] + n
    except IndexError:
        return n


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def random_before(x, at):
    if xp.__name__ == "torch":
        xp.manual_seed(3)
        try:
            y = xp.rand(4) + x
            return y[at]
        except IndexError:
            return xp.rand(2)
    return x


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def given_out(x, at):
    if xp.__name__ == "torch":
        return x
    out = xp.zeros(4)
    try:
        y = xp.add(x, 1, out)
        return y[at], out
    except IndexError:
        return out


class Manager:
    def __init__(self, swallows):
        self.swallows = swallows

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        log(kind and kind.__name__)
        return self.swallows


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def managed(x, at):
    with Manager(True):
        return x[at] * 2
    return x + 1


class Quiet:
    depth = 0

    def __init__(self, n):
        self.n = n

    def __enter__(self):
        self.n = self.n + 1
        return self

    def __exit__(self, kind, value, trace):
        self.n = 100
        return kind is IndexError


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def quietly(x, at):
    with Quiet(2) as q:
        y = x[at] * q.n
        q.y = y
    return x + 1, q.n, hasattr(q, "y")


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def two_managers(x, at):
    with Quiet(2) as q, Quiet(3) as r:
        x = x * q.n + r.n
        x = x[at]
    return x, q.n, r.n


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def null_of_library(x, at):
    with contextlib.nullcontext(3) as n:
        x = x[at] * n
    return x + 1


@calls("A(4), I(2) * 0", "A(4), I(2) * 0 + 99")
def suppressed_data(x, at):
    with contextlib.suppress(IndexError):
        x = x * 2
        x = x[at]
    return x + 1


@calls("A(4), 0", "A(4), 1", "A(4), 0")
def raised_by_number(x, n):
    try:
        return x * (1 // n)
    except ZeroDivisionError:
        return x
