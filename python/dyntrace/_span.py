"""Puts spans around functions that can be suspended: generators, coroutines, async generators.

Runs in: the traced process. The extension (src/tracer/span.c) wraps every function that has a span.
The extension itself calls the program's function. So a wrong call raises at the call, as without
dyntrace, and frames of dyntrace hold no arguments. If the result is a generator or a coroutine, the
extension passes it to the function that find_stepper() has returned.
"""

import inspect
import types


def find_stepper(function):
    """Return a function stepper(span, inner). INNER is the result of FUNCTION, e.g. a generator.
    stepper() returns an object of the same kind, which opens SPAN at its first step and closes SPAN
    after its last step."""
    if inspect.isasyncgenfunction(function):
        make = _step_async_generator
    elif inspect.iscoroutinefunction(function):
        make = _step_coroutine
    elif function.__code__.co_flags & inspect.CO_ITERABLE_COROUTINE:
        make = _step_old_coroutine
    else:
        make = _step_generator

    def stepper(span, inner):
        made = make(span, _Unstarted(inner) if make is _step_coroutine else inner)
        made.__name__, made.__qualname__ = inner.__name__, inner.__qualname__
        return made

    return stepper


class _Unstarted:
    """Holds a coroutine that a wrapping coroutine awaits. If neither is ever awaited, only the
    wrapping one warns."""

    __slots__ = ("inner",)

    def __init__(self, inner):
        self.inner = inner

    def __del__(self):
        if self.inner is not None:
            self.inner.close()

    def take(self):
        inner, self.inner = self.inner, None
        return inner


def _step_generator(span, inner):
    with span:
        return (yield from inner)


@types.coroutine
def _step_old_coroutine(span, inner):
    with span:
        return (yield from inner)


async def _step_coroutine(span, unstarted):
    with span:
        return await unstarted.take()


async def _step_async_generator(span, inner):
    with span:
        step = inner.__anext__()
        while True:
            try:
                values = [await step]
            except StopAsyncIteration:
                return
            del step  # release the step, because it refers to the value that was sent
            try:
                step = inner.asend((yield values.pop()))
            except BaseException as error:
                step = inner.athrow(error)
