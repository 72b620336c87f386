# bash completion for fusee; written by `fusee completions bash`
_fusee() {
    local line="${COMP_LINE:0:COMP_POINT}" current="${COMP_WORDS[COMP_CWORD]}" word
    local -a words
    # By blanks and not by bash's own word breaks: names of models contain colons.
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    # bash replaces only what follows the last break.
    [[ $current == [:=] ]] && current=""
    local whole="${words[${#words[@]} - 1]}"
    local kept="${whole%"$current"}"
    COMPREPLY=()
    while IFS=$'\t' read -r word _; do
        COMPREPLY+=("${word#"$kept"}")
    done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
    # A name that is to be continued.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[:=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -F _fusee -o bashdefault -o default fusee
