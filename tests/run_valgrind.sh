#!/bin/sh
# run_valgrind.sh -- the second half of `make check-valgrind`: a recording and
# the commands that read it, under valgrind. (Every key of the TUI: make tui-tour.)
#
# The collector is a fork of `dyntrace run`, so valgrind follows it; the traced
# Python is exec'ed, and is not followed. A fork's errors do not reach
# our exit code, so each process writes a log, and -q keeps all but errors out of it.
set -eu

logs=$BUILD/valgrind
rm -rf "$logs"
mkdir -p "$logs"
checked() {
    valgrind -q --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
        --log-file="$logs/%p.log" "$BUILD/dyntrace" "$@"
}

trace=$logs/trace.db
checked run -o "$trace" examples/wordcount.py README.md docs/internals.md
checked report "$trace" >/dev/null
checked sql "$trace" "SELECT count(*) FROM frame" >/dev/null
checked tui "$trace" --dump --keys "2 Enter Tab Esc 3 4 5 j Enter Esc 6 7 + + 8 Tab j Tab Space 9 ] [ 0 ? ! Esc :entries Enter" >/dev/null
checked fsck "$trace" >/dev/null
checked doctor >/dev/null

# Decisions, read back.
decisions=$logs/decisions.db
checked run -o "$decisions" examples/shapes.py
checked replay "$decisions" --verify >/dev/null
checked replay "$decisions" --what-if best >/dev/null
checked replay "$decisions" --what-if recompile_limit=2,drop_guard=TENSOR_MATCH --json >/dev/null
checked replay "$decisions" --to 'first miss' >/dev/null

# "==PID==" is an error; "--PID--" a remark, as on system calls that an old valgrind does not know.
unclean=$(grep -l '^==' "$logs"/*.log || true)
if [ -n "$unclean" ]; then
    cat $unclean
    echo "run_valgrind.sh: see above" >&2
    exit 1
fi
echo "valgrind: $(ls "$logs"/*.log | wc -l) processes, no errors; make tui-tour types every key of the TUI under it"
