#!/bin/sh
# embed.sh FILE... -- writes each FILE as a C string constant, so that build/dyntrace needs no files at run time.
# The string of report.css is named report_css; a C file that uses the string declares it. The C code goes to standard output.
set -e

echo '/* Made by src/cmd/embed.sh; change the files. */'
for file; do
    name=$(basename "$file" | tr . _)
    echo "extern const char $name[];"
    echo "const char $name[] ="
    sed 's/[\\"]/\\&/g; s/.*/    "&\\n"/' "$file"
    echo "    ;"
done
