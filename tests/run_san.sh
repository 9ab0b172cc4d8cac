#!/bin/sh
# run_san.sh -- the second half of `make check-san`: pytest with everything of
# ours under ASan and UBSan. Arguments: how to run pytest. TESTS: the tests.
#
# A Python that loads our extension must have the ASan runtime from its start,
# hence LD_PRELOAD; so must every program in between, it being inherited. Python
# never frees some of what it allocates, so leaks are not looked for here (the
# unit tests and check-valgrind do). The stack of an instrumented function is
# several times larger: recursion to the usual depths is not for this run.
set -eu

python=$1
runtime=$(gcc -print-file-name=libasan.so)
[ -e "$runtime" ] || { echo "run_san.sh: gcc has no libasan.so" >&2; exit 1; }

export DYNTRACE="$PWD/$BUILD/dyntrace"
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1:handle_segv=0:handle_sigbus=0
export UBSAN_OPTIONS=print_stacktrace=1
# One interpreter is enough: the extension's differences between them are few.
DYNTRACE_PYTHONS=$("$python" -c 'import sys; print(sys.executable)')
export DYNTRACE_PYTHONS DYNTRACE_SANITIZED=1
LD_PRELOAD=$runtime exec "$@" -q -p no:cacheprovider $TESTS
