# bash completion for dyntrace. Installed as share/bash-completion/completions/dyntrace.
#
# The program that is being completed says what may stand there: `dyntrace help --complete WORD...`.

_dyntrace_files() # $1: a suffix such as .db
{
    local IFS=$'\n'
    compopt -o filenames 2>/dev/null
    COMPREPLY+=($(compgen -f -X "!*$1" -- "$cur") $(compgen -d -- "$cur"))
}

_dyntrace()
{
    local cur=${COMP_WORDS[COMP_CWORD]} word words=""
    COMPREPLY=()
    while IFS= read -r word; do
        case $word in
        @command\ *) # from there on the line is another command's
            word=$((${word#* } + 2))
            if declare -F _command_offset >/dev/null && [[ ${COMP_WORDS[word]} != *.py ]]; then
                _command_offset "$word"
            else
                compopt -o default 2>/dev/null
            fi
            return
            ;;
        @TORCH_TRACE_DIR) compopt -o dirnames 2>/dev/null; COMPREPLY+=($(compgen -d -- "$cur")) ;;
        @OUT | @GLOB) compopt -o default 2>/dev/null ;;
        @PROGRAM) _dyntrace_files .py; COMPREPLY+=($(compgen -c -- "$cur")) ;;
        @PY | @PYTHON) COMPREPLY+=($(compgen -c -X '!python*' -- "$cur")); compopt -o default 2>/dev/null ;;
        @FILE | @TRACE | @A) _dyntrace_files .db ;;
        @*) ;; # names that only the user knows
        *=) compopt -o nospace 2>/dev/null; words+=" $word" ;;
        *) words+=" $word" ;;
        esac
    done < <("${COMP_WORDS[0]}" help --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    COMPREPLY+=($(compgen -W "$words" -- "$cur"))
}

complete -F _dyntrace dyntrace
