"""What the bridge to torch knows of versions: of CPython, which src/versions.h lists, and of torch.

Runs in: the traced process, and ./dev, which asks for the torch to install. Only the standard library is imported.
"""
import sys

# Minor versions of torch and CPython that were tested together, by tests/with_torch and `make conformance`.
TESTED = {
    ((2, 6), (3, 13)), ((2, 13), (3, 11)), ((2, 14), (3, 14)),
}
# The one of them that `pip` has, by CPython.
INSTALLED = {(3, 11): "2.13.0"}

# 3.11 may count a frame more on the stack of one that was replaced (_torch's canary).
REPLACED_MAY_BE_DEEPER = sys.version_info < (3, 12)

if __name__ == "__main__":
    print(INSTALLED.get(sys.version_info[:2], ""))
