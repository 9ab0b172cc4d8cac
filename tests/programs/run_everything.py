"""A bit of every kind of frame; test_run.py knows how often each is entered and how it ends."""
import asyncio
import sys
import threading


def plain():
    return 1


def raises():
    raise KeyError("x")


def passes_on():
    raises()


def generator():
    try:
        while True:
            yield 1
    except ValueError:
        yield 2


def delegating():
    yield from inner()


def inner():
    yield 1
    yield 2


async def coroutine():
    await asyncio.sleep(0)
    return await awaited()


async def awaited():
    return 3


async def async_generator():
    yield 1
    await asyncio.sleep(0)
    yield 2


async def consume():
    return [x async for x in async_generator()], await coroutine()


class Body:
    def __init__(self):
        self.x = 1

    def method(self):
        return (lambda: self.x)()

    class Nested:
        y = [i for i in range(2)]


def comprehensions():
    return [i for i in range(3)], {i for i in range(3)}, {i: i for i in range(3)}, sum(i for i in range(3))


def recursive(n):
    return recursive(n - 1) if n else 0


def in_thread():
    plain()


def main():
    plain()
    try:
        passes_on()
    except KeyError:
        pass
    g = generator()
    next(g)
    next(g)
    g.throw(ValueError)
    try:
        next(g)
    except StopIteration:
        pass
    closed = generator()
    next(closed)
    closed.close()
    list(delegating())
    asyncio.run(consume())
    for _ in range(50):
        Body().method()
    comprehensions()
    recursive(9)
    thread = threading.Thread(target=in_thread, name="the worker")
    thread.start()
    thread.join()
    exec(compile("made = 1\n", "<made>", "exec"), {})
    eval("plain()")


main()
sys.exit(7)
