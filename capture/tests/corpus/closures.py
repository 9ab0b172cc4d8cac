"""Closures, nested functions, lambdas, decorators."""
import functools
import types

scale = 2


def lambda_called(x):
    f = lambda v: v * 2
    return f(x) + f(x + 1)


def nested(x):
    def inner(v):
        return v + 1
    return inner(inner(x))


def over_variable(x):
    n = 3
    def inner(v):
        return v * n
    n = 4
    return inner(x)


def over_array(x):
    y = x + 1
    def inner():
        return y * x
    return inner()


def nonlocal_counter(x):
    n = 0
    def step():
        nonlocal n
        n += 1
        return n
    return x * step() + step(), n


def nonlocal_array(x):
    y = x
    def double():
        nonlocal y
        y = y * 2
    double()
    double()
    return y


def returned(x):
    y = x * 2
    def inner(v):
        return v + y
    return inner(x), inner.__name__


def made_by(n):
    def inner(x):
        return x * n
    return inner


times_three = made_by(3)


def closure_of_another(x):
    return times_three(x) + 1


def made_and_called(x):
    return made_by(2)(x) + made_by(5)(x)


def decorator(f):
    @functools.wraps(f)
    def wrapper(*args, **kw):
        log("called")
        return f(*args, **kw) * 2
    return wrapper


@decorator
def decorated(x):
    return x + 1


@functools.lru_cache
def cached(n):
    log("computed")
    return n * 2


def calls_cached(x):
    return x * cached(3)


counter = 0


def make_counter():
    n = 0
    def count(x):
        nonlocal n
        n += 1
        return x * n
    return count


counted = entry(make_counter(), "counted")


def make_adder(n):
    return lambda x: x + n


adds_seven = entry(make_adder(7), "adds_seven")
adds_eight = entry(make_adder(8), "adds_eight")


def make_over_array():
    w = A(3)
    def layer(x):
        return x * w
    return layer


over_weights = entry(make_over_array(), "over_weights")


def make_over_list():
    seen = []
    def remember(x):
        seen.append(x.sum())
        return len(seen) * x
    return remember


remembers = entry(make_over_list(), "remembers")


def recursive_closure(x):
    def fact(n):
        return 1 if n <= 1 else n * fact(n - 1)
    return x * fact(5)


def default_argument(x):
    def f(v, n=[1]):
        n.append(2)
        return v * len(n)
    return f(x), f(x)


def partial_of_own(x):
    def f(a, b, c=1):
        return a * b + c
    return functools.partial(f, b=2, c=3)(x)


def cell_of_unset(x):
    def f():
        return y
    try:
        return f()
    except NameError as error:
        message = str(error)
    y = x
    return message, f()


def deep(x):
    def a():
        def b():
            def c():
                return x * 2
            return c() + 1
        return b() + 1
    return a()


def kept_over_a_break(x, *rest):
    n = x.shape[0]
    def grow(v, by=n):
        nonlocal n
        n += by
        return v * n
    y = grow(x)
    print("break")
    z = grow(y)
    n = n * 2
    return grow(z), n, rest


kept_over_a_break = entry(kept_over_a_break, "kept_over_a_break")


def argument_in_a_cell(x):
    def again():
        nonlocal x
        x = x + 1
        return x
    again()
    print("break")
    x = x * 2
    return again(), x


def two_over_one(x):
    n = 1
    def up():
        nonlocal n
        n += 1
    def get():
        return n
    up()
    y = x * get()
    return y, up, get, [f() for f in (up, get)], get()


def returned_with_cells(x):
    y = x + 1
    def inner():
        nonlocal y
        y = y + 1
        return y
    def outer():
        return inner() * 2
    y = y * 2
    return outer(), outer, inner, outer.__closure__[0].cell_contents is inner


def passed_back(x):
    first, second = two_over_one(x)[1:3]
    print("break")
    first()
    return x * second(), [first, second], second()


def of_itself(x):
    def down(v, n):
        return v if n == 0 else down(v + n, n - 1)
    y = down(x, 3)
    print("break")
    return down(y, 2)


# ---- two free variables on one cell ----

def _two_variables():
    a = b = 0

    def both(x):
        nonlocal a
        y = x + b
        a = a + 1
        return y * b + a, b
    return both


_CELLS = [types.CellType(1), types.CellType(2)]
_APART, _SAME, _TURNED = (types.FunctionType(_two_variables().__code__, globals(), "both", None, tuple(_CELLS[i] for i in cells))
                          for cells in ((0, 1), (0, 0), (1, 0)))
entry(_SAME, "variables_on_one_cell")
entry(_APART, "variables_on_two_cells")


def one_cell_then_two(x):
    return _SAME(x), _APART(x), _SAME(x)


def two_cells_then_one(x):
    return _APART(x), _SAME(x), _TURNED(x)


@calls("A(3), _APART", "A(3), _SAME", "A(3), _TURNED", "A(3), _SAME", "A(3), _APART")
def cells_of_an_argument(x, f):
    return f(x), f(x + 1)


def defaults_of(*defaults):
    def inner(x, a=1, b=2):
        return x * a + b
    inner.__defaults__ = defaults
    return inner


@calls("A(3), defaults_of(1, 2)", "A(3), defaults_of(1, 2, 3)", "A(3), defaults_of(2)", "A(3), defaults_of(1, 2)", "A(3), defaults_of(5, 2)")
def defaults_given(x, f):
    return f(x, 4) * 2, f.__name__


def elsewhere(f):
    import types
    return types.FunctionType(f.__code__, {"scale": 100, "__builtins__": {"len": lambda x: 7}}, closure=f.__closure__)


def made_over(*values):
    def inner(x):
        return x * values[0] + scale * len(values)
    return inner


@calls("A(3), made_over(1)", "A(3), made_over(2)", "A(3), made_over(A(3), 1)", "A(3), made_over(1)", "A(3), elsewhere(made_over(1))", "A(3), made_over(1)")
def of_one_def(x, f):
    return f(x) + 1


def two_cells():
    n = m = 0
    def both(v):
        nonlocal n, m
        n, m = n + 1, m + 2
        return v * m + n
    def f(x):
        nonlocal n
        y = both(x) + n
        print("break", n, m)
        n = n + both(y).shape[0]
        return both(y), n, m
    return f


cells_of_two = entry(two_cells(), "cells_of_two")


def cell_for_two(x):
    n, f, g = 1, None, None
    def up(v):
        nonlocal n
        n += 1
        return v * n
    def down():
        nonlocal n
        n -= 2
        return n
    y = up(x)
    print("break")
    f, g = up, down
    y = f(y) + g()
    print("again")
    n *= 5
    return f(y), g(), n, [up, down]
