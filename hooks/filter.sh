#!/bin/sh
# Events that mostly say nothing new: JSON on stdin, see README.md beside this file. Try it with --test.
#
# A shell takes a tenth of the time that a Python takes. So this starts the hook beside it, with the same input and options,
# unless it is sure that the hook would change nothing:
# - A batch of tools is of the main agent, or of an agent with a mark (gaia_sessions/store/batch_marks.py), and has no
#   delegation, which may have been refused. Times of files are compared since that starts no further process.
# - A prompt was typed (a client reports the ends of agents in prompts too), in a conversation that has had no agent.
# It is silent and exits with 0 in every case.

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

# Some shells need quadratic time to cut a long text.
is_long() {
    [ "${#payload}" -gt 262144 ]
}

# From here on every doubt ends in hear. A quote inside a text of JSON follows a backslash, so these are whole values.
case $payload in
*'"tool_calls":'*) ;;
'') exit 0 ;;
*'<task-notification>'* | *'\u'*) hear "$@" ;;
*)
    is_long && hear "$@"
    case $payload in
    *'"transcript_path":"/'*'"hook_event_name":"UserPromptSubmit"'*'"prompt":"'*) ;;
    *) hear "$@" ;;
    esac
    path=${payload#*'"transcript_path":"'} path=${path%%'"'*}
    case $path in
    *\\*) hear "$@" ;;
    esac
    [ -e "${path%.jsonl}/subagents" ] && hear "$@"
    exit 0
    ;;
esac

case $payload in
*'"Agent"'* | *'"Task"'* | *'"Workflow"'*) hear "$@" ;;
*'"agent_id"'*) ;;
*) exit 0 ;;
esac

# What tells of the agent comes before the tools and what they returned.
is_long && hear "$@"
head=${payload%%'"tool_calls":'*}
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
