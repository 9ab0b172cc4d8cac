# man.awk -- puts the synopses and options of all commands into the manual page:
#
#     dyntrace help --options | awk -f docs/man.awk - docs/dyntrace.1.in
#
# They stand where the page says `.\" synopses` and `.\" options of COMMAND`.

BEGIN { FS = "\t" }

# TEXT in FONT, R for plain, B or I.
function font(name, text)
{
    if (name == "R")
        return text
    gsub(/-/, "\\-", text)
    return "\\f" name text "\\fR"
}

# A text of --help: what stands between backquotes is bold, and so is every option; its value is italic.
function roff(text,    made, length_of)
{
    made = ""
    while (text != "") {
        match(text, /^[^`\\ -]*/)
        length_of = RLENGTH
        made = made substr(text, 1, length_of)
        text = substr(text, length_of + 1)
        if (match(text, /^`[^`]*`/)) {
            made = made font("B", substr(text, 2, RLENGTH - 2))
        } else if (text ~ /^-[^ ]/ && (!length_of || made ~ /\[$/)) {
            match(text, /^[^ ,.;:)|=\]]*/)
            made = made font("B", substr(text, 1, RLENGTH))
            text = substr(text, RLENGTH + 1)
            if (match(text, /^ [A-Z][^ ,.;:)|[\]]*/))
                made = made " " font("I", substr(text, 2, RLENGTH - 1))
            else
                RLENGTH = 0
        } else if (match(text, /^\\n */)) {
            made = made "\n.br\n"
        } else {
            made = made substr(text, 1, 1)
            RLENGTH = 1
        }
        text = substr(text, RLENGTH + 1)
    }
    return made "\n"
}

NR == FNR && !($1 in synopsis) { # a command's first line has its operands
    names[++commands] = $1
    synopsis[$1] = ".PP\n.B dyntrace " $1 "\n" ($2 == "" ? "" : ".I " $2 "\n")
    next
}
NR == FNR && NF == 2 { # they may stand behind its options
    synopsis[$1] = synopsis[$1] font("I", $2) "\n"
    next
}
NR == FNR {
    synopsis[$1] = synopsis[$1] ($2 == "" ? "" : roff($2))
    options[$1] = options[$1] ".TP\n" roff($3) roff($4)
    next
}
$0 == ".\\\" synopses" {
    for (i = 1; i <= commands; i++)
        printf "%s", synopsis[names[i]]
    next
}
sub(/^\.\\" options of /, "") { # field 1 is the command now
    printf "%s", options[$1]
    next
}
{ print }
