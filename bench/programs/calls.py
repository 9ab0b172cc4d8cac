"""The bare costs: a function call, a method call, a resumed generator."""


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def run_fib(times):
    for _ in range(times):
        result = fib(17)
    return result


def check_fib(result):
    return result == 1597


class Account:
    def __init__(self, balance):
        self.balance = balance

    def deposit(self, amount):
        self.balance += amount
        return self

    def read(self):
        return self.balance


def run_methods(times):
    for _ in range(times):
        result = 0
        for i in range(500):
            result += Account(i).deposit(1).read()
    return result


def check_methods(result):
    return result == 500 * 501 // 2


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y


def run_objects(times):
    for _ in range(times):
        for i in range(1000):
            result = Point(i, 1)
    return result


def check_objects(result):
    return result.x == 999


def count_to(n):
    for i in range(n):
        yield i


def run_generators(times):
    # sum() resumes from C, so that each resume is an evaluator call even
    # where the interpreter would inline a `for` loop over a generator.
    for _ in range(times):
        result = sum(count_to(2000))
    return result


def check_generators(result):
    return result == 2000 * 1999 // 2


class Ready:
    def __init__(self, value):
        self.value = value

    def __await__(self):
        got = yield self.value
        return got


async def add_up(n):
    total = 0
    for i in range(n):
        total += await echo(i)
    return total


async def echo(i):
    return await Ready(i)


def run_coroutines(times):
    for _ in range(times):
        coroutine = add_up(400)
        value = coroutine.send(None)
        try:
            while True:
                value = coroutine.send(value + 1)
        except StopIteration as stop:
            result = stop.value
    return result


def check_coroutines(result):
    return result == 400 * 401 // 2
