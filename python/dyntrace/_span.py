"""Puts spans around functions that can be suspended: generators, coroutines, async generators.

Runs in: the traced process. The extension (src/tracer/span.c) wraps every function that has a span.
The extension itself calls the program's function. So a wrong call raises at the call, as without
dyntrace, and frames of dyntrace hold no arguments. If the result is a generator or a coroutine, the
extension passes it to the function that find_stepper() has returned.
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
