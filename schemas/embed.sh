#!/bin/sh
# embed.sh BUILD -- writes what is under schemas/ as C strings, so that build/dyntrace
# needs no files at run time. src/schema.h declares the symbols and says how C
# asks for them. Run from the top of the tree; the C goes to standard output.
# The SQL with values for its names (schemas/names.awk) stays in BUILD/schemas.
set -e

rm -rf "$1/schemas"
find schemas -type d | while read -r folder; do mkdir -p "$1/$folder"; done
for file in schemas/pages/*.txt; do cp "$file" "$1/$file"; done
find schemas -name '*.sql' | LC_ALL=C sort | xargs awk -v to="$1" -f schemas/names.awk src/vocabulary.h
top=$PWD
cd "$1"

# $1: a file. Each line becomes one string literal; C joins them.
literal() {
    sed 's/[\\"]/\\&/g; s/\t/\\t/g; s/.*/    "&\\n"/' "$1"
    test -s "$1" || echo '    ""'
}

cat <<'C'
/* Made by schemas/embed.sh from schemas/; change those. */
#include "schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
echo

# The other files: a statement, or a block of a page, from each "-- name: X" to the next, without the ';' at its end; a file without one is one.
echo "const struct schema_query schema_statements[] = {"
# The list of the named queries is a statement, too.
awk 'FNR == 1 {
        name = FILENAME
        sub(/.*\//, "", name)
        sub(/\.sql$/, "", name)
        sub(/^-- */, "")
        gsub(/\047/, "\047\047")
        gsub(/[\\"]/, "\\\\&")
        rows = rows (rows == "" ? "" : ", ") "(\047" name "\047, \047" $0 "\047)"
    }
    END { print "    {\"sql/.queries\",\n     \"SELECT column1 AS name, column2 AS \\\"what it shows\\\" FROM (VALUES " rows ")\"}," }' schemas/queries/*.sql
# So is what guards of torch's kinds look at, which the recorder says in Python: the table `aspect` of an import.
awk '/^}/ { listed = 0 }
    listed { gsub(/^ +| +$/, ""); gsub(/": "/, "\047, \047"); gsub(/", "/, "\047), (\047"); gsub(/^"/, "(\047"); gsub(/",$/, "\047)")
             rows = rows (rows == "" ? "" : ", ") $0 }
    /^ASPECT = {/ { listed = 1 }
    END { print "    {\"import/aspects\",\n     \"CREATE TEMP TABLE aspect AS SELECT column1 AS kind, column2 AS aspect FROM (VALUES " rows ")\"}," }' "$top/python/dyntrace/_torch_kinds.py"
# And the torches that are tested: the table `tested`, 206 and 215 for 2.6 and 2.15.
awk '/^_FROM_.*range\([0-9]+, [0-9]+\)/ {
        sub(/.*range\(/, "")
        split($0, ends, /[^0-9]+/)
        printf "    {\"import/tested\",\n     \"CREATE TEMP TABLE tested AS SELECT %d AS least, %d AS most\"},\n", 200 + ends[1], 199 + ends[2]
    }' "$top/python/dyntrace/_torch_versions.py"
find schemas \( -name '*.sql' -o -path 'schemas/pages/*.txt' \) ! -path 'schemas/queries/*' ! -path schemas/engines/sqlite.sql ! -path schemas/trace.sql ! -path schemas/views.sql | LC_ALL=C sort |
while read -r file; do
    awk -v file="$file" '
        function flush() {
            if (file ~ /sql$/) sub(/;[ \n]*$/, "", text)
            gsub(/[\\"]/, "\\\\&", text)
            gsub(/\n/, "\\n\"\n     \"", text)
            printf "    {\"%s%s\",\n     \"%s\"},\n", prefix, name, text
        }
        BEGIN { prefix = file; sub(/^schemas\//, "", prefix); sub(/\.(sql|txt)$/, "", prefix) }
        /^-- name: [^ ]+$/ { if (name != "") flush(); name = "/" $3; text = ""; next }
        { text = text $0 "\n" }
        END { flush() }' "$file"
done
cat <<'C'
    {0, 0}
};

const char *schema_statement(const char *name)
{
    const struct schema_query *s = schema_statements;

    while (s->name && strcmp(s->name, name))
        s++;
    if (!s->name) {
        fprintf(stderr, "dyntrace: schemas/ has no statement %s\n", name);
        abort();
    }
    return s->text;
}
C
