"""Methods and attributes of arrays."""


def total(x):
    return x.sum()


def mean_of(x):
    return x.mean() + x.std()


@calls("A(2, 3)", "A(3, 2)", "A(2, 3, 4)")
def axes(x):
    return x.sum(0), x.sum(-1), x.max()


@calls("A(2, 6)", "A(4, 3)", "A(12)", "A(5)")
def reshaped(x):
    return x.reshape(3, 4)


@calls("A(2, 6)", "A(4, 3)")
def reshaped_by_tuple(x):
    return x.reshape((3, -1)).sum(1)


def chained(x):
    return x.clip(-1, 1).cumsum(0).sum()


@calls("A(2, 3)", "A(3, 3)")
def transposed(x):
    return x.T @ x


def shape_of(x):
    return x.shape


def number_of_dimensions(x):
    return x.ndim * 2 + len(x.shape)


def type_of_elements(x):
    return str(x.dtype), x.dtype == x.dtype


def bound_method(x):
    s = x.sum
    return s() + s()


def method_by_name(x):
    return getattr(x, "sum")() + getattr(x, "me" + "an")()


def no_such_method(x):
    return x.no_such()


def wrong_arguments(x):
    return x.sum(1, 2, 3, 4, 5, 6, 7)


@calls("A(2, 3)", "A(2, 3)[:, 1:]")
def unbound(x):
    return type(x).sum(x)


def flattened(x):
    return x.ravel().sum(), x.reshape(-1)


@calls("A(3)", "I(3)", "B(3)")
def kinds(x):
    return x.sum() * 2


@calls("A(4, 4)", "A(4, 4).T", "A(8, 8)[::2, ::2]")
def layouts(x):
    return (x * 2).sum(0)


def any_all(x):
    return (x > 0).any(), (x > 0).all()


def data_of_item(x):
    return x.sum().item() + 1


def to_list(x):
    return x.tolist()


class Appends:
    def __getattr__(self, name):
        log(name)
        return log


@calls("A(3), []", "A(3), Appends()", "A(3), 5", "A(3), [1]", "A(3), 'a'")
def method_of_what_it_is(x, many):
    log("before")
    y = x + 1
    log("between")
    many.append(print("argument"))
    return y


@calls("A(3), '%s'", "A(3), Appends()", "A(3), 5", "A(3), 'b{}'")
def method_of_a_word(x, many):
    seen = [1]
    many.format(print(seen))
    return x + 1


seen = {"n": 0}


class Sees:
    def __getattr__(self, name):
        log((name, seen["n"]))
        return log


@calls("A(3), []", "A(3), Sees()", "A(3), 5", "A(3), [1]")
def method_behind_an_effect(x, many):
    seen["n"] = 7
    many.append(print("argument"))
    seen["n"] = 0
    return x + 1


@calls("A(3)", "Sees()", "5", "A(3)")
def method_of_an_array_behind_an_effect(x):
    seen["n"] = 7
    x.sum(print("axis"))
    seen["n"] = 0
    return 1


@calls("A(3)", "Appends()", "5", "A(3)", "[1]")
def method_of_an_array(x):
    log("before")
    x.sum(print("axis"))
    return 1
