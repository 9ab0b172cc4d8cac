# names.awk -- SQL with the names of src/vocabulary.h in place of numbers: "outcome IN ($HIT, $COMPILED)".
#
#   awk -f schemas/names.awk src/vocabulary.h FILE...          the files' SQL, to standard output
#   awk -v to=DIR -f schemas/names.awk src/vocabulary.h FILE...    each into DIR/FILE, whose folder is there
#
#   $HIT, $FRAME_CALL, $EXIT_RAISE   the number of an enumerator; OUTCOME_ is left out
#   $CHECK_PASS                      the word: the trace stores it where it stores no number
#   $OUTCOMES, $CHECK_RESULTS        how many there are
#   $OUTCOME_ROWS, $CHECK_ROWS       rows for VALUES: number, word, then 0 or 1 for each flag
#   $CHECK_NUMBERS                   for CASE result ... END: the number of a word
#   $LOSS_STALL, $RESUME_GLOB        the text of a #define
#
# A name that is none ends the build with its file and line. Names are in capitals: sqlite's own parameters here are not.

# A literal of SQL.
function quoted(text) { gsub(/\047/, "\047\047", text); return "\047" text "\047" }

function known(name, value)
{
    sub(/^OUTCOME_/, "", name)
    value_of[name] = value
}

# The text of a #define: string literals, and names of such.
function text_of(rest, text)
{
    while (match(rest, /"[^"]*"|[A-Z_]+/)) {
        word = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        text = text (word ~ /^"/ ? substr(word, 2, length(word) - 2) : texts[word])
    }
    return text
}

# A list of rows: X(1, HIT, "hit", true, ...) X(2, ...
function list(name, rest, row, rows, numbers, fields, count, i)
{
    sub(/_ROWS$/, "", name)
    while (match(rest, /X\([0-9]+, [A-Z_]+, "[^"]*"(, (true|false))*/)) {
        row = substr(rest, RSTART + 2, RLENGTH - 2)
        rest = substr(rest, RSTART + RLENGTH)
        count = split(row, fields, /, /)
        fields[3] = quoted(substr(fields[3], 2, length(fields[3]) - 2))
        members[name, ++size[name]] = fields[2]
        number[name, size[name]] = fields[1]
        word_of[name, size[name]] = fields[3]
        row = "(" fields[1] ", " fields[3]
        for (i = 4; i <= count; i++)
            row = row ", " (fields[i] == "true")
        rows = rows (rows == "" ? "" : ", ") row ")"
        numbers = numbers (numbers == "" ? "" : " ") "WHEN " fields[3] " THEN " fields[1]
    }
    value_of[name "_ROWS"] = rows
    value_of[name "_NUMBERS"] = numbers
    current = name
}

FNR == NR {
    sub(/\/\*.*\*\//, "")
    line = line $0
    if (sub(/\\$/, "", line))
        next
    if (line ~ /^#define [A-Z_]+_ROWS\(X\)/) {
        name = substr(line, 9, index(line, "(") - 9)
        list(name, substr(line, index(line, ")") + 1))
    } else if (line ~ /^#define [A-Z_]+ +"|^#define [A-Z_]+ +[A-Z_]+ +"/) {
        name = line
        sub(/^#define /, "", name)
        rest = name
        sub(/ .*/, "", name)
        sub(/^[^ ]* +/, "", rest)
        texts[name] = text_of(rest, "")
        value_of[name] = quoted(texts[name])
    } else if (match(line, /[A-Z_]+##NAME = number/)) {
        prefix = substr(line, RSTART, RLENGTH - length("##NAME = number"))
        for (i = 1; i <= size[current]; i++)
            known(prefix members[current, i], current == "CHECK" ? word_of[current, i] : number[current, i])
        counted = 1
    } else if (counted && line ~ /^ *[A-Z_]+$/) {
        gsub(/ /, "", line)
        value_of[line] = size[current]
        counted = 0
    }
    line = ""
    next
}

FNR == 1 && to != "" {
    if (out != "")
        close(out)
    out = to "/" FILENAME
    printf "" > out
}

{
    made = ""
    while (match($0, /\$[A-Z][A-Z_]*/)) {
        name = substr($0, RSTART + 1, RLENGTH - 1)
        if (!(name in value_of)) {
            printf "%s:%d: src/vocabulary.h has no $%s\n", FILENAME, FNR, name > "/dev/stderr"
            failed = 1
        }
        made = made substr($0, 1, RSTART - 1) value_of[name]
        $0 = substr($0, RSTART + RLENGTH)
    }
    if (to != "")
        print made $0 > out
    else
        print made $0
}

END { exit failed }
