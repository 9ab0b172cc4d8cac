"""The versions of CPython (src/versions.h) and of torch that the bridge to torch knows.

Runs in: the traced process, and ./dev, which reads the torch version to install. Only the standard
library is imported."""

import sys

# Minor versions of torch that were tested, by minor version of CPython: `make torch-matrix`, whose
# table is in docs/torch.md.
_FROM_6_TO_14 = {(2, minor) for minor in range(6, 15)}
TESTED = {
    (3, 11): _FROM_6_TO_14,
    (3, 12): _FROM_6_TO_14,
    (3, 13): _FROM_6_TO_14,
    (3, 14): {(2, 10), (2, 11), (2, 12), (2, 13), (2, 14)},
}
# The one of them that `pip` has, by CPython.
INSTALLED = {(3, 11): "2.13.0"}

# ---- torch._C._dynamo.eval_frame ----

# Attributes that hold no state of the evaluator: torch's are kept. The others are in
# src/tracer/torch/torch.c.
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
# torch 2.6: what its callback answers instead of a strategy. Compared by identity, so torch's are
# kept, too.
ANSWERS = {"skip_code_recursive_flag": "skip_recursively", "cache_limit_hit_flag": "limit_reached"}

# ---- CPython's frames ----


def decides_while_tracing(torch):
    """Whether torch (minor version; None: not known) decides frames that CPython runs with tracing
    set: trace and profile functions, callbacks of sys.monitoring, audit hooks. From 2.9 on it
    leaves them alone, from CPython 3.12 on.
    """
    return sys.version_info < (3, 12) or torch is not None and torch < (2, 9)


# 3.11 may count a frame more on the stack of one that was replaced (_torch's canary).
REPLACED_MAY_BE_DEEPER = sys.version_info < (3, 12)

if __name__ == "__main__":
    print(INSTALLED.get(sys.version_info[:2], ""))
