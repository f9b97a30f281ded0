"""What a sub-agent of Claude Code waits for when it ends a turn: work that it began in the background, which wakes it.
As seen in runs of 2.1.332.
"""

from __future__ import annotations

from itertools import islice
from time import monotonic

from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.agent_files import lines
from gaia_sessions.hosts.payload import key_in, object_in, object_in_bytes, parts_in, text_in
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.host_events import LONGEST_TASK, MOST_RUNNING, MOST_TASKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.hosts.payload import HookPayload, Payload
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.schema import OwnWork

_KINDS = {"shell": "command", "monitor": "monitor", "subagent": "agent"}
_WAKING = ("command", "monitor")
"""What wakes an agent. No agent was seen to wake the agent that started it: the client had reported that one done."""

_RUNNING = ("running", "pending")

_MOST_LOOKED_FOR = 200
_MOST_BYTES = 32 << 20
_MOST_ANSWERS = 200
_SECONDS_TO_READ = 0.5
"""An agent may write anything into its own transcript, and a hook has three seconds."""

_ANSWER = b'"tool_result"'
_WORDS_OF_CLIENT = ("Command ", "Monitor started ", "agentId: ")
"""The beginning of a line in which the client says what it left running. What agents read can have such lines too."""

_ID_STANDS_WITHIN = 200
_AROUND_ID = str.maketrans("(),.:;'\"", "        ")
_TASK_KEYS = ("backgroundTaskId", "taskId")
_LAUNCHED, _LAUNCHED_IN_WORDS = "async_launched", "Async agent launched"
"""What a result says of an agent that was only launched. The result of a returned agent has the agent's ID too."""

_ENDS_WITH_AGENT, _IN_WORDS = "backgroundEndsWithFinalResponse", "terminated when you give your final response"
"""What the client adds for an agent in the foreground: the agent's commands end when the agent reports."""


class _CannotTell(Exception):
    """The transcript is incomplete, or too long to read while a client waits."""


def of_stop(payload: HookPayload, agent: str) -> OwnWork | None:
    """Returns the background work for which the agent stopped; None if it stopped for good."""
    # The client lists the background work of the whole conversation, without owners. The agent's own transcript has
    # the ID of each task that the agent began, in the answer to the call.
    listed = _running(payload.raw.get("background_tasks"))
    if listed.pop(agent, None) is None or not listed:  # an agent in the foreground is not listed
        return None
    running = dict(islice(listed.items(), _MOST_LOOKED_FOR))
    try:
        are_all = len(running) == len(listed)
        own = _begun_by(agent, payload.raw.get("agent_transcript_path"), running, are_all=are_all)
        is_known = any(running[key] in _WAKING for key in own)
    except (_CannotTell, OSError):
        own, is_known = [key for key, kind in running.items() if kind in _WAKING], False
    if not own:
        return None
    kind = next((running[key] for key in own if running[key] in _WAKING), running[own[0]])
    work: OwnWork = {"since": format_time(payload.now), "kind": kind, "tasks": own[:MOST_TASKS]}
    return work if is_known else {**work, "assumed": True}


def _running(tasks: Json) -> dict[str, str]:
    """Returns the kind of each listed task that is still running, by its ID."""
    listed = islice(tasks, MOST_RUNNING) if isinstance(tasks, list) else ()
    going_on = (task for task in listed if isinstance(task, dict) and task.get("status") in _RUNNING)
    named = {key: text_in(task, "type") for task in going_on if (key := key_in(task, "id"))}
    return {key: _KINDS.get(kind, "work") for key, kind in named.items() if len(key) <= LONGEST_TASK}


def _begun_by(agent: str, transcript: Json, running: dict[str, str], *, are_all: bool) -> list[str]:
    """Returns those of ``running`` that the agent began and that outlive its turn, as its transcript says."""
    marks = [key.encode("utf-8", "surrogatepass") for key in running]
    until, left, answers = monotonic() + _SECONDS_TO_READ, _MOST_BYTES, 0
    found: dict[str, None] = {}
    # If one task is found, it does not matter whether the transcript is complete.
    is_whole, is_cut = False, not are_all
    for number, line in enumerate(lines(CLAUDE_CODE, transcript)):
        left -= len(line)
        if left < 0 or answers == _MOST_ANSWERS or monotonic() > until:
            is_cut = True
            break
        if number == 0:
            first = object_in_bytes(line)
            is_whole = first.get("agentId") == agent and first.get("parentUuid", "") is None
        if _ANSWER in line and any(mark in line for mark in marks):
            answers += 1
            said = object_in_bytes(line)
            if said.get("agentId", agent) == agent:
                found |= dict.fromkeys(_left_running(said, running))
            if len(found) == len(running):
                break
    if not found and (is_cut or not is_whole):
        raise _CannotTell
    return [key for key in running if key in found]


def _left_running(line: Payload, running: dict[str, str]) -> Iterator[str]:
    """Yields the tasks that this line, the result of a call of the agent, reports as left running."""
    results = [*parts_in(object_in(line, "message"), "tool_result")]
    response = object_in(line, "toolUseResult")
    if line.get("type") != "user" or not results or response.get(_ENDS_WITH_AGENT) is True:
        return
    names = (*_TASK_KEYS, "agentId") if response.get("status") == _LAUNCHED else _TASK_KEYS
    yield from (key for name in names if (key := key_in(response, name)) in running)
    for text in (text for result in results for text in _texts(result.get("content"))):
        of_client = _WORDS_OF_CLIENT if _LAUNCHED_IN_WORDS in text else _WORDS_OF_CLIENT[:-1]
        for said in text.splitlines():
            if said.startswith(of_client) and _IN_WORDS not in said:
                yield from (word for word in said[:_ID_STANDS_WITHIN].translate(_AROUND_ID).split() if word in running)


def _texts(content: Json) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        yield from (text_in(part, "text") for part in content if isinstance(part, dict))
