"""The latest calls of an agent of Claude Code, from the end of its transcript, to find loops.
As seen in runs of 2.1.197, 2.1.330 and 2.1.332.
"""

from __future__ import annotations

import errno
import json
from time import monotonic

from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.agent_files import LONGEST_LINE, lines_backwards
from gaia_sessions.hosts.payload import key_in, object_in, object_in_bytes, parts_in, text_in
from gaia_sessions.session.clock import parse_time, seconds_between
from gaia_sessions.session.repeats import REFUSED_AFTER, PastCall, is_own_refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.hosts.payload import Payload
    from gaia_sessions.jsonio.strict import Json

    Result = tuple[str, str, bool]
    """When a result was written, its text, and whether a hook refused the call."""


_LAST_BYTES = (REFUSED_AFTER + 1) * LONGEST_LINE
"""Enough for a row of the longest results that count. Reading ends at the end of the row, in most cases far earlier."""

_SECONDS_TO_READ = 0.5
"""An agent may write anything into its own transcript, and a hook has three seconds."""

_MARKS = (b'"type":"user"', b'"type":"assistant"', b'"type":"queued_command"')
_KEPT_AT_WORK = "Stop hook feedback:"
_DECISION = "permissionDecision"
_READERS = ("TaskOutput", "BashOutput", "AgentOutputTool")
_TASKS, _OUTPUT = "/tasks/", ".output"
"""The client's files for background work: one for each task, below a folder of the conversation."""

_PERSISTED, _SAVED_TO = "<persisted-output>", "saved to: "


def recent_calls(path: str, agent: str) -> Iterator[PastCall]:
    """Yields the calls of ``agent`` in a file, newest first, back to its last news; raises ``OSError``."""
    results: dict[str, Result] = {}
    until = monotonic() + _SECONDS_TO_READ
    for line in lines_backwards(CLAUDE_CODE, path, _LAST_BYTES):
        if monotonic() > until:
            raise TimeoutError(errno.ETIMEDOUT, "it is too long to read while the client waits")
        if len(line) <= LONGEST_LINE and not any(mark in line for mark in _MARKS):
            continue
        entry = object_in_bytes(line, LONGEST_LINE)
        # A line that cannot be read may have any call, so reading ends here.
        if not entry:
            return
        if entry.get("agentId") != agent:
            continue
        if entry.get("type") == "assistant":
            yield from _calls_in(entry, results)
        elif entry.get("type") in ("user", "attachment"):
            found = {key: result for key, result in _results_in(entry) if key}
            if not found and _is_told(entry):
                return
            results |= found


def _calls_in(entry: Payload, results: dict[str, Result]) -> Iterator[PastCall]:
    message = object_in(entry, "message")
    for part in reversed([*parts_in(message, "tool_use")]):
        key, tool = key_in(part, "id") or "", text_in(part, "name")
        call_text = _call_text(tool, object_in(part, "input"))
        written_at, result, was_refused = results.get(key, ("", None, False))
        reads = tool in _READERS or _OUTPUT in call_text.partition(_TASKS)[2]
        yield PastCall(
            key=key,
            message=text_in(message, "id") or key,
            call_text=call_text,
            result=result,
            seconds=float("inf") if reads else _seconds(text_in(entry, "timestamp"), written_at),
            was_refused=was_refused,
        )


def _call_text(tool: str, tool_input: Payload) -> str:
    """Returns the call as a text. The order of its keys does not count, nor the description of a command."""
    counted = {key: value for key, value in tool_input.items() if tool != "Bash" or key != "description"}
    return json.dumps([tool, counted], sort_keys=True)


def _results_in(entry: Payload) -> Iterator[tuple[str, Result]]:
    decision = object_in(entry, _DECISION)
    for part in parts_in(object_in(entry, "message"), "tool_result"):
        content, failed = _shown(part.get("content")), part.get("is_error") is True
        # 2.1.330 notes beside a result that a hook refused the call; no tool can write there. 2.1.197 does not note it,
        # so our own words decide.
        if _DECISION in entry:
            was_refused = decision.get("source") == "hook" and decision.get("decision") == "reject"
        else:
            was_refused = isinstance(content, str) and is_own_refusal(content)
        shown = json.dumps([failed, content], sort_keys=True)
        yield key_in(part, "tool_use_id") or "", (text_in(entry, "timestamp"), shown, failed and was_refused)


def _shown(content: Json) -> Json:
    """Returns what the agent saw, without the name of the client's file for a long result."""
    if not isinstance(content, str) or not content.startswith(_PERSISTED):
        return content
    before, _, rest = content.partition(_SAVED_TO)
    return before + rest.partition("\n")[2]


def _seconds(start: str, end: str) -> float:
    """Returns the seconds from ``start`` to ``end``; 0 without an end, infinite if the times are invalid."""
    try:
        return seconds_between(parse_time(start), parse_time(end)) if end else 0.0
    except ValueError:
        return float("inf")


def _is_told(entry: Payload) -> bool:
    """Returns whether this line without results tells the agent something new."""
    # News comes from the agent that delegated, also while this agent works; from its own background work; from a hook
    # that keeps it at work; from a summary. What the client says beside a result, of a skill or a picture, is no news.
    if entry.get("type") == "attachment":
        return object_in(entry, "attachment").get("type") == "queued_command"
    said = text_in(object_in(entry, "message"), "content")
    return entry.get("isMeta") is not True or "origin" in entry or said.startswith(_KEPT_AT_WORK)
