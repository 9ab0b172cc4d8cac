"""with: context managers of every kind."""
import contextlib


class Manager:
    def __init__(self, swallow=False):
        self.swallow = swallow

    def __enter__(self):
        log("enter")
        return 3

    def __exit__(self, kind, value, trace):
        log(("exit", kind and kind.__name__))
        return self.swallow


def plain(x):
    with Manager() as n:
        x = x * n
    return x + 1


def two(x):
    with Manager() as a, Manager() as b:
        x = x * a + b
    return x


def nested(x):
    with Manager():
        x = x + 1
        with Manager() as n:
            x = x * n
        x = x - 1
    return x


def raised(x):
    with Manager():
        x = x + 1
        raise ValueError(3)


def swallowed(x):
    with Manager(True):
        x = x + 1
        raise ValueError(3)
    return x * 2


def returned(x):
    with Manager():
        return x + 1


def in_loop(x):
    for i in range(3):
        with Manager():
            if i == 1:
                continue
            x = x + i
    return x


def broken(x):
    with Manager():
        x = x + 1
        print("inside")
        x = x * 2
    return x


def suppressed(x):
    with contextlib.suppress(KeyError):
        x = x + 1
        {}["k"]
    return x * 2


@contextlib.contextmanager
def generated(n):
    log("start")
    try:
        yield n * 2
    finally:
        log("end")


def by_generator(x):
    with generated(2) as n:
        x = x * n
    return x + 1


def exit_stack(x):
    with contextlib.ExitStack() as stack:
        n = stack.enter_context(Manager())
        stack.callback(log, "callback")
        x = x * n
    return x


def null(x):
    with contextlib.nullcontext(4) as n:
        return x * n


def of_library(x):
    if xp.__name__ == "torch":
        with xp.no_grad():
            x = x * 2
    else:
        with xp.errstate(divide="ignore"):
            x = x / (x * 0)
    return x + 1


class Failing:
    def __enter__(self):
        raise ValueError("enter")

    def __exit__(self, *error):
        log("never")


def failing(x):
    y = x + 1
    with Failing():
        return y


def not_a_manager(x):
    y = x + 1
    with y.shape:
        return y


@calls("A(3)", "-A(3)")
def data_inside(x):
    with Manager() as n:
        if x.sum() > 0:
            x = x + n
        else:
            x = x - n
    return x * 2


class Changing:
    depth = 0

    def __enter__(self):
        Changing.depth += 1
        self.inside = True
        return self

    def __exit__(self, *error):
        self.inside = False
        return error[0] is IndexError


changing = Changing()


@calls("A(3), I(1) * 0", "A(3), I(1) * 0 + 1", "A(3), I(1) * 0 + 9", "A(3), I(1) * 0")
def changes_outside(x, i):
    with changing as c:
        y = x[i] * Changing.depth
        with Changing() as d:
            y = y + d.inside
    return y, c.inside, c is changing


class Abstract(contextlib.AbstractContextManager):
    def __init__(self, n):
        self.n = n

    def __exit__(self, *error):
        self.n = None


def of_abstract_class(x):
    with Abstract(x) as a, contextlib.nullcontext(a.n + 1) as b:
        x = x * a.n + b
    print(a.n)
    with a:
        x = x + 1
    return x, a.n


@calls("A(3), Manager()", "A(3), Abstract(A(3))", "A(3), contextlib.nullcontext()", "A(3), 5", "A(3), Abstract(1)")
def given(x, manager):
    y = x + 1
    with manager as n:
        y = y * 2
    return y, n


def own_exit(x):
    a = Abstract(1)
    a.__exit__ = lambda *error: log("never")
    with a:
        x = x + 1
    return x, a.n
