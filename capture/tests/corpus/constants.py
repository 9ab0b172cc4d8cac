"""Arguments that are no arrays: numbers, strings, None, tuples; what is guarded, and how."""
import enum
import math
import operator


@calls("A(3), 1", "A(3), 1", "A(3), 2", "A(3), 1.0", "A(3), True")
def number(x, n):
    return x + n, type(n).__name__


@calls("A(3), 'add'", "A(3), 'mul'", "A(3), 'add'", "A(3), 'other'")
def string(x, how):
    if how == "add":
        return x + 1
    elif how == "mul":
        return x * 2
    raise ValueError(how)


@calls("A(3)", "A(3), None", "A(3), A(3)", "A(3), 5")
def none(x, y=None):
    if y is None:
        return x
    return x + y


@calls("A(3), (1, 2)", "A(3), (1, 2, 3)", "A(3), (2, 1)", "A(3), ()")
def tuple_of_numbers(x, t):
    for n in t:
        x = x * n
    return x, len(t)


@calls("A(3), float('nan')", "A(3), float('nan')", "A(3), 0.0", "A(3), -0.0")
def floats(x, f):
    return x * f, math.copysign(1, f)


@calls("A(3), 10 ** 30", "A(3), 10 ** 30", "A(3), -10 ** 30")
def big(x, n):
    return (x * 2, n + 1)


@calls("A(3), 2 + 1j", "A(3), 2 + 1j")
def complex_number(x, c):
    return x * c


@calls("A(3), [1, 2]", "A(3), [1, 2]", "A(3), [2]", "A(3), []")
def list_of_numbers(x, t):
    for n in t:
        x = x + n
    t.append(7)
    return x


@calls("A(3), {'a': 1}", "A(3), {'a': 2}", "A(3), {'b': 1}", "A(3), {}")
def dict_of_numbers(x, d):
    return x * d.get("a", 10), "b" in d


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@calls("A(3), Colour.RED", "A(3), Colour.BLUE", "A(3), Colour.RED")
def enumeration(x, colour):
    return x + (1 if colour is Colour.RED else 2) * colour.value


@calls("A(3), range(2)", "A(3), range(3)", "A(3), range(0)")
def ranges(x, r):
    for i in r:
        x = x + i
    return x


@calls("A(3), 0", "A(3), 1", "A(3), -1", "A(3), 2", "A(3), 5")
def arithmetic(x, n):
    k = (n * 3 + 1) // 2 % 7
    return x * k, k ** 2, k / 4, -k, k == n, k < n


@calls("A(3), b'ab'", "A(3), bytearray(b'ab')", "A(3), b'xy'")
def byte_strings(x, b):
    return x * b[0], b[::-1]


@calls("A(3), slice(0, 2)", "A(3), slice(1, None)", "A(3), slice(None, None, 2)")
def slices(x, s):
    return x[s]


@calls("A(3), int", "A(3), float", "A(3), str")
def types(x, t):
    return x + (t is int), t("3")


@calls("A(3), frozenset([1])", "A(3), frozenset([2])", "A(3), {1, 2}")
def sets(x, s):
    return x * len(s), 1 in s


@calls("A(3), 3, scale=2", "A(3), 3, scale=3", "A(3), 3")
def keyword(x, n, *, scale=1):
    return x * n * scale


@calls("A(3), (A(3), 2)", "A(3), (A(3), 3)", "A(3), (A(4), 3)", "A(3), (A(3),)")
def tuple_with_array(x, pair):
    y, n = pair
    return x + y * n


@calls("A(3), {'w': A(3), 'b': 1}", "A(3), {'w': A(3), 'b': 2}", "A(3), {'w': A(3)}")
def dict_with_array(x, params):
    return x * params["w"] + params["b"]


@calls("A(3), [A(3), A(3)]", "A(3), [A(3), A(3)]", "A(3), [A(3)]", "A(3), []")
def list_of_arrays(x, many):
    for each in many:
        x = x + each
    return x


@calls("A(3), (1, 0j)", "A(3), (1, -0j)", "A(3), (True, 0j)", "A(3), 1j", "A(3), complex(0.0, 1)", "A(3), complex(-0.0, 1)", "A(3), complex(float('nan'), 1)")
def complex_or_in_a_tuple(x, c):
    return x + 1, str(c)


@calls("A(3), range(0, 3, 2)", "A(3), range(0, 4, 2)", "A(3), range(0)", "A(3), range(2, 2)", "A(3), (range(1),)", "A(3), (range(0, 1, 5),)")
def equal_ranges(x, r):
    return x + 1, str(r)


@calls("A(3), slice(1, 2)", "A(3), slice(True, 2)", "A(3), slice(1, 2, None)", "A(3), slice(0, 2)", "A(3), slice(False, 2)")
def equal_slices(x, s):
    return x[s], str(s), s.start


@calls("A(3), slice(0.0, 1)", "A(3), slice(-0.0, 1)", "A(3), slice(0, (1, 2))", "A(3), slice(0, (True, 2))", "A(3), slice(0, 'a')", "A(3), slice(float('nan'))")
def equal_slices_of_others(x, s):
    return x + 1, str(s)


@calls("A(3), 1000, 1000", "A(3), 1000, int('1000')", "A(3), int('1000'), int('1000')")
def identity_by_a_function(x, a, b):
    return x + 1, operator.is_(a, b), operator.is_not(a, b), a == b


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Named(enum.Enum):
    value_of = 1
    other = 4.5

    @property
    def double(self):
        return self.value * 2


@calls("A(3), Colour.RED, Size.SMALL", "A(3), Colour.BLUE, Size.SMALL", "A(3), Colour.RED, Size.LARGE", "A(3), Named.other, Size.SMALL", "A(3), Size.SMALL, Size.SMALL",
       "A(3), Colour.RED, Size.SMALL")
def enumerations(x, a, b):
    y = x * a.value if a is not Named.other else x - a.value
    return y, a is b, a.name, b is Size.SMALL, b.value + 1, Named.other is a, Named.value_of.double


@calls("A(3), 0j, 1", "A(3), -0j, 1", "A(3), complex(0.0, -0.0), 1", "A(3), complex(-0.0, 0.0), 1", "A(3), 1 + 2j, (0j,)", "A(3), 1 + 2j, (-0j,)", "A(3), 0j, 1")
def complex_zeros(x, c, t):
    return x * c, repr(c), t


def same_numbers(x):
    a, b, c, d = 257, 256, 2.5, "word"
    e, f, g = a - 1, b * 2 - 256, x.shape[0] * 100
    return x + 1, e is b, f is b, c is d, b is e, (e is f) + 0
