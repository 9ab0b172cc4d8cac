"""Python numbers: of arrays, of math, of themselves."""
import math


def item(x):
    return x.sum().item()


def item_in_arithmetic(x):
    n = x.sum().item()
    return x * n + n


def converted(x):
    return float(x.sum()), int(x.sum()), bool(x.sum()), x + 1


def element_as_number(x):
    n = float(x[0])
    return x + n * 2


@calls("A(3), 2", "A(3), 3", "A(3), 0")
def math_of_constant(x, n):
    return x * math.sqrt(n) + math.floor(2.5), math.cos(n), math.gcd(n, 6)


def math_of_data(x):
    return math.exp(x.sum()) if abs(x.sum()) < 50 else 0


@calls("A(3), 7", "A(3), -7", "A(3), 7.5")
def integer_operations(x, n):
    return x + n // 2, n % 3, divmod(n, 4), abs(n), pow(n, 2), round(n, 1)


@calls("A(3), 7", "A(3), 0")
def divided(x, n):
    return x / n, 1 / n


@calls("A(3), 3", "A(3), 2 ** 70")
def bits(x, n):
    return n << 1, n >> 1, n & 1, n | 4, n ^ 1, ~n, x * 2


def only_numbers(x):
    total = 0
    for i in range(10):
        total += i * i
    return total


@calls("3", "4", "3.5", "'a'")
def no_array(n):
    return n * 2


@calls("", "")
def no_argument():
    return 5


def round_of_array(x):
    return round(x.sum().item(), 2), xp.round(x)


def comparison_of_item(x):
    return 1 if x.sum().item() > 0 else 2


def complex_numbers(x):
    c = 1 + 2j
    return c * c, abs(3 + 4j), c.real, x * 2


def from_bytes(x):
    return x * int.from_bytes(b"\1\2", "big"), (300).to_bytes(2, "little")


@calls("A(3), 1", "A(3), 2", "A(3), 3", "A(3), -1", "A(3), 4")
def beside_a_large_one(x, n):
    """A number of more digits than Python turns into text."""
    return x + n if n * 10 ** 5000 > 5 else x - n


@calls("A(3), 1", "A(3), 2", "A(3), 3", "A(3), 4", "A(3), 5")
def power_of_a_negative_one(x, n):
    return x + n if (-2) ** n > 0 else x - n
