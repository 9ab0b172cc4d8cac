#!/bin/sh
# run_valgrind.sh -- the second half of `make check-valgrind`: a recording and
# the commands that read it, under valgrind.
#
# The collector is a fork of `dyntrace run`, so valgrind follows it; the traced
# Python is exec'ed, and is not followed. Its errors would be lost with its exit
# code, so each process writes a log and every log must be clean.
set -eu

logs=$BUILD/valgrind
rm -rf "$logs"
mkdir -p "$logs"
checked() {
    valgrind --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
        --log-file="$logs/%p.log" "$BUILD/dyntrace" "$@"
}

trace=$logs/trace.db
checked run -o "$trace" examples/wordcount.py README.md docs/internals.md
checked report "$trace" >/dev/null
checked sql "$trace" "SELECT count(*) FROM frame" >/dev/null
checked fsck "$trace" >/dev/null
checked doctor >/dev/null

unclean=$(grep -L 'ERROR SUMMARY: 0 errors' "$logs"/*.log || true)
if [ -n "$unclean" ]; then
    cat $unclean
    echo "run_valgrind.sh: see above" >&2
    exit 1
fi
echo "valgrind: $(ls "$logs"/*.log | wc -l) processes, no errors"
