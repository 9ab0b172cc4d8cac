#!/bin/sh
# embed.sh -- writes the style and the script of the HTML report as C strings, so that build/dyntrace needs no files at run
# time. src/cmd/report/html.c declares them. Run from the top of the tree; the C goes to standard output.
set -e

echo '/* Made by src/cmd/report/page/embed.sh from the files beside it; change those. */'
for kind in css js; do
    echo "extern const char report_$kind[];"
    echo "const char report_$kind[] ="
    sed 's/[\\"]/\\&/g; s/.*/    "&\\n"/' src/cmd/report/page/report.$kind
    echo "    ;"
done
