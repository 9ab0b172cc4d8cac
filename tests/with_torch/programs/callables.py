"""Kinds of callables: closures, methods of all kinds, lambdas, partials, generators, coroutines, defaults, *args, recursion."""
import asyncio
import functools

import torch

from know import Know

know = Know(__file__)
compiled = functools.partial(torch.compile, backend=know.backend())
x = torch.ones(3)
results = []


def twice(decisions, function, *args, **kwargs):
    """Called two times: the second is a hit wherever the first was compiled."""
    results.append(know.call(decisions, function, *args, **kwargs))
    results.append(know.call(decisions.replace("compiled", "hit"), function, *args, **kwargs))


def make_adder(amount):
    @compiled
    def adder(x):
        return x + amount
    return adder


twice("make_adder.<locals>.adder: compiled", make_adder(1), x)
know.call("make_adder.<locals>.adder: compiled", make_adder(2), x)
know.cause("make_adder.<locals>.adder", 1, 0, None, 1, 2)


def counter():
    count = 0

    @compiled
    def count_up(x):
        nonlocal count
        count += 1
        return x * 2 + count
    return count_up, lambda: count


count_up, counted = counter()
know.call("counter.<locals>.count_up: compiled", count_up, x)
know.call("counter.<locals>.count_up: compiled", count_up, x)
know.cause("counter.<locals>.count_up", 1, 0, None, 0, 1)
for _ in range(3):
    know.call("counter.<locals>.count_up: hit", count_up, x)
results.append(counted())


class Scaler:
    factor = 3

    def __init__(self, by):
        self.by = by

    @compiled
    def method(self, x):
        return x * self.by

    @classmethod
    @compiled
    def of_class(cls, x):
        return x * cls.factor

    @staticmethod
    @compiled
    def static(x):
        return x - 1

    @property
    @compiled
    def prop(self):
        return x * self.by

    def __call__(self, x):
        return x / self.by


scaler = Scaler(2)
twice("Scaler.method: compiled", scaler.method, x)
twice("Scaler.of_class: compiled", Scaler.of_class, x)
twice("Scaler.static: compiled", Scaler.static, x)
twice("Scaler.prop: compiled", lambda: scaler.prop)
twice("wrap_inline.<locals>.inner: compiled", compiled(scaler), x)
twice("<lambda>: compiled", compiled(lambda x: x.cos()), x)


@compiled
def signature(a, /, b, *rest, key=2, **more):
    return a + b + sum(rest) + key + sum(more.values())


twice("signature: compiled", signature, x, x, x, x, key=5, other=x)
results.append(know.call("signature: compiled", signature, x, x))
know.cause("signature", 1, 0, None, None, None)


@compiled
def fact(x, depth):
    if depth == 0:
        return x
    return fact(x, depth - 1) * depth


results.append(know.call("fact: compiled", fact, x, 4))         # taken in as a whole: one frame
know.frames["fact"] = 1


def numbers(x):
    for number in range(3):
        yield x + number


@compiled
def uses_generator(x):
    return sum(numbers(x))


twice("uses_generator: compiled", uses_generator, x)
# A generator that is itself compiled cannot be; it runs as it is.
results.append(know.call("numbers: declined", lambda: [part.sum().item() for part in compiled(numbers)(x)]))


@compiled
def step(x):
    return x + 1


async def coroutine(x):
    for _ in range(2):
        await asyncio.sleep(0)
        x = step(x)
    return x


results.append(know.call("step: compiled, step: hit", lambda: asyncio.run(coroutine(x))))
know.done(results=results)
