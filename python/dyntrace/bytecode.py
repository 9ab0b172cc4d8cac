"""Questions about code objects, named as in torch._dynamo.bytecode_transformation.

Runs in: the traced process.
"""

import inspect


def is_generator(code):
    """True when calling a function of CODE makes a generator, coroutine or async generator."""
    return bool(
        code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)
    )
