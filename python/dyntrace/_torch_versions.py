"""The versions of CPython (src/versions.h) and of torch that the bridge to torch knows.

Runs in: the traced process, and ./dev, which reads the torch version to install. Only the standard
library is imported."""

import sys

# Minor versions of torch that `make torch-matrix` has tested with each minor version of CPython.
# docs/torch.md shows them as a table.
_FROM_6_TO_15 = {(2, minor) for minor in range(6, 16)}
TESTED = {
    (3, 11): _FROM_6_TO_15,
    (3, 12): _FROM_6_TO_15,
    (3, 13): _FROM_6_TO_15,
    (3, 14): {(2, minor) for minor in range(10, 16)},
    (3, 15): {(2, 15)},
}
# The version of torch that ./dev installs with pip, for each minor version of CPython.
INSTALLED = {(3, 11): "2.13.0"}

# ---- torch._C._dynamo.eval_frame ----

# Attributes of torch._C._dynamo.eval_frame that do not depend on the evaluator, so they stay
# torch's own. The other attributes are replaced, see src/tracer/torch/torch.c.
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
# Objects that torch 2.6's callback returns in place of a strategy -> the name that
# src/tracer/torch/bridge.c has for the object. The objects are compared by identity, so they stay
# torch's own, too.
ANSWERS = {"skip_code_recursive_flag": "skip_recursively", "cache_limit_hit_flag": "limit_reached"}



def rules_by_thread(torch):
    """Does torch keep the fullgraph count and skip_guard_eval_unsafe separately for each thread?
    The same versions of torch return the old value from _set_lru_cache(). TORCH is (major, minor),
    or None if not known."""
    return torch is not None and torch >= (2, 15)


# ---- CPython's frames ----


def decides_while_tracing(torch):
    """CPython disables tracing while a trace or profile function, a callback of sys.monitoring or
    an audit hook runs. Does torch's evaluator decide frames of these functions? Torch 2.9 and later
    do not, from CPython 3.12 on. TORCH is (major, minor), or None if not known."""
    return sys.version_info < (3, 12) or torch is not None and torch < (2, 9)


# In CPython 3.11 the stack in a function whose code was replaced may be one frame deeper. The
# canary in _torch.py allows for this.
REPLACED_MAY_BE_DEEPER = sys.version_info < (3, 12)

if __name__ == "__main__":
    print(INSTALLED.get(sys.version_info[:2], ""))
