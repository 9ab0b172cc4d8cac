# bash completion for dyntrace. Installed as share/bash-completion/completions/dyntrace.

# Names of the ready queries, asked of the program that is being completed.
_dyntrace_queries()
{
    "${COMP_WORDS[0]}" sql --list 2>/dev/null | awk '{ print $1 }'
}

_dyntrace_files() # $1: a suffix such as .db
{
    local IFS=$'\n'
    compopt -o filenames 2>/dev/null
    COMPREPLY+=($(compgen -f -X "!*$1" -- "$cur") $(compgen -d -- "$cur"))
}

# What `run` starts: after its options, the rest of the line is another command's.
_dyntrace_run()
{
    local i word
    for ((i = 2; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case $word in
        -o | --python | --frames | --include | --exclude | --torch | --values | --max-depth | --min-duration | --max-stall) ((i++)) ;;
        -m | -c)
            ((COMP_CWORD > i + 1)) && { compopt -o default 2>/dev/null; return; }
            ;;
        -*) ;;
        *) # the command is here already
            if declare -F _command_offset >/dev/null && [[ $word != *.py ]]; then
                _command_offset "$i"
            else
                compopt -o default 2>/dev/null
            fi
            return
            ;;
        esac
    done
    case $prev in
    -o) _dyntrace_files .db ;;
    --python) COMPREPLY=($(compgen -c -X '!python*' -- "$cur")); compopt -o default 2>/dev/null ;;
    --frames) COMPREPLY=($(compgen -W "all user decided none" -- "$cur")) ;;
    --torch) COMPREPLY=($(compgen -W "auto shim observe off" -- "$cur")) ;;
    --values) COMPREPLY=($(compgen -W "all types off" -- "$cur")) ;;
    --include | --exclude) compopt -o default 2>/dev/null ;;
    --max-depth | --min-duration | --max-stall | -c) ;;
    -m) COMPREPLY=($(compgen -W "pytest unittest pip timeit json.tool http.server" -- "$cur")) ;;
    *)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "-o --force --live --python --frames --include --exclude --torch --values
                --no-argv --max-depth --min-duration --max-stall -m -c --help --" -- "$cur"))
        else
            _dyntrace_files .py
            COMPREPLY+=($(compgen -c -- "$cur"))
        fi
        ;;
    esac
}

_dyntrace()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} commands="run tui report why show replay check export merge import diff sql fsck doctor help"
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "$commands --help --version" -- "$cur"))
        return
    fi
    case ${COMP_WORDS[1]} in
    run) _dyntrace_run ;;
    report)
        if [[ $prev == --limit ]]; then
            return
        elif [[ $prev == --html ]]; then
            _dyntrace_files .html
        elif [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "--json --html --force --limit --help" -- "$cur"))
        else
            _dyntrace_files .db
        fi
        ;;
    tui)
        if [[ $prev == --keys || $prev == --screen ]]; then
            return
        elif [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "--live --ascii --keys --dump --screen --help" -- "$cur"))
        else
            _dyntrace_files .db
        fi
        ;;
    why | show)
        if [[ $cur == -* && ${COMP_WORDS[1]} == why ]]; then
            COMPREPLY=($(compgen -W "--sql --json --what-if --help" -- "$cur"))
        elif [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "--full --json --help" -- "$cur"))
        else
            _dyntrace_files .db # a function's name cannot be known before the trace is
        fi
        ;;
    replay)
        if [[ $prev == --what-if ]]; then
            compopt -o nospace 2>/dev/null
            COMPREPLY=($(compgen -W "best recompile_limit= accumulated_limit= order=mru order=fifo order=static isolate=region
                backend_shared=no dynamic= dynamic=all drop_guard=" -- "$cur"))
        elif [[ $prev == --@(commands|speed|function|next|previous|goto|filter|stop|guards) ]]; then
            return
        elif [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "--commands --next --previous --goto --here --filter --stop --continue --back --play --cache
                --guards --stack --source --speed --verify --what-if --function --calls --json --help" -- "$cur"))
        else
            _dyntrace_files .db
        fi
        ;;
    check)
        if [[ $prev == --max-* || $prev == --function || $prev == --require-compiled || $prev == --after-warmup || $prev == --limit ]]; then
            return
        elif [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "--max-recompiles --max-compiles --max-graph-breaks --max-guard-us --max-eager-share
                --require-compiled --function --after-warmup --limit --json --help" -- "$cur"))
        else
            _dyntrace_files .db
        fi
        ;;
    export)
        if [[ $prev == --format ]]; then
            COMPREPLY=($(compgen -W "perfetto chrome speedscope folded csv jsonl" -- "$cur"))
        elif [[ $prev == -o || $prev == --table ]]; then
            compopt -o default 2>/dev/null
        elif [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "--format -o --force --table --safe-csv --help" -- "$cur"))
        else
            _dyntrace_files .db
        fi
        ;;
    import)
        if [[ $prev == -o ]]; then
            _dyntrace_files .db
        elif [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "-o --force --help" -- "$cur"))
        else
            compopt -o dirnames 2>/dev/null
            COMPREPLY=($(compgen -d -- "$cur"))
        fi
        ;;
    merge)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "-o --force --help" -- "$cur"))
        else
            _dyntrace_files .db
        fi
        ;;
    diff)
        if [[ $prev == --fail-on ]]; then
            COMPREPLY=($(compgen -W "function code outcome entry reason break guard time lookup any" -- "$cur"))
        elif [[ $prev == --function || $prev == --tolerance || $prev == --rank || $prev == --limit ]]; then
            return
        elif [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "--fail-on --function --tolerance --lookups --rank --limit --json --help" -- "$cur"))
        else
            _dyntrace_files .db
        fi
        ;;
    sql)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "--json --no-header --list --help" -- "$cur"))
        else
            COMPREPLY=($(compgen -W "$(_dyntrace_queries)" -- "$cur"))
            [[ $prev == *.db ]] || _dyntrace_files .db
        fi
        ;;
    fsck)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "--recover --json --help" -- "$cur"))
        else
            _dyntrace_files .db
        fi
        ;;
    doctor) COMPREPLY=($(compgen -W "--help" -- "$cur")) ;;
    help) COMPREPLY=($(compgen -W "$commands" -- "$cur")) ;;
    esac
}

complete -F _dyntrace dyntrace
