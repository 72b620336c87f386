# fish completion for fusee; written by `fusee completions fish`
function __fusee_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l candidates ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
    if test (count $candidates) -eq 0
        __fish_complete_path "$current"
    else
        printf '%s\n' $candidates
    end
end
complete -c fusee -k -f -a '(__fusee_complete)'
