#!/bin/sh
# embed.sh -- writes the style and the script of the HTML report as C strings, so that build/dyntrace needs no files at run
# time. src/report_html.c declares them. Run from the top of the tree; the C goes to standard output.
set -e

echo '/* Made by src/page/embed.sh from the files beside it; change those. */'
for kind in css js; do
    echo "extern const char report_$kind[];"
    echo "const char report_$kind[] ="
    sed 's/[\\"]/\\&/g; s/.*/    "&\\n"/' src/page/report.$kind
    echo "    ;"
done
