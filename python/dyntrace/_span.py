"""Puts spans around functions that are suspended and go on: generators and coroutines.

Runs in: the traced process. The extension (src/tracer/span.c) calls around(); other functions it
wraps itself.
"""

import functools
import inspect


def around(span, function):
    """Return a function of FUNCTION's kind, each of whose calls is within SPAN, from its first step
    to its last."""
    if inspect.isasyncgenfunction(function):
        return functools.wraps(function)(_async_generator(span, function))
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*args, **kwargs):
            with span:
                return await function(*args, **kwargs)

        return coroutine

    @functools.wraps(function)
    def generator(*args, **kwargs):
        with span:
            return (yield from function(*args, **kwargs))

    return generator


def _async_generator(span, function):
    async def generator(*args, **kwargs):
        inner = function(*args, **kwargs)
        with span:
            step = inner.__anext__()
            while True:
                try:
                    value = await step
                except StopAsyncIteration:
                    return
                try:
                    step = inner.asend((yield value))
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as error:
                    step = inner.athrow(error)

    return generator
