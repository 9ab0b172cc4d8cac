# fish completion for dyntrace. Installed as share/fish/vendor_completions.d/dyntrace.fish.
#
# The program that is being completed says what may stand there: `dyntrace help --complete WORD...`.

function __dyntrace_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l last $words[-1]

    for line in ($words[1] help --complete $words[2..-1] 2>/dev/null)
        switch $line
            case '@command *' # from there on the line is another command's
                set -l skip (math (string replace '@command ' '' -- $line) + 2)
                complete -C (string join ' ' -- $words[(math $skip + 1)..-1])
                return
            case @TORCH_TRACE_DIR
                __fish_complete_directories $last
            case @OUT @GLOB
                __fish_complete_path $last
            case @PROGRAM
                __fish_complete_suffix .py
                __fish_complete_command
            case @PY @PYTHON
                __fish_complete_command
                __fish_complete_path $last
            case @FILE @TRACE @A
                __fish_complete_suffix .db
            case '@*' # names that only the user knows
            case '*'
                echo $line
        end
    end
end

complete -c dyntrace -f -a '(__dyntrace_complete)'
