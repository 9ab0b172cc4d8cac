#!/bin/sh
# embed.sh -- writes the schema and the named queries as C strings, so that
# build/dyntrace needs no files at run time. src/schema.h declares the symbols.
# Run from the top of the tree; the C goes to standard output.
set -e

# $1: a file. Each line becomes one string literal; C joins them.
literal() {
    sed 's/[\\"]/\\&/g; s/\t/\\t/g; s/.*/    "&\\n"/' "$1"
    test -s "$1" || echo '    ""'
}

cat <<'C'
/* Made by schemas/embed.sh from schemas/; change those. */
#include "schema.h"

C
for name in trace views; do
    test -r schemas/$name.sql
    echo "const char schema_${name}_sql[] ="
    literal schemas/$name.sql
    echo "    ;"
    echo
done

echo "const struct schema_query schema_queries[] = {"
count=0
for file in schemas/queries/*.sql; do
    test -e "$file" || continue
    printf '    {"%s",\n' "$(basename "$file" .sql)"
    literal "$file"
    echo "    },"
    count=$((count + 1))
done
echo "    {0, 0}"
echo "};"
echo "const int schema_query_count = $count;"
