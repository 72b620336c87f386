#compdef fusee
# zsh completion for fusee; written by `fusee completions zsh`
_fusee() {
    local -a candidates continued
    local word about
    while IFS=$'\t' read -r word about; do
        # `_describe` separates the description by a colon.
        about="${word//:/\\:}${about:+:$about}"
        if [[ $word == *[:=] ]]; then continued+=("$about"); else candidates+=("$about"); fi
    done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( ${#candidates} + ${#continued} == 0 )); then
        _files
        return
    fi
    (( ! ${#candidates} )) || _describe -V fusee candidates
    (( ! ${#continued} )) || _describe -V fusee continued -S ''
}
if [[ ${funcstack[1]} == _fusee ]]; then _fusee "$@"; else compdef _fusee fusee; fi
