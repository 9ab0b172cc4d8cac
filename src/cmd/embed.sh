#!/bin/sh
# embed.sh FILE... -- writes files as C strings, so that build/dyntrace needs no files at run time: report.css is report_css.
# Who uses one declares it. The C goes to standard output.
set -e

echo '/* Made by src/cmd/embed.sh; change the files. */'
for file; do
    name=$(basename "$file" | tr . _)
    echo "extern const char $name[];"
    echo "const char $name[] ="
    sed 's/[\\"]/\\&/g; s/.*/    "&\\n"/' "$file"
    echo "    ;"
done
