#!/bin/sh
# under_valgrind.sh -- as the program under test: `dyntrace` under valgrind. DYNTRACE_CHECKED names it. An error or a
# leak ends it with 99. Valgrind takes thirty times as long, so processor time has no limit.
export DYNTRACE_LIMITS=off
exec valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
    "${DYNTRACE_CHECKED:?which program?}" "$@"
