_clap_complete_toolhost() {
    local IFS=$'\013'
    local _CLAP_COMPLETE_INDEX=${COMP_CWORD}
    local _CLAP_COMPLETE_COMP_TYPE=${COMP_TYPE}
    if compopt +o nospace 2> /dev/null; then
        local _CLAP_COMPLETE_SPACE=false
    else
        local _CLAP_COMPLETE_SPACE=true
    fi
    local words=() rest="${COMP_LINE:0:COMP_POINT}" piece blanks
    local pieces=("${COMP_WORDS[@]:0:COMP_CWORD+1}")
    [[ -n "$2" ]] && pieces[COMP_CWORD]="$2"
    for piece in "${pieces[@]}"; do
        blanks="${rest%%[![:space:]]*}"
        rest="${rest#"$blanks"}"
        if [[ ${#words[@]} -gt 0 && -z "$blanks" ]]; then
            words[${#words[@]}-1]+="$piece"
        else
            words+=("$piece")
        fi
        rest="${rest#"$piece"}"
    done
    local _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1))
    local on_line="${words[_CLAP_COMPLETE_INDEX]}"
    on_line="${on_line%"$2"}"
    COMPREPLY=()
    read -r -d '' -a COMPREPLY < <( \
        _CLAP_IFS="$IFS" \
        _CLAP_COMPLETE_INDEX="$_CLAP_COMPLETE_INDEX" \
        _CLAP_COMPLETE_COMP_TYPE="$_CLAP_COMPLETE_COMP_TYPE" \
        _CLAP_COMPLETE_SPACE="$_CLAP_COMPLETE_SPACE" \
        COMPLETE="bash" \
        "toolhost" -- "${words[@]}" \
    )
    if [[ -n "$on_line" ]]; then
        local whole=("${COMPREPLY[@]}") candidate
        COMPREPLY=()
        for candidate in "${whole[@]}"; do
            if [[ "$candidate" == "$on_line"* ]]; then
                COMPREPLY+=("${candidate#"$on_line"}")
            fi
        done
    fi
    if [[ ${#COMPREPLY[@]} == 0 ]]; then
        unset COMPREPLY
    elif [[ $_CLAP_COMPLETE_SPACE == false ]] && [[ "${COMPREPLY-}" =~ [=/:]$ ]]; then
        compopt -o nospace
    fi
}
if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _clap_complete_toolhost toolhost
else
    complete -o nospace -o bashdefault -F _clap_complete_toolhost toolhost
fi
