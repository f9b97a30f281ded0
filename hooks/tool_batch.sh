#!/bin/sh
# A batch of tools of an agent has ended: JSON on stdin, see README.md beside this file. Try it with --test.
#
# Most batches say nothing new, and a shell takes a tenth of the time that a Python takes. So this starts the hook beside
# it, with the same input and options, unless it is sure that the hook would change nothing: the batch has no delegation,
# which may have been refused, and is of the main agent, or of an agent with a mark (gaia_sessions/store/batch_marks.py).
# It is silent and exits with 0 in every case. Times of files are compared since that starts no further process.

case $0 in
*/*) here=${0%/*} ;;
*) here=. ;;
esac
if [ -f "$here/gaia-sessions-hook" ]; then
    set -- "$here/gaia-sessions-hook" "$@"
elif [ -f "$here/every_event.py" ]; then
    set -- python3 -S "$here/every_event.py" "$@"
else
    exit 0
fi

case " $* " in
*' --test '* | *' --help '* | *' -h '*) exec "$@" ;;
esac
[ -t 0 ] && exec "$@"
exec 2>/dev/null

payload=$(cat) || exec "$@"

hear() {
    printf '%s' "$payload" | "$@"
    exit 0
}

# From here on every doubt ends in hear. A quote inside a text of JSON follows a backslash, so these are whole values.
case $payload in
*'"Agent"'* | *'"Task"'* | *'"Workflow"'*) hear "$@" ;;
*'"agent_id"'*) ;;
*) exit 0 ;;
esac

# Some shells need quadratic time for what follows. What tells of the agent comes before the tools and what they returned.
[ "${#payload}" -le 262144 ] || hear "$@"
case $payload in
*'"tool_calls":'*) head=${payload%%'"tool_calls":'*} ;;
*) hear "$@" ;;
esac
case $head in
*'"agent_id":"'*'"hook_event_name":"PostToolBatch"'*) id=${head#*'"agent_id":"'} id=${id%%'"'*} ;;
*) hear "$@" ;;
esac
case $id in
'' | *[!A-Za-z0-9_-]*) hear "$@" ;;
esac

case ${XDG_CACHE_HOME:-} in
/*) folder=$XDG_CACHE_HOME ;;
*)
    case ${HOME:-} in
    /*) folder=$HOME/.cache ;;
    *) hear "$@" ;;
    esac
    ;;
esac
folder=$folder/gaia-sessions/batches

# The mark holds from the time of the one file to that of the other. A new byte gives .now the present time.
if [ -O "$folder" ] && echo >"$folder/.now" && [ -f "$folder/$id" ] &&
    [ "$folder/$id.until" -nt "$folder/.now" ] && ! [ "$folder/$id" -nt "$folder/.now" ]; then
    exit 0
fi
hear "$@"
