# remedies.awk -- makes src/trace/remedies.txt a table of struct remedy_rule (remedy.h). A word that is none is an error of
# the C compiler's.

function quoted(text) { gsub(/[\\"]/, "\\\\&", text); return "\"" text "\"" }
function close_rule() { if (open) printf "\"},\n"; open = 0 }

BEGIN {
    print "/* Made by remedies.awk from src/trace/remedies.txt; change that. */"
    print "#include \"trace/remedy.h\"\n"
    print "const struct remedy_rule remedy_rules[] = {"
}
/^#/ || /^$/ { next }
/^\[/ {
    close_rule()
    split(substr($0, 2, index($0, "]") - 2), head, " ")
    on = toupper(head[2])
    if (on !~ /^(CAUSE|DEATH|BREAK|GUARDS|AGAIN|BEST|TRIED|UNGUARDED)$/) { outcome = ", .outcome = OUTCOME_" on; on = "OUTCOME" } else outcome = ""
    printf "    {.torch = %d, .on = ON_%s%s, .name = %s", head[1] == "torch", on, outcome, quoted(substr($0, index($0, "]") + 2))
    next
}
/^  / {
    printf "%s%s", open ? " " : ",\n     .text = \"", substr(quoted(substr($0, 3)), 2, length(quoted(substr($0, 3))) - 2)
    open = 1
    next
}
{
    count = split($0, conditions, "; ")
    for (i = 1; i <= count; i++) {
        key = substr(conditions[i], 1, index(conditions[i], " ") - 1)
        value = substr(conditions[i], index(conditions[i], " ") + 1)
        if (key ~ /^(when|effort|effect|use)$/)
            value = toupper(key "_" value)
        else if (key ~ /^(since|until)$/) {
            split(value, version, ".")
            value = version[1] * 100 + version[2]
        } else if (key ~ /^(proven|beside)$/)
            value = value == "yes" ? "true" : toupper(key "_" value)
        else
            value = quoted(value)
        printf ", .%s = %s", key, value
    }
}
END { close_rule(); print "    {0}\n};" }
