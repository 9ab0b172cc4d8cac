#!/bin/sh
# embed.sh -- writes the schema, the named queries and the program's own statements
# as C strings, so that build/dyntrace needs no files at run time. src/schema.h
# declares the symbols.
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

# The program's own: every other folder, by folder and name.
cat <<'C'

#include <stdlib.h>
#include <string.h>

static const struct schema_query statements[] = {
C
for file in schemas/*/*.sql; do
    name=${file#schemas/}
    case $name in queries/*) continue ;; esac
    printf '    {"%s",\n' "${name%.sql}"
    literal "$file"
    echo "    },"
done
cat <<'C'
    {0, 0}
};

const char *schema_statement(const char *name)
{
    for (const struct schema_query *one = statements; one->name; one++)
        if (!strcmp(one->name, name))
            return one->text;
    abort(); /* a name that the program made up */
}
C
