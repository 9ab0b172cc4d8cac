"""Branches: on what is known, and on data."""
import warnings


@calls("A(3), True", "A(3), False", "A(3), True")
def on_flag(x, flag):
    if flag:
        return x + 1
    return x - 1


@calls("A(3)", "A(4)", "A(3)", "A(2, 2)")
def on_shape(x):
    if x.shape[0] == 3:
        return x * 3
    else:
        return x * 4


@calls("A(3)", "A(2, 3)", "A(3)")
def on_dimensions(x):
    if x.ndim == 1:
        y = x + 1
    elif x.ndim == 2:
        y = x.sum(0)
    return y


@calls("A(3)", "-A(3)", "A(3)")
def on_data(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


@calls("A(3)", "-A(3)", "A(3)")
def on_data_then_more(x):
    y = x * 2
    if y.sum() > 0:
        y = y + 1
    else:
        y = y - 1
    return y * 3


@calls("A(3)", "-A(3)")
def seed_example(x):
    y = x / (xp.abs(x) + 1)
    if x.sum() < 0:
        x = x * -1
    return y * x


@calls("A(3)", "-A(3)", "A(4)")
def two_on_data(x):
    if x.sum() > 0:
        x = x + 1
    if x.max() > 2:
        x = x * 2
    return x


@calls("A(3)", "-A(3)")
def nested_on_data(x):
    if x.sum() > 0:
        if x.max() > 1:
            return x + 1
        return x + 2
    else:
        if x.min() < -1:
            return x - 1
        return x - 2


@calls("A(3)", "-A(3)")
def ternary(x):
    return x + 1 if x.sum() > 0 else x - 1


@calls("A(3)", "-A(3)")
def ternary_in_expression(x):
    return (x * 2) + (1 if x.sum() > 0 else 2) * x


@calls("A(3), 0", "A(3), 1", "A(3), 2")
def short_circuit(x, n):
    return n and x or -1, n or x, not n


@calls("A(3)", "-A(3)")
def short_circuit_on_data(x):
    return bool(x.sum() > 0 and x.max() > 1) or x


@calls("A(3), 1", "A(3), 'a'", "A(3), None", "A(3), [1]", "A(3), (1, 2)")
def by_type(x, v):
    if isinstance(v, int):
        return x + v
    if isinstance(v, (list, tuple)):
        return x * len(v)
    if v is None:
        return x
    return str(v)


@calls("A(3), 1", "A(3), (1, 2)", "A(3), {'k': 3}", "A(3), [1, 2, 3]", "A(3), 'z'")
def matching(x, v):
    match v:
        case 1:
            return x
        case (a, b):
            return x * a + b
        case {"k": k}:
            return x - k
        case [first, *rest]:
            return x + first, rest
        case _:
            return None


@calls("A(3), []", "A(3), [0]", "A(3), ''", "A(3), 'a'", "A(3), 0.0", "A(3), {}")
def truth(x, v):
    if v:
        return x + 1
    return x


@calls("A(3)", "A(1)", "A(0)")
def truth_of_array(x):
    if x:
        return 1
    return 2


@calls("A(3)")
def truth_in_while(x):
    while x.sum() < 10:
        x = x + 1
    return x


@calls("A(3)", "-A(3)")
def branch_with_effects(x):
    log("before")
    if x.sum() > 0:
        log("positive")
        x = x + 1
    else:
        log("negative")
    log("after")
    return x


@calls("A(3)", "-A(3)")
def assert_on_data(x):
    assert x.sum() > 0, "not positive"
    return x + 1


@calls("A(3), A(3)", "A(3), A(4)", "A(3), None")
def identity(x, y):
    if x is y:
        return 1
    if y is None:
        return x
    return x.shape == y.shape


@calls("A(3)", "I(3)")
def on_dtype(x):
    if "int" in str(x.dtype):
        return x // 2
    return x / 2


@calls("A(3)", "-A(3)")
def unset_in_one_branch(x):
    if x.sum() > 0:
        y = 1
    return x + y


@calls("A(3), 3", "A(3), 4")
def compared_with_size(x, n):
    return x + 1 if len(x) < n else x - 1 if len(x) > n else x


def whether_not_implemented(x):
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        y = x + 1 if NotImplemented else x
    log(len(noted))
    return y, bool(NotImplemented)
