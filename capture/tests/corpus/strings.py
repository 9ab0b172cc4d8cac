"""Strings: made of what is known, and of data."""


def f_string(x):
    return f"{x.ndim} dimensions of {x.shape!r}", x + 1


def f_string_of_data(x):
    y = x + 1
    s = f"{y.sum():.3f}"
    return s, y * 2


def formatted(x):
    return "%d %s" % (x.ndim, "a"), "{} {n:>4}".format(x.shape, n=3), x + 1


def joined(x):
    return "-".join(["a", "b"]) + "c" * 3, x


def asked(x):
    return "abc".startswith("a"), "a,b".split(","), "b" in "abc", "abc".upper()[1:], x * len("abc")


@calls("A(3), 'sum'", "A(3), 'mean'", "A(3), 'sum'", "A(3), 'nothing'")
def method_named(x, name):
    return getattr(x, name)() + 1


def converted(x):
    return x * int("3") + float("2.5"), str(3), repr("a"), ord("a"), chr(98)


def text_of_array(x):
    return str(x + 1), x * 2


def keys_made(x):
    d = {f"k{i}": x + i for i in range(3)}
    return d["k" + "1"] + d["k{}".format(2)]


@calls("A(3), 'ab'", "A(3), 'abc'", "A(3), ''")
def over_text(x, s):
    for c in s:
        x = x + ord(c)
    return x, s[::-1], s or "empty"
