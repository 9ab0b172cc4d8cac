"""The versions of CPython (src/versions.h) and of torch that the bridge to torch knows.

Runs in: the traced process, and ./dev, which reads the torch version to install. Only the standard
library is imported."""

import sys

# Minor versions of torch that `make torch-matrix` has tested, by minor version of CPython.
# docs/torch.md has the table.
_FROM_6_TO_15 = {(2, minor) for minor in range(6, 16)}
_FROM_6_TO_14 = _FROM_6_TO_15 - {(2, 15)}
TESTED = {
    (3, 11): _FROM_6_TO_15,
    (3, 12): _FROM_6_TO_15,
    (3, 13): _FROM_6_TO_14,
    (3, 14): {(2, minor) for minor in range(10, 15)},
}
# The version that `pip` installs, by CPython.
INSTALLED = {(3, 11): "2.13.0"}

# ---- torch._C._dynamo.eval_frame ----

# Attributes of the module that hold no state of the evaluator: torch's own are kept. The others are
# replaced, see src/tracer/torch/torch.c.
STATELESS = {
    "NULL_STACK_VALUE",
    "NullStackValue",
    "VectorUInt8",
    "_EvalFrameOverride",
    "_FrameAction",
    "_FrameExecStrategy",
    "_get_frame_value_stack_with_depth",
    "code_framelocals_names",
    "get_method_ml_flags",
    "py_opcode_caches",
    "raise_sigtrap",
    "unsupported",
}
# torch 2.6: objects that its callback returns instead of a strategy. They are compared by identity,
# so torch's own are kept, too.
ANSWERS = {"skip_code_recursive_flag": "skip_recursively", "cache_limit_hit_flag": "limit_reached"}



def rules_by_thread(torch):
    """Does each thread have its own fullgraph count, and its own skip_guard_eval_unsafe? The same
    torch versions return the old value from _set_lru_cache. TORCH is the minor version, or None if
    not known."""
    return torch is not None and torch >= (2, 15)


# ---- CPython's frames ----


def decides_while_tracing(torch):
    """Does torch decide frames that CPython runs with tracing set: trace and profile functions,
    callbacks of sys.monitoring, audit hooks? Torch 2.9 and later do not, from CPython 3.12 on.
    TORCH is the minor version, or None if not known."""
    return sys.version_info < (3, 12) or torch is not None and torch < (2, 9)


# In 3.11 the stack may be one frame deeper in a function that was replaced (_torch's canary).
REPLACED_MAY_BE_DEEPER = sys.version_info < (3, 12)

if __name__ == "__main__":
    print(INSTALLED.get(sys.version_info[:2], ""))
