"""Questions about code objects, named as in torch._dynamo.bytecode_transformation.

Runs in: the traced process.
"""

from __future__ import annotations

import inspect
import types

__all__ = ["is_generator"]


def is_generator(code: types.CodeType) -> bool:
    """Return whether a function with this code makes a generator, coroutine or async generator."""
    kinds = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    return bool(code.co_flags & kinds)
