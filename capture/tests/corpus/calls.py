"""Calls of the user's functions: kinds of arguments, recursion, callbacks, depth."""


def double(v):
    return v * 2


def inlined(x):
    return double(x) + double(x + 1)


def positional_only(a, b=2, /, c=3):
    return a * b + c


def all_kinds(a, b=1, *args, c, d=4, **kw):
    return a * b + sum(args) + c * d + sum(kw.values())


def keyword_call(x):
    return positional_only(x, 5, c=1) + all_kinds(x, c=2) + all_kinds(x, 2, 3, 4, c=1, d=2, e=5, f=6)


def star_call(x):
    args, kw = (x, 2, 3), {"c": 1, "e": 2}
    return all_kinds(*args, **kw) + all_kinds(*args[:1], *args[1:], **kw, d=1)


@calls("A(3), 1, 2, k=3", "A(3), 1, 2, k=3", "A(3), 1", "A(3)", "A(3), k=3, l=4")
def star_arguments(x, *args, **kw):
    return x + sum(args), kw, args


@calls("A(3)", "A(3), 2", "A(3), n=3", "A(3), A(3)")
def defaults(x, n=1):
    return x * n


@calls("A(3), 1", "x=A(3), n=1", "n=1, x=A(3)", "A(3)", "A(3), 1, 2")
def by_keyword(x, n):
    return x - n


@calls("A(3), b=2", "A(3), b=A(3)", "A(3)")
def keyword_only(x, *, b):
    return x * b


def wrong_call(x):
    return double(x, 1)


def wrong_keyword(x):
    y = x + 1
    return double(w=y)


def mutable_default(x, seen=[]):
    seen.append(1)
    return x * len(seen)


mutable_default = calls("A(3)", "A(3)", "A(3)")(mutable_default)


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def recursion(x):
    return x * factorial(6)


def power(x, n):
    return x if n == 0 else power(x * 2, n - 1) + 1


def array_recursion(x):
    return power(x, 5)


def deep_recursion(x):
    return power(x, 150)


def endless(x):
    return endless(x + 1)


@calls("A(2)")
def endless_recursion(x):
    try:
        return endless(x)
    except RecursionError:
        return "too deep"


def even(x, n):
    return x if n == 0 else odd(x + 1, n - 1)


def odd(x, n):
    return x * 2 if n == 0 else even(x * 2, n - 1)


def mutual(x):
    return even(x, 5)


def apply(f, *args):
    return f(*args)


def callback(x):
    return apply(double, x) + apply(lambda v: v + 1, x) + apply(xp.sin, x)


@calls("A(3), double", "A(3), double", "A(3), xp.cos", "A(3), lambda v: v")
def function_argument(x, f):
    return f(x) + 1


def helper_with_branch(v):
    if v.sum() > 0:
        return v + 1
    return v - 1


@calls("A(3)", "-A(3)")
def break_in_helper(x):
    y = x * 2
    z = helper_with_branch(y)
    return z * 3


def helper_that_prints(v):
    print("helper")
    return v + 1


def print_in_helper(x):
    return helper_that_prints(x * 2) * 3


def several_results(v):
    return v + 1, v * 2, {"k": v}


def results_unpacked(x):
    a, b, d = several_results(x)
    return a + b * d["k"]


def nothing_returned(v):
    v[0] = 9


def changed_by_helper(x):
    r = nothing_returned(x)
    return x * 2, r


def chain_of_helpers(x):
    def a(v): return b(v) + 1
    def b(v): return c(v) + 1
    def c(v): return d(v) + 1
    def d(v): return v * 2
    return a(x)


def same_helper_often(x):
    for _ in range(20):
        x = double(x) - x
    return x


def conditional_function(x):
    f = double if x.ndim == 1 else abs
    return f(x)


def names_collide(x):
    add = x + 1
    sum_1 = add + 1
    placeholder = sum_1.sum()
    output = placeholder + add
    return output


def told_and_raises(x, *, k=0):
    log("told")
    raise ValueError(k)


def raises_behind_effect(x):
    """Once, however it is called."""
    for how in range(3):
        try:
            if how == 0:
                told_and_raises(*[x])
            elif how == 1:
                told_and_raises(x, k=1)
            else:
                told_and_raises(**{"x": x, "k": 2})
        except ValueError as error:
            x = x + error.args[0]
    return x


@calls("A(3), (1,)", "A(3), (1,)")
def raises_through(x, args):
    y = x + 1
    return told_and_raises(y,
                           *args)


class Untold:
    def __iter__(self):
        log("iter")
        raise KeyError

    def __contains__(self, item):
        log("contains")
        raise KeyError


@calls("A(3), Untold()", "A(3), Untold()")
def raises_in_iter(x, o):
    y = x + 1
    return [y, *o]


@calls("A(3), Untold()", "A(3), Untold()")
def raises_in_loop(x, o):
    y = x + 1
    for v in o:
        y = y + v
    return y
